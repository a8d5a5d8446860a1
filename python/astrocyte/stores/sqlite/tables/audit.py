"""The audit trail in SQLite: one chained row for each act, in the transaction of the act."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from astrocyte.model import GENESIS, AuditEvent, AuditEventKind, event_hash
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = "tenant, sequence, event, occurred_at, actor, bank_key, details, hash"
_HEAD = "SELECT sequence, hash FROM audit_heads WHERE tenant = ?"
_NEW_HEAD = (
    "INSERT INTO audit_heads VALUES (?, ?, ?)"
    " ON CONFLICT (tenant) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash"
)


def record(
    transaction: Transaction,
    tenant: str,
    event: AuditEventKind,
    actor: str,
    *,
    bank_key: int = 0,
    details: Mapping[str, str | int],
) -> None:
    """Record what the transaction does; an error here undoes it.

    Args:
        transaction: That of the act.
        tenant: Whose trail it is.
        event: What is done.
        actor: The principal that does it.
        bank_key: The store's number of the bank, 0 for none.
        details: Numbers, words of ours and hashes, and the reason that the caller gave; no other text of a caller.
    """
    connection = transaction.connection
    rows = fetch(connection, _HEAD, (tenant,))
    # From the noted end, not from the last row: what was cut off leaves a gap that can be seen.
    sequence, previous = rows[0] if rows else (0, GENESIS)
    now = transaction.clock()
    texts = {key: str(value) for key, value in details.items()}
    made = AuditEvent(tenant, sequence + 1, event, to_datetime(now), actor, bank_key, texts, b"")
    digest = event_hash(previous, made)
    connection.execute(
        f"INSERT INTO audit_events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tenant, made.sequence, str(event), now, actor, bank_key, json.dumps(texts), digest),
    )
    connection.execute(_NEW_HEAD, (tenant, made.sequence, digest))


class SqliteAudit:
    """Implements `astrocyte.stores.audit.AuditStore`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def append(
        self, tenant: str, event: AuditEventKind, by: str, *, bank_key: int = 0, details: Mapping[str, str | int]
    ) -> None:
        """Record an act."""
        await self._writer.submit(
            lambda transaction: record(transaction, tenant, event, by, bank_key=bank_key, details=details), frees=True
        )

    def read(
        self, tenant: str, *, bank_key: int | None, after: int, limit: int, newest_first: bool = False
    ) -> tuple[list[AuditEvent], int, bytes]:
        """Rows in order, and the end of the trail."""
        which = "" if bank_key is None else " AND bank_key = ?"
        bindings = (tenant, after) if bank_key is None else (tenant, after, bank_key)
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        sql = (
            f"SELECT {COLUMNS} FROM audit_events WHERE tenant = ? AND sequence {beyond} ?{which}"
            f" ORDER BY sequence {order} LIMIT ?"
        )
        with self._connections.snapshot() as connection:
            rows = fetch(connection, sql, (*bindings, limit))
            head = fetch(connection, _HEAD, (tenant,))
        sequence, digest = head[0] if head else (0, GENESIS)
        return [_decode(row) for row in rows], sequence, digest


def _decode(row: Row) -> AuditEvent:
    """A row, also a tampered one: an unreadable value yields a hash that does not match."""
    tenant, sequence, event, occurred_at, actor, bank_key, details, digest = row
    try:
        when = to_datetime(occurred_at)
    except (ValueError, OverflowError, OSError):
        when = EPOCH
    try:
        parsed = json.loads(details)
    except ValueError:
        parsed = None
    texts = {str(key): str(value) for key, value in parsed.items()} if isinstance(parsed, dict) else {}
    return AuditEvent(tenant, sequence, event, when, actor, bank_key, texts, digest)
