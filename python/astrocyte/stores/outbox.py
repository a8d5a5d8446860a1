"""The protocol of the outbox: changes of memories that an engine has not received, durable, in order.

A memory is in it at most once for each engine, by the latest of its changes, and with no content: what goes out is what
the memory is then. It comes with the commit that changes it, and leaves when the engine has confirmed just that
change, or with its bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from astrocyte.model import Bank


class CopyAction(StrEnum):
    """The action of an engine: store a new memory, store another version, forget a memory, or erase it."""

    COPY = "copy"
    REPLACE = "replace"
    FORGET = "forget"
    ERASE = "erase"


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """The order of a commit for the engine that follows it.

    ``principal`` is for whom the call is made, "" where nobody said a name; ``hops`` counts the servers that it has
    passed, this one included. A commit that stores or brings back is refused where more than ``limit`` memories would
    wait for the engine; one that forgets never is.
    """

    engine: str
    principal: str
    hops: int
    limit: int


@dataclass(frozen=True, slots=True)
class WaitingCopy:
    """A queued memory, by the change that queued it."""

    memory_id: str
    position: int
    action: CopyAction
    principal: str
    hops: int

    @property
    def place(self) -> tuple[int, str]:
        """The place in the order of its bank."""
        return self.position, self.memory_id


# Before every place.
START = (-1, "")
ALL_ACTIONS = tuple(CopyAction)
# Those by which an engine loses something.
LOSING = (CopyAction.FORGET, CopyAction.ERASE)


class Outbox(Protocol):
    """The outbox of all engines. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def waiting(
        self,
        engine: str,
        bank: Bank,
        *,
        after: tuple[int, str] = START,
        limit: int,
        actions: Sequence[CopyAction] = ALL_ACTIONS,
    ) -> list[WaitingCopy]:
        """The entries queued for these actions, in the order of the changes, after ``after``."""

    def still_waiting(self, engine: str, bank: Bank, memory_ids: Sequence[str]) -> set[str]:
        """The memories of these that are queued."""

    def waiting_banks(self, engine: str) -> list[Bank]:
        """Banks with queued entries, by key."""

    def waiting_count(self, engine: str) -> int:
        """The number of memories queued for the engine, in all banks."""

    def waiting_since(self, engine: str) -> int | None:
        """The time of the oldest queued entry; None if the queue is empty."""

    async def delivered(self, engine: str, bank: Bank, copies: Sequence[WaitingCopy]) -> None:
        """Remove confirmed entries; those that changed since they were read stay."""

    async def forgotten(self, engine: str, bank: Bank, position: int) -> None:
        """Remove the queued deletions up to a position: the engine has done all of them."""
