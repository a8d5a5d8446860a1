"""The one list of what a deleted bank loses: every table with a bank's key, and how its rows go.

A table with a column ``bank_key`` that is in none of these lists fails a test. Rows go in slices, see `erasure`.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from astrocyte.stores.sqlite.deletion.batched_deletes import (
    BYTES_PER_CHUNK,
    BYTES_PER_TOKEN,
    SLICE_MEMORIES,
    delete_versions,
    fitting,
)
from astrocyte.stores.sqlite.rows import fetch
from astrocyte.stores.sqlite.tables.idempotency import REQUESTS_AT_ONCE

# Rows of a slice, in tables that have one small row for each memory or change.
SLICE_ROWS = 2_048


class Table(NamedTuple):
    """A table that is emptied in slices: the columns that tell rows apart, the rows of a slice, and which rows go."""

    name: str
    key: str
    slice_rows: int
    condition: str = ""


# Emptied first, by versions, with what hangs on their row keys and has no key of the bank.
WITH_VERSIONS = ("memories", "tags", "entities", "recalled")
IN_SLICES = (
    Table("entity_links", "link_key", SLICE_ROWS),
    Table("graph_readings", "row_key", SLICE_ROWS),
    Table("entity_words", "bank_key, word, entity_key", SLICE_ROWS),
    Table("graph_entities", "entity_key", SLICE_ROWS),
    # After those whose triggers write it.
    Table("graph_changes", "number", SLICE_ROWS),
    Table("absences", "bank_key, memory_id, forgotten_position", SLICE_ROWS),
    Table("changes", "bank_key, position", SLICE_ROWS),
    Table("waiting_copies", "bank_key, engine, memory_id", SLICE_ROWS),
    Table("knowledge_sources", "bank_key, memory_id, item_key, revision", SLICE_ROWS),
    Table("knowledge_revisions", "item_key, revision", SLICE_MEMORIES),
    Table("knowledge_items", "item_key", SLICE_ROWS),
    Table("requests", "tenant, request_id", REQUESTS_AT_ONCE, " AND outlives_bank = 0"),
)
# Emptied with the last slice: they have few rows of a bank. The bank's own row goes last, which others refer to.
AT_ONCE = (
    "queued_retains",
    "erasures",
    "holds",
    "spare_sets",
    "operations",
    "model_budgets",
    "graph_rebuilds",
    "consolidations",
    "bank_activity",
    "unanswered_queries",
    "sealed_banks",
    "banks",
)
# Kept when a bank goes, with its key alone: the trail says that there was one.
KEPT = ("audit_events",)


def delete_some(connection: apsw.Connection, bank_key: int) -> bool:
    """Delete a slice of what is in a bank, at last the bank itself; returns whether anything is left."""
    rows = fetch(
        connection,
        "SELECT row_key, token_count * ? + chunk_count * ? FROM memories WHERE bank_key = ? LIMIT ?",
        (BYTES_PER_TOKEN, BYTES_PER_CHUNK, bank_key, SLICE_MEMORIES),
    )
    if rows:
        some = rows[: fitting(size for _, size in rows)]
        delete_versions(connection, bank_key, [row_key for row_key, _ in some])
        return True
    for table in IN_SLICES:
        connection.execute(
            f"DELETE FROM {table.name} WHERE ({table.key}) IN"
            f" (SELECT {table.key} FROM {table.name} WHERE bank_key = ?{table.condition} LIMIT ?)",
            (bank_key, table.slice_rows),
        )
        if connection.changes():
            return True
    for name in AT_ONCE:
        connection.execute(f"DELETE FROM {name} WHERE bank_key = ?", (bank_key,))
    return False
