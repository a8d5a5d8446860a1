"""Rows of archives: look-ups of memories and tombstones, and items of knowledge with all their revisions."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import replace

import apsw

from astrocyte.errors import AstrocyteError, FailedPrecondition, LegalHoldActive
from astrocyte.model import AuditEventKind, Bank, RevisionCause
from astrocyte.stores.knowledge.items import Body, ItemHistory, ItemKind, RevisionRecord, SourceRecord, Standing, shown
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import Array, BankDigests, Row, fetch
from astrocyte.stores.sqlite.tables import audit, legal_holds
from astrocyte.stores.sqlite.tables.knowledge import changes
from astrocyte.stores.sqlite.tables.knowledge.rows import ITEMS, decode_body, encode_body, sources_of

# By the index of (bank_key, memory_id, version).
_IDS = (
    "SELECT DISTINCT m.memory_id FROM memories m WHERE m.bank_key = ? AND m.memory_id > ? AND m.forgotten_at IS NULL"
    " AND m.position <= ? ORDER BY m.memory_id LIMIT ?"
)
_TOMBSTONES = (
    "SELECT m.memory_id, m.forgotten_at FROM memories m WHERE m.bank_key = ? AND m.memory_id > ?"
    " AND m.forgotten_at IS NOT NULL AND m.erasing IS NULL AND (m.known_until IS NULL OR m.archived_at IS NOT NULL)"
    " ORDER BY m.memory_id LIMIT ?"
)
_HELD = (
    "SELECT m.memory_id, max(m.forgotten_at IS NOT NULL) FROM memories m WHERE m.bank_key = ?"
    " AND m.memory_id IN (SELECT value FROM json_each(?)) GROUP BY m.memory_id"
)
_SAME = (
    "SELECT w.value FROM carray(?2) w WHERE EXISTS (SELECT 1 FROM memories m INDEXED BY memories_current"
    " WHERE m.bank_key = ?1 AND m.content_hash = w.value AND m.known_until IS NULL AND m.forgotten_at IS NULL)"
)
_REVISIONS = (
    "SELECT item_key, revision, cause, body, changed_by, changed_at FROM knowledge_revisions"
    " WHERE item_key IN (SELECT value FROM carray(?)) ORDER BY item_key, revision"
)
# The memories of an export at a position.
_EXPORTED = (
    "SELECT DISTINCT memory_id FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
    " AND forgotten_at IS NULL AND position <= ?"
)
_STORED = (
    "SELECT i.item_key, i.scope, i.priority, i.revision, i.deleted_at, r.body FROM knowledge_items i"
    " JOIN knowledge_revisions r ON r.item_key = i.item_key AND r.revision = i.revision"
    " WHERE i.bank_key = ? AND i.kind = ? AND i.item_id = ?"
)


def memory_ids(connections: Connections, bank: Bank, after: str, limit: int, at_position: int) -> list[str]:
    """See `MemoryStore.memory_ids`."""
    return [row[0] for row in connections.query(_IDS, (bank.key, after, at_position, limit))]


def tombstones(connections: Connections, bank: Bank, after: str, limit: int) -> list[tuple[str, int]]:
    """See `MemoryStore.tombstones`."""
    return [(row[0], row[1]) for row in connections.query(_TOMBSTONES, (bank.key, after, limit))]


def held(connections: Connections, bank: Bank, ids: Sequence[str]) -> dict[str, bool]:
    """See `MemoryStore.held`."""
    return {row[0]: bool(row[1]) for row in connections.query(_HELD, (bank.key, json.dumps(list(ids))))}


def same_content(connections: Connections, bank: Bank, content_hashes: Sequence[bytes]) -> set[bytes]:
    """See `MemoryStore.same_content`."""
    if not content_hashes:
        return set()
    asked = BankDigests(tuple(content_hashes), bank.key, "memories", "content_hash")
    return {row[0] for row in connections.query(_SAME, (bank.key, asked))}


def item_histories(
    connection: apsw.Connection, bank: Bank, kind: ItemKind, after: int, limit: int, at_position: int
) -> tuple[list[ItemHistory], int]:
    """The next items with their revisions; see `KnowledgeStore.histories`."""
    rows = fetch(
        connection,
        f"{ITEMS} WHERE i.bank_key = ? AND b.tenant = ? AND i.kind = ? AND i.deleted_at IS NULL AND i.item_key > ?"
        " ORDER BY i.item_key LIMIT ?",
        (bank.key, bank.tenant, str(kind), after, limit),
    )
    keys = [row[0] for row in rows]
    revisions = _revisions(connection, bank, keys, at_position)
    found = []
    for row in rows:
        key, _, _, item_id, scope, priority, topic, created_by, created_at, _, current, *_ = row
        own = [one for record in revisions.get(key, ()) if (one := shown(kind, record)) is not None]
        # Without its current revision an item is not shown.
        if own and own[-1].revision == current:
            found.append(ItemHistory(kind, item_id, scope, priority, topic, created_by, created_at, tuple(own)))
    return found, keys[-1] if keys else 0


def _revisions(
    connection: apsw.Connection, bank: Bank, keys: Sequence[int], at_position: int
) -> dict[int, list[RevisionRecord]]:
    """The revisions of items by key, with the sources after a position as if they were gone."""
    if not keys:
        return {}
    sources = sources_of(connection, keys, current_only=False)
    named = sorted({one.memory_id for own in sources.values() for one in own})
    exported = {row[0] for row in fetch(connection, _EXPORTED, (bank.key, json.dumps(named), at_position))}
    found: dict[int, list[RevisionRecord]] = {}
    for key, revision, cause, body, changed_by, changed_at in fetch(connection, _REVISIONS, (Array(array("q", keys)),)):
        own = tuple(
            one if one.memory_id in exported else replace(one, current=None) for one in sources.get((key, revision), ())
        )
        record = RevisionRecord(revision, RevisionCause(cause), decode_body(body), changed_by, changed_at, own)
        found.setdefault(key, []).append(record)
    return found


def item_standings(
    connection: apsw.Connection, bank: Bank, items: Sequence[ItemHistory], *, overwrite: bool
) -> list[Standing]:
    """The relation of each item to what the bank has; see `KnowledgeStore.standings`."""
    found = []
    for item in items:
        stored = _stored(connection, bank, item)
        standing = _standing(connection, bank, item, stored)
        if overwrite and standing is Standing.OTHER and stored is not None:
            _check_holds(connection, bank, item, stored)
        found.append(standing)
    return found


def restore_items(
    transaction: Transaction, bank: Bank, items: Sequence[tuple[ItemHistory, int]], by: str, *, overwrite: bool
) -> list[bool | AstrocyteError]:
    """Store items; see `KnowledgeStore.restore`."""
    results: list[bool | AstrocyteError] = []
    for item, most in items:
        try:
            results.append(_restore(transaction, bank, item, most, by, overwrite=overwrite))
        except LegalHoldActive:
            raise
        except AstrocyteError as error:
            results.append(error)
    return results


def _restore(transaction: Transaction, bank: Bank, item: ItemHistory, most: int, by: str, *, overwrite: bool) -> bool:
    """Store an item, or raise before anything of it is written; returns False if it is kept."""
    connection, now = transaction.connection, transaction.bank(bank).now
    stored = _stored(connection, bank, item)
    standing = _standing(connection, bank, item, stored)
    if stored is None:
        _check_room(connection, bank, item.kind, most)
        for revision in item.revisions:
            _check_cited(connection, bank, item, revision)
        key = _insert(connection, bank, item)
        revisions = item.revisions
    elif overwrite and standing is Standing.OTHER:
        _check_cited(connection, bank, item, item.revisions[-1])
        _check_holds(connection, bank, item, stored)
        key = stored[0]
        last = item.revisions[-1]
        revisions = (replace(last, revision=stored[3] + 1, changed_by=by, changed_at=now),)
        connection.execute(
            "UPDATE knowledge_items SET revision = ?, scope = ?, priority = ?, topic = ?, updated_at = ?"
            " WHERE item_key = ? AND bank_key = ?",
            (stored[3] + 1, item.scope, item.priority, item.topic, now, key, bank.key),
        )
    else:
        return False
    for revision in revisions:
        _write(connection, bank, key, revision)
    if item.kind is ItemKind.DIRECTIVE:
        event = AuditEventKind.DIRECTIVE_CREATED
        audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"item": key})
    return True


def _stored(connection: apsw.Connection, bank: Bank, item: ItemHistory) -> Row | None:
    rows = fetch(connection, _STORED, (bank.key, str(item.kind), item.item_id))
    return rows[0] if rows else None


def _standing(connection: apsw.Connection, bank: Bank, item: ItemHistory, stored: Row | None) -> Standing:
    if stored is None:
        return Standing.ABSENT
    key, scope, priority, revision, deleted_at, body = stored
    if deleted_at is not None or changes.named(connection, bank, item.kind, item.item_id) is None:
        return Standing.HIDDEN
    last = item.revisions[-1]
    equal = (scope, priority, _told(decode_body(body))) == (item.scope, item.priority, _told(last.body))
    return Standing.EQUAL if equal and _cited(connection, key, revision) == _ids(last) else Standing.OTHER


def _told(body: Body) -> Body:
    """The body without the fingerprint of a page, which is of the bank's own rows."""
    return {key: value for key, value in body.items() if key != "fingerprint"}


def _cited(connection: apsw.Connection, key: int, revision: int) -> set[str]:
    sql = "SELECT memory_id FROM knowledge_sources WHERE item_key = ? AND revision = ?"
    return {memory_id for (memory_id,) in fetch(connection, sql, (key, revision))}


def _ids(revision: RevisionRecord) -> set[str]:
    return {source.memory_id for source in revision.sources}


def _check_holds(connection: apsw.Connection, bank: Bank, item: ItemHistory, stored: Row) -> None:
    """Refuse the change of an item while a hold covers the bank or one of its sources, as a call would be."""
    legal_holds.check_memories(connection, bank, [*sorted(_cited(connection, stored[0], stored[3])), item.item_id])


def _check_room(connection: apsw.Connection, bank: Bank, kind: ItemKind, most: int) -> None:
    if changes.count_of(connection, bank, kind) >= most:
        raise FailedPrecondition(
            f"bank {bank.bank_id!r} has {most:,} {changes.NOUNS[kind]}s, which is the limit; delete some first",
            metadata={"bank_id": bank.bank_id, "limit": str(most)},
        )


def _check_cited(connection: apsw.Connection, bank: Bank, item: ItemHistory, revision: RevisionRecord) -> None:
    changes.cited(connection, bank, item.scope, [source.memory_id for source in revision.sources])


def _insert(connection: apsw.Connection, bank: Bank, item: ItemHistory) -> int:
    last = item.revisions[-1]
    connection.execute(
        "INSERT INTO knowledge_items (bank_key, kind, item_id, scope, priority, topic, revision, created_by,"
        " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            bank.key,
            str(item.kind),
            item.item_id,
            item.scope,
            item.priority,
            item.topic,
            last.revision,
            item.created_by,
            item.created_at,
            last.changed_at,
        ),
    )
    return connection.last_insert_rowid()


def _write(connection: apsw.Connection, bank: Bank, key: int, revision: RevisionRecord) -> None:
    connection.execute(
        "INSERT INTO knowledge_revisions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            revision.revision,
            bank.key,
            str(revision.cause),
            encode_body(revision.body),
            revision.changed_by,
            revision.changed_at,
        ),
    )
    distinct: dict[str, SourceRecord] = {source.memory_id: source for source in revision.sources}
    for source in distinct.values():
        connection.execute(
            "INSERT INTO knowledge_sources VALUES (?, ?, ?, ?, ?, ?)",
            (bank.key, source.memory_id, key, revision.revision, source.version, source.observed_at),
        )
