"""The protocol of a store of consolidations: the work that the change log holds, and its steps.

The changes of a bank are the queue: a bank has been consolidated up to a position, and a step is one transaction that
writes observations and the next position. A process that was killed repeats at most a step that left no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Bank, Memory, Operation, OperationError
from astrocyte.stores.knowledge import Body, ItemRecord, NewItem
from astrocyte.stores.records import RequestKey


@dataclass(frozen=True, slots=True)
class Revise:
    """A new revision of an observation, unless it is not of the expected one any more."""

    record: ItemRecord
    body: Body
    source_ids: tuple[str, ...]
    supersedes: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an observation whose sources changed."""

    record: ItemRecord


Action = NewItem | Revise | Delete


@dataclass(frozen=True, slots=True)
class ConsolidationWork:
    """A bank to consolidate: after ``position``, up to ``target``; ``key`` is that of the operation, 0 for none."""

    bank: Bank
    position: int
    target: int
    key: int


class ConsolidationStore(Protocol):
    """Consolidations by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    async def start(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a consolidation of the whole bank; an equal earlier request gets its operation.

        Raises:
            FailedPrecondition: Another operation of the bank is not done.
        """

    def work(self, *, enabled: bool) -> ConsolidationWork | None:
        """The next work: the oldest operation, else a bank with new changes if that is ``enabled``; None for none."""

    def changed(self, bank: Bank, *, after: int, until: int, limit: int) -> tuple[list[str], int]:
        """Memories of the next changes after a position, without repeats, and the position of the last one read."""

    def memories(self, bank: Bank, memory_ids: Sequence[str]) -> list[Memory]:
        """The current versions of these memories by time, those that are forgotten left out."""

    def of_topics(self, bank: Bank, topics: Sequence[bytes]) -> list[ItemRecord]:
        """The consolidated observations of topics that are shown, by age."""

    def resting_on(self, bank: Bank, memory_ids: Sequence[str]) -> list[ItemRecord]:
        """The consolidated observations that rest on a memory which changed or is gone since it was cited, by age.

        Their bodies are whole, and a source that is gone has no current version.
        """

    async def step(self, work: ConsolidationWork, actions: Sequence[Action], position: int) -> tuple[bool, int]:
        """Do the actions and note the position; returns True if the work is done, and the number left out.

        Observations that a hold covers are left as they are. Where the bank has as many observations as it may have,
        new ones are left out.

        Raises:
            Conflict: An observation was changed since it was read; nothing was done.
            OperationEnded: The operation was cancelled.
            BankNotFound: The bank was deleted.
        """

    async def fail(self, work: ConsolidationWork, error: OperationError) -> None:
        """End the operation of a work as failed, if it has one."""
