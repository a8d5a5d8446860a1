"""Grants in SQLite: rows that are closed, never changed, and an epoch that each change increments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import apsw

from astrocyte.model import NO_PERMISSIONS, AuditEventKind, Grant, Permission
from astrocyte.stores.access import GrantChange
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime, to_milliseconds
from astrocyte.stores.sqlite.tables import audit, idempotency

COLUMNS = "bank_id, principal, permissions, granted_by, granted_at, revoked_by, revoked_at"
_HOLDING = (
    f"SELECT grant_key, {COLUMNS} FROM grants WHERE tenant = ? AND bank_id = ? AND principal = ? AND revoked_at IS NULL"
)
_CLOSE = "UPDATE grants SET revoked_by = ?, revoked_at = ? WHERE grant_key = ?"
_OPEN = "INSERT INTO grants (tenant, bank_id, principal, permissions, granted_by, granted_at) VALUES (?, ?, ?, ?, ?, ?)"
_NEXT_EPOCH = (
    "INSERT INTO access_epochs VALUES (?, 1) ON CONFLICT (tenant)"
    " DO UPDATE SET epoch = access_epochs.epoch + 1 RETURNING epoch"
)


class SqliteAccess:
    """Implements `astrocyte.stores.access.AccessStore`; see there for what each method does.

    The epochs in memory are those of the file: they are read once, set by the writer's thread after each commit that
    changes one, before the caller of the change is answered, and read again where another process changed one.
    """

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections
        rows = connections.query("SELECT tenant, epoch FROM access_epochs")
        self._epochs: dict[str, int] = dict(rows)
        if writer.sharing is not None:
            writer.sharing.follow(self._on_told)

    def _on_told(self, told: Told) -> None:
        """Read the epoch that another process changed."""
        if told.topic is Topic.ACCESS:
            rows = self._connections.query("SELECT epoch FROM access_epochs WHERE tenant = ?", (told.tenant,))
            self._epochs[told.tenant] = rows[0][0]

    def epoch(self, tenant: str) -> int:
        """The number of the tenant's last change."""
        return self._epochs.get(tenant, 0)

    def holding(self, tenant: str) -> list[Grant]:
        """All grants that hold now."""
        sql = f"SELECT {COLUMNS} FROM grants WHERE tenant = ? AND revoked_at IS NULL ORDER BY grant_key"
        return [_decode(row) for row in self._connections.query(sql, (tenant,))]

    def listed(self, tenant: str, *, revoked: bool, after: int, limit: int) -> list[tuple[int, Grant]]:
        """Grants with their keys."""
        which = "" if revoked else " AND revoked_at IS NULL"
        sql = f"SELECT grant_key, {COLUMNS} FROM grants WHERE tenant = ? AND grant_key > ?{which}"
        rows = self._connections.query(f"{sql} ORDER BY grant_key LIMIT ?", (tenant, after, limit))
        return [(key, _decode(tuple(row))) for key, *row in rows]

    async def grant(self, tenant: str, change: GrantChange, *, by: str, request: RequestKey | None = None) -> Grant:
        """Add permissions."""
        return await self._writer.submit(lambda transaction: self._grant(transaction, tenant, change, by, request))

    async def revoke(
        self, tenant: str, change: GrantChange, *, by: str, request: RequestKey | None = None
    ) -> frozenset[Permission]:
        """Take permissions."""
        return await self._writer.submit(lambda transaction: self._revoke(transaction, tenant, change, by, request))

    def revoke_bank(self, transaction: Transaction, tenant: str, bank_id: str, by: str) -> None:
        """Close the grants on a deleted bank, so that they do not apply to a later bank of that name."""
        rows = fetch(
            transaction.connection,
            f"SELECT grant_key, {COLUMNS} FROM grants WHERE tenant = ? AND bank_id = ? AND revoked_at IS NULL",
            (tenant, bank_id),
        )
        for key, *row in rows:
            self._commit(transaction, tenant, by, _decode(tuple(row)), closes=key, leaves=None)

    def _grant(
        self, transaction: Transaction, tenant: str, change: GrantChange, by: str, request: RequestKey | None
    ) -> Grant:
        earlier = idempotency.stored(transaction.connection, tenant, request)
        if earlier is not None:
            return _decode(tuple(json.loads(earlier)))
        key, held = _holding(transaction.connection, tenant, change)
        if held is None or not change.permissions <= held.permissions:
            wanted = change.permissions | (NO_PERMISSIONS if held is None else held.permissions)
            now = to_datetime(transaction.clock())
            made = Grant(change.bank_id, change.principal, wanted, by, now)
            self._commit(transaction, tenant, by, held, closes=key, leaves=made)
        else:
            made = held
        _keep(transaction, tenant, request, lambda: _encode(transaction.connection, tenant, change))
        return made

    def _revoke(
        self, transaction: Transaction, tenant: str, change: GrantChange, by: str, request: RequestKey | None
    ) -> frozenset[Permission]:
        earlier = idempotency.stored(transaction.connection, tenant, request)
        if earlier is not None:
            return frozenset(map(Permission, json.loads(earlier)))
        key, held = _holding(transaction.connection, tenant, change)
        taken = NO_PERMISSIONS if held is None else held.permissions & change.permissions
        if held is not None and taken:
            left = held.permissions - taken
            rest = Grant(held.bank_id, held.principal, left, held.granted_by, held.granted_at) if left else None
            self._commit(transaction, tenant, by, held, closes=key, leaves=rest)
        _keep(transaction, tenant, request, lambda: sorted(taken))
        return taken

    def _commit(
        self,
        transaction: Transaction,
        tenant: str,
        by: str,
        held: Grant | None,
        *,
        closes: int | None,
        leaves: Grant | None,
    ) -> None:
        """Change a grant: close its row, insert a row of the remaining permissions, and increment the epoch.

        Args:
            transaction: What else belongs to the change is written in it.
            tenant: Whose grant it is.
            by: The principal that changes it.
            held: The grant as it was, or None for a new one.
            closes: Its key.
            leaves: The grant as it is from now on, or None where it is gone.
        """
        connection, now = transaction.connection, transaction.clock()
        if held is not None:
            connection.execute(_CLOSE, (by, now, closes))
        if leaves is not None:
            granted_at = now if leaves.granted_at is None else to_milliseconds(leaves.granted_at)
            words = " ".join(sorted(leaves.permissions))
            names = (tenant, leaves.bank_id, leaves.principal)
            connection.execute(_OPEN, (*names, words, leaves.granted_by, granted_at))
        # By their keys: these rows say the names, and stay.
        details = {"closed": closes or 0, "opened": connection.last_insert_rowid() if leaves is not None else 0}
        audit.record(transaction, tenant, AuditEventKind.GRANT_CHANGED, by, details=details)
        ((epoch,),) = fetch(connection, _NEXT_EPOCH, (tenant,))
        transaction.after_commit(lambda: self._epochs.__setitem__(tenant, epoch))
        transaction.tell(Told(Topic.ACCESS, tenant=tenant))


def _holding(connection: apsw.Connection, tenant: str, change: GrantChange) -> tuple[int | None, Grant | None]:
    rows = fetch(connection, _HOLDING, (tenant, change.bank_id, change.principal))
    return (rows[0][0], _decode(rows[0][1:])) if rows else (None, None)


def _keep(
    transaction: Transaction, tenant: str, request: RequestKey | None, answer: Callable[[], Sequence[object]]
) -> None:
    """Store an answer for retries of its request."""
    if request is not None:
        response = json.dumps(answer()).encode()
        now = transaction.clock()
        idempotency.store(transaction.connection, tenant, request, response, now, bank_key=None, outlives_bank=True)


def _encode(connection: apsw.Connection, tenant: str, change: GrantChange) -> Row:
    return fetch(connection, _HOLDING, (tenant, change.bank_id, change.principal))[0][1:]


def _decode(row: Row) -> Grant:
    """A grant from `COLUMNS`."""
    bank_id, principal, permissions, granted_by, granted_at, revoked_by, revoked_at = row
    return Grant(
        bank_id,
        principal,
        frozenset(map(Permission, permissions.split())),
        granted_by,
        to_datetime(granted_at),
        revoked_by,
        None if revoked_at is None else to_datetime(revoked_at),
    )
