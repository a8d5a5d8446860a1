"""Consolidations in SQLite: the position of each bank, and steps in one transaction each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import apsw

from astrocyte.errors import Conflict, LegalHoldActive
from astrocyte.model import (
    AuditEventKind,
    Bank,
    Consolidation,
    Memory,
    Operation,
    OperationError,
    OperationState,
    ReindexPhase,
    RevisionCause,
)
from astrocyte.stores.knowledge.consolidation import Action, ConsolidationWork, Reached, Revise
from astrocyte.stores.knowledge.items import Change, ItemKind, ItemRecord, NewItem
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import (
    BANK_COLUMNS,
    MEMORY_COLUMNS,
    BankDigests,
    Row,
    decode_bank,
    decode_memory,
    fetch,
)
from astrocyte.stores.sqlite.tables import audit, idempotency, model_budgets, operation_changes
from astrocyte.stores.sqlite.tables.knowledge import changes
from astrocyte.stores.sqlite.tables.knowledge.rows import IN_SCOPE, ITEMS, delete_items, items
from astrocyte.stores.sqlite.tables.knowledge.store import SqliteKnowledge

# The principal of consolidated observations.
CONSOLIDATOR = "astrocyte"
KIND = str(ItemKind.OBSERVATION)
# Counts that a plan holds; the others are columns.
COUNTS = tuple(field.name for field in fields(Consolidation) if field.name not in {"seen", "total"})
_BANK = ", ".join(f"b.{column}" for column in BANK_COLUMNS.split(", "))
_AT = f"coalesce(c.position, 0), coalesce(c.scope_done, ''), coalesce(c.attempts, 0), {_BANK}"
# Operations by age, and banks with new changes, those with the fewest first.
_ASKED = (
    f"SELECT o.operation_key, o.start_position, {_AT} FROM operations o"
    " JOIN banks b USING (bank_key) LEFT JOIN consolidations c USING (bank_key)"
    f" WHERE o.ended_at IS NULL AND o.kind = '{operation_changes.CONSOLIDATION}' AND b.tenant <> ''"
    " ORDER BY o.operation_key"
)
_CHANGED = (
    f"SELECT 0, b.position, {_AT} FROM banks b LEFT JOIN consolidations c USING (bank_key)"
    " WHERE b.tenant <> '' AND b.position > coalesce(c.position, 0)"
    " ORDER BY coalesce(c.position, 0) - b.position DESC, b.bank_key"
)
# An erasure in a bank runs it: the scope may be the name of an entity. The scopes before it are then read again.
ERASE_SCOPE_DONE = "UPDATE consolidations SET scope_done = '' WHERE bank_key = ?"


class SqliteConsolidation:
    """Implements `astrocyte.stores.knowledge.consolidation.ConsolidationStore`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections, knowledge: SqliteKnowledge) -> None:
        self._writer = writer
        self._connections = connections
        self._knowledge = knowledge

    async def start(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """Queue a consolidation of the whole bank."""
        return await self._writer.submit(lambda transaction: _start(transaction, bank, operation_id, by, request))

    def held(self, bank: Bank, records: Sequence[ItemRecord]) -> frozenset[int]:
        """Keys of those observations that a hold keeps as they are."""
        with self._connections.snapshot() as connection:
            return frozenset(record.key for record in records if _is_held(connection, bank, record))

    def check_idle(self, bank: Bank) -> None:
        """Check that an operation of the bank can be started."""
        with self._connections.snapshot() as connection:
            operation_changes.none_open(connection, bank)

    def work(
        self, asked: Callable[[Bank], bool], changed: Callable[[Bank], bool] | None = None
    ) -> ConsolidationWork | None:
        """The next work."""
        with self._connections.snapshot() as connection:
            found = next((work for work in _rows(connection, _ASKED) if asked(work.bank)), None)
            if found is None and changed is not None:
                found = next((work for work in _rows(connection, _CHANGED) if changed(work.bank)), None)
        return found

    def changed(self, bank: Bank, *, after: int, until: int, limit: int) -> tuple[list[str], int]:
        """Memories of the next changes."""
        rows = self._connections.query(
            "SELECT memory_id, position FROM changes WHERE bank_key = ? AND position > ? AND position <= ?"
            " ORDER BY position LIMIT ?",
            (bank.key, after, until, limit),
        )
        return list(dict.fromkeys(memory_id for memory_id, _ in rows if memory_id)), rows[-1][1] if rows else until

    def memories(self, bank: Bank, memory_ids: Sequence[str]) -> list[Memory]:
        """The current versions of these memories by time."""
        rows = self._connections.query(
            f"SELECT {MEMORY_COLUMNS} FROM memories m JOIN contents c USING (row_key)"
            " WHERE m.bank_key = ? AND m.memory_id IN (SELECT value FROM json_each(?))"
            " AND (m.known_until IS NULL OR m.archived_at IS NOT NULL)"
            " AND m.forgotten_at IS NULL ORDER BY coalesce(m.occurred_at, m.retained_at), m.row_key",
            (bank.key, json.dumps(list(memory_ids))),
        )
        return [decode_memory(row, bank.bank_id) for row in rows]

    def of_topics(self, bank: Bank, topics: Sequence[bytes]) -> list[ItemRecord]:
        """The consolidated observations of topics."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"{ITEMS} WHERE i.bank_key = ?1 AND i.topic IN (SELECT value FROM carray(?2)) ORDER BY i.item_key",
                (bank.key, BankDigests(tuple(topics), bank.key, "knowledge_items", "topic")),
            )
            return _known(connection, rows)

    def resting_on(self, bank: Bank, memory_ids: Sequence[str]) -> list[ItemRecord]:
        """The consolidated observations that rest on a memory which changed or is gone."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"{ITEMS} WHERE i.bank_key = ? AND i.kind = ? AND i.topic IS NOT NULL AND i.item_key IN"
                " (SELECT s.item_key FROM knowledge_sources s WHERE s.bank_key = ? AND s.revision = i.revision"
                " AND s.item_key = i.item_key AND s.memory_id IN (SELECT value FROM json_each(?)))"
                " ORDER BY i.item_key",
                (bank.key, KIND, bank.key, json.dumps(list(memory_ids))),
            )
            found = items(connection, rows, hidden=True)
        wanted = set(memory_ids)
        return [
            record
            for record in found
            if any(one.memory_id in wanted and one.is_changed for one in record.current.sources)
        ]

    def of_scope(self, bank: Bank, scope: str) -> list[ItemRecord]:
        """The observations of a scope that a consolidation wrote last, and that hold or are not shown."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"{ITEMS} WHERE i.bank_key = ? AND i.kind = ? AND i.scope = ? AND i.topic IS NOT NULL"
                " AND i.deleted_at IS NULL AND r.cause = ? ORDER BY i.item_key",
                (bank.key, KIND, scope, RevisionCause.CONSOLIDATED.value),
            )
            known = _known(connection, rows)
        return [record for record in known if record.is_outdated or record.current.body["valid_until"] is None]

    def in_scope(self, bank: Bank, scope: str, memory_ids: Sequence[str]) -> frozenset[str]:
        """Those of the memories that are in a scope."""
        rows = self._connections.query(
            "SELECT m.memory_id FROM memories m WHERE m.bank_key = ?1 AND m.memory_id IN (SELECT value FROM"
            " json_each(?2)) AND (m.known_until IS NULL OR m.archived_at IS NOT NULL) AND m.forgotten_at IS NULL"
            f" AND {IN_SCOPE.format(scope='?3')}",
            (bank.key, json.dumps(list(memory_ids)), scope),
        )
        return frozenset(memory_id for (memory_id,) in rows)

    async def reserve(self, work: ConsolidationWork, day: int, limits: tuple[int, int]) -> bool:
        """Count a call of a language model against the bank's budget before it is made."""

        def run(transaction: Transaction) -> bool:
            connection = transaction.connection
            if work.key:
                operation_changes.running(transaction, work.key)
            if _place(connection, work.bank) != (work.position, work.scope_done, work.attempts):
                raise Conflict("the bank was consolidated further meanwhile")
            return model_budgets.reserve(connection, work.bank.key, model_budgets.CONSOLIDATION, day, limits)

        return await self._writer.submit(run)

    async def give_back(self, work: ConsolidationWork) -> None:
        """Undo the count of a call to which the model gave no answer."""
        key, use = work.bank.key, model_budgets.CONSOLIDATION
        await self._writer.submit(lambda transaction: model_budgets.give_back(transaction.connection, key, use))

    async def waste(self, work: ConsolidationWork, tokens: int, *, is_unusable: bool) -> None:
        """Count the tokens of a call whose answer was not stored."""

        def run(transaction: Transaction) -> None:
            connection = transaction.connection
            model_budgets.spend(connection, work.bank.key, model_budgets.CONSOLIDATION, tokens)
            if is_unusable and _place(connection, work.bank) == (work.position, work.scope_done, work.attempts):
                _note(connection, work.bank, Reached(work.position, work.scope_done), attempts=work.attempts + 1)

        await self._writer.submit(run)

    async def step(self, work: ConsolidationWork, actions: Sequence[Action], reached: Reached) -> tuple[bool, int]:
        """Do the actions and note the place."""

        def run(transaction: Transaction) -> tuple[bool, int]:
            if actions:
                self._knowledge.changing(transaction, work.bank)
            return _step(transaction, work, actions, reached)

        return await self._writer.submit(run, weight=max(1, len(actions)))

    async def fail(self, work: ConsolidationWork, error: OperationError) -> None:
        """End the operation of a work as failed."""
        if not work.key:
            return

        def run(transaction: Transaction) -> None:
            bank = operation_changes.running(transaction, work.key)
            operation_changes.end(transaction, work.key, OperationState.FAILED, error)
            by = operation_changes.starter(transaction.connection, work.key)
            details: dict[str, str | int] = {"operation": work.key, "reason": error.reason}
            event = AuditEventKind.CONSOLIDATION_FAILED
            audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)

        await self._writer.submit(run)


def _start(transaction: Transaction, bank: Bank, operation_id: str, by: str, request: RequestKey | None) -> Operation:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return operation_changes.read(connection, int(earlier))
    work = transaction.bank(bank)
    operation_changes.none_open(connection, bank)
    transaction.tell(Told(Topic.WORK))
    connection.execute(
        "INSERT INTO operations (operation_id, bank_key, state, created_by, created_at, updated_at, plan, phase,"
        " start_position, total, kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            operation_id,
            bank.key,
            OperationState.PENDING.value,
            by,
            work.now,
            work.now,
            json.dumps(dict.fromkeys(COUNTS, 0)),
            ReindexPhase.WAITING.value,
            work.bank.position,
            work.bank.position,
            operation_changes.CONSOLIDATION,
        ),
    )
    key = connection.last_insert_rowid()
    _note(connection, bank, Reached(0))
    event = AuditEventKind.CONSOLIDATION_STARTED
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"operation": key})
    if request is not None:
        idempotency.store(connection, bank.tenant, request, str(key).encode(), work.now, bank_key=bank.key)
    return operation_changes.read(connection, key)


def _rows(connection: apsw.Connection, sql: str) -> Iterator[ConsolidationWork]:
    """The works of a statement, in its order; made as they are asked for."""
    for key, target, position, scope_done, attempts, *columns in fetch(connection, sql):
        yield ConsolidationWork(decode_bank(tuple(columns)), position, target, key, scope_done, attempts)


def _known(connection: apsw.Connection, rows: Sequence[Row]) -> list[ItemRecord]:
    """The items of rows as they are shown, and whole where they are not: they may come back."""
    shown = {record.key: record for record in items(connection, rows)}
    hidden = items(connection, [row for row in rows if row[0] not in shown], hidden=True)
    return sorted((*shown.values(), *hidden), key=lambda record: record.key)


def _place(connection: apsw.Connection, bank: Bank) -> tuple[int, str, int]:
    """Position, last scope done and attempts of a bank."""
    sql = "SELECT position, scope_done, attempts FROM consolidations WHERE bank_key = ?"
    rows: list[tuple[int, str, int]] = fetch(connection, sql, (bank.key,))
    return rows[0] if rows else (0, "", 0)


def _note(connection: apsw.Connection, bank: Bank, reached: Reached, *, attempts: int = 0) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO consolidations (bank_key, position, scope_done, attempts) VALUES (?, ?, ?, ?)",
        (bank.key, reached.position, reached.scope_done, attempts),
    )


def _step(
    transaction: Transaction, work: ConsolidationWork, actions: Sequence[Action], reached: Reached
) -> tuple[bool, int]:
    connection, bank = transaction.connection, work.bank
    if work.key:
        operation_changes.running(transaction, work.key)
    transaction.bank(bank)
    # An operation that began meanwhile reads the bank from its beginning.
    if _place(connection, bank)[:2] != (work.position, work.scope_done):
        raise Conflict("the bank was consolidated further, or anew, meanwhile")
    counts: Counter[str] = Counter()
    # Counted once: creating one observation must not cost a walk over all of them.
    before = changes.count_of(connection, bank, ItemKind.OBSERVATION) if actions else 0
    for action in actions:
        kind = _do(transaction, bank, action, before + counts["created"] - counts["deleted"])
        counts[kind] += 1
    _note(connection, bank, reached)
    if reached.tokens:
        model_budgets.spend(connection, bank.key, model_budgets.CONSOLIDATION, reached.tokens)
    done = reached.position >= work.target
    if work.key:
        _progress(transaction, work, counts, reached.position)
        if done:
            operation_changes.end(transaction, work.key, OperationState.SUCCEEDED)
            by = operation_changes.starter(connection, work.key)
            details: dict[str, str | int] = {"operation": work.key}
            event = AuditEventKind.CONSOLIDATED
            audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)
    return done, counts["left_out"]


def _progress(transaction: Transaction, work: ConsolidationWork, counts: Counter[str], position: int) -> None:
    connection = transaction.connection
    ((plan,),) = fetch(connection, "SELECT plan FROM operations WHERE operation_key = ?", (work.key,))
    known = json.loads(plan)
    total = json.dumps({name: known.get(name, 0) + counts[name] for name in COUNTS})
    connection.execute(
        "UPDATE operations SET state = ?, plan = ?, embedded = ?, updated_at = ? WHERE operation_key = ?",
        (OperationState.RUNNING.value, total, position, transaction.clock(), work.key),
    )


def _do(transaction: Transaction, bank: Bank, action: Action, count: int) -> str:
    """Do an action in a bank of so many observations; returns its name, or "" where a hold forbids it."""
    connection = transaction.connection
    if isinstance(action, NewItem):
        if count >= action.most:
            return "left_out"
        changes.insert(transaction, bank, action, CONSOLIDATOR)
        return "created"
    record = action.record
    rows = fetch(
        connection, "SELECT revision FROM knowledge_items WHERE item_key = ? AND bank_key = ?", (record.key, bank.key)
    )
    if rows != [(record.current.revision,)]:
        raise Conflict(f"observation {record.item_id!r} changed meanwhile", metadata={"observation_id": record.item_id})
    if _is_held(connection, bank, record):
        return ""
    if isinstance(action, Revise):
        change = Change(action.body, action.source_ids, RevisionCause.CONSOLIDATED)
        changes.revise(transaction, bank, ItemKind.OBSERVATION, record.item_id, change, CONSOLIDATOR, None, "")
        return "superseded" if action.supersedes else "updated"
    delete_items(connection, [record.key])
    if action.replacement is None:
        return "deleted"
    changes.insert(transaction, bank, action.replacement, CONSOLIDATOR)
    return "updated"


def _is_held(connection: apsw.Connection, bank: Bank, record: ItemRecord) -> bool:
    try:
        changes.check_holds(connection, bank, [record])
    except LegalHoldActive:
        return True
    return False
