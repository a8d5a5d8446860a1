"""Refusal of new calls, and the end of unbounded streams, while the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from astrocyte.errors import Unavailable

MESSAGE = "the server is stopping; call again on another server, or on this one when it is back"


class Draining:
    """Refuses new calls and interrupts unbounded streams. For one event loop.

    grpc itself would drop a call that comes while it shuts down as CANCELLED, which no client retries.
    """

    def __init__(self) -> None:
        # Whether the server began to stop.
        self.begun = False
        self._refused = 0
        self._waiting: set[asyncio.Task[Any]] = set()

    @property
    def refused(self) -> int:
        """The number of refused calls."""
        return self._refused

    def check(self) -> None:
        """Refuse a call that arrives while the server stops.

        Raises:
            Unavailable: The server began to stop.
        """
        if self.begun:
            self._refused += 1
            raise Unavailable(MESSAGE)

    def begin(self) -> None:
        """Interrupt all waiting streams, and those that begin to wait later."""
        self.begun = True
        for task in self._waiting:
            task.cancel()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Mark the block as one that draining ends.

        Raises:
            Unavailable: The server began to stop. A cancellation from elsewhere passes through.
        """
        task = asyncio.current_task()
        if self.begun or task is None:
            raise Unavailable(MESSAGE)
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self.begun and task.uncancel() == 0:
                raise Unavailable(MESSAGE) from None
            raise
        finally:
            self._waiting.discard(task)
