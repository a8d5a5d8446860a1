"""Versions with their chunks and vectors, as the index needs them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

import apsw

from astrocyte.model import Bank
from astrocyte.stores.records import WHOLE, ChunkRecord, NewMemory, SpareVectors, VersionRecord
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, RECORD_COLUMNS, Array, decode_record, fetch, passage_key
from astrocyte.stores.sqlite.tables import vectors as spaces

# All passages of the versions of given keys.
_PASSAGES = (
    "SELECT p.passage_key, p.{1} FROM carray(?) w CROSS JOIN {0} p"
    f" ON p.passage_key >= w.value * {PASSAGES_PER_ROW} AND p.passage_key < (w.value + 1) * {PASSAGES_PER_ROW}"
)
# Text without direction has none.
_OF_MODEL = " WHERE p.model = ? AND p.vector <> x''"

# Little-endian f32 by passage key.
Vectors = dict[int, bytes]


def records(
    connection: apsw.Connection,
    bank: Bank,
    clause: str,
    bindings: Sequence[object],
    *,
    at_position: int,
    limit: int | None = None,
) -> list[VersionRecord]:
    """The versions that a clause meets, by row key, as they were at a position.

    Args:
        connection: In a transaction, so that all statements see one state.
        bank: Whose; the vectors are those of its embedding model, even where the bank has moved to another since.
        clause: SQL over ``m`` (memories) and ``c`` (contents), this package's own.
        bindings: Of the clause.
        at_position: Ends that came later are left out.
        limit: At most so many of a clause that follows the row keys; None for all of one that names few versions.
    """
    # The plus has few versions found by what the clause names and then sorted: SQLite would read the bank in order.
    order, bound = ("+m.row_key", ()) if limit is None else ("m.row_key LIMIT ?", (limit,))
    rows = fetch(
        connection,
        f"SELECT {RECORD_COLUMNS} FROM memories m JOIN contents c USING (row_key) WHERE {clause} ORDER BY {order}",
        (*bindings, *bound),
    )
    if not rows:
        return []
    keys = array("q", [row[0] for row in rows])
    chunks = _chunks(connection, keys)
    # Not in order, which would have the vectors sorted.
    sql = _PASSAGES.format(spaces.table_of(connection, bank.key, bank.embedding_model), "vector") + _OF_MODEL
    vectors: Vectors = dict(fetch(connection, sql, (Array(keys), bank.embedding_model)))
    known_tags: dict[str, tuple[str, ...]] = {}
    return [
        decode_record(
            row,
            _made(chunks[row[0]], vectors) if row[0] in chunks else (),
            vectors.get(passage_key(row[0], WHOLE)),
            bank.embedding_model,
            at_position,
            known_tags,
        )
        for row in rows
    ]


def spared_records(
    connection: apsw.Connection, bank: Bank, clause: str, bindings: Sequence[object], *, at_position: int
) -> list[VersionRecord]:
    """As `records`; during a reindex also with the vectors of the new model."""
    found = records(connection, bank, clause, bindings, at_position=at_position)
    target = spaces.building(connection, bank.key)
    if target is None:
        return found
    others = records(connection, replace(bank, embedding_model=target), clause, bindings, at_position=at_position)
    return [
        replace(record, memory=replace(record.memory, spare=_spare(other.memory)))
        for record, other in zip(found, others, strict=True)
    ]


def _spare(memory: NewMemory) -> SpareVectors:
    return SpareVectors(memory.model, memory.vector, tuple(chunk.vector for chunk in memory.chunks))


def _chunks(connection: apsw.Connection, keys: array[int]) -> dict[int, list[tuple[int, str, int]]]:
    """Chunks by row key, each as (passage key, text, tokens), by ordinal."""
    found: dict[int, list[tuple[int, str, int]]] = {}
    sql = _PASSAGES.format("chunks", "text, p.tokens") + " ORDER BY p.passage_key"
    for chunk in fetch(connection, sql, (Array(keys),)):
        found.setdefault(chunk[0] // PASSAGES_PER_ROW, []).append(chunk)
    return found


def _made(chunks: list[tuple[int, str, int]], vectors: Vectors) -> tuple[ChunkRecord, ...]:
    return tuple([ChunkRecord(text, tokens, vectors.get(key)) for key, text, tokens in chunks])
