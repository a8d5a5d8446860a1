"""Storing memories: exact duplicates are found, and versions are chained, inside the transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby

import apsw

from astrocyte.errors import Conflict, MemoryNotFound
from astrocyte.model import Bank, ChangeKind
from astrocyte.stores.outbox import CopyAction, CopyOrder
from astrocyte.stores.quarantine import Quarantine
from astrocyte.stores.records import (
    Insert,
    Replace,
    RequestKey,
    Restore,
    Write,
    WriteOutcome,
    memory_etag,
)
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.rows import BankDigests, fetch
from astrocyte.stores.sqlite.tables import idempotency, legal_holds, outbox, retry_queue
from astrocyte.stores.sqlite.version_rows import VersionRows

Respond = Callable[[Sequence[WriteOutcome]], bytes]
Settle = Callable[[Sequence[WriteOutcome]], Sequence[tuple[RequestKey, bytes]]]

_BY_HASH = (
    "SELECT m.row_key, m.content_hash, m.memory_id FROM carray(?2) w CROSS JOIN memories m INDEXED BY memories_current"
    " ON m.bank_key = ?1 AND m.content_hash = w.value AND m.known_until IS NULL AND m.forgotten_at IS NULL"
    # Where several share a hash the last one stays in the mapping: the oldest.
    " ORDER BY m.row_key DESC"
)
_BY_ID = "SELECT DISTINCT memory_id FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
# With the position of the memory, not of the version: an update makes no memory newer.
_OLDEST = (
    "SELECT m.content_hash, (SELECT min(f.position) FROM memories f WHERE f.bank_key = ?1"
    " AND f.memory_id = m.memory_id) AS first, m.memory_id"
    " FROM carray(?2) w CROSS JOIN memories m INDEXED BY memories_current"
    " ON m.bank_key = ?1 AND m.content_hash = w.value AND m.known_until IS NULL AND m.forgotten_at IS NULL"
    " ORDER BY first DESC"
)
_CURRENT = (
    "SELECT row_key, version, retained_at FROM memories"
    " WHERE bank_key = ? AND memory_id = ? AND known_until IS NULL AND forgotten_at IS NULL"
)


def commit(  # noqa: PLR0913, PLR0917 - the parts of one transaction
    transaction: Transaction,
    bank: Bank,
    writes: Sequence[Write],
    request: RequestKey | None,
    respond: Respond | None,
    settle: Settle | None,
    dequeue: Sequence[int],
    copies: CopyOrder | None,
    quarantine: Quarantine,
) -> tuple[list[WriteOutcome], bytes | None]:
    """Do all writes; see `MemoryStore.commit`. Rows in quarantine are nobody's duplicates."""
    earlier = None if request is None else idempotency.stored(transaction.connection, bank.tenant, request)
    if earlier is not None:
        return [], earlier
    work = transaction.bank(bank)
    if dequeue:
        retry_queue.dequeue(transaction.connection, bank, dequeue)
        transaction.tell(Told(Topic.QUEUE, bank.key))
    outcomes: list[WriteOutcome] = []
    for kind, run in groupby(writes, type):
        if kind is Insert:
            outcomes += _insert(transaction.connection, work, run, quarantine)
        elif kind is Restore:
            outcomes += _restore(transaction.connection, work, [write for write in run if isinstance(write, Restore)])
        else:
            outcomes += [_replace(transaction.connection, work, write) for write in run if isinstance(write, Replace)]
    if copies is not None:
        _let_wait(transaction.connection, work, copies, outcomes)
    for key, response in settle(outcomes) if settle is not None else ():
        if idempotency.stored(transaction.connection, bank.tenant, key) is not None:
            raise Conflict(
                f"request_id {key.request_id!r} has been answered before; send that request alone to get its answer",
                metadata={"request_id": key.request_id},
            )
        idempotency.store(transaction.connection, bank.tenant, key, response, work.now, bank_key=bank.key)
    if request is None:
        return outcomes, None
    response = respond(outcomes) if respond is not None else b""
    idempotency.store(transaction.connection, bank.tenant, request, response, work.now, bank_key=bank.key)
    return outcomes, response


def _let_wait(connection: apsw.Connection, work: BankWork, copies: CopyOrder, outcomes: Sequence[WriteOutcome]) -> None:
    """Let what was stored wait for the engine that is to have copies of it."""
    stored = [one for one in outcomes if one.duplicate_of is None]
    for action, first in ((CopyAction.COPY, True), (CopyAction.REPLACE, False)):
        changes = [(one.memory_id, one.position) for one in stored if (one.version == 1) is first]
        outbox.put(connection, work, copies, action, changes)


def _insert(
    connection: apsw.Connection, work: BankWork, writes: Iterable[Write], quarantine: Quarantine
) -> list[WriteOutcome]:
    memories, hashes = [], set()
    for write in writes:
        memories.append(write.memory)
        hashes.add(write.memory.content_hash)
    # Of those that share a hash, the oldest.
    rows = fetch(connection, _BY_HASH, (work.bank.key, _hashes(work.bank, hashes)))
    known: dict[bytes, str] = {}
    for row_key, content_hash, kept in rows:
        if row_key in quarantine:
            # The index would go on to offer it as the duplicate of what is stored in its place.
            work.remove(row_key)
        else:
            known[content_hash] = kept
    versions = VersionRows(connection, work)
    outcomes = []
    for memory in memories:
        kept = known.get(memory.content_hash)
        if kept is not None:
            outcomes.append(WriteOutcome(memory.memory_id, work.position, 0, duplicate_of=kept))
            continue
        known[memory.content_hash] = memory.memory_id
        position = work.change(ChangeKind.CREATED, memory.memory_id)
        versions.add(memory, version=1, retained_at=work.now, position=position)
        outcomes.append(WriteOutcome(memory.memory_id, position, 1))
    versions.write()
    return outcomes


def _replace(connection: apsw.Connection, work: BankWork, write: Replace) -> WriteOutcome:
    memory, bank = write.memory, work.bank
    rows = fetch(connection, _CURRENT, (bank.key, memory.memory_id))
    if not rows:
        raise MemoryNotFound(memory.memory_id, bank.bank_id)
    row_key, version, retained_at = rows[0]
    if write.expected_etag not in (None, memory_etag(row_key)):
        raise Conflict(
            f"memory {memory.memory_id!r} has etag {memory_etag(row_key)!r}, not {write.expected_etag!r}; "
            "read it again and retry",
            metadata={"memory_id": memory.memory_id, "etag": memory_etag(row_key)},
        )
    if fetch(connection, "SELECT content FROM contents WHERE row_key = ?", (row_key,)) != [(memory.content,)]:
        # Old versions stay, but not what a reader of today would find.
        legal_holds.check_memories(connection, bank, [memory.memory_id])
    position = work.change(ChangeKind.UPDATED, memory.memory_id)
    connection.execute(
        "UPDATE memories SET known_until = ?, ended_position = ? WHERE row_key = ?", (work.now, position, row_key)
    )
    work.end(row_key)
    versions = VersionRows(connection, work)
    versions.add(memory, version=version + 1, retained_at=retained_at, position=position)
    versions.write()
    return WriteOutcome(memory.memory_id, position, version + 1)


def _restore(connection: apsw.Connection, work: BankWork, writes: Sequence[Restore]) -> list[WriteOutcome]:
    ids = json.dumps([write.memory.memory_id for write in writes])
    there = {memory_id for (memory_id,) in fetch(connection, _BY_ID, (work.bank.key, ids))}
    hashes = _hashes(work.bank, {write.memory.content_hash for write in writes})
    # Of those that share a hash the last one stays in the mapping: the oldest.
    same = {row[0]: row[1:] for row in fetch(connection, _OLDEST, (work.bank.key, hashes))}
    rows = VersionRows(connection, work)
    outcomes = []
    for write in writes:
        memory_id = write.memory.memory_id
        position, kept = same.get(write.memory.content_hash, (write.known + 1, ""))
        if memory_id in there or position <= write.known:
            known = memory_id if memory_id in there else kept
            outcomes.append(WriteOutcome(memory_id, work.position, 0, duplicate_of=known))
            continue
        there.add(memory_id)
        for index, past in enumerate(write.versions):
            kind = ChangeKind.UPDATED if index else ChangeKind.CREATED
            position = work.change(kind, memory_id)
            rows.add_past(past, position, None if past is write.versions[-1] else position + 1)
        outcomes.append(WriteOutcome(memory_id, work.position, write.versions[-1].version))
    rows.write()
    return outcomes


def _hashes(bank: Bank, hashes: Collection[bytes]) -> BankDigests:
    return BankDigests(tuple(hashes), bank.key, "memories", "content_hash")
