"""One connection to PostgreSQL, with the interface of the SQLite connection that the store's code is written for.

Each statement is translated once and prepared once. Values and rows travel in the binary format, and an execution is
one round trip. A connection that was lost is made again by the next statement, unless it was lost within a transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from astrocyte.errors import StoreError
from astrocyte.stores.postgres.engine.dialect import Key, Table, array_kinds, translated
from astrocyte.stores.postgres.engine.errors import translated as translated_error
from astrocyte.stores.postgres.engine.errors import unavailable
from astrocyte.stores.postgres.engine.values import DUMPERS, Dumper, WrongTypeError

Row = tuple[Any, ...]
Bindings = Sequence[Any] | Mapping[str, Any]
# Prepared statements of a connection: the store has some hundred texts, and some that grow with their lists.
MOST_STATEMENTS = 1_024

# Severities after which the server ends the session: the client may read the message before it sees the end.
ENDING = frozenset({b"FATAL", b"PANIC"})

_BINARY = 1
_ROWS, _DONE = pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK


@dataclass(slots=True, eq=False)
class _Statement:
    """A prepared statement: its name, where its values come from, and how they and its rows are converted."""

    name: bytes
    keys: tuple[Key, ...]
    dumpers: list[Dumper]
    formats: list[int]
    numbers: bool
    # Of the driver, which exports it as a value.
    loader: Any = None


class Cursor:
    """The rows of a statement."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Row]:
        """All rows."""
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        """The rows in order."""
        return iter(self._rows)

    @property
    def get(self) -> Any:  # noqa: ANN401 - the value of a row
        """The value of a single column, or the first row; None where there is none."""
        if not self._rows:
            return None
        return self._rows[0][0] if len(self._rows[0]) == 1 else self._rows[0]

    def close(self) -> None:
        """Nothing is left open."""


class Connection:
    """A connection that one thread uses at a time.

    Args:
        connect: Makes the connection of the driver; raises `Unavailable` where it cannot.
        tables: The tables of the database, by name.
        begin: What ``BEGIN IMMEDIATE`` means: statements without values.
    """

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], tables: Mapping[str, Table], begin: str = "BEGIN"
    ) -> None:
        self._connect = connect
        self._tables = tables
        self._begin = begin
        self._driver: psycopg.Connection[Any] | None = None
        self._pg: pq.abc.PGconn | None = None
        self._statements: dict[object, _Statement] = {}
        # Of the statements prepared so far: their names.
        self._count = 0
        self._changes = 0
        self._last_key = 0
        self._closed = False
        # Called where it is not known whether a transaction was committed.
        self.on_doubt: Callable[[], None] | None = None

    @property
    def in_transaction(self) -> bool:
        """True within a transaction, also in one that failed; False once the connection is lost."""
        pg = self._pg
        return pg is not None and pg.transaction_status in {
            pq.TransactionStatus.INTRANS,
            pq.TransactionStatus.INERROR,
            pq.TransactionStatus.ACTIVE,
        }

    def execute(self, sql: str, bindings: Bindings = ()) -> Cursor:
        """Run a statement of SQLite's dialect.

        Raises:
            apsw.Error, AstrocyteError: See `astrocyte.stores.postgres.engine.errors`.
        """
        if not bindings and sql.startswith(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")):
            self.command(self._begin if sql == "BEGIN IMMEDIATE" else sql)
            return Cursor([])
        pg = self._opened()
        statement, values = self._prepared(pg, sql, bindings)
        result = pg.exec_prepared(statement.name, values, statement.formats, _BINARY)
        if result.status == _ROWS:
            loader = statement.loader
            if loader is None:
                loader = statement.loader = Transformer(self._driver)
                loader.set_pgresult(result, set_loaders=True, format=pq.Format.BINARY)
            else:
                loader.set_pgresult(result, set_loaders=False)
            rows: list[Row] = loader.load_rows(0, result.ntuples, tuple)
            self._changes = result.command_tuples or 0
            if statement.numbers:
                if rows:
                    self._last_key = rows[-1][0]
                return Cursor([])
            return Cursor(rows)
        if result.status != _DONE:
            self._failed(result)
        self._changes = result.command_tuples or 0
        return Cursor([])

    def executemany(self, sql: str, rows: Sequence[Bindings]) -> None:
        """Run a statement for each of several rows of values."""
        for row in rows:
            self.execute(sql, row)

    def command(self, sql: str) -> None:
        """Run statements without values or rows, in one round trip."""
        pg = self._opened()
        commits = sql == "COMMIT"
        result = pg.exec_(sql.encode())
        if result.status not in {_DONE, _ROWS}:
            severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
            if commits and (self.lost or severity in ENDING):
                if self.on_doubt is not None:
                    self.on_doubt()
                self._drop()
                raise unavailable("the connection ended", unknown=True)
            self._failed(result)
        if commits and result.command_status == b"ROLLBACK":
            raise StoreError("the database took back the transaction; nothing was changed")

    def changes(self) -> int:
        """The number of rows that the last statement changed."""
        return self._changes

    def last_insert_rowid(self) -> int:
        """The number of the last inserted row, in tables that number their rows."""
        return self._last_key

    def pragma(self, name: str, value: int | None = None) -> int:
        """The value that SQLite has in its file: of these, only ``user_version`` is kept."""
        if value is not None:
            self.execute("UPDATE store_values SET value = ? WHERE name = ?", (value, name))
            return value
        found: int = self.execute("SELECT value FROM store_values WHERE name = ?", (name,)).get
        return found

    @property
    def lost(self) -> bool:
        """True if the connection ended by itself."""
        return self._pg is not None and self._pg.status != pq.ConnStatus.OK

    def close(self) -> None:
        """Release the connection for good."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        driver, self._driver, self._pg = self._driver, None, None
        self._statements.clear()
        if driver is not None:
            with contextlib.suppress(psycopg.Error):
                driver.close()

    def _opened(self) -> pq.abc.PGconn:
        if self._pg is None or self.lost:
            if self._closed:
                raise StoreError("the store is closed")
            self._drop()
            self._driver = self._connect()
            self._pg = self._driver.pgconn
        return self._pg

    def _failed(self, result: pq.abc.PGresult) -> NoReturn:
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        raise translated_error(state, lost=self.lost)

    def _prepared(self, pg: pq.abc.PGconn, sql: str, bindings: Bindings) -> tuple[_Statement, list[Any] | None]:
        """The prepared statement and its values."""
        key: object = sql
        if "carray(" in sql:
            key = (sql, array_kinds(bindings))
        statement = self._statements.get(key)
        if statement is None:
            statement = self._statements[key] = self._prepare(pg, sql, bindings, cast=False)
        try:
            return statement, _values(statement, bindings)
        except WrongTypeError:
            pass
        values = bindings.values() if isinstance(bindings, Mapping) else bindings
        exact = (key, *[type(value) for value in values])
        statement = self._statements.get(exact)
        if statement is None:
            statement = self._statements[exact] = self._prepare(pg, sql, bindings, cast=True)
        return statement, _values(statement, bindings)

    def _prepare(self, pg: pq.abc.PGconn, sql: str, bindings: Bindings, *, cast: bool) -> _Statement:
        if len(self._statements) >= MOST_STATEMENTS:
            self._statements.clear()
            self.command("DEALLOCATE ALL")
        translation = translated(sql, bindings, self._tables, cast=cast)
        self._count += 1
        name = f"s{self._count}".encode()
        # A statement that cannot be prepared ends the transaction around it.
        guarded = self.in_transaction and not cast
        if guarded:
            self.command("SAVEPOINT preparing")
        result = pg.prepare(name, translation.text.encode())
        if result.status != _DONE:
            if cast or self.lost:
                self._failed(result)
            if guarded:
                self.command("ROLLBACK TO preparing")
            statement = self._prepare(pg, sql, bindings, cast=True)
        else:
            described = pg.describe_prepared(name)
            if described.status not in {_DONE, _ROWS}:
                self._failed(described)
            dumpers = [DUMPERS[described.param_type(place)] for place in range(described.nparams)]
            statement = _Statement(name, translation.keys, dumpers, [_BINARY] * len(dumpers), translation.numbers)
        if guarded:
            self.command("RELEASE preparing")
        return statement


def _values(statement: _Statement, bindings: Any) -> list[Any] | None:  # noqa: ANN401 - by place or by name
    dumped: list[bytes | None] = []
    for key, dump in zip(statement.keys, statement.dumpers, strict=True):
        value = bindings[key]
        dumped.append(None if value is None else dump(value))
    return dumped or None
