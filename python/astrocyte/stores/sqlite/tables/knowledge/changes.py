"""Writes of observations, mental models and directives, each in one transaction with its checks."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.errors import AlreadyExists, Conflict, FailedPrecondition, MemoryNotFound, NotFound
from astrocyte.model import AuditEventKind, Bank, RevisionCause
from astrocyte.stores.knowledge.items import Body, Change, ItemKind, ItemRecord, NewItem, Removal, SourceRecord
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import fetch, key_array
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds
from astrocyte.stores.sqlite.tables.knowledge.rows import IN_SCOPE, ITEMS, delete_items, encode_body, items

# As they are called in errors and in the audit trail.
NOUNS = {
    ItemKind.OBSERVATION: "observation",
    ItemKind.MENTAL_MODEL: "mental model",
    ItemKind.DIRECTIVE: "directive",
    ItemKind.WIKI_PAGE: "wiki page",
}
_SOURCE = (
    "SELECT m.version, coalesce(m.occurred_at, m.retained_at), m.row_key FROM memories m WHERE m.bank_key = ?1"
    " AND m.memory_id = ?2 AND (m.known_until IS NULL OR m.archived_at IS NOT NULL) AND m.forgotten_at IS NULL"
    f" AND {IN_SCOPE.format(scope='?3')}"
)


def missing(bank: Bank, kind: ItemKind, item_id: str) -> NotFound:
    """The error for an item that a bank does not have."""
    return NotFound(
        f"there is no {NOUNS[kind]} {item_id!r} in bank {bank.bank_id!r}",
        metadata={f"{kind}_id": item_id, "bank_id": bank.bank_id},
    )


def create(transaction: Transaction, bank: Bank, item: NewItem, by: str, request: RequestKey | None) -> ItemRecord:
    """Store an item; see `KnowledgeStore.create`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _by_key(connection, bank, item.kind, item.item_id, json.loads(earlier)[0])
    transaction.bank(bank)
    count = count_of(connection, bank, item.kind)
    if count >= item.most:
        raise FailedPrecondition(
            f"bank {bank.bank_id!r} has {count:,} {NOUNS[item.kind]}s, which is the limit; delete some first",
            metadata={"bank_id": bank.bank_id, "limit": str(item.most)},
        )
    key = insert(transaction, bank, item, by)
    if item.kind is ItemKind.DIRECTIVE:
        _audit(transaction, bank, AuditEventKind.DIRECTIVE_CREATED, by, {"item": key})
    _keep(transaction, bank, request, [key])
    return _by_key(connection, bank, item.kind, item.item_id, key)


def insert(transaction: Transaction, bank: Bank, item: NewItem, by: str) -> int:
    """Write an item with its first revision, whatever the bank has already; returns its key.

    Raises:
        AlreadyExists, MemoryNotFound, FailedPrecondition: As `KnowledgeStore.create`, but for the limit.
    """
    connection, now = transaction.connection, transaction.bank(bank).now
    _drop_hidden(connection, bank, item)
    try:
        connection.execute(
            "INSERT INTO knowledge_items (bank_key, kind, item_id, scope, priority, topic, revision, created_by,"
            " created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
            (bank.key, str(item.kind), item.item_id, item.scope, item.priority, item.topic, by, now, now),
        )
    except apsw.ConstraintError as error:
        raise AlreadyExists(
            f"bank {bank.bank_id!r} has a {NOUNS[item.kind]} {item.item_id!r}; update it, or use another id",
            metadata={f"{item.kind}_id": item.item_id},
        ) from error
    key = connection.last_insert_rowid()
    _write_revision(connection, bank, (key, 1, item.cause, item.body, by, now), item.scope, item.source_ids)
    return key


def count_of(connection: apsw.Connection, bank: Bank, kind: ItemKind) -> int:
    """The number of items of a kind, hidden ones included."""
    ((count,),) = fetch(
        connection, "SELECT count(*) FROM knowledge_items WHERE bank_key = ? AND kind = ?", (bank.key, str(kind))
    )
    return int(count)


def revise(  # noqa: PLR0913, PLR0917 - the parts of one transaction
    transaction: Transaction,
    bank: Bank,
    kind: ItemKind,
    item_id: str,
    change: Change,
    by: str,
    request: RequestKey | None,
    note: str,
) -> tuple[ItemRecord, str]:
    """Make a new revision; see `KnowledgeStore.revise`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        key, earlier_note = json.loads(earlier)
        return _by_key(connection, bank, kind, item_id, key), earlier_note
    transaction.bank(bank)
    found = changeable(connection, bank, kind, item_id, change.expected_etag)
    if found is None:
        raise missing(bank, kind, item_id)
    write_next(transaction, bank, found.key, found.current.revision + 1, found.scope, change, by)
    _keep(transaction, bank, request, [found.key, note])
    return _by_key(connection, bank, kind, item_id, found.key), note


def changeable(
    connection: apsw.Connection, bank: Bank, kind: ItemKind, item_id: str, expected_etag: str | None
) -> ItemRecord | None:
    """The item of an id, which may be changed or deleted; None for none.

    Raises:
        Conflict: The etag is not the current one.
        LegalHoldActive: A hold covers the bank, or a source.
    """
    found = named(connection, bank, kind, item_id)
    if found is None:
        return None
    if expected_etag not in {None, found.etag}:
        raise Conflict(
            f"{NOUNS[kind]} {item_id!r} has etag {found.etag!r}, not {expected_etag!r}; read it again and retry",
            metadata={f"{kind}_id": item_id, "etag": found.etag},
        )
    check_holds(connection, bank, [found])
    return found


def write_next(  # noqa: PLR0913, PLR0917 - the parts of a revision
    transaction: Transaction, bank: Bank, key: int, revision: int, scope: str, change: Change, by: str
) -> None:
    """Write a revision and make it the current one.

    Raises:
        MemoryNotFound, FailedPrecondition: As `KnowledgeStore.create`.
    """
    connection, now = transaction.connection, transaction.bank(bank).now
    connection.execute(
        "UPDATE knowledge_items SET revision = ?, updated_at = ? WHERE item_key = ?", (revision, now, key)
    )
    _write_revision(connection, bank, (key, revision, change.cause, change.body, by, now), scope, change.source_ids)


def delete(  # noqa: PLR0913, PLR0917 - the parts of one transaction
    transaction: Transaction,
    bank: Bank,
    kind: ItemKind,
    item_id: str,
    removal: Removal,
    by: str,
    request: RequestKey | None,
) -> bool:
    """Delete an item, or hide it; see `KnowledgeStore.delete`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return bool(json.loads(earlier)[0])
    now = transaction.bank(bank).now
    found = changeable(connection, bank, kind, item_id, removal.expected_etag)
    if found is not None:
        if removal.purge_after is None:
            delete_items(connection, [found.key])
        else:
            connection.execute(
                "UPDATE knowledge_items SET deleted_at = ?, purge_after = ? WHERE item_key = ?",
                (now, removal.purge_after, found.key),
            )
        details: dict[str, str | int] = {"kind": str(kind), "item": found.key}
        _audit(transaction, bank, AuditEventKind.KNOWLEDGE_DELETED, by, details)
    _keep(transaction, bank, request, [found is not None])
    return found is not None


def undelete(
    transaction: Transaction, bank: Bank, kind: ItemKind, item_id: str, by: str, request: RequestKey | None
) -> ItemRecord:
    """Show a hidden item again; see `KnowledgeStore.undelete`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _by_key(connection, bank, kind, item_id, json.loads(earlier)[0])
    transaction.bank(bank)
    rows = fetch(
        connection,
        "UPDATE knowledge_items SET deleted_at = NULL, purge_after = NULL"
        " WHERE bank_key = ? AND kind = ? AND item_id = ? AND deleted_at IS NOT NULL RETURNING item_key",
        (bank.key, str(kind), item_id),
    )
    found = named(connection, bank, kind, item_id)
    if found is None:
        raise missing(bank, kind, item_id)
    if rows:
        details: dict[str, str | int] = {"kind": str(kind), "item": found.key}
        _audit(transaction, bank, AuditEventKind.KNOWLEDGE_UNDELETED, by, details)
    _keep(transaction, bank, request, [found.key])
    return found


def invalidate(
    transaction: Transaction, bank: Bank, memory_ids: Sequence[str], by: str, request: RequestKey | None
) -> int:
    """Delete the observations that rest on memories; see `KnowledgeStore.invalidate`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return int(json.loads(earlier)[0])
    transaction.bank(bank)
    keys = resting(connection, bank, memory_ids)
    if keys:
        delete_items(connection, keys)
        details: dict[str, str | int] = {"kind": str(ItemKind.OBSERVATION), "count": len(keys)}
        _audit(transaction, bank, AuditEventKind.KNOWLEDGE_DELETED, by, details)
    _keep(transaction, bank, request, [len(keys)])
    return len(keys)


def resting(connection: apsw.Connection, bank: Bank, memory_ids: Sequence[str]) -> list[int]:
    """Keys of the observations that rest on any of the memories, all of which may be deleted.

    Raises:
        LegalHoldActive: A hold covers the bank, or a source of one of them.
    """
    rows = fetch(
        connection,
        "SELECT DISTINCT i.item_key FROM knowledge_sources s JOIN knowledge_items i"
        " ON i.item_key = s.item_key AND i.revision = s.revision"
        " WHERE s.bank_key = ? AND i.kind = ? AND s.memory_id IN (SELECT value FROM json_each(?))",
        (bank.key, str(ItemKind.OBSERVATION), json.dumps(list(memory_ids))),
    )
    keys = [key for (key,) in rows]
    if keys:
        named_ids = fetch(
            connection,
            "SELECT DISTINCT memory_id FROM knowledge_sources WHERE item_key IN (SELECT value FROM carray(?))",
            (key_array(keys),),
        )
        legal_holds.check_memories(connection, bank, [memory_id for (memory_id,) in named_ids])
    return keys


def named(
    connection: apsw.Connection, bank: Bank, kind: ItemKind, item_id: str, *, hidden: bool = False
) -> ItemRecord | None:
    """The item of an id as it is shown, or None; with ``hidden`` also one that was deleted and is not purged."""
    which = "" if hidden else " AND i.deleted_at IS NULL"
    rows = fetch(
        connection,
        f"{ITEMS} WHERE i.bank_key = ? AND b.tenant = ? AND i.kind = ? AND i.item_id = ?{which}",
        (bank.key, bank.tenant, str(kind), item_id),
    )
    found = items(connection, rows)
    return found[0] if found else None


def check_holds(connection: apsw.Connection, bank: Bank, records: Sequence[ItemRecord]) -> None:
    """Refuse the change or deletion of items while a hold covers the bank or one of their sources.

    Raises:
        LegalHoldActive: One does.
    """
    for record in records:
        # A hold of the whole bank covers any id, also that of the item.
        sources = [source.memory_id for source in record.current.sources]
        legal_holds.check_memories(connection, bank, [*sources, record.item_id])


def _by_key(connection: apsw.Connection, bank: Bank, kind: ItemKind, item_id: str, key: int) -> ItemRecord:
    found = items(connection, fetch(connection, f"{ITEMS} WHERE i.item_key = ? AND i.deleted_at IS NULL", (key,)))
    if not found:
        raise missing(bank, kind, item_id)
    return found[0]


def _drop_hidden(connection: apsw.Connection, bank: Bank, item: NewItem) -> None:
    """Delete a hidden item of the same id: the new one takes its place."""
    rows = fetch(
        connection,
        "SELECT item_key FROM knowledge_items WHERE bank_key = ? AND kind = ? AND item_id = ?"
        " AND deleted_at IS NOT NULL",
        (bank.key, str(item.kind), item.item_id),
    )
    if rows:
        legal_holds.check_memories(connection, bank, [item.item_id])
        delete_items(connection, [key for (key,) in rows])


def _write_revision(
    connection: apsw.Connection,
    bank: Bank,
    row: tuple[int, int, RevisionCause, Body, str, int],
    scope: str,
    source_ids: Sequence[str],
) -> None:
    key, revision, cause, body, by, now = row
    connection.execute(
        "INSERT INTO knowledge_revisions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, revision, bank.key, str(cause), encode_body(body), by, now),
    )
    for source in cited(connection, bank, scope, source_ids):
        connection.execute(
            "INSERT INTO knowledge_sources VALUES (?, ?, ?, ?, ?, ?)",
            (bank.key, source.memory_id, key, revision, source.version, source.observed_at),
        )


def cited(connection: apsw.Connection, bank: Bank, scope: str, memory_ids: Sequence[str]) -> list[SourceRecord]:
    """The memories as an item of the scope would cite them; see `KnowledgeStore.sources`."""
    found = []
    for memory_id in dict.fromkeys(memory_ids):
        rows = fetch(connection, _SOURCE, (bank.key, memory_id, scope))
        if not rows:
            raise _no_source(connection, bank, memory_id, scope)
        version, observed_at, row_key = rows[0]
        found.append(SourceRecord(memory_id, version, observed_at, version, row_key))
    return found


def _no_source(connection: apsw.Connection, bank: Bank, memory_id: str, scope: str) -> NotFound | FailedPrecondition:
    exists = fetch(
        connection,
        "SELECT 1 FROM memories WHERE bank_key = ? AND memory_id = ? AND known_until IS NULL AND forgotten_at IS NULL",
        (bank.key, memory_id),
    )
    if not exists:
        return MemoryNotFound(memory_id, bank.bank_id)
    return FailedPrecondition(
        f"memory {memory_id!r} is outside of the scope {scope!r}; cite memories of the scope only",
        metadata={"memory_id": memory_id, "scope": scope},
    )


def _audit(transaction: Transaction, bank: Bank, event: AuditEventKind, by: str, details: dict[str, str | int]) -> None:
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)


def _keep(transaction: Transaction, bank: Bank, request: RequestKey | None, answer: list[object]) -> None:
    """Store an answer for retries of its request: keys and counts, no content."""
    if request is not None:
        now = transaction.bank(bank).now
        text = json.dumps(answer).encode()
        idempotency.store(transaction.connection, bank.tenant, request, text, now, bank_key=bank.key)
