"""The usage of daily quotas, in a database of its own that several processes may open."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from random import uniform
from time import monotonic, sleep

import apsw

from astrocyte.errors import StoreError
from astrocyte.stores.quotas import Use
from astrocyte.stores.sqlite.engine.data_directory import create_private
from astrocyte.stores.sqlite.engine.error_translation import translate

# A reservation is a write to the disk: one for so many calls at most, and for ever fewer as the limit comes near, so
# that a process that dies, or holds what another needs, costs the day less than a sixteenth of what is left.
LARGEST_BLOCK = 64
SHARE = 16
# Other processes hold the lock for the time of one commit.
BUSY_MILLISECONDS = 5_000
# About as long as the log takes to be turned on; drawn anew every time, so that two who collide do not go on to.
RETRY_SECONDS = (0.002, 0.02)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS uses (
    day       INTEGER NOT NULL,
    tenant    TEXT    NOT NULL,
    bank_id   TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, bank_id, operation)
) STRICT, WITHOUT ROWID
"""
_USED = "SELECT used FROM uses WHERE day = ? AND tenant = ? AND bank_id = ? AND operation = ?"
_ADD = """
INSERT INTO uses VALUES (?, ?, ?, ?, ?)
ON CONFLICT (day, tenant, bank_id, operation) DO UPDATE SET used = max(0, used + excluded.used)
"""


class SqliteQuotaBook:
    """Implements `astrocyte.stores.quotas.QuotaBook`; see there for what each method does and raises.

    Args:
        path: The file, made if it is not there; None keeps the counts in memory.

    Raises:
        StoreError: It cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._day = 0
        try:
            if path is not None:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                create_private(path)
            self._connection = apsw.Connection(":memory:" if path is None else str(path))
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
            if path is not None:
                self._keep_a_log()
                self._connection.pragma("synchronous", "FULL")
            self._connection.execute(_SCHEMA)
        except (apsw.Error, OSError) as error:
            raise StoreError(f"the quota database {str(path)!r} cannot be opened ({error})") from error

    def _keep_a_log(self) -> None:
        """Turn the write-ahead log on, also when another process opens the same new file at this moment.

        Of two that turn it on at once, SQLite refuses one without asking the busy timeout, for both hold a read lock
        that the other waits for. Who is refused has let go of its own, and so may ask again.
        """
        deadline = monotonic() + BUSY_MILLISECONDS / 1_000
        while monotonic() < deadline:
            with suppress(apsw.BusyError):
                self._connection.pragma("journal_mode", "WAL")
                return
            sleep(uniform(*RETRY_SECONDS))  # noqa: S311 - no secret
        self._connection.pragma("journal_mode", "WAL")

    def reserve(self, day: int, use: Use, *, least: int, limit: int) -> int:
        """Reserve a part of a day's remaining limit."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    if day != self._day:
                        # Another process's clock may be a little behind: its day is still counted.
                        self._connection.execute("DELETE FROM uses WHERE day < ?", (day - 1,))
                    used = self._connection.execute(_USED, (day, *use)).get or 0
                    left = limit - used
                    taken = 0 if least > left else max(least, min(LARGEST_BLOCK, left // SHARE))
                    if taken:
                        self._connection.execute(_ADD, (day, *use, taken))
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except apsw.Error as error:
                raise translate(error) from error
            self._day = day
            return taken

    def give_back(self, day: int, use: Use, count: int) -> None:
        """Return unused reservations."""
        with self._lock:
            try:
                self._connection.execute(_ADD, (day, *use, -count))
            except apsw.Error as error:
                raise translate(error) from error

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._connection.close()
