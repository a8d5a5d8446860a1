"""Work in parts, which several threads take as they come to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

P = TypeVar("P")
R = TypeVar("R")


class Lane(Generic[P, R]):
    """Parts of which each is taken once, in order, and what becomes of them.

    Args:
        parts: By number. Whoever takes the next one holds the interpreter's lock.
        work: What is done with each; its results are put together.
    """

    def __init__(self, parts: Iterator[tuple[int, P]], work: Callable[[P], list[R]]) -> None:
        self._parts = parts
        self._work = work
        self._done: dict[int, list[R]] = {}
        self._failed: dict[int, Exception] = {}

    def take(self) -> None:
        """Take parts until none is left, or one fails."""
        for number, part in self._parts:
            try:
                self._done[number] = self._work(part)
            except Exception as error:  # noqa: BLE001 - `results` raises it
                self._failed[number] = error
                self.stop()

    def stop(self) -> None:
        """Leave no part to take."""
        for _ in self._parts:
            pass

    def results(self) -> list[R]:
        """Those of all parts, in order.

        Raises:
            Exception: What the first part that failed raised.
        """
        if self._failed:
            # Every part before it was taken before it.
            raise self._failed[min(self._failed)]
        return [result for number in sorted(self._done) for result in self._done[number]]
