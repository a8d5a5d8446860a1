"""One connection to PostgreSQL, with the interface of the SQLite connection that the store's code is written for.

Each statement is translated once and prepared once. Values and rows travel in the binary format, and an execution is
one round trip. Within a transaction that writes, statements without an answer are sent together with the next one that
has one; a failure is raised there, at the latest where the savepoint or the transaction ends. A connection that was
lost is made again by the next statement, unless it was lost within a transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from astrocyte.errors import StoreError
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.dialect import Table
from astrocyte.stores.postgres.engine.errors import translated as translated_error
from astrocyte.stores.postgres.engine.errors import unavailable
from astrocyte.stores.postgres.engine.exchange import Message, SilentError, command, exchange, failure, query
from astrocyte.stores.postgres.engine.sealing import Sealer
from astrocyte.stores.postgres.engine.statements import Bindings, Statement, Statements
from astrocyte.stores.sealing.values import Ciphers

Row = tuple[Any, ...]

# Severities after which the server ends the session: the client may read the message before it sees the end.
ENDING = frozenset({b"FATAL", b"PANIC"})
# A commit succeeds with this severity and SQLSTATE where its wait for standbys was cancelled: it is not replicated.
_UNCONFIRMED = ("WARNING", "01000")

_ROWS = pq.ExecStatus.TUPLES_OK
_UNDER_WAY = frozenset(
    {
        pq.TransactionStatus.INTRANS,
        pq.TransactionStatus.INERROR,
        pq.TransactionStatus.ACTIVE,
    }
)
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


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
        address: Of the database.
        tables: The tables of the database, by name.
        limit_seconds: How long a statement may take; 0 for no limit.
        silence_seconds: How long the database may say nothing before the connection is given up; None for no limit.
        begin: What ``BEGIN IMMEDIATE`` means.
        ciphers: Those of sealed banks; None if none is sealed.
    """

    def __init__(
        self,
        address: Address,
        tables: Mapping[str, Table],
        *,
        limit_seconds: float = 0.0,
        silence_seconds: float | None = None,
        begin: Sequence[str] = ("BEGIN",),
        ciphers: Ciphers | None = None,
    ) -> None:
        self._sealer = None if ciphers is None else Sealer(ciphers)
        self._address = address
        self._limit_seconds = limit_seconds
        self._silence_seconds = silence_seconds
        self._begin = begin
        self._driver: psycopg.Connection[Any] | None = None
        self._pg: pq.abc.PGconn | None = None
        self._statements = Statements(
            tables, self._prepare, lambda: self.command("DEALLOCATE ALL"), self._sealer, self._bank_of
        )
        # True from BEGIN IMMEDIATE to the end of the transaction, and what is not sent yet of it.
        self._writing = False
        self._queue: list[Message] = []
        self._changes = 0
        self._last_key = 0
        self._closed = False
        # True once the database has said in a commit that no standby confirmed it.
        self._unconfirmed = False
        # Called where it is not known whether a transaction was committed.
        self.on_doubt: Callable[[], None] | None = None

    @property
    def in_transaction(self) -> bool:
        """True within a transaction, also in one that failed or whose connection was lost."""
        return self._writing or self._under_way

    @property
    def _under_way(self) -> bool:
        """True if the database has an open transaction of this connection."""
        pg = self._pg
        return pg is not None and not self.lost and pg.transaction_status in _UNDER_WAY

    def execute(self, sql: str, bindings: Bindings = ()) -> Cursor:
        """Run a statement of SQLite's dialect.

        Raises:
            apsw.Error, AstrocyteError: See `astrocyte.stores.postgres.engine.errors`.
        """
        if not bindings and sql.startswith(_CONTROL):
            self._control(sql)
            return Cursor([])
        statement, message = self._message(sql, bindings)
        if self._writing and statement.deferrable:
            self._queue.append(message)
            return Cursor([])
        rows = self._rows(statement, self._exchange(message)[-1])
        if statement.numbers:
            if rows:
                self._last_key = rows[-1][0]
            return Cursor([])
        return Cursor(rows)

    def executemany(self, sql: str, rows: Sequence[Bindings]) -> None:
        """Run a statement for each of several rows of values, in one round trip; what it returns is dropped."""
        messages = [self._message(sql, row)[1] for row in rows]
        if self._writing:
            self._queue += messages
        elif messages:
            self._exchange(*messages)

    def command(self, sql: str) -> None:
        """Run a statement without values or rows."""
        self._exchange(command(sql))

    def changes(self) -> int:
        """The number of rows that the last statement changed."""
        self._flush()
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

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Statements within have no limit of silence: they may compute for long."""
        silence, self._silence_seconds = self._silence_seconds, None
        try:
            yield
        finally:
            self._silence_seconds = silence

    def close(self) -> None:
        """Release the connection for good."""
        self._closed = True
        self._drop()

    def _control(self, sql: str) -> None:
        """Begin or end a transaction, or a part of one."""
        if sql == "BEGIN IMMEDIATE":
            self._writing = False
            if self._sealer is not None:
                self._sealer.begin()
            self._exchange(*[command(one) for one in self._begin])
            self._writing = True
        elif sql == "COMMIT":
            self._commit()
        elif sql == "ROLLBACK":
            # What was not sent need not be taken back.
            self._writing, self._queue = False, []
            if self._under_way:
                self.command(sql)
        elif self._writing and sql.startswith("SAVEPOINT"):
            self._queue.append(command(sql))
        else:
            if sql.startswith("ROLLBACK TO"):
                self._flush(failures=False)
            self.command(sql)

    def _commit(self) -> None:
        self._unconfirmed = False
        try:
            result = self._exchange(command("COMMIT"), commits=True)[-1]
        finally:
            self._writing = False
        if result.command_status == b"ROLLBACK":
            raise StoreError("the database took back the transaction; nothing was changed")
        if self._unconfirmed:
            self._doubt(commits=True)
            raise unavailable("no standby confirmed the commit", unknown=True)

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if (notice.severity_nonlocalized, notice.sqlstate) == _UNCONFIRMED:
            self._unconfirmed = True

    def _flush(self, *, failures: bool = True) -> None:
        """Send what was not sent yet; without ``failures``, a statement that fails is none of this method's."""
        if self._queue:
            self._exchange(failures=failures)

    def _exchange(self, *messages: Message, commits: bool = False, failures: bool = True) -> list[pq.abc.PGresult]:
        """Send what was not sent yet and messages; returns their results.

        Args:
            messages: At the end.
            commits: The last one is a COMMIT.
            failures: Raise the first failure of a statement.
        """
        pg = self._opened()
        sent, self._queue = [*self._queue, *messages], []
        try:
            results = exchange(pg, sent, self._silence_seconds)
        except SilentError:
            self._address.refuse(0.0)
            self._doubt(commits)
            self._drop()
            raise unavailable("it does not answer", unknown=commits) from None
        failed = failure(results)
        ended = failed is not None and failed.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) in ENDING
        if commits and (ended or self.lost):
            self._doubt(commits)
            self._drop()
            raise unavailable("the connection ended", unknown=True)
        if self.lost or (failed is not None and failures):
            self._failed(failed)
        self._changes = results[-1].command_tuples or 0
        return results

    def _message(self, sql: str, bindings: Bindings) -> tuple[Statement, Message]:
        self._opened()
        statement, values = self._statements.find(sql, bindings)
        return statement, query(statement.name, values, statement.formats)

    def _prepare(self, messages: Sequence[Message], survives: bool) -> pq.abc.PGresult | None:  # noqa: FBT001 - as `Prepare`
        self._flush()
        if not survives:
            return self._exchange(*messages)[-1]
        # A statement that cannot be prepared ends the transaction around it.
        guarded = self.in_transaction
        if guarded:
            messages = [command("SAVEPOINT preparing"), *messages, command("RELEASE preparing")]
        results = self._exchange(*messages, failures=False)
        if failure(results) is None:
            return results[-2] if guarded else results[-1]
        if guarded:
            self._exchange(command("ROLLBACK TO preparing"), command("RELEASE preparing"))
        return None

    def _rows(self, statement: Statement, result: pq.abc.PGresult) -> list[Row]:
        if result.status != _ROWS:
            return []
        loader = statement.loader
        if loader is None:
            loader = statement.loader = Transformer(self._driver)
            loader.set_pgresult(result, set_loaders=True, format=pq.Format.BINARY)
        else:
            loader.set_pgresult(result, set_loaders=False)
        rows: list[Row] = loader.load_rows(0, result.ntuples, tuple)
        if statement.sources and self._sealer is not None:
            return self._sealer.opened(statement.sources, rows)
        return rows

    def _bank_of(self, row_key: int) -> int | None:
        found: int | None = self.execute("SELECT bank_key FROM memories WHERE row_key = ?", (row_key,)).get
        return found

    def _doubt(self, commits: bool) -> None:  # noqa: FBT001 - as given
        if commits and self.on_doubt is not None:
            self.on_doubt()

    def _drop(self) -> None:
        driver, self._driver, self._pg = self._driver, None, None
        self._statements.clear()
        self._queue.clear()
        if driver is not None:
            with contextlib.suppress(psycopg.Error):
                driver.close()

    def _opened(self) -> pq.abc.PGconn:
        if self._pg is None or self.lost:
            if self._closed:
                raise StoreError("the store is closed")
            if self._writing:
                # What follows must not be written without what came before.
                raise unavailable("the connection ended")
            self._drop()
            self._driver = self._address.connect(self._limit_seconds)
            self._driver.add_notice_handler(self._noticed)
            self._pg = self._driver.pgconn
        return self._pg

    def _failed(self, result: pq.abc.PGresult | None) -> NoReturn:
        state = b"" if result is None else result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        raise translated_error(state.decode(), lost=self.lost)
