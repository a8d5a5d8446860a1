"""A batch of recalls in parts: one thread at a time asks for them and finishes them, while others search.

The interpreter lets one thread at a time do anything, and whoever waits for it has to be woken first. The core's
searches need no interpreter. So one thread does all that does, with no other of the batch to wait for; where nothing is
found yet, it searches too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from astrocyte.core import Bank, RecallQueue, RecallRequest, RecallResponse
from astrocyte.model import RecallResult
from astrocyte.pipelines.search.core_request import Plan

# Queries of the first part: as many as the core reads a bank's rows for at once, so that the others begin soon.
FIRST = 4
# Queries of each further part: some milliseconds of work.
PART = 8

Ask = Callable[[list[Plan]], Sequence[tuple[Bank, RecallRequest]]]
Finish = Callable[[list[Plan], list[RecallResponse], Sequence[float]], list[RecallResult]]


class Batch:
    """The parts of a batch, which one thread after the other may work on.

    Args:
        plans: Of all its queries, at least one.
        queue: Where others search. When it is stopped nobody waits for the batch any more.
        ask: What the core is asked for some plans.
        finish: Their results, of the core's answers and the seconds in which each was made.
    """

    def __init__(self, plans: Sequence[Plan], queue: RecallQueue, ask: Ask, finish: Finish) -> None:
        bounds = [0, *range(FIRST, len(plans), PART), len(plans)]
        self._parts = [list(plans[start:end]) for start, end in pairwise(bounds)]
        self._queue = queue
        self._ask = ask
        self._finish = finish
        self._asked: list[int] = []

    def ask_next(self) -> bool:
        """Ask for the next part; False where there is none, or nobody waits for it.

        Raises:
            Exception: What asking for it raised.
        """
        if len(self._asked) == len(self._parts):
            return False
        number = self._queue.add(self._ask(self._parts[len(self._asked)]))
        if number is None:
            return False
        self._asked.append(number)
        return True

    def run(self) -> list[RecallResult]:
        """The results of all parts, in order, or of some where nobody waits for them.

        Raises:
            Exception: What the first part that failed raised. So parts before one that cannot be asked for are finished
                all the same.
        """
        failure: Exception | None = None
        try:
            while self.ask_next():
                pass
        except Exception as error:  # noqa: BLE001 - a part before it may fail as well, and is the first then
            failure = error
        results: list[RecallResult] = []
        for plans, number in zip(self._parts, self._asked, strict=False):
            found = self._queue.take(number)
            if found is None:
                break
            results += self._finish(plans, *found)
        if failure is not None:
            raise failure
        return results
