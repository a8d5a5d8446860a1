"""Token buckets that several processes draw from: the same arithmetic, on levels that all of them see."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping

from astrocyte.policy.limits.token_bucket import TOKEN, Buckets, Draw
from astrocyte.stores.quotas import RateBook


class SharedBuckets(Buckets):
    """As `Buckets`, with the levels in a book.

    Args:
        book: The levels.
        clock: Nanoseconds that never go back, and are the same for all processes.
    """

    def __init__(self, book: RateBook, clock: Callable[[], int] = time.monotonic_ns) -> None:
        super().__init__(clock)
        self._book = book

    def wait(self, draws: Mapping[Hashable, Draw]) -> tuple[Draw, int] | None:
        """See `Buckets.wait`."""
        with self._book.locked():
            self._read(draws)
            return super().wait(draws)

    def take(self, draws: Mapping[Hashable, Draw]) -> tuple[Draw, int] | None:
        """See `Buckets.take`."""
        with self._book.locked():
            self._read(draws)
            refused = super().take(draws)
            if refused is None:
                self._book.write({_name(draw.key): self._written(draw) for draw in draws.values()})
            return refused

    def _read(self, draws: Mapping[Hashable, Draw]) -> None:
        found = self._book.read([_name(draw.key) for draw in draws.values()])
        self._levels = {draw.key: found[name] for draw in draws.values() if (name := _name(draw.key)) in found}

    def _written(self, draw: Draw) -> tuple[int, int, int]:
        """Level, when it is that, and when the bucket is full again."""
        level, at = self._levels[draw.key]
        return level, at, at + -(-(draw.per_minute * TOKEN - level) // draw.per_minute)


def _name(key: Hashable) -> str:
    return repr(tuple(map(str, key)) if isinstance(key, tuple) else key)
