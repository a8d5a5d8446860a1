"""Answers of a proxy source that are used again, and requests that several callers wait for.

A request goes on when its caller gives up, and its answer is kept for the next one who asks the same: a service that is
slower than the recall would otherwise never contribute. Both only where the settings keep answers at all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple

from astrocyte.providers.engines import EngineAnswer

# Of the responses whose answers one source keeps: some thousands of the usual size.
MOST_BYTES = 16 << 20


class Sized(NamedTuple):
    """An answer, and the bytes of the response that it was made of."""

    answer: EngineAnswer
    size: int


Ask = Callable[[], Awaitable[Sized]]


class Answers:
    """The kept answers of one source.

    Args:
        seconds: For how long one is used; 0 keeps none.
        most_pending: Requests that go on after their callers.
        clock: Seconds that never go back.
    """

    def __init__(self, seconds: float, most_pending: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most_pending = most_pending
        self._clock = clock
        self._kept: dict[Hashable, tuple[float, Sized]] = {}
        self._bytes = 0
        self._pending: dict[Hashable, asyncio.Task[EngineAnswer]] = {}

    async def of(self, key: Hashable, ask: Ask) -> EngineAnswer:
        """The kept answer of a key, or that of ``ask``. Failures are not kept."""
        if not self._seconds:
            return (await ask()).answer
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            return kept[1].answer
        task = self._pending.get(key)
        if task is None:
            if len(self._pending) >= self._most_pending:
                return (await ask()).answer
            task = asyncio.create_task(self._asked(key, ask), name="astrocyte-proxy-recall")
            # Seen, even where nobody waits for it any more.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._pending[key] = task
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what nobody waits for any more."""
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _asked(self, key: Hashable, ask: Ask) -> EngineAnswer:
        try:
            sized = await ask()
            self._drop(key)
            self._kept[key] = (self._clock() + self._seconds, sized)
            self._bytes += sized.size
            while self._bytes > MOST_BYTES:
                self._drop(next(iter(self._kept)))
            return sized.answer
        finally:
            del self._pending[key]

    def _drop(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept[1].size
