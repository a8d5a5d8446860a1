"""Reading of banks, their counts, and what waits for them; each method sees one committed state."""

from __future__ import annotations

from astrocyte.model import Bank, BankStats, Reference
from astrocyte.stores.queue import QueuedItem
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch
from astrocyte.stores.sqlite.tables import retry_queue


class BankReads:
    """The methods of `MemoryStore` and `RetryQueue` that read banks; see there for what each returns."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get_bank(self, tenant: str, bank_id: str) -> Bank | None:
        """The bank, or None."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE tenant = ? AND bank_id = ?",
            (tenant, bank_id),
        )
        return decode_bank(rows[0]) if rows else None

    def bank_of_key(self, bank_key: int) -> Bank | None:
        """The bank with this key, or None."""
        # A bank without a tenant is being deleted.
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ? AND tenant <> ''", (bank_key,)
        )
        return decode_bank(rows[0]) if rows else None

    def list_banks(self, tenant: str, *, prefix: str, after: str, limit: int) -> list[Bank]:
        """Banks by id."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE tenant = ? AND bank_id > ? AND bank_id >= ?"
            " AND substr(bank_id, 1, ?) = ? ORDER BY bank_id LIMIT ?",
            (tenant, after, prefix, len(prefix), prefix, limit),
        )
        return [decode_bank(row) for row in rows]

    def content_bytes(self, bank: Bank) -> tuple[int, int]:
        """Bytes of the bank's contents, and the position that this is true for."""
        with self._connections.snapshot() as connection:
            ((size,),) = fetch(
                connection,
                "SELECT coalesce(sum(octet_length(content)), 0) FROM memories JOIN contents USING (row_key)"
                " WHERE bank_key = ? AND known_until IS NULL AND forgotten_at IS NULL",
                (bank.key,),
            )
            position = fetch(connection, "SELECT position FROM banks WHERE bank_key = ?", (bank.key,))
        return size, position[0][0] if position else bank.position

    def references(self) -> list[Reference]:
        """The references of current memories to other banks."""
        rows = self._connections.query(
            "SELECT m.row_key, b.tenant, b.bank_id, m.memory_id, json_extract(c.metadata, '$.also_relevant_to')"
            " FROM contents c JOIN memories m USING (row_key) JOIN banks b USING (bank_key)"
            " WHERE json_extract(c.metadata, '$.also_relevant_to') IS NOT NULL"
            " AND json_type(c.metadata, '$.also_relevant_to') = 'text'"
            " AND m.known_until IS NULL AND m.forgotten_at IS NULL AND b.tenant <> ''"
        )
        return [Reference(*row) for row in rows]

    def queued_count(self) -> int:
        """The number of items that wait."""
        ((count,),) = self._connections.query("SELECT count(*) FROM queued_retains")
        return int(count)

    def queued_banks(self) -> list[Bank]:
        """Banks for which items wait."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks JOIN (SELECT bank_key, min(queue_key) AS first FROM queued_retains"
            " GROUP BY bank_key) USING (bank_key) WHERE tenant <> '' ORDER BY first"
        )
        return [decode_bank(row) for row in rows]

    def queued(self, bank: Bank, *, after: int, limit: int) -> list[QueuedItem]:
        """The first items that wait for a bank."""
        rows = self._connections.query(
            f"SELECT {retry_queue.COLUMNS} FROM queued_retains WHERE bank_key = ?1 AND queue_key > ?2 AND group_key <="
            " (SELECT max(group_key) FROM (SELECT group_key FROM queued_retains WHERE bank_key = ?1 AND queue_key > ?2"
            " ORDER BY queue_key LIMIT ?3)) ORDER BY queue_key",
            (bank.key, after, limit),
        )
        return [retry_queue.decode_row(row) for row in rows]

    def bank_stats(self, bank: Bank) -> BankStats:
        """Counts from the rows."""
        with self._connections.snapshot() as connection:
            memories, chunks, tokens = fetch(
                connection,
                "SELECT count(*), coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0) FROM memories"
                " WHERE bank_key = ? AND known_until IS NULL AND forgotten_at IS NULL",
                (bank.key,),
            )[0]
            ((forgotten,),) = fetch(
                connection,
                "SELECT count(DISTINCT memory_id) FROM memories WHERE bank_key = ? AND forgotten_at IS NOT NULL",
                (bank.key,),
            )
            ((archived,),) = fetch(
                connection,
                "SELECT count(*) FROM memories WHERE bank_key = ? AND archived_at IS NOT NULL AND forgotten_at IS NULL",
                (bank.key,),
            )
            ((waiting,),) = fetch(connection, "SELECT count(*) FROM waiting_copies WHERE bank_key = ?", (bank.key,))
            position = fetch(connection, "SELECT position FROM banks WHERE bank_key = ?", (bank.key,))
        return BankStats(
            bank_id=bank.bank_id,
            memory_count=memories,
            chunk_count=chunks,
            forgotten_count=forgotten,
            token_count=tokens,
            position=position[0][0] if position else bank.position,
            indexed_position=-1,
            index_bytes=0,
            waiting_copies=waiting,
            archived_count=archived,
        )
