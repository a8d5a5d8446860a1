"""The connections of a server to its database: one that writes, one per thread that reads."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import apsw

from astrocyte.errors import AstrocyteError, StoreError
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connection import Connection, Row
from astrocyte.stores.postgres.engine.dialect import Table
from astrocyte.stores.postgres.engine.statements import Bindings
from astrocyte.stores.sealing.values import Ciphers
from astrocyte.stores.sqlite.engine.connections import READ_LIMIT_SECONDS
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.rows import Array

# Writers of all servers take turns: a transaction that writes holds this lock from its beginning to its end, so that
# what it reads stays true until it commits, and places in `told` follow the order of commits.
WRITING_LOCK = 0x6173_7472_0001
# A statement of a write may take longer than one that is read: an erasure deletes a slice.
WRITE_LIMIT_SECONDS = 30.0


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
        ciphers: Those of sealed banks; None if none is sealed.
    """

    def __init__(
        self, address: Address, tables: Mapping[str, Table], busy_seconds: float, ciphers: Ciphers | None = None
    ) -> None:
        self._ciphers = ciphers
        self.has_keys = ciphers is not None
        self._address = address
        self._tables = tables
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._registering = threading.Lock()
        self._closed = False
        self.writer = Connection(
            address,
            tables,
            limit_seconds=WRITE_LIMIT_SECONDS,
            silence_seconds=max(WRITE_LIMIT_SECONDS, busy_seconds) + address.connect_seconds,
            # Waiting for another server takes nothing of the time of a statement.
            begin=(
                "BEGIN",
                f"SET LOCAL lock_timeout = {round(busy_seconds * 1_000)}",
                "SET LOCAL statement_timeout = 0",
                f"SELECT pg_advisory_xact_lock({WRITING_LOCK})",
                f"SET LOCAL statement_timeout = {round(WRITE_LIMIT_SECONDS * 1_000)}",
            ),
            ciphers=ciphers,
        )
        self.write_lock: AbstractContextManager[object] = nullcontext()

    def apart(self, silence_seconds: float | None = None) -> Connection:
        """A connection that only reads, for one user who closes it.

        Args:
            silence_seconds: How long the database may say nothing; longer than any read takes, if None.
        """
        silence = READ_LIMIT_SECONDS + self._address.connect_seconds if silence_seconds is None else silence_seconds
        return Connection(
            self._address,
            self._tables,
            limit_seconds=READ_LIMIT_SECONDS,
            silence_seconds=silence,
            ciphers=self._ciphers,
        )

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
            with connection.waiting():
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
