"""Work in parts: each is done once, results keep their order, and the first failure is told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from astrocyte.pipelines.lanes import Lane

PARTS = [[number, -number] for number in range(40)]


def taken(lane: Lane[list[int], int], threads: int) -> list[int]:
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(lane.take) for _ in range(threads)]:
            future.result()
    return lane.results()


@pytest.mark.parametrize("threads", [1, 3])
def test_results_keep_the_order_of_the_parts(threads: int) -> None:
    seen: list[int] = []
    meet = threading.Barrier(threads)

    def work(part: list[int]) -> list[int]:
        if part[0] < threads:
            # Nobody does it all.
            meet.wait(10)
        seen.append(part[0])
        return [number * 10 for number in part]

    assert taken(Lane(enumerate(PARTS), work), threads) == [number * 10 for part in PARTS for number in part]
    assert sorted(seen) == list(range(40))


def test_the_first_part_that_fails_is_told_and_none_is_taken_after_it() -> None:
    later = threading.Event()
    seen: list[int] = []

    def work(part: list[int]) -> list[int]:
        seen.append(part[0])
        if part[0] == 3:
            # The one behind it fails before.
            later.wait(10)
            raise ValueError("3")
        if part[0] == 4:
            later.set()
            raise ValueError("4")
        return part

    with pytest.raises(ValueError, match="3"):
        taken(Lane(enumerate(PARTS), work), 2)
    assert set(seen) <= {0, 1, 2, 3, 4}


def test_what_is_stopped_takes_no_further_part() -> None:
    lane: Lane[list[int], int] = Lane(enumerate(PARTS), list)
    lane.stop()
    lane.take()
    assert lane.results() == []
