"""How streams that only wait are told that the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from astrocyte.errors import Unavailable

MESSAGE = "the server is stopping; open the stream again on another server, or on this one when it is back"


class Draining:
    """Interrupts what has no end of its own, so that a stopping server does not wait for it. For one event loop."""

    def __init__(self) -> None:
        self._begun = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def begin(self) -> None:
        """Interrupt everything that waits, and whatever comes to wait later."""
        self._begun = True
        for task in self._waiting:
            task.cancel()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Mark the block as one that draining ends.

        Raises:
            Unavailable: The server began to stop. A cancellation from elsewhere passes through.
        """
        task = asyncio.current_task()
        if self._begun or task is None:
            raise Unavailable(MESSAGE)
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self._begun and task.uncancel() == 0:
                raise Unavailable(MESSAGE) from None
            raise
        finally:
            self._waiting.discard(task)
