"""Storing memories: exact duplicates are found, and versions are chained, inside the transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

import apsw

from astrocyte.errors import AlreadyExists, Conflict, DimensionMismatch, MemoryNotFound
from astrocyte.model import Bank, ChangeKind
from astrocyte.stores.outbox import CopyAction, CopyOrder
from astrocyte.stores.protocols import (
    Insert,
    NewMemory,
    Replace,
    RequestKey,
    SpareVectors,
    VersionRecord,
    Write,
    WriteOutcome,
    memory_etag,
)
from astrocyte.stores.quarantine import Quarantine
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.rows import (
    Row,
    encode_entities,
    encode_metadata,
    encode_tags,
    fetch,
    insert_rows,
    passage_key,
)
from astrocyte.stores.sqlite.tables import holds, idempotency, outbox, retry_queue, vectors

FLOAT_BYTES = 4

Respond = Callable[[Sequence[WriteOutcome]], bytes]
Settle = Callable[[Sequence[WriteOutcome]], Sequence[tuple[RequestKey, bytes]]]

_LAST_ROW_KEY = "SELECT seq FROM sqlite_sequence WHERE name = 'memories'"
_BY_HASH = (
    "SELECT m.row_key, m.content_hash, m.memory_id FROM carray(?2) w CROSS JOIN memories m INDEXED BY memories_current"
    " ON m.bank_key = ?1 AND m.content_hash = w.value AND m.known_until IS NULL AND m.forgotten_at IS NULL"
    # Where several share a hash the last one stays in the mapping: the oldest.
    " ORDER BY m.row_key DESC"
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
    outcomes: list[WriteOutcome] = []
    for kind, run in groupby(writes, type):
        if kind is Insert:
            outcomes += _insert(transaction.connection, work, run, quarantine)
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
    rows = fetch(connection, _BY_HASH, (work.bank.key, apsw.carray(tuple(hashes))))
    known: dict[bytes, str] = {}
    for row_key, content_hash, kept in rows:
        if row_key in quarantine:
            # The index would go on to offer it as the duplicate of what is stored in its place.
            work.remove(row_key)
        else:
            known[content_hash] = kept
    versions = _VersionRows(connection, work)
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
        holds.check_memories(connection, bank, [memory.memory_id])
    position = work.change(ChangeKind.UPDATED, memory.memory_id)
    connection.execute(
        "UPDATE memories SET known_until = ?, ended_position = ? WHERE row_key = ?", (work.now, position, row_key)
    )
    work.end(row_key)
    versions = _VersionRows(connection, work)
    versions.add(memory, version=version + 1, retained_at=retained_at, position=position)
    versions.write()
    return WriteOutcome(memory.memory_id, position, version + 1)


class _VersionRows:
    """Rows of new versions, gathered and then written table by table."""

    def __init__(self, connection: apsw.Connection, work: BankWork) -> None:
        self._connection = connection
        self._work = work
        rows = fetch(connection, _LAST_ROW_KEY)
        self._last: int = rows[0][0] if rows else 0
        self._memories: list[Row] = []
        self._contents: list[Row] = []
        self._tags: list[Row] = []
        self._entities: list[Row] = []
        self._chunks: list[Row] = []
        self._embeddings: tuple[list[Row], list[Row]] = ([], [])
        self._building: str | None = None
        self._asked = False

    def add(self, memory: NewMemory, *, version: int, retained_at: int, position: int) -> None:
        """One version that begins now.

        Raises:
            Conflict: Its vectors are of another model than the bank's, which has moved since they were made.
        """
        if memory.model != self._work.bank.embedding_model:
            memory = self._fitting(memory)
        self._last += 1
        key, work = self._last, self._work
        self._memories.append((
            key, work.bank.key, memory.memory_id, version, memory.content_hash, memory.content_type, memory.fact_type,
            memory.memory_layer, memory.session_id, memory.principal, memory.token_count, max(1, len(memory.chunks)),
            memory.occurred_at, memory.valid_from, memory.valid_until, retained_at, work.now, None, position, None,
            None, None, None, None, None, None, None,
        ))  # fmt: skip
        self._contents.append((
            key, memory.content, encode_tags(memory.tags) if memory.tags else "[]",
            encode_metadata(memory.metadata) if memory.metadata else "{}", memory.source, memory.speaker,
            encode_entities(memory.entities) if memory.entities else "[]",
        ))  # fmt: skip
        if memory.entities:
            folded = dict.fromkeys(one.folded for one in memory.entities)
            self._entities += [(work.bank.key, name, key) for name in folded]
        if memory.tags:
            self._tags += [(work.bank.key, tag, key) for tag in dict.fromkeys(memory.tags)]
        self._vector(key, -1, memory.vector)
        for ordinal, chunk in enumerate(memory.chunks):
            self._chunks.append((passage_key(key, ordinal), chunk.text, chunk.tokens))
            self._vector(key, ordinal, chunk.vector)
        if memory.spare is not None:
            self._spare(key, memory.spare)
        work.upsert(VersionRecord(key, version, retained_at, work.now, None, memory))

    def write(self) -> None:
        """Insert everything that was added.

        Raises:
            AlreadyExists: The bank has a memory of that id.
        """
        try:
            insert_rows(self._connection, "memories", self._memories)
        except apsw.ConstraintError as error:
            raise AlreadyExists("the bank has, or had, a memory with this id; use a new id") from error
        for table, rows in (
            ("contents", self._contents),
            ("tags", self._tags),
            ("entities", self._entities),
            ("chunks", self._chunks),
            *zip(vectors.SETS, self._embeddings, strict=True),
        ):
            if rows:
                insert_rows(self._connection, table, rows)

    def _vector(self, key: int, ordinal: int, vector: bytes | None) -> None:
        if vector is None:
            return
        bank = self._work.bank
        if len(vector) != bank.dimensions * FLOAT_BYTES:
            raise DimensionMismatch(
                f"has {len(vector)} bytes, a vector of bank {bank.bank_id!r} has {bank.dimensions * FLOAT_BYTES}",
                field="embedding",
            )
        self._embeddings[self._work.vector_set].append((passage_key(key, ordinal), bank.embedding_model, vector))

    def _fitting(self, memory: NewMemory) -> NewMemory:
        bank = self._work.bank
        fitting = memory.in_space(bank.embedding_model)
        if fitting is None:
            raise Conflict(
                f"bank {bank.bank_id!r} was reindexed to {bank.embedding_model!r} meanwhile; retry",
                metadata={"bank_id": bank.bank_id, "bank_model": bank.embedding_model},
            )
        # Who looks at the record later must not have to guess.
        return fitting if fitting.model else replace(fitting, model=bank.embedding_model)

    def _spare(self, key: int, spare: SpareVectors) -> None:
        """Vectors of the model that the bank is moving to; of any other they are of no use."""
        if not self._asked:
            self._building, self._asked = vectors.building(self._connection, self._work.bank.key), True
        if spare.model == self._building:
            self._embeddings[1 - self._work.vector_set].extend(
                (passage_key(key, ordinal), spare.model, vector or vectors.NO_DIRECTION)
                for ordinal, vector in enumerate((spare.whole, *spare.chunks), start=-1)
            )
