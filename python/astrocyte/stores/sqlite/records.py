"""Versions with their chunks and vectors, as the index needs them."""

from __future__ import annotations

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
    keys = {row[0] for row in rows}
    span = (min(keys), max(keys))
    chunks = _parts(connection, "chunks", "text, tokens", keys, span)
    vectors = _parts(connection, "embeddings", "vector", keys, span)
    return [_record(row, chunks.get(row[0], []), vectors.get(row[0], []), at_position) for row in rows]


def _parts(connection: apsw.Connection, table: str, columns: str, keys: set[int], span: tuple[int, int]) -> Parts:
    """Passages by row key, each as (ordinal, columns...)."""
    first, last = span
    # Neighbouring rows are read as one range. A bank's rows are mostly neighbours; between those of a small bank a large one may lie.
    ranges = [span] if last - first < 2 * len(keys) else [(key, key) for key in sorted(keys)]
    parts: Parts = defaultdict(list)
    for low, high in ranges:
        rows = fetch(
            connection,
            f"SELECT passage_key, {columns} FROM {table} WHERE passage_key >= ? AND passage_key < ?"
            " ORDER BY passage_key",
            (low * PASSAGES_PER_ROW, (high + 1) * PASSAGES_PER_ROW),
        )
        for passage_key, *values in rows:
            row_key, place = divmod(passage_key, PASSAGES_PER_ROW)
            if row_key in keys:
                parts[row_key].append((place - 1, *values))
    return parts


def _record(
    row: tuple[Any, ...], chunks: list[tuple[Any, ...]], vectors: list[tuple[Any, ...]], at_position: int
) -> VersionRecord:
    by_ordinal = dict(vectors)
    made = tuple(ChunkRecord(text, tokens, by_ordinal.get(ordinal)) for ordinal, text, tokens in chunks)
    return decode_record(row, made, by_ordinal.get(-1), at_position)
