"""The protocol of a store of lifecycles: runs over banks, in steps, and when memories were recalled last.

A run reads the memories of a bank in the order of their rows. A step is one transaction that archives or forgets some
of them and notes how far the run is, so that a process that was killed repeats at most a step that left no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from astrocyte.model import Bank, Operation, OperationError
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.records import NewMemory, RequestKey, VersionRecord

# The instant at which archived memories are visible, in milliseconds since the epoch: the year 9999, which no clock
# reaches, and which is still a date.
ARCHIVE_INSTANT = 253_370_764_800_000
# Ids that an operation lists of the memories that it changed, or would change.
LISTED_IDS = 100


class Fate(StrEnum):
    """The outcome of a memory in a run."""

    KEPT = "kept"
    UNUSED = "unused"
    EXPIRED = "expired"
    DELETED = "deleted"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class MemoryAge:
    """The properties of a memory that decide its fate. Times are milliseconds since the epoch.

    ``used_at`` is the last recall, or the begin of the version if that is later; None of an archived memory.
    """

    tags: tuple[str, ...]
    fact_type: str
    retained_at: int
    used_at: int | None


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to start: its id, whether it changes anything, and its rules as JSON."""

    operation_id: str
    dry_run: bool
    rules: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LifecycleWork:
    """A run that is not done.

    Attributes:
        key: Key of its operation.
        bank: The bank.
        rules: The rules as JSON; ``similarity_threshold`` is None where no duplicates are merged.
        dry_run: True if it changes nothing.
        merging: True if the ages are done, and duplicates are looked for.
        cursor: Row key up to which memories have been looked at.
        last_row: Row key up to which they are.
    """

    key: int
    bank: Bank
    rules: Mapping[str, Any]
    dry_run: bool
    merging: bool
    cursor: int
    last_row: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Two near duplicates: the memory that is kept, and the one that is archived as a part of it."""

    kept: NewMemory
    merged: NewMemory
    similarity: float


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """The parameters of a step that merges.

    Attributes:
        merges: In this order; a memory that was merged may be kept by none that follows.
        cursor: Row key up to which memories have been looked at.
        seen: How many were looked at.
        done: True if they were the last ones.
        most_tags: Tags that a memory may have; two that have more together are not merged.
        copies: The engine that forgets what is merged, if any.
    """

    merges: Sequence[Merge]
    cursor: int
    seen: int
    done: bool
    most_tags: int
    copies: CopyOrder | None


@dataclass(frozen=True, slots=True)
class StepOrder:
    """The parameters of a step.

    Attributes:
        judge: The fate of a memory at an instant; called within the transaction.
        limit: Memories that are read.
        purge_after: When forgotten memories may be erased.
        copies: The engine that forgets what is archived or forgotten, if any.
    """

    judge: Callable[[MemoryAge, int], Fate]
    limit: int
    purge_after: int
    copies: CopyOrder | None


class LifecycleStore(Protocol):
    """Lifecycles by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    async def start(self, bank: Bank, run: NewRun, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a run; an equal earlier request gets its operation.

        Raises:
            FailedPrecondition: Another operation of the bank is not done.
        """

    def work(self) -> LifecycleWork | None:
        """The oldest run that is not done; None for none."""

    def last_start(self, bank: Bank, by: str) -> int | None:
        """When a principal started a run of the bank last; None for never."""

    def banks(self, *, after: int, limit: int) -> list[Bank]:
        """Banks of all tenants by key, those after a key."""

    async def step(self, work: LifecycleWork, order: StepOrder) -> tuple[bool, Mapping[str, int]]:
        """Do a step; returns True if no ages are left to look at, and the number of memories by fate.

        Memories that a hold covers are left as they are.

        Raises:
            OperationEnded: The run was cancelled, or its bank was deleted.
        """

    def current(self, work: LifecycleWork, limit: int) -> list[VersionRecord]:
        """The next current memories of a run that looks for duplicates, with their vectors, by row key."""

    async def merge(self, work: LifecycleWork, order: MergeOrder) -> Mapping[str, int]:
        """Do a step that merges; returns the number of memories by fate.

        A merged memory is archived, and the kept one gets its tags. Memories that a hold covers, those with an exempt
        tag, and those that were changed since they were read, are left as they are.

        Raises:
            OperationEnded: The run was cancelled, or its bank was deleted.
        """

    async def fail(self, work: LifecycleWork, error: OperationError) -> None:
        """End a run as failed."""

    async def note_recalls(self, tenant: str, bank_id: str, memory_ids: Sequence[str], at: int) -> None:
        """Note that memories were recalled at a time; those that are gone are left out."""
