"""The rows of one store copied into another one of the other kind, with their keys, ids and positions.

Nobody may write into either. The target is empty before, and is written in one transaction: where anything fails, or
what it holds afterwards is not what was read, nothing is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg
from psycopg import sql

from astrocyte.errors import FailedPrecondition, StoreError
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connections import WRITING_LOCK
from astrocyte.stores.postgres.engine.errors import driver_failures
from astrocyte.stores.postgres.engine.migrations import load_postgres_migrations, migrate_postgres
from astrocyte.stores.postgres.engine.sharing import NOW
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.data_directory import DATABASE, DirectoryLock, create_private
from astrocyte.stores.sqlite.engine.migrations import load_migrations, migrate
from astrocyte.stores.sqlite.store import system_clock

Row = tuple[Any, ...]
# What processes tell each other, what only one kind has, and the notes of applied migrations.
LEFT_OUT = frozenset(
    {"told", "workers", "leases", "store_values", "schema_migrations", "sqlite_sequence", "sealed_banks"}
)
# Have rows in a new store.
SEEDED = frozenset({"installation", "entity_graph_progress"})
# Others refer to its rows.
FIRST = "banks"
# How long a writer may take to end.
WRITING_SECONDS = 10
# Rows of one read, or of one statement that writes.
ROWS_AT_ONCE = 1_000


class Side(Protocol):
    """One of the two stores, in a transaction."""

    def tables(self) -> dict[str, tuple[list[str], list[str]]]:
        """Columns and primary key of each table that has rows of callers."""

    def read(self, table: str, columns: list[str], key: list[str]) -> Iterator[Row]:
        """All rows by key."""

    def write(self, table: str, columns: list[str], rows: Iterable[Row]) -> None:
        """Replace all rows."""

    def numbers(self) -> dict[str, int]:
        """The last number that each numbered table gave to a row, deleted ones included."""

    def go_on(self, numbers: dict[str, int]) -> None:
        """Give higher numbers from now on."""


class SqliteSide:
    """The store of a data directory."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def tables(self) -> dict[str, tuple[list[str], list[str]]]:
        """See `Side`."""
        names = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        found = {}
        for (name,) in names:
            if name not in LEFT_OUT and not str(name).startswith("sqlite_"):
                columns = self._connection.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
                keys = sorted((int(str(place)), str(column)) for column, place in columns if place)
                found[str(name)] = [str(column) for column, _ in columns], [column for _, column in keys]
        return found

    def read(self, table: str, columns: list[str], key: list[str]) -> Iterator[Row]:
        """See `Side`."""
        yield from self._connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(key)}")

    def write(self, table: str, columns: list[str], rows: Iterable[Row]) -> None:
        """See `Side`."""
        self._connection.execute(f"DELETE FROM {table}")
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def numbers(self) -> dict[str, int]:
        """See `Side`."""
        found = self._connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        return {str(name): int(str(last)) for name, last in found}

    def go_on(self, numbers: dict[str, int]) -> None:
        """See `Side`."""
        numbered = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
        own = {str(name) for (name,) in self._connection.execute(numbered).fetchall()}
        rows = [(name, last) for name, last in numbers.items() if name in own]
        self._connection.execute("DELETE FROM sqlite_sequence")
        self._connection.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", rows)


class PostgresSide:
    """The store of a database."""

    def __init__(self, driver: psycopg.Connection[Any], address: Address) -> None:
        self._driver = driver
        self._address = address
        self._all = address.tables(driver)

    def tables(self) -> dict[str, tuple[list[str], list[str]]]:
        """See `Side`."""
        return {
            name: (list(table.columns), list(table.key)) for name, table in self._all.items() if name not in LEFT_OUT
        }

    def read(self, table: str, columns: list[str], key: list[str]) -> Iterator[Row]:
        """See `Side`."""
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, key)),
        )
        with self._driver.cursor("astrocyte_rows") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            yield from cursor.execute(query)

    def write(self, table: str, columns: list[str], rows: Iterable[Row]) -> None:
        """See `Side`."""
        name = sql.Identifier(table)
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        self._driver.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
        self._driver.execute(sql.SQL("DELETE FROM {}").format(name))
        with (
            self._driver.cursor() as cursor,
            cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(name, names)) as copy,
        ):
            for row in rows:
                copy.write_row(row)
        self._driver.execute(sql.SQL("SET CONSTRAINTS ALL IMMEDIATE"))
        self._driver.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))

    def numbers(self) -> dict[str, int]:
        """See `Side`."""
        return {table: last for table, sequence in self._sequences() if (last := self._last(sequence))}

    def go_on(self, numbers: dict[str, int]) -> None:
        """See `Side`."""
        for table, sequence in self._sequences():
            column = sql.Identifier(str(self._all[table].identity))
            largest = sql.SQL("SELECT coalesce(pg_catalog.max({}), 0) FROM {}").format(column, sql.Identifier(table))
            ((there,),) = self._driver.execute(largest).fetchall()
            last = max(numbers.get(table, 0), there)
            self._driver.execute("SELECT setval(%s, %s, false)", (sequence, last + 1))

    def _sequences(self) -> Iterator[tuple[str, str]]:
        for name, table in self._all.items():
            if name == "memories":
                # The store itself numbers these.
                yield name, "memories_next"
            elif table.identity is not None and name not in LEFT_OUT:
                query = "SELECT pg_get_serial_sequence(%s, %s)"
                ((sequence,),) = self._driver.execute(query, (name, table.identity)).fetchall()
                yield name, sequence

    def _last(self, sequence: str) -> int:
        name = sql.SQL(".").join(map(sql.Identifier, sequence.replace('"', "").split(".")))
        ((last, called),) = self._driver.execute(
            sql.SQL("SELECT last_value, is_called FROM {}").format(name)
        ).fetchall()
        return int(last if called else last - 1)


@contextmanager
def sqlite_side(data_dir: Path, *, reads: bool) -> Iterator[SqliteSide]:
    """The store of a data directory that no other process uses.

    Raises:
        StoreLocked: One does.
        FailedPrecondition: There is no store to read.
    """
    path = data_dir / DATABASE
    if reads and not path.exists():
        raise FailedPrecondition(f"{str(data_dir)!r} has no store", metadata={"data_dir": str(data_dir)})
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = DirectoryLock(data_dir)
    try:
        create_private(path)
        connections = Connections(path, busy_seconds=1.0)
        try:
            connection = connections.writer
            migrate(connection, load_migrations(), system_clock())
            connection.execute("BEGIN IMMEDIATE")
            # They have done what they are for, in the other store.
            triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            try:
                yield SqliteSide(connection)
                for _, text in triggers:
                    connection.execute(str(text))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            connections.close(checkpoint=True)
    finally:
        lock.release()


@contextmanager
def postgres_side(dsn: str, schema: str, connect_seconds: float) -> Iterator[PostgresSide]:
    """The store of a database that no server uses.

    Raises:
        FailedPrecondition: One does, or it has encrypted banks.
        Unavailable: The database cannot be reached, or the connection was lost.
        StoreError: The database refused a statement.
    """
    address = Address(dsn, schema, connect_seconds)
    with driver_failures(), address.connect() as driver:
        migrate_postgres(driver, schema, load_postgres_migrations(), system_clock())
        # While rows are copied, the session may be idle for longer than one of a server.
        driver.execute("SET idle_in_transaction_session_timeout = 0")
        _keep_writers_out(driver)
        # All reads see one state, taken after the last writer ended.
        driver.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with driver.transaction():
            _refuse_sealed(driver)
            ((servers,),) = driver.execute(f"SELECT count(*) FROM workers WHERE until > ({NOW})".encode()).fetchall()
            if servers:
                raise FailedPrecondition(
                    f"{servers} servers use the database, or did a moment ago; stop them, and try again",
                    metadata={"servers": str(servers)},
                )
            yield PostgresSide(driver, address)


def _refuse_sealed(driver: psycopg.Connection[Any]) -> None:
    """Refuse a database with encrypted banks: a copy would be without their keys, or without encryption.

    Raises:
        FailedPrecondition: Servers that encrypt banks have used it.
    """
    ((sealing,),) = driver.execute("SELECT value FROM store_values WHERE name = 'sealing'").fetchall()
    if sealing:
        raise FailedPrecondition(
            "servers with store.encryption have used the database, and rows are copied as they are; export each bank,"
            " and import it into the other store"
        )


def _keep_writers_out(driver: psycopg.Connection[Any]) -> None:
    """Take the lock of those who write until the session ends: no server registers itself, or writes.

    Raises:
        FailedPrecondition: Another session keeps it.
    """
    driver.execute(f"SET lock_timeout = '{WRITING_SECONDS}s'".encode())
    try:
        driver.execute("SELECT pg_advisory_lock(%s)", (WRITING_LOCK,))
    except psycopg.errors.LockNotAvailable:
        raise FailedPrecondition("a server writes into the database; stop all servers, and try again") from None
    driver.execute("SET lock_timeout = 0")


def transfer(source: Side, target: Side) -> dict[str, int]:
    """Copy all rows; returns how many, by table.

    Raises:
        FailedPrecondition: The target has rows; nothing was written.
        StoreError: The target does not hold what was read.
    """
    tables, others = source.tables(), target.tables()
    if tables.keys() != others.keys():
        raise StoreError(f"the stores differ in tables: {sorted(tables.keys() ^ others.keys())}")
    filled = [name for name in sorted(others.keys() - SEEDED) if next(target.read(name, *others[name]), None)]
    if filled:
        raise FailedPrecondition(
            f"the target is not empty, it has rows in {', '.join(filled)}; copy into an empty store",
            metadata={"tables": ",".join(filled)},
        )
    counts = {}
    # What refers to banks goes before them.
    for name in sorted(tables, key=lambda name: name == FIRST):
        target.write(name, others[name][0], ())
    for name in sorted(tables, key=lambda name: name != FIRST):
        columns, key = tables[name]
        read = _Digest(source.read(name, columns, key))
        target.write(name, columns, read)
        there = _Digest(target.read(name, columns, key))
        for _ in there:
            pass
        if read.value != there.value:
            raise StoreError(f"the table {name} of the target differs from what was read; nothing was kept")
        counts[name] = read.count
    target.go_on(source.numbers())
    return counts


class _Digest:
    """Rows that pass through, with their number and a digest of all of them in order."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self._hash = hashlib.sha256()
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self._hash.update(repr(tuple(row)).encode())
            self.count += 1
            yield row

    @property
    def value(self) -> tuple[int, str]:
        return self.count, self._hash.hexdigest()
