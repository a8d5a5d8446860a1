"""The protocol of readings by a language model: versions of memories that wait for it, and what it found in them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from astrocyte.model import GraphReading
from astrocyte.stores.graph.entity_graph import DerivedVersion, SourceVersion


class WaitingBank(NamedTuple):
    """A bank with versions that wait, and the calls and tokens that it has spent today."""

    bank_key: int
    bank_id: str
    calls: int
    tokens: int


class GraphReadings(Protocol):
    """The readings of all banks. Versions that are forgotten or replaced do not wait."""

    def waiting(self, day: int) -> list[WaitingBank]:
        """Banks with versions that wait, by key. ``day`` is in days since the epoch."""

    def next(self, bank_key: int) -> SourceVersion | None:
        """The newest version that waits, of those with the fewest failed calls."""

    def count(self, bank_key: int) -> int:
        """Number of versions that wait."""

    async def reserve(self, source: SourceVersion, day: int, calls: int, tokens: int) -> bool:
        """Count a call against the bank's budget before it is made, so that no crash makes a call unpaid.

        False, and nothing counted, if the version no longer waits, or the day's ``calls`` or ``tokens`` are spent.
        """

    async def give_back(self, source: SourceVersion) -> None:
        """Undo the count of a call to which the model gave no answer."""

    async def finish(
        self, source: SourceVersion, reading: GraphReading, model: str, derived: DerivedVersion | None, tokens: int
    ) -> None:
        """Store what the model found, the graph rows with it, and the tokens that it took, in one transaction.

        Args:
            source: The version; one that was erased meanwhile is left out.
            reading: What was found.
            model: Id of the model.
            derived: The rows of rules and model; None where they are those that are stored.
            tokens: Of prompt and answer.
        """

    async def fail(self, source: SourceVersion, tokens: int, most_attempts: int) -> None:
        """Count a call without a usable answer; after ``most_attempts`` of them the version no longer waits."""
