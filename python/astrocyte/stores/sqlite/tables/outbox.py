"""The outbox's rows: inserted in the transaction that changes a memory, removed when an engine confirmed it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.errors import RateLimited
from astrocyte.model import Bank
from astrocyte.stores.outbox import ALL_ACTIONS, LOSING, START, CopyAction, CopyOrder, WaitingCopy
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch

# When a caller may try again whom a full outbox refused: an engine that is back takes hundreds a second.
RETRY_AFTER_SECONDS = 30.0

_PUT = (
    "INSERT INTO waiting_copies (bank_key, engine, memory_id, position, action, principal, hops, waiting_since)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (bank_key, engine, memory_id) DO UPDATE SET"
    " position = excluded.position, action = excluded.action,"
    # How long it has not had what it should stays known.
    " principal = excluded.principal, hops = excluded.hops"
)


def put(
    connection: apsw.Connection,
    work: BankWork,
    order: CopyOrder | None,
    action: CopyAction,
    changes: Sequence[tuple[str, int]],
) -> None:
    """Queue memories, each with the position of its change, for the engine of an order, replacing earlier entries.

    Raises:
        RateLimited: Too many wait for it; the transaction is to be undone.
    """
    if order is None or not changes:
        return
    connection.executemany(
        _PUT,
        [
            (work.bank.key, order.engine, memory_id, position, action.value, order.principal, order.hops, work.now)
            for memory_id, position in changes
        ],
    )
    if action in LOSING:
        return
    rows = fetch(connection, "SELECT waiting FROM outboxes WHERE engine = ?", (order.engine,))
    if rows and rows[0][0] > order.limit:
        raise RateLimited(
            f"{order.limit} memories are queued for engine {order.engine!r}, which is the limit; nothing was changed; "
            "retry later",
            retry_after=RETRY_AFTER_SECONDS,
            metadata={"kind": "engine_outbox", "limit": str(order.limit)},
        )


class SqliteOutbox:
    """Implements `astrocyte.stores.outbox.Outbox`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    def waiting(
        self,
        engine: str,
        bank: Bank,
        *,
        after: tuple[int, str] = START,
        limit: int,
        actions: Sequence[CopyAction] = ALL_ACTIONS,
    ) -> list[WaitingCopy]:
        """The entries that wait for an engine beside a bank, in order."""
        rows = self._connections.query(
            "SELECT memory_id, position, action, principal, hops FROM waiting_copies"
            " WHERE engine = ? AND bank_key = ? AND (position, memory_id) > (?, ?)"
            " AND action IN (SELECT value FROM json_each(?)) ORDER BY position, memory_id LIMIT ?",
            (engine, bank.key, *after, json.dumps(actions), limit),
        )
        return [
            WaitingCopy(memory_id, position, CopyAction(action), principal, hops)
            for memory_id, position, action, principal, hops in rows
        ]

    def still_waiting(self, engine: str, bank: Bank, memory_ids: Sequence[str]) -> set[str]:
        """The memories of these that are queued."""
        rows = self._connections.query(
            "SELECT memory_id FROM waiting_copies"
            " WHERE bank_key = ? AND engine = ? AND memory_id IN (SELECT value FROM json_each(?))",
            (bank.key, engine, json.dumps(list(memory_ids))),
        )
        return {memory_id for (memory_id,) in rows}

    def waiting_banks(self, engine: str) -> list[Bank]:
        """Banks with queued entries."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE tenant <> ''"
            " AND bank_key IN (SELECT bank_key FROM waiting_copies WHERE engine = ?) ORDER BY bank_key",
            (engine,),
        )
        return [decode_bank(row) for row in rows]

    def waiting_count(self, engine: str) -> int:
        """The number of memories queued for the engine."""
        rows = self._connections.query("SELECT waiting FROM outboxes WHERE engine = ?", (engine,))
        return int(rows[0][0]) if rows else 0

    def waiting_since(self, engine: str) -> int | None:
        """The time of the oldest queued entry."""
        ((since,),) = self._connections.query(
            "SELECT min(waiting_since) FROM waiting_copies WHERE engine = ?", (engine,)
        )
        return None if since is None else int(since)

    async def delivered(self, engine: str, bank: Bank, copies: Sequence[WaitingCopy]) -> None:
        """Remove confirmed entries."""
        rows = [(bank.key, engine, one.memory_id, one.position, one.action.value) for one in copies]

        def remove(transaction: Transaction) -> None:
            transaction.connection.executemany(
                "DELETE FROM waiting_copies"
                " WHERE bank_key = ? AND engine = ? AND memory_id = ? AND position = ? AND action = ?",
                rows,
            )

        await self._writer.submit(remove)

    async def forgotten(self, engine: str, bank: Bank, position: int) -> None:
        """Remove the queued deletions up to a position."""

        def remove(transaction: Transaction) -> None:
            transaction.connection.execute(
                "DELETE FROM waiting_copies WHERE bank_key = ? AND engine = ? AND position <= ?"
                " AND action IN (SELECT value FROM json_each(?))",
                (bank.key, engine, position, json.dumps(LOSING)),
            )

        await self._writer.submit(remove)
