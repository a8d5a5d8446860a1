"""The protocol of a store of legal holds. The SQLite store implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Bank, Hold
from astrocyte.stores.records import RequestKey


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to place. Without ids and tags it covers the whole bank. ``expires_at`` is in milliseconds."""

    hold_id: str
    memory_ids: tuple[str, ...]
    tags: tuple[str, ...]
    reason: str
    expires_at: int | None = None


class HoldStore(Protocol):
    """Holds by tenant. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`.

    While a hold stands, `MemoryStore.forget`, `MemoryStore.erase`, `MemoryStore.delete_bank`, a `Replace` that changes
    the content, and `MemoryStore.select` raise `LegalHoldActive` for what it covers, and `MemoryStore.purge` leaves it.
    A memory is covered by a tag that any of its versions had.
    """

    async def place(self, bank: Bank, hold: NewHold, *, by: str, request: RequestKey | None = None) -> Hold:
        """Place a hold; an equal earlier request gets its answer.

        Raises:
            AlreadyExists: The tenant has, or had, a hold of that id.
            MemoryNotFound: The bank has no such memory, not even a forgotten one.
        """

    async def release(self, bank: Bank, hold_id: str, *, by: str, request: RequestKey | None = None) -> Hold:
        """Release a hold; a released hold is not changed.

        Raises:
            NotFound: The bank has no such hold.
        """

    def listed(
        self, tenant: str, *, bank: Bank | None, released: bool, after: int, limit: int
    ) -> list[tuple[int, Hold]]:
        """Holds of a bank, or of all, with their keys, by key, those after ``after``."""
