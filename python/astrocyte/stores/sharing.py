"""Processes that share one store: what each commit tells the others, and leases on work that is done once.

A process that owns its store alone is told nothing, and holds every lease.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Topic(StrEnum):
    """The kinds of changes that other processes are told.

    CHANGES: a bank has a new position. DELETED: a bank is gone. ACCESS: the grants of a tenant changed. KEY: an API key
    was made or ended. KNOWLEDGE: observations, mental models, directives or pages of a bank changed. QUEUE: the retry
    queue of a bank changed. WORK: there is new background work, or some was called off.
    """

    CHANGES = "changes"
    DELETED = "deleted"
    ACCESS = "access"
    KEY = "key"
    KNOWLEDGE = "knowledge"
    QUEUE = "queue"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Told:
    """A change that another process committed.

    Attributes:
        topic: Its kind.
        bank: Key of the bank; 0 where the topic has none.
        position: The bank's position after a commit of the topic CHANGES.
        tenant: The tenant whose grants changed.
        name: Id of the API key.
        erased, moved, refers: As in `astrocyte.stores.records.IndexBatch`.
        place: Its place in the order of all commits; set by the store.
    """

    topic: Topic
    bank: int = 0
    position: int = 0
    tenant: str = ""
    name: str = ""
    erased: bool = False
    moved: bool = False
    refers: bool = False
    place: int = 0


# Called once for each change, in order, on the thread that noticed it; it is short and waits for nothing.
ToldListener = Callable[[Told], None]


@dataclass(frozen=True, slots=True)
class Fence:
    """The number that a lease had when it was taken; a write under a lease that has another one is refused."""

    lease: str
    number: int


# The fence of the work that runs in this context. Tasks inherit it from those that start them.
FENCE: ContextVar[Fence | None] = ContextVar("astrocyte_fence", default=None)


class Leases(Protocol):
    """The leases of one process of several on a store."""

    async def beat(self, heard: int) -> Fence | None:
        """Say that this process lives, and take the lease on background work if it is free.

        Args:
            heard: The place up to which this process has done what it was told.

        Returns:
            The fence where this process holds the lease, None where another one does.
        """

    async def note_heard(self, place: int) -> None:
        """Say that this process has heard all up to a place, and keeps nothing that was erased by then."""

    async def leave(self) -> None:
        """Let the others take over at once."""

    def last_erasure(self, bank_key: int) -> int:
        """The place of the newest commit that erased something in a bank; 0 where no process has to hear of one."""

    def deaf(self, place: int) -> list[int]:
        """Numbers of the other processes that live and have not heard all up to a place."""
