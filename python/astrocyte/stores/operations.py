"""The protocol of a store of operations, and of a bank's second set of vectors.

A bank has its vectors in one of two sets, which its row names. The other one is empty, or is being filled by a reindex,
or holds what the bank had before one. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from astrocyte.errors import Conflict
from astrocyte.model import Bank, Comparison, Operation, OperationError, ReindexPhase
from astrocyte.stores.records import RequestKey, VersionRecord

# A version's row key, and the vectors of its whole and of its chunks; None for text that has no direction.
Embedded = tuple[int, Sequence[bytes | None]]


class OperationEnded(Conflict):
    """An operation was cancelled, or its bank was deleted, while it ran."""


@dataclass(frozen=True, slots=True)
class NewReindex:
    """A reindex to start. Without ``to_model`` the bank is rolled back to its previous model."""

    operation_id: str
    to_model: str | None
    to_dimensions: int
    min_overlap: float
    sample: int


@dataclass(frozen=True, slots=True)
class Work:
    """An operation to run.

    Versions up to the row key ``cursor`` have been looked at; what changed after ``start_position`` is to be looked at
    once more.
    """

    key: int
    bank: Bank
    operation: Operation
    cursor: int
    start_position: int


class OperationStore(Protocol):
    """Operations by bank."""

    async def start(self, bank: Bank, new: NewReindex, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a reindex; an equal earlier request gets its operation, in its current state.

        Raises:
            FailedPrecondition: Another one of the bank is not done, the bank has that model already, or there are no
                former vectors to go back to.
        """

    async def cancel(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """Cancel an operation that is not done, and leave the bank unchanged; a finished one is not changed.

        Raises:
            NotFound: The bank has no such operation.
        """

    def get(self, bank: Bank, operation_id: str) -> Operation | None:
        """The operation as it is now, or None."""

    def listed(
        self, tenant: str, *, bank: Bank | None, after: int, limit: int, newest_first: bool = False
    ) -> list[tuple[int, Operation]]:
        """Operations of a bank, or of all, with their keys, by key, those after ``after``.

        With ``newest_first``, those with a key below ``after``, in reverse order.
        """

    def former(self, bank: Bank) -> tuple[str, int] | None:
        """The model, and its dimensions, whose vectors are kept beside the bank's own, or None."""

    def next(self) -> Work | None:
        """The oldest reindex that is not done, or None."""

    async def begin(self, key: int) -> None:
        """Record that an operation runs, and its total.

        Raises:
            OperationEnded: It was cancelled; so of all that follow and take a ``key``.
        """

    async def note(self, key: int, phase: ReindexPhase, comparison: Comparison | None = None) -> None:
        """Record the progress and the findings of an operation."""

    async def fail(self, key: int, error: OperationError) -> None:
        """End an operation as failed. Its vectors are dropped in the background."""

    def lacking(self, bank: Bank, model: str, *, after: int, limit: int) -> tuple[list[VersionRecord], int | None]:
        """Of the next versions after a row key those without vectors of a model, and the last row key looked at.

        Forgotten memories are left out. None for the row key says that there are no more.
        """

    def lacking_of(
        self, bank: Bank, model: str, memory_ids: Sequence[str], *, forgotten: bool = True
    ) -> list[VersionRecord]:
        """Versions of these memories that have no vectors of a model; none in a bank that never had an operation."""

    async def put(
        self, bank: Bank, model: str, rows: Sequence[Embedded], *, key: int | None = None, cursor: int | None = None
    ) -> None:
        """Store vectors of a model beside the bank's; versions that were erased since are left out.

        With a ``key`` it is a step of that operation, which has then come to ``cursor``, and versions that are
        forgotten are left out too.

        Raises:
            Conflict: The bank has no set of vectors for the model.
        """

    def sample(self, bank: Bank, count: int) -> list[tuple[str, str]]:
        """Ids and contents of about so many current memories, evenly by age."""

    async def move(self, key: int, *, checked: int, kept_until: int | None) -> list[str]:
        """Switch the bank to its new vectors in this commit, and end the operation.

        Args:
            key: The operation.
            checked: A position up to which all versions are known to have vectors.
            kept_until: When the former vectors are dropped; None drops them now.

        Returns:
            Memories that changed since and lack vectors: then nothing was done. Empty once it is done.
        """

    def leaving(self, now: int) -> list[Bank]:
        """Banks with vectors to drop, because they expired or their operation failed."""

    async def drop_some(self, bank: Bank) -> bool:
        """Drop some of these vectors; returns True if more may be left."""
