"""After rows were erased: VACUUM removes their versions from the tables and their entries from the indexes.

What it cannot reach is said in docs/scaling.md: bytes in the free space of pages until they are used again, and the
write-ahead log with its archives and replicas.
"""

from __future__ import annotations

import threading

from astrocyte.errors import AstrocyteError, StoreError
from astrocyte.stores.postgres.engine.connection import Connection
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.engine.writer import Slices, Writer
from astrocyte.stores.sqlite.rows import Array

# Tables from which erasures, and deletions of banks, delete rows: those with a bank's key, and those that hang on keys
# of memories. A test requires that each table is here or in `KEPT_TABLES`.
TABLES = (
    "absences", "bank_activity", "banks", "changes", "chunks", "consolidations", "contents", "embeddings", "entities",
    "entity_links", "entity_mentions", "entity_words", "erasures", "graph_changes", "graph_entities", "graph_readings",
    "graph_rebuilds", "holds", "knowledge_items", "knowledge_revisions", "knowledge_sources", "memories",
    "model_budgets", "operations", "queued_retains", "recalled", "requests", "sealed_banks", "second_embeddings",
    "spare_sets", "tags", "unanswered_queries", "waiting_copies",
)  # fmt: skip
# No erasure deletes rows of these: they have no content of memories.
KEPT_TABLES = (
    "access_epochs", "api_keys", "audit_events", "audit_heads", "entity_graph_progress", "grants", "installation",
    "leases", "outboxes", "poll_cursors", "poll_items", "schema_migrations", "store_values", "term_epochs", "terms",
    "told", "webhook_receipts", "workers",
)  # fmt: skip
# Those which the role may not vacuum: VACUUM leaves them out, and only warns. PostgreSQL 17 has a privilege for it.
_UNREACHED = (
    "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = to_regnamespace(current_schema())"
    " AND c.relname IN (SELECT value FROM carray(?)) AND NOT pg_has_role(c.relowner, 'USAGE')"
    " AND NOT CASE WHEN current_setting('server_version_num')::integer >= 170000"
    " THEN has_table_privilege(c.oid, 'MAINTAIN') ELSE false END ORDER BY c.relname LIMIT 1"
)
# Between two looks whether it is done; the writes that wait come between.
WAIT_SECONDS = 0.002


class VacuumCleaner:
    """Runs within a sliced job of the writer; the database works on a connection of its own.

    Args:
        writer: Of the store.
        connection: For nothing else, without a limit of time.
    """

    def __init__(self, writer: Writer, connection: Connection) -> None:
        self._writer = writer
        self._connection = connection

    def needed(self) -> bool:
        """True if rows were erased since the last cleaning."""
        return self._writer.transact(lambda transaction: bool(transaction.connection.pragma("user_version")))

    def clean(self) -> Slices[None]:
        """Vacuum the tables.

        Raises:
            StoreError: The database failed, or the role may not vacuum a table.
        """
        failures: list[AstrocyteError] = []

        def vacuum() -> None:
            try:
                self._check_privileges()
                self._connection.command(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {', '.join(TABLES)}")
            except Exception as error:  # noqa: BLE001 - the erasure is acknowledged only where none came
                failures.append(translate(error))

        working = threading.Thread(target=vacuum, name="astrocyte-vacuum", daemon=True)
        working.start()
        while working.is_alive():
            working.join(WAIT_SECONDS)
            yield
        if failures:
            raise failures[0]
        self._writer.transact(lambda transaction: note_unclean(transaction.connection, unclean=False))

    def _check_privileges(self) -> None:
        unreached = self._connection.execute(_UNREACHED, (Array(TABLES),)).get
        if unreached:
            raise StoreError(
                f"the rows are erased, but the role of the server may not vacuum the table {unreached}; make it the"
                " owner of the tables, or grant it MAINTAIN, and erase again"
            )

    def close(self) -> None:
        """Release the connection."""
        self._connection.close()
