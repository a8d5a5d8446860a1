"""The servers of one database: what each commit tells the others, and how it is heard.

`refresh` asks the database itself, so that a server never answers from what it knew before it was cut off. NOTIFY wakes
the server for what no call asks for: erasures and watchers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import apsw

from astrocyte.errors import Unavailable
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connection import Connection
from astrocyte.stores.postgres.engine.connections import Connections
from astrocyte.stores.postgres.engine.notifications import CHANNEL, Notifications, payload
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, ToldListener
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.engine.sharing import START_MS, Sharing, told_of, told_rows

# Erasures of all servers take turns under it.
ERASING_LOCK = 0x6173_7472_0003
# What a server that was cut off for less than this missed is still there when it comes back.
KEEP_MS = 600_000
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_NUMBER = "SELECT nextval('server_numbers')"
_REGISTER = "INSERT INTO workers SELECT ?, coalesce(max(place), 0), ? FROM told"
_HEARD = "SELECT heard FROM workers WHERE number = ?"
# Places follow each other without a gap, which a sequence would not: by a gap a server knows that it missed something.
_INSERT = (
    "INSERT INTO told (place, worker, topic, bank, position, flags, tenant, name)"
    " SELECT coalesce((SELECT max(place) FROM told), 0) + 1, ?, ?, ?, ?, ?, ?, ?"
)
# With the row that was heard last, by which a server knows that the database has not gone back behind it.
_SINCE = (
    "SELECT place, worker, topic, bank, position, flags, tenant, name, told_at"
    " FROM told WHERE place >= ? ORDER BY place"
)
_NOTIFY = "SELECT pg_notify(?, ?)"
# Servers that ended long ago. Their numbers are never given again.
_FORGET = "DELETE FROM workers WHERE until < ?"


class ErasingTurn:
    """A lock that one server holds at a time, until its session ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def taken(self) -> bool:
        """Take the lock for `release`, unless another server has it."""
        return bool(self._connection.execute("SELECT pg_try_advisory_lock(?)", (ERASING_LOCK,)).get)

    def release(self) -> None:
        """Let go of what `taken` took."""
        self._connection.execute("SELECT pg_advisory_unlock(?)", (ERASING_LOCK,))

    def close(self) -> None:
        """Release the connection."""
        self._connection.close()


class PostgresSharing(Sharing):
    """One server of several on a database; see `astrocyte.stores.sqlite.engine.sharing.Sharing`.

    Args:
        connections: Those of the store, before anything is read that is kept in memory.
        address: Of the database.
    """

    def __init__(self, connections: Connections, address: Address) -> None:
        # What they ask needs no time, and calls wait for it.
        self._reader: Any = connections.apart(address.connect_seconds)
        self._clock_reader = connections.apart(address.connect_seconds)
        self._clock_lock = threading.Lock()
        # Transactions take turns by a lock of the database; see `WRITING_LOCK`.
        self.writing: Any = nullcontext()
        self.erasing: Any = ErasingTurn(connections.apart())
        self._lock = threading.RLock()
        self._listeners: list[ToldListener] = []
        self.missed = False
        # Up to which place was heard before the last own commit.
        self._before = 0
        # Worker and time of the row that was heard last; None where it was not read.
        self._last: tuple[int, int] | None = None
        # True once the database has gone back behind it.
        self._lost = False
        # True after a commit of which it is not known whether it was made: its rows are heard as those of others.
        self._doubtful = False
        writer = connections.writer
        self.worker = int(writer.execute(_NUMBER).get)
        writer.execute("BEGIN IMMEDIATE")
        now = self.clock()
        writer.execute(_FORGET, (now - KEEP_MS,))
        writer.execute(_REGISTER, (self.worker, now + START_MS))
        writer.execute("COMMIT")
        self.heard: int = self._reader.execute(_HEARD, (self.worker,)).get
        self._payload = payload(address.schema, self.worker)
        self._notifications = Notifications(address.connect, address.schema, self.worker)

    def clock(self) -> int:
        """Milliseconds since the epoch by the clock of the database, which all servers share."""
        with self._clock_lock:
            now: int = self._clock_reader.execute(NOW).get
            return now

    def doubt(self) -> None:
        """Hear anew what was told since before the last own commit, which may have been made or not."""
        with self._lock:
            if self._before < self.heard:
                self.heard, self._last = self._before, None
            self._doubtful = True

    def refresh(self) -> None:
        """Tell the listeners all that other servers committed before this call.

        Raises:
            Unavailable: The database cannot be reached, or this server starts again: it was cut off for too long, or
                the database has lost what it heard.
        """
        try:
            with self._lock:
                rows = self._reader.execute(_SINCE, (self.heard,)).fetchall()
                self._check(rows)
                doubtful = self._doubtful
                for row in rows:
                    if row[0] == self.heard:
                        continue
                    self._doubtful = False
                    if row[1] != self.worker or doubtful:
                        self._tell(told_of(row[:-1]))
                    self.heard = row[0]
                if rows:
                    self._last = rows[-1][1], rows[-1][-1]
        except apsw.Error as error:
            raise translate(error) from error

    def _check(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Make sure that rows of `_SINCE` follow what was heard."""
        if not rows:
            # The newest row is never deleted.
            lost = self.heard > 0
        elif rows[0][0] == self.heard:
            lost = self._last is not None and (rows[0][1], rows[0][-1]) != self._last
        else:
            lost = False
            self.missed = self.missed or rows[0][0] > self.heard + 1
        self._lost = self._lost or lost
        self.missed = self.missed or lost
        if self.missed:
            why = "the database has lost commits" if self._lost else "it was cut off from the database for too long"
            raise Unavailable(f"this server starts again ({why}); call again")

    def write(self, connection: Any, batches: Iterable[IndexBatch], tells: Sequence[Told]) -> None:  # noqa: ANN401 - of either engine
        """Write what a group of jobs has to tell into their transaction."""
        self._before = self.heard
        rows = told_rows(self.worker, batches, tells)
        connection.executemany(_INSERT, rows)
        if rows:
            # Sent by the database when the transaction commits.
            connection.executemany(_NOTIFY, [(CHANNEL, self._payload)])

    async def wait(self) -> None:
        """Return when another server may have committed, at the latest after a second."""
        await self._notifications.wait()

    def close(self) -> None:
        """Release the connections."""
        self._notifications.close()
        with self._lock:
            self._reader.close()
        with self._clock_lock:
            self._clock_reader.close()
        self.erasing.close()
