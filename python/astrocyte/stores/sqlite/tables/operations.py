"""Operations in SQLite: each a row that says what is to be done, how far it is, and how it ended."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Sequence

import apsw

from astrocyte.errors import FailedPrecondition, NotFound
from astrocyte.model import (
    AuditEventKind,
    Bank,
    ChangeKind,
    Comparison,
    Operation,
    OperationError,
    OperationState,
    Reindex,
    ReindexOutcome,
    ReindexPhase,
)
from astrocyte.stores.operations import Embedded, NewReindex, OperationEnded, Work
from astrocyte.stores.protocols import RequestKey, VersionRecord
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Row, decode_bank, fetch, to_datetime
from astrocyte.stores.sqlite.tables import audit, idempotency
from astrocyte.stores.sqlite.tables import vectors as spaces
from astrocyte.stores.sqlite.tables.version_records import records

COLUMNS = (
    "o.operation_key, o.operation_id, b.bank_id, o.state, o.created_by, o.created_at, o.updated_at, o.ended_at, o.plan,"
    " o.phase, o.embedded, o.total, o.comparison, o.error_reason, o.error_message, o.position, o.kept_until"
)
_OPERATIONS = f"SELECT {COLUMNS} FROM operations o JOIN banks b USING (bank_key)"
# Ends of versions are told as they are now, whatever the position.
_NOW = 2**63 - 1


class SqliteOperations:
    """Implements `astrocyte.stores.operations.OperationStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def start(self, bank: Bank, new: NewReindex, *, by: str, request: RequestKey | None = None) -> Operation:
        """Note a reindex that is to be done."""
        return await self._writer.submit(lambda transaction: _start(transaction, bank, new, by, request))

    async def cancel(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """End an operation that is not done."""
        return await self._writer.submit(
            lambda transaction: _cancel(transaction, bank, operation_id, by, request), frees=True
        )

    def get(self, bank: Bank, operation_id: str) -> Operation | None:
        """The operation as it is now, or None."""
        clause = "o.bank_key = ? AND o.operation_id = ? AND b.tenant = ?"
        rows = self._connections.query(f"{_OPERATIONS} WHERE {clause}", (bank.key, operation_id, bank.tenant))
        return _decode(rows[0]) if rows else None

    def listed(self, tenant: str, *, bank: Bank | None, after: int, limit: int) -> list[tuple[int, Operation]]:
        """Operations with their keys."""
        which = "" if bank is None else " AND o.bank_key = ?"
        bindings: list[object] = [tenant, after, *([] if bank is None else [bank.key])]
        clause = f"b.tenant = ? AND o.operation_key > ?{which} ORDER BY o.operation_key LIMIT ?"
        rows = self._connections.query(f"{_OPERATIONS} WHERE {clause}", (*bindings, limit))
        return [(row[0], _decode(row)) for row in rows]

    def former(self, bank: Bank) -> tuple[str, int] | None:
        """The model whose vectors are kept beside the bank's own."""
        rows = self._connections.query(
            "SELECT model, dimensions FROM spare_sets WHERE bank_key = ? AND state = ?", (bank.key, spaces.KEPT)
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def next(self) -> Work | None:
        """The oldest operation that is not done."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"SELECT {COLUMNS}, o.row_cursor, o.start_position, o.bank_key FROM operations o"
                " JOIN banks b USING (bank_key) WHERE o.ended_at IS NULL AND b.tenant <> ''"
                " ORDER BY o.operation_key LIMIT 1",
            )
            if not rows:
                return None
            *columns, cursor, start_position, bank_key = rows[0]
            (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        return Work(columns[0], decode_bank(row), _decode(tuple(columns)), cursor, start_position)

    async def begin(self, key: int) -> None:
        """Note that an operation runs, and how much there is to do."""
        await self._writer.submit(lambda transaction: _begin(transaction, key))

    async def note(self, key: int, phase: ReindexPhase, comparison: Comparison | None = None) -> None:
        """Note what an operation is at, and what was found out."""
        text = None if comparison is None else json.dumps(dataclasses.asdict(comparison))

        def run(transaction: Transaction) -> None:
            _running(transaction, key)
            transaction.connection.execute(
                "UPDATE operations SET phase = ?, comparison = coalesce(?, comparison), updated_at = ?"
                " WHERE operation_key = ?",
                (phase.value, text, transaction.clock(), key),
            )

        await self._writer.submit(run)

    async def fail(self, key: int, error: OperationError) -> None:
        """End an operation as failed."""

        def run(transaction: Transaction) -> None:
            bank = _running(transaction, key)
            _end(transaction, key, OperationState.FAILED, error)
            _abandon(transaction.connection, bank.key)
            audit.record(
                transaction,
                bank.tenant,
                AuditEventKind.REINDEX_FAILED,
                _starter(transaction.connection, key),
                bank_key=bank.key,
                details={"operation": key, "reason": error.reason},
            )

        await self._writer.submit(run, frees=True)

    def lacking(self, bank: Bank, model: str, *, after: int, limit: int) -> tuple[list[VersionRecord], int | None]:
        """Of the next versions those without vectors of a model."""
        with self._connections.snapshot() as connection:
            keys = [
                row_key
                for (row_key,) in fetch(
                    connection,
                    "SELECT row_key FROM memories WHERE bank_key = ? AND row_key > ? AND forgotten_at IS NULL"
                    " ORDER BY row_key LIMIT ?",
                    (bank.key, after, limit),
                )
            ]
            found = spaces.without(connection, spaces.table_of(connection, bank.key, model), model, keys)
            return _records(connection, bank, found), keys[-1] if keys else None

    def lacking_of(
        self, bank: Bank, model: str, memory_ids: Sequence[str], *, forgotten: bool = True
    ) -> list[VersionRecord]:
        """Versions of these memories without vectors of a model."""
        with self._connections.snapshot() as connection:
            if not fetch(connection, "SELECT 1 FROM operations WHERE bank_key = ? LIMIT 1", (bank.key,)):
                return []
            keys = spaces.versions_of(connection, bank.key, memory_ids, forgotten=forgotten)
            found = spaces.without(connection, spaces.table_of(connection, bank.key, model), model, keys)
            return _records(connection, bank, found)

    async def put(
        self, bank: Bank, model: str, rows: Sequence[Embedded], *, key: int | None = None, cursor: int | None = None
    ) -> None:
        """Keep vectors of a model."""

        def run(transaction: Transaction) -> None:
            connection = transaction.connection
            if key is not None:
                _running(transaction, key)
            spaces.keep(connection, bank.key, model, rows, forgotten=key is None)
            if key is not None and cursor is not None:
                connection.execute(
                    "UPDATE operations SET row_cursor = ?, updated_at = ?, embedded = (SELECT count(*) FROM memories"
                    " WHERE bank_key = ? AND forgotten_at IS NULL AND row_key > operations.row_cursor"
                    " AND row_key <= ?) + embedded WHERE operation_key = ?",
                    (cursor, transaction.clock(), bank.key, cursor, key),
                )

        await self._writer.submit(run, weight=max(1, sum(len(vectors) for _, vectors in rows)))

    def sample(self, bank: Bank, count: int) -> list[tuple[str, str]]:
        """About so many current memories, evenly by age."""
        with self._connections.snapshot() as connection:
            ((first, last),) = fetch(
                connection,
                "SELECT min(row_key), max(row_key) FROM memories WHERE bank_key = ? AND forgotten_at IS NULL",
                (bank.key,),
            )
            found: dict[str, str] = {}
            if first is None:
                return []
            for number in range(count):
                rows = fetch(
                    connection,
                    "SELECT m.memory_id, c.content FROM memories m JOIN contents c USING (row_key) WHERE m.bank_key = ?"
                    " AND m.row_key >= ? AND m.known_until IS NULL AND m.forgotten_at IS NULL"
                    " ORDER BY m.row_key LIMIT 1",
                    (bank.key, first + (last - first) * number // max(count - 1, 1)),
                )
                found.update(rows)
        return list(found.items())

    async def move(self, key: int, *, checked: int, kept_until: int | None) -> list[str]:
        """Let the bank answer by its new vectors from this commit on."""
        return await self._writer.submit(lambda transaction: _move(transaction, key, checked, kept_until))

    def leaving(self, now: int) -> list[Bank]:
        """Banks with vectors that are to be dropped."""
        columns = ", ".join(f"b.{column}" for column in BANK_COLUMNS.split(", "))
        rows = self._connections.query(
            f"SELECT {columns} FROM banks b JOIN spare_sets s USING (bank_key)"
            " WHERE b.tenant <> '' AND (s.state = ? OR (s.state = ? AND s.keep_until <= ?)) ORDER BY b.bank_key",
            (spaces.DROPPING, spaces.KEPT, now),
        )
        return [decode_bank(row) for row in rows]

    async def drop_some(self, bank: Bank) -> bool:
        """Drop some of these vectors."""

        def run(transaction: Transaction) -> bool:
            connection = transaction.connection
            connection.execute(
                "UPDATE spare_sets SET state = ?, dropped = '' WHERE bank_key = ? AND state = ? AND keep_until <= ?",
                (spaces.DROPPING, bank.key, spaces.KEPT, transaction.clock()),
            )
            return spaces.drop_some(connection, bank.key)

        return await self._writer.submit(run, weight=spaces.DROPPED_AT_ONCE, frees=True)


def _start(transaction: Transaction, bank: Bank, new: NewReindex, by: str, request: RequestKey | None) -> Operation:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _read(connection, int(earlier))
    work = transaction.bank(bank)
    _none_open(connection, bank)
    now = work.bank
    kept = fetch(
        connection, "SELECT state, model, dimensions, keep_until FROM spare_sets WHERE bank_key = ?", (bank.key,)
    )
    rollback = new.to_model is None
    if new.to_model is None:
        if not kept or kept[0][0] != spaces.KEPT:
            raise FailedPrecondition(
                f"bank {bank.bank_id!r} has no former vectors to go back to: it never moved, or they were dropped; "
                "name embedding_model to make them anew",
                metadata={"bank_id": bank.bank_id},
            )
        model, dimensions = kept[0][1:3]
    else:
        model, dimensions = new.to_model, new.to_dimensions
    if model == now.embedding_model:
        raise FailedPrecondition(
            f"bank {bank.bank_id!r} holds vectors of {model!r} already; name another model",
            metadata={"bank_id": bank.bank_id, "embedding_model": model},
        )
    plan = Reindex(now.embedding_model, now.dimensions, model, dimensions, rollback, new.min_overlap, new.sample)
    static = {name: getattr(plan, name) for name in _PLANNED}
    connection.execute(
        "INSERT INTO operations (operation_id, bank_key, state, created_by, created_at, updated_at, plan, phase,"
        " start_position) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.operation_id,
            bank.key,
            OperationState.PENDING.value,
            by,
            work.now,
            work.now,
            json.dumps(static),
            ReindexPhase.WAITING.value,
            now.position,
        ),
    )
    key = connection.last_insert_rowid()
    # What is left there of a third model is replaced vector by vector, and never read: each names its model.
    until = kept[0][3] if kept and kept[0][1] == model else None
    spaces.spare(connection, bank.key, model, dimensions, spaces.BUILDING, until)
    details: dict[str, str | int] = {"operation": key, "dimensions": dimensions}
    event = AuditEventKind.REINDEX_STARTED
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)
    _keep(transaction, bank, request, key)
    return _read(connection, key)


# What is decided when an operation is started.
_PLANNED = ("from_model", "from_dimensions", "to_model", "to_dimensions", "rollback", "min_overlap", "sample")


def _none_open(connection: apsw.Connection, bank: Bank) -> None:
    rows = fetch(connection, "SELECT operation_id FROM operations WHERE bank_key = ? AND ended_at IS NULL", (bank.key,))
    if rows:
        raise FailedPrecondition(
            f"operation {rows[0][0]!r} of bank {bank.bank_id!r} is not done; wait for it, or cancel it",
            metadata={"bank_id": bank.bank_id, "operation_id": rows[0][0]},
        )


def _cancel(transaction: Transaction, bank: Bank, operation_id: str, by: str, request: RequestKey | None) -> Operation:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _read(connection, int(earlier))
    transaction.bank(bank)
    sql = "SELECT operation_key, ended_at FROM operations WHERE bank_key = ? AND operation_id = ?"
    rows = fetch(connection, sql, (bank.key, operation_id))
    if not rows:
        raise NotFound(
            f"there is no operation {operation_id!r} of bank {bank.bank_id!r}",
            metadata={"operation_id": operation_id, "bank_id": bank.bank_id},
        )
    key, ended_at = rows[0]
    if ended_at is None:
        _end(transaction, key, OperationState.CANCELLED)
        _abandon(connection, bank.key)
        event = AuditEventKind.REINDEX_CANCELLED
        audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"operation": key})
    _keep(transaction, bank, request, key)
    return _read(connection, key)


def _begin(transaction: Transaction, key: int) -> None:
    bank = _running(transaction, key)
    transaction.connection.execute(
        "UPDATE operations SET state = ?, phase = ?, updated_at = ?, total = (SELECT count(*) FROM memories"
        " WHERE bank_key = ? AND forgotten_at IS NULL) WHERE operation_key = ?",
        (OperationState.RUNNING.value, ReindexPhase.EMBEDDING.value, transaction.clock(), bank.key, key),
    )


def _move(transaction: Transaction, key: int, checked: int, kept_until: int | None) -> list[str]:
    connection = transaction.connection
    bank = _running(transaction, key)
    work = transaction.bank(bank)
    plan = _read(connection, key).reindex
    changed = fetch(
        connection,
        "SELECT DISTINCT memory_id FROM changes WHERE bank_key = ? AND position > ? ORDER BY memory_id",
        (bank.key, checked),
    )
    table = spaces.table_of(connection, bank.key, plan.to_model)
    lacking = [
        memory_id
        for (memory_id,) in changed
        if spaces.without(
            connection, table, plan.to_model, spaces.versions_of(connection, bank.key, [memory_id], forgotten=False)
        )
    ]
    if lacking:
        return lacking
    position = work.change(ChangeKind.REINDEXED, "")
    work.move(plan.to_model, plan.to_dimensions)
    connection.execute(
        "UPDATE banks SET embedding_model = ?, dimensions = ?, vector_set = 1 - vector_set, updated_at = ?"
        " WHERE bank_key = ?",
        (plan.to_model, plan.to_dimensions, work.now, bank.key),
    )
    state = spaces.DROPPING if kept_until is None else spaces.KEPT
    spaces.spare(connection, bank.key, plan.from_model, plan.from_dimensions, state, kept_until)
    connection.execute(
        "UPDATE operations SET state = ?, phase = ?, updated_at = ?, ended_at = ?, position = ?, kept_until = ?"
        " WHERE operation_key = ?",
        (
            OperationState.SUCCEEDED.value,
            ReindexPhase.MOVED.value,
            work.now,
            work.now,
            position,
            kept_until,
            key,
        ),
    )
    details: dict[str, str | int] = {"operation": key, "position": position, "dimensions": plan.to_dimensions}
    by = _starter(connection, key)
    audit.record(transaction, bank.tenant, AuditEventKind.REINDEXED, by, bank_key=bank.key, details=details)
    return []


def _running(transaction: Transaction, key: int) -> Bank:
    """The bank of an operation that is not done.

    Raises:
        OperationEnded: It is, or its bank is gone.
    """
    columns = ", ".join(f"b.{column}" for column in BANK_COLUMNS.split(", "))
    rows = fetch(
        transaction.connection,
        f"SELECT {columns} FROM operations o JOIN banks b USING (bank_key)"
        " WHERE o.operation_key = ? AND o.ended_at IS NULL AND b.tenant <> ''",
        (key,),
    )
    if not rows:
        raise OperationEnded("the operation was cancelled, or its bank was deleted")
    return decode_bank(rows[0])


def _end(transaction: Transaction, key: int, state: OperationState, error: OperationError | None = None) -> None:
    now = transaction.clock()
    transaction.connection.execute(
        "UPDATE operations SET state = ?, updated_at = ?, ended_at = ?, error_reason = ?, error_message = ?"
        " WHERE operation_key = ?",
        (state.value, now, now, error and error.reason, error and error.message, key),
    )


def _abandon(connection: apsw.Connection, bank_key: int) -> None:
    """Have what was made for a bank dropped; former vectors that it was to go back to are kept as long as before."""
    connection.execute(
        "UPDATE spare_sets SET state = iif(keep_until IS NULL, ?, ?), dropped = '' WHERE bank_key = ? AND state = ?",
        (spaces.DROPPING, spaces.KEPT, bank_key, spaces.BUILDING),
    )


def _starter(connection: apsw.Connection, key: int) -> str:
    ((by,),) = fetch(connection, "SELECT created_by FROM operations WHERE operation_key = ?", (key,))
    return str(by)


def _keep(transaction: Transaction, bank: Bank, request: RequestKey | None, key: int) -> None:
    """Keep an answer for the retries of its request: the operation's key, since its row says the rest."""
    if request is not None:
        now = transaction.bank(bank).now
        idempotency.store(transaction.connection, bank.tenant, request, str(key).encode(), now, bank_key=bank.key)


def _records(connection: apsw.Connection, bank: Bank, row_keys: Sequence[int]) -> list[VersionRecord]:
    if not row_keys:
        return []
    clause = "m.row_key IN (SELECT value FROM carray(?))"
    return records(connection, bank, clause, (apsw.carray(array("q", row_keys)),), at_position=_NOW)


def _read(connection: apsw.Connection, key: int) -> Operation:
    return _decode(fetch(connection, f"{_OPERATIONS} WHERE o.operation_key = ?", (key,))[0])


def _decode(row: Row) -> Operation:
    """An operation from `COLUMNS`."""
    (
        _, operation_id, bank_id, state, created_by, created_at, updated_at, ended_at, plan, phase, embedded, total,
        comparison, reason, message, position, kept_until,
    ) = row  # fmt: skip
    return Operation(
        operation_id,
        bank_id,
        OperationState(state),
        created_by,
        to_datetime(created_at),
        to_datetime(updated_at),
        None if ended_at is None else to_datetime(ended_at),
        Reindex(
            **json.loads(plan),
            phase=ReindexPhase(phase),
            embedded=embedded,
            total=max(total, embedded),
            comparison=None if comparison is None else Comparison(**json.loads(comparison)),
        ),
        None if reason is None else OperationError(reason, message),
        None if position is None else ReindexOutcome(position, None if kept_until is None else to_datetime(kept_until)),
    )
