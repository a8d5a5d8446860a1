"""The parts of a batch: asked for in order, finished in order, and the first failure is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from astrocyte.core import RecallQueue
from astrocyte.pipelines.recall.batch import FIRST, PART, Batch


class Queue:
    """Answers each request with itself; `stop` is called while the part of that number is taken."""

    def __init__(self, stops_at: int | None = None) -> None:
        self.parts: list[Sequence[Any]] = []
        self.stops_at = stops_at
        self.stopped = False

    def add(self, requests: Sequence[Any]) -> int | None:
        if self.stopped:
            return None
        self.parts.append(requests)
        return len(self.parts) - 1

    def take(self, part: int) -> tuple[list[Any], list[float]] | None:
        self.stopped = self.stopped or part == self.stops_at
        if self.stopped:
            return None
        return list(self.parts[part]), [0.5] * len(self.parts[part])


def batch(count: int, queue: Queue, *, asking: Sequence[int] = (), finishing: Sequence[int] = ()) -> Batch:
    """One of numbers, which fails where one of ``asking`` is asked for and one of ``finishing`` is finished."""

    def ask(plans: Sequence[Any]) -> list[Any]:
        if failed := set(asking) & set(plans):
            raise ValueError(f"asking {failed}")
        return [number * 10 for number in plans]

    def finish(plans: Sequence[Any], responses: Sequence[Any], seconds: Sequence[float]) -> list[Any]:
        if failed := set(finishing) & set(plans):
            raise ValueError(f"finishing {failed}")
        return list(zip(plans, responses, seconds, strict=True))

    return Batch(cast(Any, range(count)), cast(RecallQueue, queue), cast(Any, ask), cast(Any, finish))


@pytest.mark.parametrize("count", [1, FIRST, FIRST + 1, FIRST + PART, FIRST + 2 * PART + 1])
def test_all_is_asked_for_before_anything_is_taken_and_results_keep_their_order(count: int) -> None:
    queue = Queue()
    made = batch(count, queue)
    assert made.ask_next()
    assert [len(part) for part in queue.parts] == [min(FIRST, count)]
    assert cast(Any, made.run()) == [(number, number * 10, 0.5) for number in range(count)]
    assert sum(map(len, queue.parts)) == count
    assert {len(part) for part in queue.parts[1:-1]} <= {PART}
    assert not made.ask_next()


def test_a_part_that_cannot_be_asked_for_is_told_where_none_before_it_fails() -> None:
    queue = Queue()
    with pytest.raises(ValueError, match="asking"):
        batch(40, queue, asking=[20]).run()
    assert sum(map(len, queue.parts)) == FIRST + 2 * PART
    with pytest.raises(ValueError, match="finishing"):
        batch(40, Queue(), asking=[20], finishing=[5, 1]).run()


def test_what_nobody_waits_for_is_neither_asked_for_nor_finished() -> None:
    queue = Queue(stops_at=1)
    assert len(batch(40, queue).run()) == FIRST
    assert len(batch(40, queue, finishing=range(40)).run()) == 0
