"""What the layers above may ask of a store of grants. The SQLite store implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Grant, Permission
from astrocyte.stores.protocols import RequestKey


@dataclass(frozen=True, slots=True)
class GrantChange:
    """Permissions to give or to take, for a bank and a principal that may be patterns."""

    bank_id: str
    principal: str
    permissions: frozenset[Permission]


class AccessStore(Protocol):
    """Grants by tenant. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def epoch(self, tenant: str) -> int:
        """Changes whenever the tenant's grants do, before whoever changed them hears of it; costs no query."""

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
