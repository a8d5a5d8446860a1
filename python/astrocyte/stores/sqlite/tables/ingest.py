"""Receipts of webhook deliveries in SQLite."""

from __future__ import annotations

import apsw

from astrocyte.stores.ingest import Delivery, Standing
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
