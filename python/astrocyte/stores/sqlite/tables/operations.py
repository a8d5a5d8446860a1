"""Operations in SQLite: one row each, with the task, its progress and its end."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from astrocyte.model import (
    AuditEventKind,
    Bank,
    Comparison,
    Operation,
    OperationError,
    OperationState,
    ReindexPhase,
)
from astrocyte.stores.operations import Embedded, NewReindex, Work
from astrocyte.stores.records import RequestKey, VersionRecord
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch
from astrocyte.stores.sqlite.tables import audit
from astrocyte.stores.sqlite.tables import operation_changes as changes
from astrocyte.stores.sqlite.tables import vectors as spaces


class SqliteOperations:
    """Implements `astrocyte.stores.operations.OperationStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def start(self, bank: Bank, new: NewReindex, *, by: str, request: RequestKey | None = None) -> Operation:
        """Note a reindex that is to be done."""
        return await self._writer.submit(lambda transaction: changes.start(transaction, bank, new, by, request))

    async def cancel(self, bank: Bank, operation_id: str, *, by: str, request: RequestKey | None = None) -> Operation:
        """End an operation that is not done."""
        return await self._writer.submit(
            lambda transaction: changes.cancel(transaction, bank, operation_id, by, request), frees=True
        )

    def get(self, bank: Bank, operation_id: str) -> Operation | None:
        """The operation as it is now, or None."""
        clause = "o.bank_key = ? AND o.operation_id = ? AND b.tenant = ?"
        rows = self._connections.query(f"{changes.OPERATIONS} WHERE {clause}", (bank.key, operation_id, bank.tenant))
        return changes.decode(rows[0]) if rows else None

    def listed(
        self, tenant: str, *, bank: Bank | None, after: int, limit: int, newest_first: bool = False
    ) -> list[tuple[int, Operation]]:
        """Operations with their keys."""
        which = "" if bank is None else " AND o.bank_key = ?"
        bindings: list[object] = [tenant, after, *([] if bank is None else [bank.key])]
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        clause = f"b.tenant = ? AND o.operation_key {beyond} ?{which} ORDER BY o.operation_key {order} LIMIT ?"
        rows = self._connections.query(f"{changes.OPERATIONS} WHERE {clause}", (*bindings, limit))
        return [(row[0], changes.decode(row)) for row in rows]

    def former(self, bank: Bank) -> tuple[str, int] | None:
        """The model whose vectors are kept beside the bank's own."""
        rows = self._connections.query(
            "SELECT model, dimensions FROM spare_sets WHERE bank_key = ? AND state = ?", (bank.key, spaces.KEPT)
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def next(self) -> Work | None:
        """The oldest reindex that is not done."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"SELECT {changes.COLUMNS}, o.row_cursor, o.start_position, o.bank_key FROM operations o"
                " JOIN banks b USING (bank_key) WHERE o.ended_at IS NULL AND o.kind = 'reindex' AND b.tenant <> ''"
                " ORDER BY o.operation_key LIMIT 1",
            )
            if not rows:
                return None
            *columns, cursor, start_position, bank_key = rows[0]
            (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        return Work(columns[0], decode_bank(row), changes.decode(tuple(columns)), cursor, start_position)

    async def begin(self, key: int) -> None:
        """Record that an operation runs, and its total."""
        await self._writer.submit(lambda transaction: changes.begin(transaction, key))

    async def note(self, key: int, phase: ReindexPhase, comparison: Comparison | None = None) -> None:
        """Record the progress and the findings of an operation."""
        text = None if comparison is None else json.dumps(dataclasses.asdict(comparison))

        def run(transaction: Transaction) -> None:
            changes.running(transaction, key)
            transaction.connection.execute(
                "UPDATE operations SET phase = ?, comparison = coalesce(?, comparison), updated_at = ?"
                " WHERE operation_key = ?",
                (phase.value, text, transaction.clock(), key),
            )

        await self._writer.submit(run)

    async def fail(self, key: int, error: OperationError) -> None:
        """End an operation as failed."""

        def run(transaction: Transaction) -> None:
            bank = changes.running(transaction, key)
            changes.end(transaction, key, OperationState.FAILED, error)
            changes.abandon(transaction.connection, bank.key)
            audit.record(
                transaction,
                bank.tenant,
                AuditEventKind.REINDEX_FAILED,
                changes.starter(transaction.connection, key),
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
            return changes.records_of(connection, bank, found), keys[-1] if keys else None

    def lacking_of(
        self, bank: Bank, model: str, memory_ids: Sequence[str], *, forgotten: bool = True
    ) -> list[VersionRecord]:
        """Versions of these memories without vectors of a model."""
        with self._connections.snapshot() as connection:
            if not fetch(connection, "SELECT 1 FROM operations WHERE bank_key = ? LIMIT 1", (bank.key,)):
                return []
            keys = spaces.versions_of(connection, bank.key, memory_ids, forgotten=forgotten)
            found = spaces.without(connection, spaces.table_of(connection, bank.key, model), model, keys)
            return changes.records_of(connection, bank, found)

    async def put(
        self, bank: Bank, model: str, rows: Sequence[Embedded], *, key: int | None = None, cursor: int | None = None
    ) -> None:
        """Keep vectors of a model."""

        def run(transaction: Transaction) -> None:
            connection = transaction.connection
            if key is not None:
                changes.running(transaction, key)
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
        return await self._writer.submit(lambda transaction: changes.move(transaction, key, checked, kept_until))

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
