"""The size of a slice of deletions, and the deletion of versions with their parts."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import apsw

from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.rows import Array, fetch
from astrocyte.stores.sqlite.tables.vectors import PARTS, SETS

# A slice holds at most so many memories and about so many bytes: its log fits into the ballast many times over, and
# the writes that wait for it wait some milliseconds.
SLICE_MEMORIES = 128
SLICE_BYTES = 1 << 20
# Rough cost of a memory in the log: a token is about 4 bytes and is there twice, in the whole and in a chunk; a chunk
# has a vector and some index entries.
BYTES_PER_TOKEN = 8
BYTES_PER_CHUNK = 4_096

# Statements that delete what hangs on the row keys ?1.
_TAGS = (
    "DELETE FROM tags WHERE (bank_key, tag, row_key) IN (SELECT ?2, t.value, c.row_key FROM carray(?1) w"
    " CROSS JOIN contents c ON c.row_key = w.value CROSS JOIN json_each(c.tags) t)"
)
_ENTITIES = (
    "DELETE FROM entities WHERE (bank_key, folded, row_key) IN (SELECT ?2, e.value ->> 2, c.row_key FROM carray(?1) w"
    " CROSS JOIN contents c ON c.row_key = w.value CROSS JOIN json_each(c.entities) e)"
)
_ROWS = "DELETE FROM {table} WHERE row_key IN (SELECT value FROM carray(?1))"


def first_slice(connection: apsw.Connection, bank_key: int, memory_ids: Sequence[str]) -> list[str]:
    """As many of the memories, at least one, as a transaction may delete."""
    first = list(memory_ids[:SLICE_MEMORIES])
    sizes: dict[str, int] = dict(
        fetch(
            connection,
            "SELECT memory_id, sum(token_count) * ? + sum(chunk_count) * ? FROM memories"
            " WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?)) GROUP BY memory_id",
            (BYTES_PER_TOKEN, BYTES_PER_CHUNK, bank_key, json.dumps(first)),
        )
    )
    return first[: fitting(sizes.get(memory_id, 0) for memory_id in first)]


def delete_versions(connection: apsw.Connection, bank_key: int, row_keys: Sequence[int]) -> Counter[str]:
    """Delete versions with all their parts; returns how many rows went, by table."""
    if not row_keys:
        return Counter()
    keys = array("q", row_keys)
    connection.execute(_TAGS, (Array(keys), bank_key))
    connection.execute(_ENTITIES, (Array(keys), bank_key))
    # Before the versions, by which mentions are counted.
    derived_rows.remove(connection, row_keys)
    counts: Counter[str] = Counter(versions=len(row_keys))
    for table, name in (("chunks", "chunks"), *((table, "embeddings") for table in SETS)):
        connection.execute(PARTS.format(table=table), (Array(keys),))
        counts[name] += connection.changes()
    for table in ("contents", "recalled", "memories"):
        connection.execute(_ROWS.format(table=table), (Array(keys),))
    return counts


def fitting(sizes: Iterable[int]) -> int:
    """The number of sizes that fit into a slice, at least one."""
    count = total = 0
    for size in sizes:
        total += size
        if count and total > SLICE_BYTES:
            break
        count += 1
    return count
