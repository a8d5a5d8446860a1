"""Receipts of webhook deliveries, cursors and items of poll sources in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw

from astrocyte.stores.ingest import Delivery, KnownItem, Standing
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch

_RECEIPT = "SELECT digest, signed_at FROM webhook_receipts WHERE source_id = ? AND delivery_key = ?"
_ACCEPT = (
    "INSERT INTO webhook_receipts VALUES (?, ?, ?, ?, ?) ON CONFLICT (source_id, delivery_key)"
    " DO UPDATE SET signed_at = excluded.signed_at, expires_at = excluded.expires_at"
)
_EXPIRE = (
    "DELETE FROM webhook_receipts WHERE (source_id, delivery_key) IN"
    " (SELECT source_id, delivery_key FROM webhook_receipts WHERE expires_at < ? LIMIT ?)"
)
_CURSOR = "SELECT cursor FROM poll_cursors WHERE source_id = ? AND place = ?"
_SET_CURSOR = (
    "INSERT INTO poll_cursors VALUES (?, ?, ?) ON CONFLICT (source_id)"
    " DO UPDATE SET place = excluded.place, cursor = excluded.cursor"
)
_ITEM = "SELECT version, bank_id, memory_id FROM poll_items WHERE source_id = ? AND item_key = ?"
_SET_ITEM = (
    "INSERT INTO poll_items VALUES (?, ?, ?, ?, ?) ON CONFLICT (source_id, item_key)"
    " DO UPDATE SET version = excluded.version, bank_id = excluded.bank_id, memory_id = excluded.memory_id"
)
_DROP_ITEMS = (
    "DELETE FROM poll_items WHERE source_id = ?1"
    " AND NOT EXISTS (SELECT 1 FROM poll_cursors WHERE source_id = ?1 AND place = ?2)"
)


class SqliteIngest:
    """Implements `astrocyte.stores.ingest.IngestStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    def standing(self, source_id: str, delivery: Delivery) -> Standing:
        """The standing of a delivery."""
        return _standing(self._connections.query(_RECEIPT, (source_id, delivery.key)), delivery)

    async def accept(self, source_id: str, delivery: Delivery, *, expires_at: int | None) -> Standing:
        """Write a receipt."""

        def run(transaction: Transaction) -> Standing:
            connection = transaction.connection
            standing = _standing(fetch(connection, _RECEIPT, (source_id, delivery.key)), delivery)
            if standing in {Standing.NEW, Standing.REPEATED}:
                row = (source_id, delivery.key, delivery.digest, delivery.signed_at, expires_at)
                connection.execute(_ACCEPT, row)
            return standing

        return await self._writer.submit(run)

    def poll_cursor(self, source_id: str, place: str) -> str | None:
        """The cursor of a source."""
        rows = self._connections.query(_CURSOR, (source_id, place))
        return str(rows[0][0]) if rows else None

    def known_items(self, source_id: str, keys: Collection[bytes]) -> dict[bytes, KnownItem]:
        """Known items by their keys."""
        found = {}
        for key in keys:
            for version, bank_id, memory_id in self._connections.query(_ITEM, (source_id, key)):
                found[key] = KnownItem(key, version, bank_id, memory_id)
        return found

    async def advance_poll(self, source_id: str, place: str, cursor: str, items: Sequence[KnownItem]) -> None:
        """Write a cursor and items."""
        rows = [(source_id, item.key, item.version, item.bank_id, item.memory_id) for item in items]

        def run(transaction: Transaction) -> None:
            connection = transaction.connection
            connection.execute(_DROP_ITEMS, (source_id, place))
            connection.execute(_SET_CURSOR, (source_id, place, cursor))
            connection.executemany(_SET_ITEM, rows)

        await self._writer.submit(run)


def expire(connection: apsw.Connection, now: int, limit: int) -> int:
    """Delete at most ``limit`` receipts that may go; returns how many."""
    connection.execute(_EXPIRE, (now, limit))
    return connection.changes()


def _standing(rows: list[Row], delivery: Delivery) -> Standing:
    if not rows:
        return Standing.NEW
    digest, signed_at = rows[0]
    if digest != delivery.digest:
        return Standing.CHANGED
    return Standing.REPEATED if delivery.signed_at > signed_at else Standing.REPLAYED
