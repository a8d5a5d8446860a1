"""Rows by which the processes of one data directory tell each other of their commits, and the reader of these rows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic_ns
from typing import Any

import apsw

from astrocyte.errors import StoreError
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Fence, Told, ToldListener, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.error_translation import report, translate
from astrocyte.stores.sqlite.engine.turns import Turn

# Held by the process that writes.
WRITING = "astrocyte.writing"
# Held by the process that erases: erasures take turns.
ERASING = "astrocyte.erasing"

# Between two looks at what others committed, for watchers and erasures.
FOLLOW_SECONDS = 0.02
# How long a process may take from its registration to its first beat.
START_MS = 60_000
NANOSECONDS_PER_MS = 1_000_000

_ERASED, _MOVED, _REFERS = 1, 2, 4
# Changes when another connection has committed. Reads the index of the write-ahead log, which is shared memory.
_VERSION = "PRAGMA data_version"
# Before the first beat: nobody deletes what this process has yet to hear.
_REGISTER = "INSERT OR REPLACE INTO workers SELECT ?, coalesce(max(place), 0), ? FROM told"
_HEARD = "SELECT heard FROM workers WHERE number = ?"
SINCE = "SELECT place, worker, topic, bank, position, flags, tenant, name FROM told WHERE place > ? ORDER BY place"
_INSERT = "INSERT INTO told (worker, topic, bank, position, flags, tenant, name) VALUES (?, ?, ?, ?, ?, ?, ?)"


def machine_clock() -> int:
    """Milliseconds of a clock of the machine that never goes back; the same for all its processes."""
    return monotonic_ns() // NANOSECONDS_PER_MS


def check_fence(connection: apsw.Connection, fence: Fence) -> None:
    """Refuse a write whose lease another process has taken.

    Raises:
        StoreError: It has.
    """
    number = connection.execute("SELECT fence FROM leases WHERE name = ?", (fence.lease,)).get
    if number != fence.number:
        raise StoreError(f"another process took the lease {fence.lease!r}; nothing was changed")


def forget_others(connection: apsw.Connection) -> None:
    """Delete what processes of before told each other: who owns the directory alone is told nothing."""
    for table in ("told", "workers", "leases"):
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall():
            connection.execute(f"DELETE FROM {table}")


def told_rows(
    worker: int, batches: Iterable[IndexBatch], tells: Sequence[Told]
) -> list[tuple[int, str, int, int, int, str, str]]:
    """Rows of ``told`` for a commit of a process, without their places."""
    banks: dict[int, tuple[int, int]] = {}
    for batch in batches:
        flags = _ERASED * batch.erased | _MOVED * batch.moved | _REFERS * batch.refers
        banks[batch.bank.key] = batch.position, banks.get(batch.bank.key, (0, 0))[1] | flags
    rows = [(worker, Topic.CHANGES.value, bank, position, flags, "", "") for bank, (position, flags) in banks.items()]
    rows += [
        (worker, one.topic.value, one.bank, 0, _ERASED * one.erased, one.tenant, one.name)
        for one in dict.fromkeys(tells)
    ]
    return rows


def told_of(row: tuple[Any, ...]) -> Told:
    """A change from a row of `SINCE`."""
    place, _, topic, bank, position, flags, tenant, name = row
    marks = bool(flags & _ERASED), bool(flags & _MOVED), bool(flags & _REFERS)
    return Told(Topic(topic), bank, position, tenant, name, *marks, place)


class Sharing:
    """One process of several on a data directory.

    Args:
        directory: The data directory.
        worker: Number of this process; no other that lives has it.
        connections: Those of the store, before anything is read that is kept in memory.
    """

    def __init__(self, directory: Path, worker: int, connections: Connections) -> None:
        self.worker = worker
        self.writing = Turn(directory / WRITING)
        self.erasing = Turn(directory / ERASING)
        self._reader = reader = connections.apart()
        self._lock = threading.RLock()
        self._listeners: list[ToldListener] = []
        # True once it has missed something, and so must not answer.
        self.missed = False
        self._version: int = reader.execute(_VERSION).get
        # What came before is in what this process reads at its start.
        with self.writing:
            connections.writer.execute(_REGISTER, (worker, machine_clock() + START_MS))
        self.heard: int = reader.execute(_HEARD, (worker,)).get

    def follow(self, listener: ToldListener) -> None:
        """Call the listener for each change of another process from now on."""
        self._listeners.append(listener)

    def refresh(self) -> None:
        """Tell the listeners all that other processes committed before this call.

        Raises:
            StoreError: It cannot be read, or this process has missed some of it.
        """
        try:
            with self._lock:
                version = self._reader.execute(_VERSION).get
                if version == self._version:
                    return
                rows: list[tuple[Any, ...]] = self._reader.execute(SINCE, (self.heard,)).fetchall()
                # Places follow each other; what all processes that live have heard is deleted.
                self.missed = self.missed or bool(rows and rows[0][0] > self.heard + 1)
                if self.missed:
                    raise StoreError(
                        "this process was taken for dead, and missed what others wrote; it starts again, call again"
                    )
                for row in rows:
                    if row[1] != self.worker:
                        self._tell(told_of(row))
                    self.heard = row[0]
                self._version = version
        except apsw.Error as error:
            raise translate(error) from error

    async def wait(self) -> None:
        """Return when another process may have committed: a look at the file costs some microseconds."""
        await asyncio.sleep(FOLLOW_SECONDS)

    def _tell(self, told: Told) -> None:
        for listener in self._listeners:
            try:
                listener(told)
            except Exception as error:  # noqa: BLE001 - the others must hear of it all the same
                report("listener_failed", error, bank_key=told.bank, position=told.position)

    def write(self, connection: apsw.Connection, batches: Iterable[IndexBatch], tells: Sequence[Told]) -> None:
        """Write what a group of jobs has to tell into their transaction."""
        rows = told_rows(self.worker, batches, tells)
        if rows:
            connection.executemany(_INSERT, rows)

    def close(self) -> None:
        """Release the files."""
        with self._lock:
            self._reader.close()
        self.writing.close()
        self.erasing.close()
