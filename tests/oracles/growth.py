"""A check that work does not grow with the square of its input, by the CPU time of a thread: load is no part of it."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

# A collection of garbage, a first import or a slow core spoils one run, not all of them.
RUNS = 5


def takes_less(seconds: float, work: Callable[[], object]) -> bool:
    """True once a run of the work takes less CPU time than this; False after `RUNS` runs that took more."""
    for _ in range(RUNS):
        begin = thread_time()
        work()
        if thread_time() - begin < seconds:
            return True
    return False
