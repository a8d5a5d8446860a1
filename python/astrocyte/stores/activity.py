"""The protocol of the store of what banks were asked for: counts by day, and queries that had no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from astrocyte.model import Bank

# Tenant and id of a bank.
BankName = tuple[str, str]


@dataclass(slots=True)
class Counts:
    """The counts of one bank over some time. ``characters`` and ``scored`` are sums."""

    retains: int = 0
    duplicates: int = 0
    characters: int = 0
    recalls: int = 0
    recalls_with_hits: int = 0
    scored: float = 0.0
    reflects: int = 0
    answered: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another time."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTED = tuple(field.name for field in fields(Counts))
# Counts by the number of the day since the epoch.
Days = dict[int, Counts]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A query without an answer: how often it was asked, and when last, in milliseconds."""

    query: str
    count: int
    asked_at: int


class ActivityStore(Protocol):
    """Counts and queries by bank. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    async def add(self, counts: Mapping[BankName, Days], *, since: int) -> None:
        """Add counts to those that are stored; those of banks that are gone, and days up to ``since``, are dropped."""

    def days(self, name: BankName, *, since: int) -> Days:
        """The counts of a bank by day after ``since``, oldest first."""

    def recent(self, *, since: int, limit: int) -> dict[BankName, Days]:
        """The counts after a day of the banks that have the newest, at most ``limit``."""

    async def note_unanswered(
        self, bank: Bank, queries: Mapping[str, Unanswered], *, most: int, is_fresh: Callable[[], bool]
    ) -> None:
        """Add queries to those of a bank, which keeps the ``most`` that were asked last.

        Args:
            bank: The bank.
            queries: By their text.
            most: Queries that a bank keeps.
            is_fresh: Called in the transaction; False if the bank had an erasure since the queries came.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """

    def unanswered(self, bank: Bank, limit: int) -> list[Unanswered]:
        """The queries of a bank that were asked most often; of equal ones the newest first, then by text."""

    async def drop_unanswered(self, bank_key: int) -> None:
        """Delete the queries of a bank."""
