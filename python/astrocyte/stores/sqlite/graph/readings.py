"""Versions that wait for a language model, what it found in them, and what each bank has spent on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from astrocyte.model import GraphReading, ReadLink, ReadName
from astrocyte.stores.graph.entity_graph import DerivedVersion, SourceVersion
from astrocyte.stores.graph.readings import WaitingBank
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.rows import Row, decode_entities, fetch
from astrocyte.stores.sqlite.tables import model_budgets

T = TypeVar("T")

SOURCE_COLUMNS = (
    "m.row_key, m.bank_key, c.content, c.speaker, c.entities, b.bank_id, g.found, g.model, coalesce(g.revision, 0)"
)
SOURCE_JOINS = (
    "JOIN contents c ON c.row_key = m.row_key JOIN banks b ON b.bank_key = m.bank_key"
    " LEFT JOIN graph_readings g ON g.row_key = m.row_key"
)
_WAITING = (
    "SELECT b.bank_key, b.bank_id, coalesce(s.calls, 0), coalesce(s.tokens, 0) FROM banks b"
    f" LEFT JOIN model_budgets s ON s.bank_key = b.bank_key AND s.use = '{model_budgets.GRAPH}' AND s.day >= ?"
    " WHERE b.tenant <> '' AND EXISTS (SELECT 1 FROM graph_readings r WHERE r.bank_key = b.bank_key AND r.waiting = 1)"
    " ORDER BY b.bank_key"
)
_NEXT = (
    f"SELECT {SOURCE_COLUMNS} FROM graph_readings w CROSS JOIN memories m ON m.row_key = w.row_key {SOURCE_JOINS}"
    " WHERE w.bank_key = ? AND w.waiting = 1 AND m.known_until IS NULL AND m.forgotten_at IS NULL AND m.erasing IS NULL"
    " ORDER BY w.attempts, w.row_key DESC LIMIT 1"
)
_DONE = (
    "UPDATE graph_readings SET waiting = NULL, attempts = 0, revision = revision + 1, model = ?2, found = ?3"
    " WHERE row_key = ?1 AND revision = ?4"
)
_FAILED = (
    "UPDATE graph_readings SET attempts = attempts + 1, waiting = CASE WHEN attempts + 1 < ?2 THEN waiting END"
    " WHERE row_key = ?1 AND revision = ?3"
)


class SqliteGraphReadings:
    """Implements `astrocyte.stores.graph.readings.GraphReadings`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections, announce: Callable[[], None]) -> None:
        self._writer = writer
        self._connections = connections
        # Tells those who follow the graphs of a change.
        self._announce = announce

    def waiting(self, day: int) -> list[WaitingBank]:
        """Banks with versions that wait."""
        return [WaitingBank(*row) for row in self._connections.query(_WAITING, (day,))]

    def next(self, bank_key: int) -> SourceVersion | None:
        """The newest version that waits, of those with the fewest failed calls."""
        rows = self._connections.query(_NEXT, (bank_key,))
        return decode_source(rows[0]) if rows else None

    def count(self, bank_key: int) -> int:
        """Number of versions that wait."""
        sql = "SELECT count(*) FROM graph_readings WHERE bank_key = ? AND waiting = 1"
        return int(self._connections.query(sql, (bank_key,))[0][0])

    async def reserve(self, source: SourceVersion, day: int, calls: int, tokens: int) -> bool:
        """Count a call against the bank's budget before it is made."""

        def work(transaction: Transaction) -> bool:
            connection = transaction.connection
            waits = "SELECT 1 FROM graph_readings WHERE row_key = ? AND waiting = 1 AND revision = ?"
            if not fetch(connection, waits, (source.row_key, source.revision)):
                return False
            return model_budgets.reserve(connection, source.bank_key, model_budgets.GRAPH, day, (calls, tokens))

        return await self._writer.submit(work)

    async def give_back(self, source: SourceVersion) -> None:
        """Undo the count of a call."""

        def work(transaction: Transaction) -> None:
            model_budgets.give_back(transaction.connection, source.bank_key, model_budgets.GRAPH)

        await self._writer.submit(work)

    async def finish(
        self, source: SourceVersion, reading: GraphReading, model: str, derived: DerivedVersion | None, tokens: int
    ) -> None:
        """Store what the model found."""

        def work(transaction: Transaction) -> None:
            connection = transaction.connection
            model_budgets.spend(connection, source.bank_key, model_budgets.GRAPH, tokens)
            if derived is not None:
                derived_rows.put(connection, [derived])
            connection.execute(_DONE, (source.row_key, model, encode_reading(reading), source.revision))

        await self._writer.submit(work)
        self._announce()

    async def fail(self, source: SourceVersion, tokens: int, most_attempts: int) -> None:
        """Count a call without a usable answer."""

        def work(transaction: Transaction) -> None:
            connection = transaction.connection
            model_budgets.spend(connection, source.bank_key, model_budgets.GRAPH, tokens)
            connection.execute(_FAILED, (source.row_key, most_attempts, source.revision))

        await self._writer.submit(work)


def decode_source(row: Row) -> SourceVersion:
    """A version from `SOURCE_COLUMNS`."""
    row_key, bank_key, content, speaker, entities, bank_id, found, model, revision = row
    reading = None if found is None else decode_reading(found)
    return SourceVersion(
        row_key, bank_key, content, speaker, decode_entities(entities), bank_id, reading, model, revision
    )


def encode_reading(reading: GraphReading) -> str:
    """A reading as JSON."""
    return json.dumps([reading.names, reading.links], separators=(",", ":"))


def decode_reading(text: str) -> GraphReading:
    """The inverse of `encode_reading`."""
    names, links = json.loads(text)
    return GraphReading(
        tuple(ReadName(kind, tuple((start, end) for start, end in places)) for kind, places in names),
        tuple(ReadLink(*link) for link in links),
    )
