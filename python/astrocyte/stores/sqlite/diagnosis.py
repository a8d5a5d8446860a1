"""The reads of a diagnosis in SQLite, and the deletion of orphaned rows."""

from __future__ import annotations

from collections import Counter

from astrocyte.model import AuditEventKind, Bank, Memory
from astrocyte.stores.knowledge.diagnosis import StaleItem
from astrocyte.stores.knowledge.items import ItemKind
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.rows import MEMORY_COLUMNS, PASSAGES_PER_ROW, decode_memory, fetch
from astrocyte.stores.sqlite.tables import audit
from astrocyte.stores.sqlite.tables.knowledge.rows import IN_SCOPE
from astrocyte.stores.sqlite.tables.vectors import SETS, table_of

_CURRENT = "m.bank_key = ?1 AND m.known_until IS NULL AND m.forgotten_at IS NULL"
# Conditions on rows of a bank that nothing refers to any more, by table.
ORPHANS = {
    "tags": "NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = tags.row_key)",
    "entities": "NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = entities.row_key)",
    "entity_mentions": "NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = entity_mentions.row_key)",
    "graph_readings": "NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = graph_readings.row_key)",
    "graph_entities": derived_rows.UNREFERENCED.format("graph_entities.entity_key"),
    "entity_links": "(NOT EXISTS (SELECT 1 FROM graph_entities g WHERE g.entity_key = entity_links.source_key)"
    " OR NOT EXISTS (SELECT 1 FROM graph_entities g WHERE g.entity_key = entity_links.target_key)"
    " OR (row_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = entity_links.row_key)))",
    "entity_words": "NOT EXISTS (SELECT 1 FROM graph_entities g WHERE g.entity_key = entity_words.entity_key)",
    "knowledge_sources": "NOT EXISTS (SELECT 1 FROM knowledge_revisions r WHERE r.item_key = knowledge_sources.item_key"
    " AND r.revision = knowledge_sources.revision)",
    "knowledge_revisions": "NOT EXISTS (SELECT 1 FROM knowledge_items i WHERE i.item_key ="
    " knowledge_revisions.item_key)",
}
# Parts of a version by its row key, and by the keys of its passages: no bank has those whose version is gone.
ORPHANS |= {
    "contents": "NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = contents.row_key)",
    **{
        table: f"NOT EXISTS (SELECT 1 FROM memories m WHERE m.row_key = {table}.passage_key / {PASSAGES_PER_ROW})"
        for table in ("chunks", *SETS)
    },
}
# The bank of a row, for tables that do not say it.
_OF_BANK = {
    "entity_mentions": "entity_key IN (SELECT g.entity_key FROM graph_entities g WHERE g.bank_key = ?1)",
    **dict.fromkeys(("contents", "chunks", *SETS), "?1 IS NOT NULL"),
}
# A source of the current revision of an item, with the version that is current; NULL where it is gone. An archived
# memory is a source as before, but for a page: the next compilation leaves it out.
_STALE = (
    "SELECT i.kind, i.item_id, sum(m.version IS NOT NULL AND (m.version <> s.version"
    f" OR (m.archived_at IS NOT NULL AND i.kind = '{ItemKind.WIKI_PAGE}'))) AS changed,"
    " sum(m.version IS NULL) AS gone FROM knowledge_items i"
    " JOIN knowledge_sources s ON s.item_key = i.item_key AND s.revision = i.revision"
    " LEFT JOIN memories m ON m.bank_key = s.bank_key AND m.memory_id = s.memory_id"
    " AND (m.known_until IS NULL OR m.archived_at IS NOT NULL)"
    f" AND m.forgotten_at IS NULL AND {IN_SCOPE.format(scope='i.scope')}"
    " WHERE i.bank_key = ?1 AND i.deleted_at IS NULL GROUP BY i.item_key"
    " HAVING sum(m.version IS NULL OR m.version <> s.version"
    f" OR (m.archived_at IS NOT NULL AND i.kind = '{ItemKind.WIKI_PAGE}')) > 0 ORDER BY i.item_key"
)


class SqliteDiagnosis:
    """Implements `astrocyte.stores.knowledge.diagnosis.DiagnosisStore`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    def newest(self, bank: Bank, limit: int) -> tuple[list[Memory], int]:
        """The newest current memories, and the number of all."""
        with self._connections.snapshot() as connection:
            ((total,),) = fetch(connection, f"SELECT count(*) FROM memories m WHERE {_CURRENT}", (bank.key,))
            rows = fetch(
                connection,
                f"SELECT {MEMORY_COLUMNS} FROM memories m JOIN contents c USING (row_key) WHERE {_CURRENT}"
                " ORDER BY m.row_key DESC LIMIT ?2",
                (bank.key, limit),
            )
        return [decode_memory(row, bank.bank_id) for row in reversed(rows)], total

    def expired(self, bank: Bank, now: int, limit: int) -> tuple[list[str], int]:
        """Current memories whose validity ended."""
        return self._ids(bank, "m.valid_until <= ?2", now, limit)

    def oversize(self, bank: Bank, tokens: int, limit: int) -> tuple[list[str], int]:
        """Current memories with more tokens."""
        return self._ids(bank, "m.token_count > ?2", tokens, limit, "m.token_count DESC, ")

    def without_vectors(self, bank: Bank, limit: int) -> tuple[list[str], int]:
        """Current memories without a vector of the bank's model."""
        with self._connections.snapshot() as connection:
            table = table_of(connection, bank.key, bank.embedding_model)
        condition = (
            f"NOT EXISTS (SELECT 1 FROM {table} p WHERE p.passage_key >= m.row_key * {PASSAGES_PER_ROW}"
            f" AND p.passage_key < (m.row_key + 1) * {PASSAGES_PER_ROW} AND p.model = ?2)"
        )
        return self._ids(bank, condition, bank.embedding_model, limit)

    def sources(self, bank: Bank) -> list[tuple[str, int]]:
        """The sources of current memories with their numbers."""
        rows = self._connections.query(
            "SELECT coalesce(c.source, ''), count(*) FROM memories m JOIN contents c USING (row_key)"
            f" WHERE {_CURRENT} GROUP BY 1 ORDER BY 2 DESC, 1",
            (bank.key,),
        )
        counts: Counter[str] = Counter()
        for source, count in rows:
            # Sealed ones are told apart by the database though they are equal.
            counts[str(source)] += int(count)
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))

    def stale(self, bank: Bank, limit: int) -> tuple[list[StaleItem], int, int]:
        """Items of which a source changed or is gone."""
        with self._connections.snapshot() as connection:
            rows = fetch(connection, _STALE, (bank.key,))
            ((total,),) = fetch(
                connection,
                "SELECT count(*) FROM knowledge_items WHERE bank_key = ? AND deleted_at IS NULL",
                (bank.key,),
            )
        return [StaleItem(*row) for row in rows[:limit]], len(rows), total

    def orphans(self, bank: Bank) -> dict[str, int]:
        """Orphaned rows by table."""
        with self._connections.snapshot() as connection:
            counts = {}
            for table, rows in ORPHANS.items():
                sql = f"SELECT count(*) FROM {table} WHERE {_OF_BANK.get(table, 'bank_key = ?1')} AND {rows}"
                ((counts[table],),) = fetch(connection, sql, (bank.key,))
            return counts

    async def delete_orphans(self, bank: Bank, *, by: str, validate_only: bool = False) -> int:
        """Delete orphaned rows, or count them."""

        def run(transaction: Transaction) -> int:
            connection = transaction.connection
            transaction.bank(bank)
            if validate_only:
                # The number depends on what goes first, and on holds.
                connection.execute("SAVEPOINT orphans")
            count = 0
            for table, rows in ORPHANS.items():
                if table == "graph_entities":
                    # With their links and words; the names that were ambiguous beside theirs are looked at again.
                    count += len(derived_rows.clear(connection, bank))
                    continue
                which = _OF_BANK.get(table, "bank_key = ?1")
                connection.execute(f"DELETE FROM {table} WHERE {which} AND {rows}", (bank.key,))
                count += connection.changes()
            if validate_only:
                connection.execute("ROLLBACK TO orphans; RELEASE orphans")
            elif count:
                event = AuditEventKind.BANK_REPAIRED
                audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"count": count})
            return count

        return await self._writer.submit(run)

    def expired_holds(self, bank: Bank, now: int) -> tuple[list[str], int]:
        """Standing holds whose end is past, and the number of all."""
        rows = self._connections.query(
            "SELECT hold_id, coalesce(expires_at <= ?2, false) FROM holds WHERE bank_key = ?1 AND released_at IS NULL"
            " ORDER BY hold_key",
            (bank.key, now),
        )
        return [hold_id for hold_id, is_past in rows if is_past], len(rows)

    def _ids(self, bank: Bank, condition: str, value: int | str, limit: int, order: str = "") -> tuple[list[str], int]:
        with self._connections.snapshot() as connection:
            where = f"FROM memories m WHERE {_CURRENT} AND {condition}"
            ((count,),) = fetch(connection, f"SELECT count(*) {where}", (bank.key, value))
            rows = fetch(
                connection,
                f"SELECT m.memory_id {where} ORDER BY {order}m.row_key LIMIT ?3",
                (bank.key, value, limit),
            )
        return [memory_id for (memory_id,) in rows], count
