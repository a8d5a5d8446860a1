"""Connections: one that writes, one per thread that reads; or one with a lock, for a store in memory."""

from __future__ import annotations

import os
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import apsw

from astrocyte.errors import StoreError
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.rows import bound

Row = tuple[Any, ...]

# Before 3.51.3 two connections that write and checkpoint at once could corrupt a write-ahead log.
OLDEST_SQLITE = (3, 51, 3)
# A read that is open keeps the log from being emptied, and so an erasure from being finished.
READ_LIMIT_SECONDS = 5.0
# How many steps of SQLite's machine go by between two looks at the clock: about a millisecond's worth.
STEPS_PER_CHECK = 200_000
# The log is copied into the database when it has grown to this many pages of 4 KiB: 16 MiB, which is read in far less
# than a second when a killed process is started again, and seldom enough not to slow a stream of writes.
CHECKPOINT_PAGES = 4_096
# The log's file is cut to this after a burst.
LOG_LIMIT_BYTES = 64 << 20
# Negative means KiB. The writer's holds the inner pages of every index of some million memories.
WRITER_CACHE_KIB = -32_768
READER_CACHE_KIB = -8_192

_COMMON = (
    # Freed cells and pages are overwritten with zeros.
    ("secure_delete", "ON"),
    ("foreign_keys", "ON"),
    # A truncated or damaged file must be an error, not a SIGBUS.
    ("mmap_size", 0),
    # Sorts and statement journals would write content to files outside of the data directory.
    ("temp_store", "MEMORY"),
    ("trusted_schema", "OFF"),
)


def check_sqlite_version() -> None:
    """Refuse a SQLite that can corrupt its files.

    Raises:
        StoreError: It is older than `OLDEST_SQLITE`.
    """
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a write-ahead log; {needed} or newer is needed: "
            f"upgrade apsw to {needed}.0 or newer",
            metadata={"found": apsw.sqlite_lib_version(), "needed": needed},
        )


class _Reader:
    """A read connection with its time limit."""

    __slots__ = ("__weakref__", "connection", "deadline", "lock")

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        # Held while it reads, so that closing the store from another thread waits for the end of a read.
        self.lock = threading.Lock()
        self.deadline = 0.0
        reference = weakref.ref(self)

        def expired() -> bool:
            reader = reference()
            return reader is not None and monotonic() > reader.deadline

        connection.set_progress_handler(expired, STEPS_PER_CHECK)


class Connections:
    """All connections of a store. ``path`` None is a database in memory, which one connection and a lock serve."""

    # Whether they seal what they write into sealed banks.
    has_keys = False

    def __init__(
        self,
        path: Path | None,
        *,
        busy_seconds: float,
        secure_delete: bool = True,
        vfs: str = "",
        read_only: bool = False,
    ) -> None:
        self._path = path
        self._read_only = read_only
        self._busy_milliseconds = round(busy_seconds * 1_000)
        self._secure_delete = secure_delete
        self._vfs = vfs or None
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._registering = threading.Lock()
        self._closed = False
        self.writer = self._open()
        if path is not None and not read_only:
            try:
                self._make_durable()
            except BaseException:
                self.writer.close()
                raise
        # What a group of writes holds: readers must not see half of it where they share the connection.
        self.write_lock: AbstractContextManager[object] = nullcontext() if path is not None else threading.RLock()
        self._shared = _Reader(self.writer) if path is None else None
        if self._shared is not None:
            # Only reads have a limit, and the limit cannot tell them apart here; a read in memory is short anyway.
            self.writer.set_progress_handler(None)

    @staticmethod
    def numbers(values: array[int]) -> Any:  # noqa: ANN401 - apsw does not export the class
        """Numbers as a binding of ``carray``, without the detour over `Array`: for the statement of every recall."""
        return apsw.carray(values)

    def apart(self) -> apsw.Connection:
        """A connection that only reads, for one user who closes it."""
        connection = self._open()
        connection.pragma("query_only", "ON")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection

    def query(self, sql: str, bindings: Sequence[object] = ()) -> list[Row]:
        """All rows of one statement, from one committed state.

        Raises:
            StoreError: It took longer than `READ_LIMIT_SECONDS`, or the store is closed or broken.
        """
        try:
            if self._shared is not None:
                with self.write_lock:
                    return self.writer.execute(sql, bindings).fetchall()
            reader = getattr(self._local, "reader", None) or self._reader()
            with reader.lock:
                reader.deadline = monotonic() + READ_LIMIT_SECONDS
                return reader.connection.execute(sql, bindings).fetchall()
        except apsw.Error as error:
            raise _read_failure(error) from error

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """A connection whose statements all see one committed state. Keep it short, and fetch every row."""
        if self._shared is not None:
            with self.write_lock:
                yield self.writer
            return
        try:
            reader = self._reader()
            with reader.lock:
                reader.deadline = monotonic() + READ_LIMIT_SECONDS
                reader.connection.execute("BEGIN")
                try:
                    yield reader.connection
                finally:
                    reader.connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise _read_failure(error) from error

    @contextmanager
    def unlimited(self) -> Iterator[apsw.Connection]:
        """A connection whose reads may take longer than `READ_LIMIT_SECONDS`."""
        with self.snapshot() as connection:
            if self._shared is None:
                self._reader().deadline = inf
            yield connection

    def close(self, *, checkpoint: bool) -> None:
        """Close all; without ``checkpoint`` nothing more is synced, which a disk that failed to sync once demands."""
        with self._registering:
            self._closed = True
            readers = list(self._readers)
        for reader in readers:
            with reader.lock:
                reader.connection.close()
        # In memory it is also what readers read with.
        with self.write_lock:
            if not checkpoint:
                self.writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self.writer.close()

    def _reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            connection = self._open()
            connection.pragma("query_only", "ON")
            connection.pragma("cache_size", READER_CACHE_KIB)
            # The writer alone decides when the log is copied back.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            reader = self._local.reader = _Reader(connection)
            with self._registering:
                if self._closed:
                    connection.close()
                self._readers.add(reader)
        return reader

    def _open(self) -> apsw.Connection:
        if self._closed:
            raise StoreError("the store is closed")
        if self._read_only and self._path is not None:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            connection = apsw.Connection(_read_only_uri(self._path), flags=flags, vfs=self._vfs)
        else:
            connection = apsw.Connection(":memory:" if self._path is None else str(self._path), vfs=self._vfs)
        connection.set_busy_timeout(self._busy_milliseconds)
        connection.convert_binding = bound
        for pragma, value in _COMMON:
            connection.pragma(pragma, value)
        if not self._secure_delete:
            connection.pragma("secure_delete", "OFF")
        return connection

    def _make_durable(self) -> None:
        mode = self.writer.pragma("journal_mode", "WAL")
        if mode != "wal":
            raise StoreError(
                f"the file system of {str(self._path)!r} cannot hold a write-ahead log (journal mode {mode}); "
                "put data_dir on a local disk"
            )
        self.writer.pragma("synchronous", "FULL")
        self.writer.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        self.writer.pragma("journal_size_limit", LOG_LIMIT_BYTES)
        self.writer.pragma("cache_size", WRITER_CACHE_KIB)


def _read_only_uri(path: Path) -> str:
    """Return the URI of a database that is only read.

    Where its directory cannot be written, SQLite cannot make the index of the write-ahead log. Without a log the file
    is complete, and cannot change.
    """
    log = path.with_name(f"{path.name}-wal")
    fixed = not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if fixed else ''}"


def _read_failure(error: apsw.Error) -> Exception:
    if isinstance(error, apsw.InterruptError):
        return StoreError(f"the read took longer than {READ_LIMIT_SECONDS:g} s; request less at once")
    if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)):
        return StoreError("the store is closed")
    return translate(error)
