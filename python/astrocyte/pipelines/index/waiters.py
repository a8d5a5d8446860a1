"""Callers that wait for changes of a bank's index."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator


class Waiters:
    """Those who wait, by the key of the bank. `notify` may be called from any thread, the rest from one event loop."""

    def __init__(self) -> None:
        # Only banks for which somebody waits.
        self.wakes: dict[int, set[Callable[[], None]]] = {}

    @contextlib.contextmanager
    def subscribed(self, bank_key: int) -> Iterator[asyncio.Event]:
        """An event that is set by each `notify` of the bank."""
        event = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            # A loop that closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

        self.wakes.setdefault(bank_key, set()).add(wake)
        try:
            yield event
        finally:
            waiters = self.wakes[bank_key]
            waiters.discard(wake)
            if not waiters:
                del self.wakes[bank_key]

    def notify(self, bank_key: int) -> None:
        """Wake those who wait for a bank."""
        for wake in tuple(self.wakes.get(bank_key, ())):
            wake()
