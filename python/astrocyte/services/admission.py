"""The concurrency limit of one kind of calls: further calls queue, and are refused when the queue is full."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable

from astrocyte.errors import RateLimited

# A full queue drains within about this time; spread over twice as much, so that the refused do not return together.
RETRY_SECONDS = 0.5
# Calls that come in one turn of the loop begin in it for so long; the others wait for turns of their own. Many run from
# begin to end without waiting, and while they do nothing else has its turn, health least of all.
TURN_SECONDS = 0.005
# A call that lasted longer than this leaves so many turns to others before the next one that waited is let in: an
# answer about health takes about five turns, and should meet one such call and not five.
LONG_SECONDS = 0.002
SPARE_TURNS = 4


class Admission:
    """A semaphore with a bounded queue, first come first served. For one event loop.

    Args:
        kind: Name of the kind, for the message.
        limit: The maximum number of running calls.
        queue: Calls that wait; None: as many as run.
    """

    def __init__(self, kind: str, limit: int, queue: int | None = None) -> None:
        self._kind = kind
        self._limit = limit
        self._places = limit + (limit if queue is None else queue)
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._letting_in = False
        # To ask for the one that runs is a system call in CPython before 3.12.
        self._loop: asyncio.AbstractEventLoop | None = None
        # Until when calls may begin in this turn of the loop; None where none did yet.
        self._turn_until: float | None = None
        # When a call was let in last, and how many turns to spare for others since one was long.
        self._began = 0.0
        self._spare = 0

    @property
    def running(self) -> int:
        """The number of running calls."""
        return self._running

    @property
    def waiting(self) -> int:
        """The number of queued calls."""
        return len(self._waiting)

    @property
    def limit(self) -> int:
        """The maximum number of running calls."""
        return self._limit

    @property
    def places(self) -> int:
        """Calls that run or wait."""
        return self._places

    @property
    def full(self) -> bool:
        """True if the next call would be refused."""
        return self._running + len(self._waiting) >= self._places

    def try_enter(self) -> bool:
        """Admit a call if no call is queued and there is room. Pair with `leave`."""
        if self._running < self._limit and not self._waiting and self._turn_has_room():
            self._running += 1
            self._began = time.monotonic()
            return True
        return False

    async def enter(self) -> None:
        """Admit a call when its turn comes. Pair with `leave`.

        Raises:
            RateLimited: There is no room; see `full`.
        """
        if self.try_enter():
            return
        if self.full:
            raise self.refusal()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._running < self._limit:
            self._next()
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
        """Free the place for the first queued call."""
        self._running -= 1
        self._spare = SPARE_TURNS if time.monotonic() - self._began > LONG_SECONDS else 0
        self._next()

    def refusal(self) -> RateLimited:
        """The error of a call beyond the limit."""
        return RateLimited(
            f"the limit of concurrent {self._kind} calls is reached; retry later",
            retry_after=RETRY_SECONDS * (1 + random.random()),  # noqa: S311 - spreads load, keeps no secret
            metadata={"kind": self._kind, "limit": str(self._limit)},
        )

    def _turn_has_room(self) -> bool:
        now = time.monotonic()
        if self._turn_until is None:
            self._turn_until = now + TURN_SECONDS
            self._soon(self._end_turn)
        return now < self._turn_until

    def _soon(self, callback: Callable[..., None], *given: int) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._loop.call_soon(callback, *given)

    def _end_turn(self) -> None:
        self._turn_until = None

    def _next(self) -> None:
        """Admit the next call in an iteration of the loop of its own."""
        if self._waiting and not self._letting_in:
            self._letting_in = True
            self._soon(self._let_in, self._spare)

    def _let_in(self, spare: int) -> None:
        if spare:
            self._soon(self._let_in, spare - 1)
            return
        self._letting_in = False
        while self._waiting and self._running < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._running += 1
                self._began = time.monotonic()
                turn.set_result(None)
                self._next()
                return
