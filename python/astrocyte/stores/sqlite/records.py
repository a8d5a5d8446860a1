"""Versions with their chunks and vectors, as the index needs them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import apsw

from astrocyte.stores.protocols import ChunkRecord, VersionRecord
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, RECORD_COLUMNS, decode_record, fetch, passage_key

# Ordinal of a version's whole among its passages.
WHOLE = -1
# All passages of the versions of given keys.
_PASSAGES = (
    "SELECT p.passage_key, p.{1} FROM carray(?) w CROSS JOIN {0} p"
    f" ON p.passage_key >= w.value * {PASSAGES_PER_ROW} AND p.passage_key < (w.value + 1) * {PASSAGES_PER_ROW}"
)

# Little-endian f32 by passage key.
Vectors = dict[int, bytes]


def records(
    connection: apsw.Connection,
    clause: str,
    bindings: Sequence[object],
    *,
    at_position: int,
    limit: int = -1,
) -> list[VersionRecord]:
    """The versions that a clause meets, by row key, as they were at a position.

    Args:
        connection: In a transaction, so that all statements see one state.
        clause: SQL over ``m`` (memories) and ``c`` (contents), this package's own.
        bindings: Of the clause.
        at_position: Ends that came later are left out.
        limit: At most so many; -1 for all.
    """
    rows = fetch(
        connection,
        f"SELECT {RECORD_COLUMNS} FROM memories m JOIN contents c USING (row_key)"
        f" WHERE {clause} ORDER BY m.row_key LIMIT ?",
        (*bindings, limit),
    )
    if not rows:
        return []
    keys = array("q", [row[0] for row in rows])
    chunks = _chunks(connection, keys)
    # Not in order, which would have the vectors sorted.
    vectors: Vectors = dict(fetch(connection, _PASSAGES.format("embeddings", "vector"), (apsw.carray(keys),)))
    return [
        decode_record(
            row,
            _made(chunks[row[0]], vectors) if row[0] in chunks else (),
            vectors.get(passage_key(row[0], WHOLE)),
            at_position,
        )
        for row in rows
    ]


def _chunks(connection: apsw.Connection, keys: array[int]) -> dict[int, list[tuple[int, str, int]]]:
    """Chunks by row key, each as (passage key, text, tokens), by ordinal."""
    found: dict[int, list[tuple[int, str, int]]] = {}
    sql = _PASSAGES.format("chunks", "text, p.tokens") + " ORDER BY p.passage_key"
    for chunk in fetch(connection, sql, (apsw.carray(keys),)):
        found.setdefault(chunk[0] // PASSAGES_PER_ROW, []).append(chunk)
    return found


def _made(chunks: list[tuple[int, str, int]], vectors: Vectors) -> tuple[ChunkRecord, ...]:
    return tuple([ChunkRecord(text, tokens, vectors.get(key)) for key, text, tokens in chunks])
