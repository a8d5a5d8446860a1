"""Several ways to do one thing, asked by turns: what each costs its thread, and how much more than the first."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from rich.table import Table

T = TypeVar("T")

# What comes first finds nothing in the caches.
WARM_ROUNDS = 200


async def by_turns(
    ways: Mapping[str, Callable[[T], Awaitable[object]]], asked: Iterable[T], *, seed: int
) -> dict[str, list[float]]:
    """Seconds of processor time of each way for each of what is asked, but for the first `WARM_ROUNDS`."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    chance = random.Random(seed)
    for number, one in enumerate(asked):
        # In another order each time: what runs before warms or cools what comes after.
        for name, way in chance.sample(list(ways.items()), len(ways)):
            used = time.thread_time()
            await way(one)
            if number >= WARM_ROUNDS:
                spent[name].append(time.thread_time() - used)
    return spent


def table(spent: Mapping[str, list[float]]) -> Table:
    """The medians beside that of the first way."""
    made = Table("", "median, us", "ratio", "more, us")
    base = statistics.median(next(iter(spent.values())))
    for name, seconds in spent.items():
        median = statistics.median(seconds)
        made.add_row(name, f"{median * 1e6:.0f}", f"{median / base:.2f}", f"{(median - base) * 1e6:+.0f}")
    return made
