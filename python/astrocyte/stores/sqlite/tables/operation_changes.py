"""State changes of operations, each inside one transaction."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

import apsw

from astrocyte.errors import FailedPrecondition, NotFound
from astrocyte.model import (
    AuditEventKind,
    Bank,
    ChangeKind,
    Comparison,
    Consolidation,
    DuplicatePair,
    LifecycleRun,
    Operation,
    OperationError,
    OperationState,
    Reindex,
    ReindexOutcome,
    ReindexPhase,
)
from astrocyte.stores.operations import NewReindex, OperationEnded
from astrocyte.stores.records import RequestKey, VersionRecord
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Array, Row, decode_bank, fetch, to_datetime
from astrocyte.stores.sqlite.tables import audit, idempotency
from astrocyte.stores.sqlite.tables import vectors as spaces
from astrocyte.stores.sqlite.tables.version_records import records

COLUMNS = (
    "o.operation_key, o.operation_id, b.bank_id, o.state, o.created_by, o.created_at, o.updated_at, o.ended_at, o.plan,"
    " o.phase, o.embedded, o.total, o.comparison, o.error_reason, o.error_message, o.position, o.kept_until, o.kind"
)
OPERATIONS = f"SELECT {COLUMNS} FROM operations o JOIN banks b USING (bank_key)"
# Kinds of operations.
REINDEX, CONSOLIDATION, LIFECYCLE = "reindex", "consolidation", "lifecycle"
_CANCELLED = {
    REINDEX: AuditEventKind.REINDEX_CANCELLED,
    CONSOLIDATION: AuditEventKind.CONSOLIDATION_CANCELLED,
    LIFECYCLE: AuditEventKind.LIFECYCLE_CANCELLED,
}
# Ends of versions are told as they are now, whatever the position.
_NOW = 2**63 - 1


def start(transaction: Transaction, bank: Bank, new: NewReindex, by: str, request: RequestKey | None) -> Operation:
    """Note a reindex that is to be done, unless the bank has an operation that is not."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return read(connection, int(earlier))
    work = transaction.bank(bank)
    none_open(connection, bank)
    now = work.bank
    kept = fetch(
        connection, "SELECT state, model, dimensions, keep_until FROM spare_sets WHERE bank_key = ?", (bank.key,)
    )
    rollback = new.to_model is None
    if new.to_model is None:
        if not kept or kept[0][0] != spaces.KEPT:
            raise FailedPrecondition(
                f"bank {bank.bank_id!r} has no previous vectors to roll back to; set embedding_model to reindex",
                metadata={"bank_id": bank.bank_id},
            )
        model, dimensions = kept[0][1:3]
    else:
        model, dimensions = new.to_model, new.to_dimensions
    if model == now.embedding_model:
        raise FailedPrecondition(
            f"bank {bank.bank_id!r} already has vectors of {model!r}; name another model",
            metadata={"bank_id": bank.bank_id, "embedding_model": model},
        )
    plan = Reindex(now.embedding_model, now.dimensions, model, dimensions, rollback, new.min_overlap, new.sample)
    static = {name: getattr(plan, name) for name in _PLANNED}
    transaction.tell(Told(Topic.WORK))
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
    return read(connection, key)


# What is decided when an operation is started.
_PLANNED = ("from_model", "from_dimensions", "to_model", "to_dimensions", "rollback", "min_overlap", "sample")


def none_open(connection: apsw.Connection, bank: Bank) -> None:
    """Check that all operations of a bank are done.

    Raises:
        FailedPrecondition: One is not.
    """
    rows = fetch(connection, "SELECT operation_id FROM operations WHERE bank_key = ? AND ended_at IS NULL", (bank.key,))
    if rows:
        raise FailedPrecondition(
            f"operation {rows[0][0]!r} of bank {bank.bank_id!r} is still running; wait for it, or cancel it",
            metadata={"bank_id": bank.bank_id, "operation_id": rows[0][0]},
        )


def cancel(transaction: Transaction, bank: Bank, operation_id: str, by: str, request: RequestKey | None) -> Operation:
    """End an operation that is not done."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return read(connection, int(earlier))
    transaction.bank(bank)
    transaction.tell(Told(Topic.WORK))
    sql = "SELECT operation_key, ended_at, kind FROM operations WHERE bank_key = ? AND operation_id = ?"
    rows = fetch(connection, sql, (bank.key, operation_id))
    if not rows:
        raise NotFound(
            f"there is no operation {operation_id!r} of bank {bank.bank_id!r}",
            metadata={"operation_id": operation_id, "bank_id": bank.bank_id},
        )
    key, ended_at, kind = rows[0]
    if ended_at is None:
        end(transaction, key, OperationState.CANCELLED)
        event = _CANCELLED[kind]
        if kind == REINDEX:
            abandon(connection, bank.key)
        audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"operation": key})
    _keep(transaction, bank, request, key)
    return read(connection, key)


def begin(transaction: Transaction, key: int) -> None:
    """Note that an operation runs."""
    bank = running(transaction, key)
    transaction.connection.execute(
        "UPDATE operations SET state = ?, phase = ?, updated_at = ?, total = (SELECT count(*) FROM memories"
        " WHERE bank_key = ? AND forgotten_at IS NULL) WHERE operation_key = ?",
        (OperationState.RUNNING.value, ReindexPhase.EMBEDDING.value, transaction.clock(), bank.key, key),
    )


def move(transaction: Transaction, key: int, checked: int, kept_until: int | None) -> list[str]:
    """Move the bank to its other set of vectors; the memories that lack one there, where any does."""
    connection = transaction.connection
    bank = running(transaction, key)
    work = transaction.bank(bank)
    plan = read(connection, key).reindex
    if plan is None:
        raise OperationEnded("the operation is no reindex")
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
    by = starter(connection, key)
    audit.record(transaction, bank.tenant, AuditEventKind.REINDEXED, by, bank_key=bank.key, details=details)
    return []


def running(transaction: Transaction, key: int) -> Bank:
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


def end(transaction: Transaction, key: int, state: OperationState, error: OperationError | None = None) -> None:
    """End an operation in a state."""
    now = transaction.clock()
    transaction.connection.execute(
        "UPDATE operations SET state = ?, updated_at = ?, ended_at = ?, error_reason = ?, error_message = ?"
        " WHERE operation_key = ?",
        (state.value, now, now, error and error.reason, error and error.message, key),
    )


def abandon(connection: apsw.Connection, bank_key: int) -> None:
    """Schedule the new vectors of a bank for deletion; previous vectors for a rollback keep their expiry."""
    connection.execute(
        "UPDATE spare_sets SET state = iif(keep_until IS NULL, ?, ?), dropped = '' WHERE bank_key = ? AND state = ?",
        (spaces.DROPPING, spaces.KEPT, bank_key, spaces.BUILDING),
    )


def starter(connection: apsw.Connection, key: int) -> str:
    """The principal that started an operation."""
    ((by,),) = fetch(connection, "SELECT created_by FROM operations WHERE operation_key = ?", (key,))
    return str(by)


def _keep(transaction: Transaction, bank: Bank, request: RequestKey | None, key: int) -> None:
    """Store an answer for retries of its request: the operation's key, whose row has the rest."""
    if request is not None:
        now = transaction.bank(bank).now
        idempotency.store(transaction.connection, bank.tenant, request, str(key).encode(), now, bank_key=bank.key)


def records_of(connection: apsw.Connection, bank: Bank, row_keys: Sequence[int]) -> list[VersionRecord]:
    """The versions of these rows, as they are now."""
    if not row_keys:
        return []
    clause = "m.row_key IN (SELECT value FROM carray(?))"
    return records(connection, bank, clause, (Array(array("q", row_keys)),), at_position=_NOW)


def read(connection: apsw.Connection, key: int) -> Operation:
    """The operation of a key."""
    return decode(fetch(connection, f"{OPERATIONS} WHERE o.operation_key = ?", (key,))[0])


def decode(row: Row) -> Operation:
    """An operation from `COLUMNS`."""
    (
        _, operation_id, bank_id, state, created_by, created_at, updated_at, ended_at, plan, phase, embedded, total,
        comparison, reason, message, position, kept_until, kind,
    ) = row  # fmt: skip
    return Operation(
        operation_id,
        bank_id,
        OperationState(state),
        created_by,
        to_datetime(created_at),
        to_datetime(updated_at),
        None if ended_at is None else to_datetime(ended_at),
        None
        if kind != REINDEX
        else Reindex(
            **json.loads(plan),
            phase=ReindexPhase(phase),
            embedded=embedded,
            total=max(total, embedded),
            comparison=None if comparison is None else Comparison(**json.loads(comparison)),
        ),
        None if reason is None else OperationError(reason, message),
        None if position is None else ReindexOutcome(position, None if kept_until is None else to_datetime(kept_until)),
        Consolidation(embedded, max(total, embedded), **json.loads(plan)) if kind == CONSOLIDATION else None,
        _lifecycle(json.loads(plan), embedded, total) if kind == LIFECYCLE else None,
    )


def _lifecycle(plan: dict[str, Any], seen: int, total: int) -> LifecycleRun:
    """A run of the lifecycle from its plan, which has its rules besides."""
    counts = {name: plan[name] for name in ("unused", "expired", "deleted", "held", "merged")}
    # It is counted at the end, and runs of earlier versions did not.
    counts["entities"] = plan.get("entities", 0)
    pairs = tuple(DuplicatePair(*pair) for pair in plan["pairs"])
    return LifecycleRun(
        plan["dry_run"], seen, max(total, seen), memory_ids=tuple(plan["memory_ids"]), pairs=pairs, **counts
    )
