"""The keys of banks in a PostgreSQL database of their own, on another server than the memories."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from astrocyte.errors import ConfigError, StoreError, Unavailable
from astrocyte.stores.postgres.engine.address import Address

T = TypeVar("T")
# Schema of its one table.
SCHEMA = "astrocyte_keys"
# Tells clusters of databases apart: those of one share a write-ahead log.
_CLUSTER = "SELECT system_identifier FROM pg_control_system()"
_TABLE = "CREATE TABLE IF NOT EXISTS bank_keys (key_id text PRIMARY KEY, value bytea NOT NULL)"
# Servers that start at once make the table one after the other.
_MAKING_LOCK = 0x6173_7472_0004
# Seconds of a statement.
_LIMIT_SECONDS = 30.0


class KeyDatabase:
    """A table with a row for each key.

    Args:
        dsn: Connection string of libpq.
        memories: That of the memories, which must be of another cluster.
        connect_seconds: Timeout of a connection.

    Raises:
        ConfigError: Both databases are of one cluster, whose log and backups would have the keys too.
        Unavailable: One cannot be reached.
        StoreError: The table cannot be made.
    """

    def __init__(self, dsn: str, memories: str, connect_seconds: float) -> None:
        self._address = Address(dsn, SCHEMA, connect_seconds, key="store.encryption.dsn")
        self._lock = threading.Lock()
        self._driver: psycopg.Connection[Any] | None = None
        with Address(memories, SCHEMA, connect_seconds).connect() as other:
            cluster = _cluster(other)
        try:
            _check_apart(self._run(_cluster), cluster)
            self._run(_make)
        except BaseException:
            self.close()
            raise

    def read(self, key_id: str) -> bytes | None:
        """See `KeyStore`."""

        def run(driver: psycopg.Connection[Any]) -> bytes | None:
            rows = driver.execute("SELECT value FROM bank_keys WHERE key_id = %s", (key_id,)).fetchall()
            return bytes(rows[0][0]) if rows else None

        return self._run(run)

    def create(self, key_id: str, value: bytes) -> None:
        """See `KeyStore`."""
        self._run(lambda driver: driver.execute("INSERT INTO bank_keys VALUES (%s, %s)", (key_id, value)))

    def destroy(self, key_id: str) -> None:
        """See `KeyStore`: the row is deleted, and the table vacuumed."""

        def run(driver: psycopg.Connection[Any]) -> None:
            driver.execute("DELETE FROM bank_keys WHERE key_id = %s", (key_id,))
            driver.execute("VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) bank_keys")

        self._run(run)

    def close(self) -> None:
        """See `KeyStore`."""
        with self._lock:
            if self._driver is not None:
                self._driver.close()
                self._driver = None

    def _run(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        with self._lock:
            fresh = self._driver is None
            try:
                return work(self._connected())
            except psycopg.OperationalError as error:
                self._drop()
                if fresh:
                    raise _failed(error) from error
            except psycopg.Error as error:
                self._drop()
                raise _failed(error) from error
            # A connection that was idle had ended; every statement may be run again.
            try:
                return work(self._connected())
            except psycopg.Error as error:
                self._drop()
                raise _failed(error) from error

    def _connected(self) -> psycopg.Connection[Any]:
        if self._driver is None:
            self._driver = self._address.connect(_LIMIT_SECONDS)
        return self._driver

    def _drop(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None


def _cluster(driver: psycopg.Connection[Any]) -> object:
    return driver.execute(_CLUSTER).fetchall()[0][0]


def _check_apart(own: object, memories: object) -> None:
    if own == memories:
        raise ConfigError(
            "store.encryption.dsn is a database on the server of store.dsn, whose write-ahead log and backups would"
            " have the keys as well; name a database on another server",
            metadata={"key": "store.encryption.dsn"},
        )


def _make(driver: psycopg.Connection[Any]) -> None:
    with driver.transaction():
        driver.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING_LOCK,))
        driver.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
        driver.execute(_TABLE)


def _failed(error: psycopg.Error) -> StoreError | Unavailable:
    """The error of a statement; its message may quote values, and is not told."""
    if error.sqlstate is None or error.sqlstate[:2] in {"08", "57"}:
        return Unavailable("the database of the keys cannot be reached; try again")
    return StoreError(f"the database of the keys failed (SQLSTATE {error.sqlstate}); try again")
