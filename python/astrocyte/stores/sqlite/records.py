"""Versions with their chunks and vectors, as the index needs them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import apsw

from astrocyte.stores.protocols import ChunkRecord, VersionRecord
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, RECORD_COLUMNS, decode_record, fetch

Parts = dict[int, list[tuple[Any, ...]]]


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
    chunks = _parts(connection, "chunks", "text, p.tokens", keys)
    vectors = _parts(connection, "embeddings", "vector", keys)
    return [_record(row, chunks.get(row[0], []), vectors.get(row[0], []), at_position) for row in rows]


def _parts(connection: apsw.Connection, table: str, columns: str, keys: array[int]) -> Parts:
    """Passages by row key, each as (ordinal, columns...), by ordinal."""
    parts: Parts = defaultdict(list)
    rows = fetch(
        connection,
        f"SELECT p.passage_key, p.{columns} FROM carray(?) w CROSS JOIN {table} p"
        f" ON p.passage_key >= w.value * {PASSAGES_PER_ROW} AND p.passage_key < (w.value + 1) * {PASSAGES_PER_ROW}"
        " ORDER BY p.passage_key",
        (apsw.carray(keys),),
    )
    for passage_key, *values in rows:
        row_key, place = divmod(passage_key, PASSAGES_PER_ROW)
        parts[row_key].append((place - 1, *values))
    return parts


def _record(
    row: tuple[Any, ...], chunks: list[tuple[Any, ...]], vectors: list[tuple[Any, ...]], at_position: int
) -> VersionRecord:
    by_ordinal = dict(vectors)
    made = tuple(ChunkRecord(text, tokens, by_ordinal.get(ordinal)) for ordinal, text, tokens in chunks)
    return decode_record(row, made, by_ordinal.get(-1), at_position)
