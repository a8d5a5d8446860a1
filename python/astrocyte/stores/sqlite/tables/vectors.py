"""The two sets of vectors of a bank: look-up by model, missing vectors, insertion and deletion."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence

import apsw

from astrocyte.errors import Conflict
from astrocyte.stores.operations import Embedded
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, Array, Row, fetch, passage_key

# By the number of the set.
SETS = ("embeddings", "second_embeddings")
# What stands where a text was looked at and has no direction.
NO_DIRECTION = b""
# States of the set that a bank does not use.
BUILDING, KEPT, DROPPING = "building", "kept", "dropping"
# Memories whose vectors one step drops.
DROPPED_AT_ONCE = 256

# Deletes what hangs on the row keys ?1.
PARTS = (
    "DELETE FROM {table} WHERE passage_key IN (SELECT p.passage_key FROM carray(?1) w CROSS JOIN {table} p"
    f" ON p.passage_key >= w.value * {PASSAGES_PER_ROW} AND p.passage_key < (w.value + 1) * {PASSAGES_PER_ROW})"
)


def table_of(connection: apsw.Connection, bank_key: int, model: str) -> str:
    """The table that holds the bank's vectors of a model, if any does: the bank's own, or the other one.

    Rows name their model, and only those of the model are to be read: the other set may hold what is left of a third.
    """
    rows = fetch(connection, "SELECT vector_set, embedding_model FROM banks WHERE bank_key = ?", (bank_key,))
    if not rows:
        return SETS[0]
    used, own = rows[0]
    return SETS[used if own == model else 1 - used]


def building(connection: apsw.Connection, bank_key: int) -> str | None:
    """The model whose vectors are being made beside the bank's own."""
    rows = fetch(connection, "SELECT model FROM spare_sets WHERE bank_key = ? AND state = ?", (bank_key, BUILDING))
    return rows[0][0] if rows else None


def without(connection: apsw.Connection, table: str, model: str, row_keys: Sequence[int]) -> list[int]:
    """Those of the versions that have no vectors of a model in a table."""
    held = (
        fetch(
            connection,
            f"SELECT w.value FROM carray(?1) w CROSS JOIN {table} p ON p.passage_key = w.value * {PASSAGES_PER_ROW}"
            " AND p.model = ?2",
            (Array(array("q", row_keys)), model),
        )
        if row_keys
        else []
    )
    known = {row_key for (row_key,) in held}
    return [row_key for row_key in row_keys if row_key not in known]


def keep(connection: apsw.Connection, bank_key: int, model: str, rows: Sequence[Embedded], *, forgotten: bool) -> None:
    """Keep vectors of versions that are still there; with ``forgotten`` also of those that are forgotten.

    Raises:
        Conflict: Neither set of the bank is the model's.
    """
    own = fetch(connection, "SELECT embedding_model FROM banks WHERE bank_key = ?", (bank_key,))
    if own != [(model,)] and building(connection, bank_key) != model:
        raise Conflict(f"the bank no longer has vectors of {model!r}; read the bank again and retry")
    there = (
        fetch(
            connection,
            "SELECT m.row_key FROM carray(?1) w CROSS JOIN memories m ON m.row_key = w.value"
            " WHERE m.bank_key = ?2 AND m.erasing IS NULL AND (?3 OR m.forgotten_at IS NULL)",
            (Array(array("q", [row_key for row_key, _ in rows])), bank_key, forgotten),
        )
        if rows
        else []
    )
    alive = {row_key for (row_key,) in there}
    put(
        connection,
        table_of(connection, bank_key, model),
        [
            (passage_key(row_key, ordinal), model, vector or NO_DIRECTION)
            for row_key, vectors in rows
            if row_key in alive
            for ordinal, vector in enumerate(vectors, start=-1)
        ],
    )


def put(connection: apsw.Connection, table: str, rows: Iterable[Row]) -> None:
    """Insert rows into a set of vectors, replacing leftovers of other models."""
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)


def spare(
    connection: apsw.Connection, bank_key: int, model: str, dimensions: int, state: str, until: int | None
) -> None:
    """Record the content of the bank's unused set of vectors."""
    connection.execute(
        "INSERT OR REPLACE INTO spare_sets (bank_key, model, dimensions, state, keep_until) VALUES (?, ?, ?, ?, ?)",
        (bank_key, model, dimensions, state, until),
    )


def drop_some(connection: apsw.Connection, bank_key: int) -> bool:
    """Drop some vectors of a set that is being dropped; returns True if more may be left."""
    rows = fetch(
        connection,
        "SELECT s.dropped, b.vector_set FROM spare_sets s JOIN banks b USING (bank_key)"
        " WHERE s.bank_key = ? AND s.state = ?",
        (bank_key, DROPPING),
    )
    if not rows:
        return False
    after, used = rows[0]
    ids = [
        memory_id
        for (memory_id,) in fetch(
            connection,
            "SELECT DISTINCT memory_id FROM memories WHERE bank_key = ? AND memory_id > ? ORDER BY memory_id LIMIT ?",
            (bank_key, after, DROPPED_AT_ONCE),
        )
    ]
    if not ids:
        connection.execute("DELETE FROM spare_sets WHERE bank_key = ?", (bank_key,))
        return False
    keys = array("q", versions_of(connection, bank_key, ids))
    connection.execute(PARTS.format(table=SETS[1 - used]), (Array(keys),))
    connection.execute("UPDATE spare_sets SET dropped = ? WHERE bank_key = ?", (ids[-1], bank_key))
    return True


def versions_of(
    connection: apsw.Connection, bank_key: int, memory_ids: Sequence[str], *, forgotten: bool = True
) -> list[int]:
    """The versions of memories, without those that are being erased."""
    which = "" if forgotten else " AND forgotten_at IS NULL"
    rows = fetch(
        connection,
        "SELECT row_key FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        f" AND erasing IS NULL{which} ORDER BY row_key",
        (bank_key, json.dumps(list(memory_ids))),
    )
    return [row_key for (row_key,) in rows]
