"""How many calls of one kind run at once: beyond that they wait, and beyond as many again they are refused."""

from __future__ import annotations

import asyncio
import random
from collections import deque

from astrocyte.errors import RateLimited

# A full queue drains within about this time; spread over twice as much, so that the refused do not return together.
RETRY_SECONDS = 0.5


class Admission:
    """A semaphore with a bounded queue, first come first served. For one event loop.

    Args:
        kind: What the calls are, for the message.
        limit: Calls that run at once, and calls that wait.
    """

    def __init__(self, kind: str, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def running(self) -> int:
        """Calls that were let in and have not left."""
        return self._running

    @property
    def limit(self) -> int:
        """Calls that run at once; as many may wait."""
        return self._limit

    def try_enter(self) -> bool:
        """Let a call in if nobody has to wait. Pair with `leave`."""
        if self._running < self._limit:
            self._running += 1
            return True
        return False

    async def enter(self) -> None:
        """Let a call in, as soon as its turn comes. Pair with `leave`.

        Raises:
            RateLimited: As many wait already as may run.
        """
        if self.try_enter():
            return
        if len(self._waiting) >= self._limit:
            raise RateLimited(
                f"{self._limit} {self._kind} calls run and as many wait; retry later",
                retry_after=RETRY_SECONDS * (1 + random.random()),  # noqa: S311 - spreads load, keeps no secret
                metadata={"kind": self._kind, "limit": str(self._limit)},
            )
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The place was handed over just before the caller gave up: pass it on.
                self.leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Hand the place to who waits longest, or free it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1
