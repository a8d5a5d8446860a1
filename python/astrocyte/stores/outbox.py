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
    """The action of an engine: store a memory it has not, store another version of one, forget it, or erase it."""

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
    """A memory that waits, by the change that it waits with."""

    memory_id: str
    position: int
    action: CopyAction
    principal: str
    hops: int

    @property
    def place(self) -> tuple[int, str]:
        """Where in the order of its bank it is."""
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
        """The entries that wait for one of these actions, in the order of the changes, from the one after ``after``."""

    def still_waiting(self, engine: str, bank: Bank, memory_ids: Sequence[str]) -> set[str]:
        """Those of the memories that wait."""

    def waiting_banks(self, engine: str) -> list[Bank]:
        """Banks of which something waits, by key."""

    def waiting_count(self, engine: str) -> int:
        """The number of memories that wait for the engine, of all banks."""

    def waiting_since(self, engine: str) -> int | None:
        """Since when the one that waits longest does; None where nothing waits."""

    async def delivered(self, engine: str, bank: Bank, copies: Sequence[WaitingCopy]) -> None:
        """Take out what the engine has confirmed; what has changed again since it was read stays."""

    async def forgotten(self, engine: str, bank: Bank, position: int) -> None:
        """Take out what waits to be forgotten or erased by changes up to a position: the engine has forgotten all."""
