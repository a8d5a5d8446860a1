"""The protocol of a store of grants and keys. The SQLite store implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from astrocyte.model import Caller, Grant, KeyInfo, Permission
from astrocyte.stores.records import RequestKey

# Of one name: the one in use, and the one that takes its place.
MOST_LIVE_KEYS = 2


@dataclass(frozen=True, slots=True)
class GrantChange:
    """Permissions to grant or to revoke, for a bank and a principal that may be patterns."""

    bank_id: str
    principal: str
    permissions: frozenset[Permission]


class AccessStore(Protocol):
    """Grants by tenant. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def epoch(self, tenant: str) -> int:
        """Changes with every change of the tenant's grants, before the call that made it returns; costs no query."""

    def holding(self, tenant: str) -> list[Grant]:
        """All grants that hold now."""

    def listed(self, tenant: str, *, revoked: bool, after: int, limit: int) -> list[tuple[int, Grant]]:
        """Grants with their keys, by key, those after ``after``; with ``revoked`` those that no longer hold as well."""

    async def grant(self, tenant: str, change: GrantChange, *, by: str, request: RequestKey | None = None) -> Grant:
        """Add permissions; returns the grant with all that it gives now. An equal earlier request gets its answer."""

    async def revoke(
        self, tenant: str, change: GrantChange, *, by: str, request: RequestKey | None = None
    ) -> frozenset[Permission]:
        """Take permissions; returns those that were there to take. An equal earlier request gets its answer."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """An API key to store. ``digest`` is the SHA-256 of the whole key; without ``expires_at`` it never expires."""

    key_id: str
    tenant: str
    name: str
    principal: str
    digest: bytes
    expires_at: int | None


class LiveKey(NamedTuple):
    """The hash that a key is checked against, and its caller."""

    digest: bytes
    caller: Caller
    expires_at: int | None


class KeyStore(Protocol):
    """API keys by tenant. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def live(self, key_id: str) -> LiveKey | None:
        """The hash that a key is checked against, or None if it is revoked or unknown; costs no query."""

    def listed(self, tenant: str) -> list[KeyInfo]:
        """All keys of a tenant, ended ones too, by age."""

    async def create(self, new: NewKey, *, by: str, request: RequestKey | None = None) -> tuple[KeyInfo, bool]:
        """Store a key; returns it, and True if it is new: an equal earlier request gets its key.

        Raises:
            FailedPrecondition: There are `MOST_LIVE_KEYS` live ones of the name.
        """

    async def revoke(self, tenant: str, key_id: str, *, by: str, request: RequestKey | None = None) -> KeyInfo:
        """Revoke a key from the next call on; a key that has ended is not changed.

        Raises:
            NotFound: The tenant has no such key.
        """

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Store the times of the last use of keys."""
