"""Daily quotas: reserved in a database on disk, some calls at a time, so that a restart or a second process adds none.

The rule: over a UTC day no more than the limit is ever admitted, by all processes that share the book together. Up to
64 calls at a time are reserved, and never more than a sixteenth of what is left, so that one call in many waits for the
disk. What a process has reserved and not used it gives back when it is closed; when it is killed, so much less is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from astrocyte.stores.quotas import QuotaBook, Use

DAY_MILLISECONDS = 86_400_000


class Quotas:
    """The unused part of today's quotas.

    Args:
        book: Where it is written.
        clock: Milliseconds since the epoch; the days are those of UTC.
        executor: Runs what waits for the disk.
    """

    def __init__(self, book: QuotaBook, clock: Callable[[], int], executor: Executor) -> None:
        self._book = book
        self._clock = clock
        self._executor = executor
        self._day = 0
        self._held: dict[Use, int] = {}
        # One reservation at a time: two would reserve twice for what one block covers.
        self._reserving = asyncio.Lock()

    async def take(self, wanted: Mapping[Use, tuple[int, int]]) -> tuple[Use, float] | None:
        """Take an amount from each limit, from all or from none.

        Args:
            wanted: How many, and the limit of a day, by what is used.

        Returns:
            None, or the use whose limit is reached and seconds until the next day.
        """
        if self._enough(wanted):
            self._use(wanted)
            return None
        async with self._reserving:
            refused = await self._reserve(wanted)
            if refused is not None:
                return refused, self._seconds_left()
            self._use(wanted)
        return None

    def give_back(self, wanted: Mapping[Use, tuple[int, int]]) -> None:
        """Undo a `take` of the same day."""
        for use, (count, _) in wanted.items():
            self._held[use] = self._held.get(use, 0) + count

    async def close(self) -> None:
        """Return unused reservations, and close the database."""
        held, self._held = self._held, {}

        def work() -> None:
            try:
                for use, left in held.items():
                    if left:
                        self._book.give_back(self._day, use, left)
            finally:
                self._book.close()

        await asyncio.get_running_loop().run_in_executor(None, work)

    def _use(self, wanted: Mapping[Use, tuple[int, int]]) -> None:
        for use, (count, _) in wanted.items():
            self._held[use] -= count

    async def _reserve(self, wanted: Mapping[Use, tuple[int, int]]) -> Use | None:
        """Hold enough for all; returns the first use for which there is not enough left."""
        # Others may use what is held while this waits for the disk.
        while not self._enough(wanted):
            for use, (count, limit) in wanted.items():
                missing = count - self._held.get(use, 0)
                if missing > 0 and not await self._hold(use, missing, limit):
                    return use
        return None

    async def _hold(self, use: Use, least: int, limit: int) -> bool:
        """Reserve at least so many; False when there are not so many left."""
        day = self._turn()

        def work() -> int:
            return self._book.reserve(day, use, least=least, limit=limit)

        taken = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        if day == self._turn():
            self._held[use] = self._held.get(use, 0) + taken
        return taken > 0

    def _enough(self, wanted: Mapping[Use, tuple[int, int]]) -> bool:
        self._turn()
        return all(self._held.get(use, 0) >= count for use, (count, _) in wanted.items())

    def _turn(self) -> int:
        """Today; what was held of an earlier day is gone. A clock that goes back does not bring a day back."""
        day = max(self._day, self._clock() // DAY_MILLISECONDS)
        if day != self._day:
            self._day = day
            self._held.clear()
        return day

    def _seconds_left(self) -> float:
        return (DAY_MILLISECONDS - self._clock() % DAY_MILLISECONDS) / 1e3
