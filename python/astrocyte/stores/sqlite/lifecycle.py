"""Lifecycles in SQLite: runs over banks, in steps of one transaction each, and the last recalls of versions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from astrocyte.model import AuditEventKind, Bank, Operation, OperationError, OperationState, ReindexPhase
from astrocyte.stores.lifecycle import (
    LISTED_IDS,
    Fate,
    LifecycleWork,
    MemoryAge,
    Merge,
    MergeOrder,
    NewRun,
    StepOrder,
)
from astrocyte.stores.outbox import CopyAction
from astrocyte.stores.records import RequestKey, VersionRecord
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.archiving import LATEST, archive, tag
from astrocyte.stores.sqlite.deletion.soft_delete import Tombstone, bury
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Row, decode_bank, decode_tags, fetch
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds, operation_changes, outbox
from astrocyte.stores.sqlite.tables.version_records import records

# Current versions have no end, whatever the position.
_NOW = 2**62
# The principal of what a run does.
LIFECYCLE = "astrocyte"
COUNTS = ("unused", "expired", "deleted", "held", "merged")
_BANK = ", ".join(f"b.{column}" for column in BANK_COLUMNS.split(", "))
# The plus keeps SQLite on the index of the bank's rows.
_NEXT = (
    "SELECT m.row_key, m.memory_id, c.tags, m.fact_type, m.retained_at, m.known_from, r.recalled_at,"
    f" m.archived_at, {legal_holds.HELD} FROM memories m JOIN contents c USING (row_key)"
    " LEFT JOIN recalled r USING (row_key)"
    f" WHERE m.bank_key = ? AND m.row_key > ? AND m.row_key <= ? AND m.forgotten_at IS NULL AND +{LATEST}"
    " ORDER BY m.row_key LIMIT ?"
)
_NOTE = (
    "INSERT OR REPLACE INTO recalled SELECT m.row_key, m.bank_key, ? FROM memories m JOIN banks b USING (bank_key)"
    " WHERE b.tenant = ? AND b.bank_id = ? AND m.memory_id IN (SELECT value FROM json_each(?))"
    " AND m.known_until IS NULL AND m.forgotten_at IS NULL"
)


class SqliteLifecycle:
    """Implements `astrocyte.stores.lifecycle.LifecycleStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def start(self, bank: Bank, run: NewRun, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a run."""
        return await self._writer.submit(lambda transaction: _start(transaction, bank, run, by, request))

    def work(self) -> LifecycleWork | None:
        """The oldest run that is not done."""
        rows = self._connections.query(
            f"SELECT o.operation_key, o.plan, o.row_cursor, {_BANK} FROM operations o JOIN banks b USING (bank_key)"
            " WHERE o.ended_at IS NULL AND o.kind = ? AND b.tenant <> '' ORDER BY o.operation_key LIMIT 1",
            (operation_changes.LIFECYCLE,),
        )
        if not rows:
            return None
        key, text, cursor, *columns = rows[0]
        plan = json.loads(text)
        return LifecycleWork(
            key,
            decode_bank(tuple(columns)),
            plan["rules"],
            dry_run=plan["dry_run"],
            merging=plan["merging"],
            cursor=cursor,
            last_row=plan["last_row"],
        )

    def last_start(self, bank: Bank, by: str) -> int | None:
        """When a principal started a run last."""
        rows = self._connections.query(
            "SELECT max(created_at) FROM operations WHERE bank_key = ? AND kind = ? AND created_by = ?",
            (bank.key, operation_changes.LIFECYCLE, by),
        )
        started: int | None = rows[0][0]
        return started

    def banks(self, *, after: int, limit: int) -> list[Bank]:
        """Banks by key."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key > ? AND tenant <> '' ORDER BY bank_key LIMIT ?",
            (after, limit),
        )
        return [decode_bank(row) for row in rows]

    async def step(self, work: LifecycleWork, order: StepOrder) -> tuple[bool, Mapping[str, int]]:
        """Do a step."""
        return await self._writer.submit(lambda transaction: _step(transaction, work, order), weight=order.limit)

    def current(self, work: LifecycleWork, limit: int) -> list[VersionRecord]:
        """The next current memories."""
        with self._connections.snapshot() as connection:
            return records(
                connection,
                work.bank,
                "m.bank_key = ? AND m.row_key > ? AND m.row_key <= ? AND m.known_until IS NULL"
                " AND m.forgotten_at IS NULL",
                (work.bank.key, work.cursor, work.last_row),
                at_position=_NOW,
                limit=limit,
            )

    async def merge(self, work: LifecycleWork, order: MergeOrder) -> Mapping[str, int]:
        """Do a step that merges."""
        weight = max(1, len(order.merges))
        return await self._writer.submit(lambda transaction: _merge_step(transaction, work, order), weight=weight)

    async def fail(self, work: LifecycleWork, error: OperationError) -> None:
        """End a run as failed."""

        def run(transaction: Transaction) -> None:
            bank = operation_changes.running(transaction, work.key)
            operation_changes.end(transaction, work.key, OperationState.FAILED, error)
            by = operation_changes.starter(transaction.connection, work.key)
            details: dict[str, str | int] = {"operation": work.key, "reason": error.reason}
            event = AuditEventKind.LIFECYCLE_FAILED
            audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)

        await self._writer.submit(run)

    async def note_recalls(self, tenant: str, bank_id: str, memory_ids: Sequence[str], at: int) -> None:
        """Note that memories were recalled."""
        values = (at, tenant, bank_id, json.dumps(list(memory_ids)))

        def run(transaction: Transaction) -> None:
            transaction.connection.execute(_NOTE, values)

        await self._writer.submit(run, weight=max(1, len(memory_ids)))


def _start(transaction: Transaction, bank: Bank, run: NewRun, by: str, request: RequestKey | None) -> Operation:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return operation_changes.read(connection, int(earlier))
    work = transaction.bank(bank)
    operation_changes.none_open(connection, bank)
    ((total, last),) = fetch(
        connection,
        "SELECT count(*), coalesce(max(m.row_key), 0) FROM memories m WHERE m.bank_key = ? AND m.forgotten_at IS NULL"
        f" AND +{LATEST}",
        (bank.key,),
    )
    merges = run.rules["similarity_threshold"] is not None
    plan = {"rules": run.rules, "dry_run": run.dry_run, "last_row": last, "memory_ids": [], "pairs": []}
    plan |= {"merging": False, **dict.fromkeys(COUNTS, 0)}
    transaction.tell(Told(Topic.WORK))
    connection.execute(
        "INSERT INTO operations (operation_id, bank_key, state, created_by, created_at, updated_at, plan, phase,"
        " start_position, total, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run.operation_id,
            bank.key,
            OperationState.PENDING.value,
            by,
            work.now,
            work.now,
            json.dumps(plan),
            ReindexPhase.WAITING.value,
            work.bank.position,
            # Each memory is looked at by the ages, and once more for duplicates.
            total * (1 + merges),
            operation_changes.LIFECYCLE,
        ),
    )
    key = connection.last_insert_rowid()
    details: dict[str, str | int] = {"operation": key, "dry_run": int(run.dry_run)}
    event = AuditEventKind.LIFECYCLE_STARTED
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)
    if request is not None:
        idempotency.store(connection, bank.tenant, request, str(key).encode(), work.now, bank_key=bank.key)
    return operation_changes.read(connection, key)


def _step(transaction: Transaction, work: LifecycleWork, order: StepOrder) -> tuple[bool, Mapping[str, int]]:
    connection = transaction.connection
    bank = operation_changes.running(transaction, work.key)
    own = transaction.bank(bank)
    ((text, cursor),) = fetch(
        connection, "SELECT plan, row_cursor FROM operations WHERE operation_key = ?", (work.key,)
    )
    plan = json.loads(text)
    rows = fetch(connection, _NEXT, (bank.key, cursor, plan["last_row"], order.limit))
    fates: dict[Fate, list[str]] = {}
    held = 0
    for row in rows:
        fate = order.judge(_age(row), own.now)
        if fate is Fate.KEPT:
            continue
        if row[-1]:
            held += 1
        else:
            fates.setdefault(fate, []).append(row[1])
    if not plan["dry_run"]:
        for fate, memory_ids in fates.items():
            _apply(transaction, bank, fate, memory_ids, order)
    counts = Counter({fate.value: len(memory_ids) for fate, memory_ids in fates.items()}) + Counter(held=held)
    for name in COUNTS:
        plan[name] += counts[name]
    changed = [memory_id for memory_ids in fates.values() for memory_id in memory_ids]
    plan["memory_ids"] = (plan["memory_ids"] + changed)[:LISTED_IDS]
    done = len(rows) < order.limit
    cursor = rows[-1][0] if rows else cursor
    if done and plan["rules"]["similarity_threshold"] is not None:
        plan["merging"], cursor = True, 0
    _progress(transaction, work, plan, cursor, len(rows))
    if done and not plan["merging"]:
        _complete(transaction, work, bank, plan)
    return done, {} if plan["dry_run"] else counts


def _progress(transaction: Transaction, work: LifecycleWork, plan: Mapping[str, Any], cursor: int, seen: int) -> None:
    transaction.connection.execute(
        "UPDATE operations SET state = ?, plan = ?, row_cursor = ?, embedded = embedded + ?, updated_at = ?"
        " WHERE operation_key = ?",
        (OperationState.RUNNING.value, json.dumps(plan), cursor, seen, transaction.clock(), work.key),
    )


def _merge_step(transaction: Transaction, work: LifecycleWork, order: MergeOrder) -> Mapping[str, int]:
    connection = transaction.connection
    bank = operation_changes.running(transaction, work.key)
    ((text,),) = fetch(connection, "SELECT plan FROM operations WHERE operation_key = ?", (work.key,))
    plan = json.loads(text)
    counts = Counter({"merged": 0, "held": 0})
    merged: dict[str, str] = {}
    exempt = frozenset(plan["rules"]["exempt_tags"])
    for merge in order.merges:
        outcome = _mergeable(connection, bank, merge, order.most_tags, exempt)
        counts.update([outcome] if outcome else [])
        if outcome != Fate.MERGED.value:
            continue
        if not work.dry_run:
            _join_tags(connection, transaction.bank(bank), merge)
            merged[merge.merged.memory_id] = merge.kept.memory_id
        plan["pairs"] = [*plan["pairs"], [merge.kept.memory_id, merge.merged.memory_id, merge.similarity]][:LISTED_IDS]
    for name in COUNTS:
        plan[name] += counts[name]
    if merged:
        own = transaction.bank(bank)
        changes = archive(connection, own, list(merged), Fate.MERGED.value, merged)
        outbox.put(connection, own, order.copies, CopyAction.FORGET, changes)
        details: dict[str, str | int] = {"count": len(changes), "position": own.position, "reason": "merged"}
        event = AuditEventKind.MEMORIES_ARCHIVED
        audit.record(transaction, bank.tenant, event, LIFECYCLE, bank_key=bank.key, details=details)
    _progress(transaction, work, plan, order.cursor, order.seen)
    if order.done:
        _complete(transaction, work, bank, plan)
    return {} if work.dry_run else counts


def _mergeable(connection: apsw.Connection, bank: Bank, merge: Merge, most_tags: int, exempt: frozenset[str]) -> str:
    """The outcome of a merge that is to be done: merged, held, or nothing."""
    pair = (merge.kept, merge.merged)
    rows = fetch(
        connection,
        f"SELECT m.memory_id, m.content_hash, c.tags, {legal_holds.HELD}"
        " FROM memories m JOIN contents c USING (row_key)"
        " WHERE m.bank_key = ? AND m.memory_id IN (?, ?) AND m.known_until IS NULL AND m.forgotten_at IS NULL",
        (bank.key, *(one.memory_id for one in pair)),
    )
    if {row[:2] for row in rows} != {(one.memory_id, one.content_hash) for one in pair}:
        return ""
    if any(row[-1] for row in rows):
        return "held"
    tags = {tag for row in rows for tag in decode_tags(row[2])}
    return Fate.MERGED.value if len(tags) <= most_tags and exempt.isdisjoint(tags) else ""


def _join_tags(connection: apsw.Connection, work: BankWork, merge: Merge) -> None:
    """Give the kept memory the tags of the merged one."""
    own = _tags_of(connection, work.bank, merge.kept.memory_id)
    tags = tuple(dict.fromkeys((*own, *_tags_of(connection, work.bank, merge.merged.memory_id))))
    if len(tags) > len(own):
        tag(connection, work, merge.kept.memory_id, tags)


def _tags_of(connection: apsw.Connection, bank: Bank, memory_id: str) -> tuple[str, ...]:
    ((tags,),) = fetch(
        connection,
        "SELECT c.tags FROM memories m JOIN contents c USING (row_key) WHERE m.bank_key = ? AND m.memory_id = ?"
        " AND m.known_until IS NULL AND m.forgotten_at IS NULL",
        (bank.key, memory_id),
    )
    return decode_tags(tags)


def _age(row: Row) -> MemoryAge:
    _, _, tags, fact_type, retained_at, known_from, recalled_at, archived_at, _ = row
    used = None if archived_at is not None else max(known_from, recalled_at or 0)
    return MemoryAge(decode_tags(tags), fact_type, retained_at, used)


def _apply(transaction: Transaction, bank: Bank, fate: Fate, memory_ids: Sequence[str], order: StepOrder) -> None:
    """Archive or forget memories that no hold covers."""
    connection, work = transaction.connection, transaction.bank(bank)
    if fate is Fate.DELETED:
        bury(connection, work, memory_ids, Tombstone("lifecycle", LIFECYCLE, order.purge_after))
        changes = [(memory_id, work.position) for memory_id in memory_ids]
        event, reason = AuditEventKind.FORGET, "lifecycle"
    else:
        changes = archive(connection, work, memory_ids, fate.value)
        event, reason = AuditEventKind.MEMORIES_ARCHIVED, fate.value
    outbox.put(connection, work, order.copies, CopyAction.FORGET, changes)
    details: dict[str, str | int] = {"count": len(changes), "position": work.position, "reason": reason}
    audit.record(transaction, bank.tenant, event, LIFECYCLE, bank_key=bank.key, details=details)


def _complete(transaction: Transaction, work: LifecycleWork, bank: Bank, plan: dict[str, Any]) -> None:
    connection = transaction.connection
    orphans = derived_rows.removable(connection, bank)
    if orphans and not plan["dry_run"]:
        derived_rows.settle(connection, list(orphans))
    plan["entities"] = len(orphans)
    connection.execute("UPDATE operations SET plan = ? WHERE operation_key = ?", (json.dumps(plan), work.key))
    operation_changes.end(transaction, work.key, OperationState.SUCCEEDED)
    by = operation_changes.starter(transaction.connection, work.key)
    details: dict[str, str | int] = {"operation": work.key, "dry_run": int(plan["dry_run"])}
    details |= {name: plan[name] for name in (*COUNTS, "entities")}
    event = AuditEventKind.LIFECYCLE_COMPLETED
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)
