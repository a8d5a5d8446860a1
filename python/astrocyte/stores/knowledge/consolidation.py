"""The protocol of a store of consolidations: the work that the change log holds, and its steps.

The changes of a bank are the queue: a bank has been consolidated up to a position, and a step is one transaction that
writes observations and the next position. A process that was killed repeats at most a step that left no trace. A
language model reads a change once for each scope, and each of these is a step too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Bank, Memory, Operation, OperationError
from astrocyte.stores.knowledge.items import Body, ItemRecord, NewItem
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
    """The deletion of an observation whose sources changed, and the one that takes its place."""

    record: ItemRecord
    replacement: NewItem | None = None


Action = NewItem | Revise | Delete


@dataclass(frozen=True, slots=True)
class ConsolidationWork:
    """A bank to consolidate: after ``position``, up to ``target``; ``key`` is that of the operation, 0 for none.

    Of the change behind the position, a language model has done the scopes up to ``scope_done``, in their order, and
    has had ``attempts`` calls without a usable answer for the next one.
    """

    bank: Bank
    position: int
    target: int
    key: int
    scope_done: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Reached:
    """The place that a step leads to, and the tokens that a language model took for it."""

    position: int
    scope_done: str = ""
    tokens: int = 0


class ConsolidationStore(Protocol):
    """Consolidations by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    async def start(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a consolidation of the whole bank; an equal earlier request gets its operation.

        Raises:
            FailedPrecondition: Another operation of the bank is not done.
        """

    def held(self, bank: Bank, records: Sequence[ItemRecord]) -> frozenset[int]:
        """Keys of those observations that a hold keeps as they are."""

    def check_idle(self, bank: Bank) -> None:
        """Check that an operation of the bank can be started.

        Raises:
            FailedPrecondition: Another one is not done.
        """

    def work(
        self, asked: Callable[[Bank], bool], changed: Callable[[Bank], bool] | None = None
    ) -> ConsolidationWork | None:
        """The next work, or None: the oldest operation of a bank that is ``asked``, else a bank that has new changes.

        Args:
            asked: True for a bank whose operation is to be done now.
            changed: True for a bank whose new changes are to be done now; without it only operations are looked at.
        """

    def changed(self, bank: Bank, *, after: int, until: int, limit: int) -> tuple[list[str], int]:
        """Memories of the next changes after a position, without repeats, and the position of the last one read."""

    def memories(self, bank: Bank, memory_ids: Sequence[str]) -> list[Memory]:
        """The current versions of these memories by time, those that are forgotten left out."""

    def of_topics(self, bank: Bank, topics: Sequence[bytes]) -> list[ItemRecord]:
        """The consolidated observations of topics, by age; those that are not shown are whole."""

    def resting_on(self, bank: Bank, memory_ids: Sequence[str]) -> list[ItemRecord]:
        """The consolidated observations that rest on a memory which changed or is gone since it was cited, by age.

        Their bodies are whole, and a source that is gone has no current version.
        """

    def of_scope(self, bank: Bank, scope: str) -> list[ItemRecord]:
        """The observations of a scope that a consolidation wrote last, by age.

        Left out are those that no longer hold. Those that are not shown are there, and whole.
        """

    def in_scope(self, bank: Bank, scope: str, memory_ids: Sequence[str]) -> frozenset[str]:
        """Those of the memories that are in a scope."""

    async def reserve(self, work: ConsolidationWork, day: int, limits: tuple[int, int]) -> bool:
        """Count a call of a language model against the bank's budget before it is made.

        Args:
            work: The step that the call is for.
            day: In days since the epoch.
            limits: Calls and tokens of a day.

        Returns:
            False, with nothing counted, if either is spent.

        Raises:
            Conflict: The bank is no longer where the work says.
            OperationEnded: The operation was cancelled.
        """

    async def give_back(self, work: ConsolidationWork) -> None:
        """Undo the count of a call to which the model gave no answer."""

    async def waste(self, work: ConsolidationWork, tokens: int, *, is_unusable: bool) -> None:
        """Count the tokens of a call whose answer was not stored, and the attempt if the answer was unusable."""

    async def step(self, work: ConsolidationWork, actions: Sequence[Action], reached: Reached) -> tuple[bool, int]:
        """Do the actions and note the place; returns True if the work is done, and the number left out.

        Observations that a hold covers are left as they are. Where the bank has as many observations as it may have,
        new ones are left out.

        Raises:
            Conflict: An observation was changed since it was read; nothing was done.
            MemoryNotFound, FailedPrecondition: A source was forgotten, or left the scope; nothing was done.
            OperationEnded: The operation was cancelled.
            BankNotFound: The bank was deleted.
        """

    async def fail(self, work: ConsolidationWork, error: OperationError) -> None:
        """End the operation of a work as failed, if it has one."""
