"""The protocol of a store that external stores follow. The SQLite store implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from astrocyte.model import Bank
from astrocyte.stores.records import VersionRecord


class FollowedStore(Protocol):
    """The primary store for external stores. Reads are as those of `astrocyte.stores.protocols.MemoryStore`."""

    @property
    def installation(self) -> str:
        """The id of this store, constant while its files exist: 32 hex digits."""

    def banks(self, *, after: int, limit: int) -> list[Bank]:
        """Banks of all tenants whose key is above ``after``, by key."""

    def versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        """All versions of these memories that recall may ever see, as they are now, by row key."""
