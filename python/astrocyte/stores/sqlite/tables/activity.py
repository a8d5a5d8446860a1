"""Counts of calls by bank and day, and queries without an answer, in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from astrocyte.model import Bank
from astrocyte.stores.activity import COUNTED, BankName, Counts, Days, Unanswered
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch

_COLUMNS = ", ".join(f"a.{name}" for name in COUNTED)
_ADD = (
    f"INSERT INTO bank_activity (bank_key, day, {', '.join(COUNTED)})"
    f" SELECT b.bank_key, ?3, {', '.join(f'?{place}' for place in range(4, 4 + len(COUNTED)))}"
    " FROM banks b WHERE b.tenant = ?1 AND b.bank_id = ?2"
    " ON CONFLICT (bank_key, day) DO UPDATE SET "
    + ", ".join(f"{name} = bank_activity.{name} + excluded.{name}" for name in COUNTED)
)
_PRUNE = (
    "DELETE FROM bank_activity WHERE day <= ?3 AND bank_key ="
    " (SELECT bank_key FROM banks WHERE tenant = ?1 AND bank_id = ?2)"
)
_RECENT = (
    f"SELECT b.tenant, b.bank_id, a.day, {_COLUMNS} FROM"
    " (SELECT bank_key FROM bank_activity WHERE day > ?1 GROUP BY bank_key ORDER BY max(day) DESC, bank_key LIMIT ?2)"
    " JOIN bank_activity a USING (bank_key) JOIN banks b USING (bank_key) WHERE a.day > ?1 AND b.tenant <> ''"
    " ORDER BY a.day"
)
_NOTE = (
    "INSERT INTO unanswered_queries AS q (bank_key, query, count, asked_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (bank_key, query) DO UPDATE SET"
    " count = q.count + excluded.count, asked_at = max(q.asked_at, excluded.asked_at)"
)
_KEEP = (
    "DELETE FROM unanswered_queries WHERE bank_key = ?1 AND query NOT IN (SELECT query FROM unanswered_queries"
    " WHERE bank_key = ?1 ORDER BY asked_at DESC, query LIMIT ?2)"
)
# What an erasure in a bank deletes.
ERASE_UNANSWERED = "DELETE FROM unanswered_queries WHERE bank_key = ?"


class SqliteActivity:
    """Implements `astrocyte.stores.activity.ActivityStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def add(self, counts: Mapping[BankName, Days], *, since: int) -> None:
        """Add counts to those that are stored."""

        def run(transaction: Transaction) -> None:
            connection = transaction.connection
            for name, days in counts.items():
                connection.execute(_PRUNE, (*name, since))
                for day, one in days.items():
                    if day > since:
                        connection.execute(_ADD, (*name, day, *(getattr(one, column) for column in COUNTED)))

        await self._writer.submit(run, weight=max(1, len(counts)))

    def days(self, name: BankName, *, since: int) -> Days:
        """The counts of a bank by day."""
        rows = self._connections.query(
            f"SELECT b.tenant, b.bank_id, a.day, {_COLUMNS} FROM bank_activity a JOIN banks b USING (bank_key)"
            " WHERE b.tenant = ? AND b.bank_id = ? AND a.day > ? ORDER BY a.day",
            (*name, since),
        )
        return _by_bank(rows).get(name, {})

    def recent(self, *, since: int, limit: int) -> dict[BankName, Days]:
        """The counts of the banks that have the newest."""
        return _by_bank(self._connections.query(_RECENT, (since, limit)))

    async def note_unanswered(
        self, bank: Bank, queries: Mapping[str, Unanswered], *, most: int, is_fresh: Callable[[], bool]
    ) -> None:
        """Add queries to those of a bank."""

        def run(transaction: Transaction) -> None:
            transaction.bank(bank)
            if not is_fresh():
                return
            for one in queries.values():
                transaction.connection.execute(_NOTE, (bank.key, one.query, one.count, one.asked_at))
            transaction.connection.execute(_KEEP, (bank.key, most))

        await self._writer.submit(run)

    def unanswered(self, bank: Bank, limit: int) -> list[Unanswered]:
        """The queries that were asked most often."""
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                "SELECT query, count, asked_at FROM unanswered_queries WHERE bank_key = ?"
                " ORDER BY count DESC, asked_at DESC, query LIMIT ?",
                (bank.key, limit),
            )
        return [Unanswered(*row) for row in rows]

    async def drop_unanswered(self, bank_key: int) -> None:
        """Delete the queries of a bank."""

        def run(transaction: Transaction) -> None:
            transaction.connection.execute(ERASE_UNANSWERED, (bank_key,))

        await self._writer.submit(run)


def _by_bank(rows: Iterable[Row]) -> dict[BankName, Days]:
    """Counts of rows of tenant, bank, day and counts."""
    found: dict[BankName, Days] = {}
    for tenant, bank_id, day, *counts in rows:
        found.setdefault((tenant, bank_id), {})[day] = Counts(*counts)
    return found
