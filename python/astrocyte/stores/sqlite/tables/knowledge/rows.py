"""Observations, mental models and directives in SQLite: rows, their sources, and what an erasure takes of them."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import apsw

from astrocyte.model import RevisionCause
from astrocyte.stores.knowledge.items import (
    Body,
    ItemKind,
    ItemRecord,
    RevisionRecord,
    SourceRecord,
    remaining,
    shown,
    superseded_by,
    superseders,
)
from astrocyte.stores.sqlite.rows import Array, Row, fetch

ITEM_COLUMNS = (
    "i.item_key, b.bank_id, i.kind, i.item_id, i.scope, i.priority, i.topic, i.created_by, i.created_at, i.updated_at,"
    " r.revision, r.cause, r.body, r.changed_by, r.changed_at"
)
ITEMS = (
    f"SELECT {ITEM_COLUMNS} FROM knowledge_items i JOIN banks b USING (bank_key)"
    " JOIN knowledge_revisions r ON r.item_key = i.item_key AND r.revision = i.revision"
)
# Condition that the version m of a memory is in the scope :scope. Hyphens and blanks of names are alike.
IN_SCOPE = (
    "CASE WHEN {scope} = 'bank' THEN true"
    " WHEN {scope} LIKE 'tag:%' THEN EXISTS (SELECT 1 FROM tags t WHERE t.bank_key = m.bank_key"
    " AND t.tag = substr({scope}, 5) AND t.row_key = m.row_key)"
    " ELSE EXISTS (SELECT 1 FROM contents c, json_each(c.entities) e WHERE c.row_key = m.row_key"
    " AND replace(e.value ->> 2, '-', ' ') = substr({scope}, 8)) END"
)
_SOURCES = (
    "SELECT s.item_key, s.revision, s.memory_id, s.version, s.observed_at, m.version, m.row_key,"
    " m.archived_at IS NOT NULL FROM carray(?1) w CROSS JOIN knowledge_sources s ON s.item_key = w.value"
    " JOIN knowledge_items i ON i.item_key = s.item_key"
    " LEFT JOIN memories m ON m.bank_key = s.bank_key AND m.memory_id = s.memory_id"
    " AND (m.known_until IS NULL OR m.archived_at IS NOT NULL) AND m.forgotten_at IS NULL"
    f" AND {IN_SCOPE.format(scope='i.scope')}"
)


def decode_body(text: str) -> Body:
    """The body of a revision."""
    body: Body = json.loads(text)
    return body


def encode_body(body: Body) -> str:
    """The inverse of `decode_body`."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def items(connection: apsw.Connection, rows: Sequence[Row], *, hidden: bool = False) -> list[ItemRecord]:
    """The items of rows of `ITEM_COLUMNS` as they are shown, in their order; with ``hidden`` all, and whole.

    All rows are of one bank.
    """
    found = _items(connection, rows, hidden=hidden)
    return found if hidden else _holding(connection, found)


def _holding(connection: apsw.Connection, records: list[ItemRecord]) -> list[ItemRecord]:
    """The items, each superseded by those that are shown: another one may have lost its sources since."""
    known = {
        record.key: [one for one, _ in superseders(record.current.body)]
        for record in records
        if record.kind is ItemKind.OBSERVATION
    }
    named = sorted({one for ids in known.values() for one in ids})
    if not named:
        return records
    rows = fetch(
        connection,
        f"{ITEMS} WHERE i.bank_key = (SELECT bank_key FROM knowledge_items WHERE item_key = ?) AND i.kind = ?"
        " AND i.item_id IN (SELECT value FROM json_each(?)) AND i.deleted_at IS NULL",
        (records[0].key, str(ItemKind.OBSERVATION), json.dumps(named)),
    )
    # One of the consolidation that somebody rewrote says something else now.
    present = {
        record.item_id
        for record in _items(connection, rows, hidden=False)
        if record.topic is None or "words" in record.current.body or record.current.cause is RevisionCause.CONSOLIDATED
    }
    return [
        replace(record, current=replace(record.current, body=superseded_by(record.current.body, present)))
        if known.get(record.key)
        else record
        for record in records
    ]


def _items(connection: apsw.Connection, rows: Sequence[Row], *, hidden: bool) -> list[ItemRecord]:
    if not rows:
        return []
    sources = sources_of(connection, [row[0] for row in rows], current_only=True)
    found = []
    for row in rows:
        key, bank_id, kind, item_id, scope, priority, topic, created_by, created_at, updated_at, *own = row
        revision, cause, body, changed_by, changed_at = own
        record = RevisionRecord(
            revision,
            RevisionCause(cause),
            decode_body(body),
            changed_by,
            changed_at,
            tuple(sources.get((key, revision), ())),
        )
        visible = record if hidden else shown(ItemKind(kind), record)
        if visible is not None:
            found.append(
                ItemRecord(
                    key,
                    bank_id,
                    ItemKind(kind),
                    item_id,
                    scope,
                    priority,
                    topic,
                    created_by,
                    created_at,
                    updated_at,
                    visible,
                )
            )
    return found


def sources_of(
    connection: apsw.Connection, keys: Sequence[int], *, current_only: bool
) -> dict[tuple[int, int], list[SourceRecord]]:
    """The sources of items by key and revision, in the order of their ids."""
    which = " AND s.revision = i.revision" if current_only else ""
    rows = fetch(connection, f"{_SOURCES}{which} ORDER BY s.memory_id", (Array(array("q", keys)),))
    found: dict[tuple[int, int], list[SourceRecord]] = {}
    for key, revision, memory_id, version, observed_at, current, row_key, archived in rows:
        source = SourceRecord(memory_id, version, observed_at, current, row_key, bool(archived))
        found.setdefault((key, revision), []).append(source)
    return found


def delete_items(connection: apsw.Connection, keys: Sequence[int]) -> int:
    """Delete items with their revisions; returns the number of items."""
    if not keys:
        return 0
    chosen = Array(array("q", keys))
    for table in ("knowledge_sources", "knowledge_revisions", "knowledge_items"):
        connection.execute(f"DELETE FROM {table} WHERE item_key IN (SELECT value FROM carray(?))", (chosen,))
    return connection.changes()


def erase_sources(connection: apsw.Connection, bank_key: int, memory_ids: Sequence[str]) -> Counter[str]:
    """Delete what rests on memories that are being erased; returns the number of rows that went, by table.

    An item goes with its current revision, and an earlier revision goes alone. Of mental models the blocks that rest on
    other memories stay.
    """
    rows = fetch(
        connection,
        "SELECT DISTINCT s.item_key, s.revision, i.kind, i.revision, r.body FROM knowledge_sources s"
        " JOIN knowledge_items i USING (item_key)"
        " JOIN knowledge_revisions r ON r.item_key = s.item_key AND r.revision = s.revision"
        " WHERE s.bank_key = ? AND s.memory_id IN (SELECT value FROM json_each(?))",
        (bank_key, json.dumps(memory_ids)),
    )
    if not rows:
        return Counter()
    gone = frozenset(memory_ids)
    leaving: dict[int, None] = {}
    changed = 0
    for key, revision, kind, current, text in rows:
        body = remaining(ItemKind(kind), decode_body(text), gone)
        if body is None and revision == current:
            leaving[key] = None
            continue
        changed += 1
        if body is None:
            for table in ("knowledge_sources", "knowledge_revisions"):
                connection.execute(f"DELETE FROM {table} WHERE item_key = ? AND revision = ?", (key, revision))
            continue
        connection.execute(
            "UPDATE knowledge_revisions SET body = ? WHERE item_key = ? AND revision = ? AND bank_key = ?",
            (encode_body(body), key, revision, bank_key),
        )
    connection.execute(
        "DELETE FROM knowledge_sources WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))",
        (bank_key, json.dumps(memory_ids)),
    )
    return Counter(knowledge_items=delete_items(connection, list(leaving)), knowledge_revisions=changed)


def purge_deleted(connection: apsw.Connection, now: int, limit: int) -> int:
    """Delete hidden items whose time is over, at most ``limit``; returns their number."""
    rows = fetch(
        connection,
        "SELECT item_key FROM knowledge_items WHERE purge_after IS NOT NULL AND purge_after <= ?"
        " ORDER BY purge_after LIMIT ?",
        (now, limit),
    )
    return delete_items(connection, [key for (key,) in rows])
