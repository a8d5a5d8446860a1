"""The connections of a server to its database: one that writes, one per thread that reads."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import Any

import apsw
import psycopg
import structlog

from astrocyte.errors import AstrocyteError, StoreError
from astrocyte.stores.postgres.engine.connection import Bindings, Connection, Row
from astrocyte.stores.postgres.engine.dialect import Table
from astrocyte.stores.postgres.engine.dsn import checked_dsn
from astrocyte.stores.postgres.engine.errors import connecting, first_line, unavailable
from astrocyte.stores.sqlite.engine.connections import READ_LIMIT_SECONDS
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.rows import Array

log = structlog.get_logger(__name__)

# Writers of all servers take turns: a transaction that writes holds this lock from its beginning to its end, so that
# what it reads stays true until it commits, and places in `told` follow the order of commits.
WRITING_LOCK = 0x6173_7472_0001
# Seconds between two attempts to connect after one that failed; callers in between are refused at once.
PAUSE_SECONDS = 0.5
# Keepalives without an answer until a connection is given up.
PROBES = 3
# Subqueries without names came with it.
OLDEST_POSTGRES = 160_000
# A statement of a write may take longer than one that is read: an erasure deletes a slice.
WRITE_LIMIT_SECONDS = 30.0

# Statements look up rows by keys, and each is prepared once, so that one plan has to serve every size of a table:
# loops over indexes, whatever the statistics say about tables that were empty a moment ago.
_PLANNER = (
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off;"
    " SET enable_mergejoin = off; SET jit = off; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on;"
    " SET idle_in_transaction_session_timeout = '60s'; SET synchronous_commit = on;"
)
_TABLES = (
    "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),"
    " coalesce((SELECT array_agg(k.attname::text ORDER BY k.attnum) FROM pg_index i JOIN pg_attribute k"
    " ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),"
    " max(a.attname::text) FILTER (WHERE a.attidentity <> '')"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = to_regnamespace(%s) GROUP BY c.oid, c.relname"
)


class Address:
    """The address of a database, and its connections.

    Args:
        dsn: Connection string of libpq.
        schema: Its tables are in this schema.
        connect_seconds: Timeout of a connection. A host that acknowledges nothing is given up after one to two of it.

    Raises:
        ConfigError: The connection string is none.
    """

    def __init__(self, dsn: str, schema: str, connect_seconds: float) -> None:
        self.schema = schema
        seconds = max(1, round(connect_seconds))
        silence = {
            "keepalives_idle": seconds,
            "keepalives_interval": max(1, seconds // PROBES),
            "keepalives_count": PROBES,
        }
        milliseconds = round(connect_seconds * 1_000)
        self._parameters: dict[str, Any] = {
            **checked_dsn(dsn, "store.dsn"),
            "connect_timeout": max(2, seconds),
            "application_name": "astrocyte",
            # A host that vanished without a word must not hold a thread for ever.
            "keepalives": 1,
            "tcp_user_timeout": milliseconds,
            "target_session_attrs": "read-write",
            **silence,
        }
        # Nor may this host, if it vanishes, hold the locks of its sessions.
        self._session = (
            f'SET search_path = "{schema}", pg_catalog; SET tcp_user_timeout = {milliseconds};'
            + "".join(f" SET tcp_{name} = {value};" for name, value in silence.items())
            + _PLANNER
        )
        self._lock = threading.Lock()
        self._refused_until = 0.0

    def connect(self, limit_seconds: float = 0.0) -> psycopg.Connection[Any]:
        """Make a connection whose statements may take so many seconds; 0 for no limit.

        Raises:
            Unavailable: It cannot be made, or could not be a moment ago.
        """
        with self._lock:
            if monotonic() < self._refused_until:
                raise unavailable("it could not be reached a moment ago")
        try:
            driver = psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
            driver.execute(f"SET statement_timeout = {round(limit_seconds * 1_000)}; {self._session}".encode())
            if driver.info.server_version < OLDEST_POSTGRES:
                raise StoreError(f"PostgreSQL {driver.info.server_version // 10_000} is too old; 16 or newer is needed")
        except psycopg.Error as error:
            with self._lock:
                self._refused_until = monotonic() + PAUSE_SECONDS
            log.warning("database_unreachable", error=first_line(error))
            raise connecting(error) from error
        return driver

    def tables(self, driver: psycopg.Connection[Any]) -> dict[str, Table]:
        """The tables of the schema by name."""
        rows = driver.execute(_TABLES, (self.schema,)).fetchall()
        return {name: Table(tuple(columns), tuple(key), identity) for name, columns, key, identity in rows}


class _Reader:
    """The connection of a thread that reads."""

    __slots__ = ("__weakref__", "connection", "lock")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        # Held while it reads, so that closing the store from another thread waits for the end of a read.
        self.lock = threading.Lock()


class Connections:
    """As `astrocyte.stores.sqlite.engine.connections.Connections`, for PostgreSQL.

    Args:
        address: Of the database.
        tables: Its tables.
        busy_seconds: How long a transaction waits for that of another server.
    """

    def __init__(self, address: Address, tables: Mapping[str, Table], busy_seconds: float) -> None:
        self._address = address
        self._tables = tables
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._registering = threading.Lock()
        self._closed = False
        wait = round(busy_seconds * 1_000)
        self.writer = Connection(
            lambda: address.connect(WRITE_LIMIT_SECONDS),
            tables,
            # Waiting for another server takes nothing of the time of a statement.
            f"BEGIN; SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = 0;"
            f" SELECT pg_advisory_xact_lock({WRITING_LOCK});"
            f" SET LOCAL statement_timeout = {round(WRITE_LIMIT_SECONDS * 1_000)}",
        )
        self.write_lock: AbstractContextManager[object] = nullcontext()

    def apart(self) -> Connection:
        """A connection that only reads, for one user who closes it."""
        return Connection(lambda: self._address.connect(READ_LIMIT_SECONDS), self._tables)

    @staticmethod
    def numbers(values: array[int]) -> Array:
        """Numbers as a binding of ``carray``."""
        return Array(values)

    def query(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement, from one committed state.

        Raises:
            Unavailable: The database cannot be reached.
            StoreError: It took longer than `READ_LIMIT_SECONDS`, or the store is closed.
        """
        try:
            reader = getattr(self._local, "reader", None) or self._reader()
            with reader.lock:
                connection: Connection = reader.connection
                try:
                    return connection.execute(sql, bindings).fetchall()
                except AstrocyteError:
                    if not connection.lost:
                        raise
                # The server ended a connection that was idle: a read may be made again.
                return connection.execute(sql, bindings).fetchall()
        except apsw.Error as error:
            raise _read_failure(error) from error

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection whose statements all see one committed state. Keep it short, and fetch every row."""
        try:
            reader = self._reader()
            with reader.lock:
                self._begin(reader.connection)
                try:
                    yield reader.connection
                finally:
                    if reader.connection.in_transaction:
                        reader.connection.command("ROLLBACK")
        except apsw.Error as error:
            raise _read_failure(error) from error

    @contextmanager
    def unlimited(self) -> Iterator[Connection]:
        """A connection whose reads may take longer than `READ_LIMIT_SECONDS`."""
        with self.snapshot() as connection:
            connection.command("SET LOCAL statement_timeout = 0")
            yield connection

    def close(self, *, checkpoint: bool) -> None:
        """Close all. ``checkpoint`` is of SQLite's files; the database keeps its own."""
        del checkpoint
        with self._registering:
            self._closed = True
            readers = list(self._readers)
        for reader in readers:
            with reader.lock:
                reader.connection.close()
        self.writer.close()

    @staticmethod
    def _begin(connection: Connection) -> None:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        try:
            connection.command(begin)
        except AstrocyteError:
            if not connection.lost:
                raise
            connection.command(begin)

    def _reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            connection = self.apart()
            reader = _Reader(connection)
            # A thread that ends takes its connection with it.
            weakref.finalize(reader, connection.close)
            with self._registering:
                if self._closed:
                    raise StoreError("the store is closed")
                self._readers.add(reader)
            # Now that `close` knows of it.
            self._local.reader = reader
        return reader


def _read_failure(error: apsw.Error) -> Exception:
    if isinstance(error, apsw.InterruptError):
        return StoreError(f"the read took longer than {READ_LIMIT_SECONDS:g} s; request less at once")
    return translate(error)
