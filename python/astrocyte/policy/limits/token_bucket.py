"""Token buckets, exact: all arithmetic is in whole numbers, so that no rounding admits or refuses one call too many.

A bucket holds what a minute brings, and is full at first. A batch takes one token for each of its parts; one that is
larger than the bucket is admitted when the bucket is full, and the debt is waited for by those who come after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

NANOSECONDS = 1_000_000_000
# A token in the unit of a level: a bucket of n per minute gains n units in a nanosecond.
TOKEN = 60 * NANOSECONDS
# How many buckets there are before the first look for full ones, which are as good as none.
FIRST_SWEEP = 1_024


class Draw(NamedTuple):
    """Tokens wanted from the bucket of a key, which gains ``per_minute``."""

    key: Hashable
    per_minute: int
    tokens: int


class Buckets:
    """Buckets by key.

    Args:
        clock: Nanoseconds that never go back.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        # Level and when it was that, by key; a bucket that is not here is full.
        self._levels: dict[Hashable, tuple[int, int]] = {}
        self._rates: dict[Hashable, int] = {}
        self._sweep_at = FIRST_SWEEP

    def __len__(self) -> int:
        return len(self._levels)

    def wait(self, draws: Mapping[Hashable, Draw]) -> tuple[Draw, int] | None:
        """The draw that has to wait longest, and nanoseconds until it need not; None when all may be made now."""
        return self._looked(draws, self._clock())[0]

    def take(self, draws: Mapping[Hashable, Draw]) -> tuple[Draw, int] | None:
        """Make all draws, or none and say as `wait` which has to wait and how long."""
        now = self._clock()
        refused, levels = self._looked(draws, now)
        if refused is not None:
            return refused
        for draw, level in zip(draws.values(), levels, strict=True):
            self._levels[draw.key] = (level - draw.tokens * TOKEN, now)
            self._rates[draw.key] = draw.per_minute
        if len(self._levels) >= self._sweep_at:
            self._sweep(now)
        return None

    def _looked(self, draws: Mapping[Hashable, Draw], now: int) -> tuple[tuple[Draw, int] | None, list[int]]:
        """The result of `wait`, and the level of each draw's bucket."""
        longest: tuple[Draw, int] | None = None
        levels = []
        for draw in draws.values():
            level = self._level(draw, now)
            levels.append(level)
            missing = min(draw.tokens, draw.per_minute) * TOKEN - level
            # Rounded up: a caller that comes back then is not too early.
            wait = -(-missing // draw.per_minute)
            if wait > 0 and (longest is None or wait > longest[1]):
                longest = draw, wait
        return longest, levels

    def _level(self, draw: Draw, now: int) -> int:
        full = draw.per_minute * TOKEN
        level, at = self._levels.get(draw.key, (full, now))
        return min(full, level + (now - at) * draw.per_minute)

    def _sweep(self, now: int) -> None:
        """Drop full buckets. The next look comes when there are twice as many as are left."""
        for key, (level, at) in list(self._levels.items()):
            rate = self._rates[key]
            if level + (now - at) * rate >= rate * TOKEN:
                del self._levels[key], self._rates[key]
        self._sweep_at = max(FIRST_SWEEP, 2 * len(self._levels))
