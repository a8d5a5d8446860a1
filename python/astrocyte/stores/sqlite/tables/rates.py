"""The token buckets of several processes, in a database of their own. It outlives a killed process, but no reboot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic_ns

import apsw

from astrocyte.errors import StoreError
from astrocyte.stores.sqlite.engine.data_directory import create_private
from astrocyte.stores.sqlite.engine.error_translation import translate

# Another process holds the lock for the time of one call's draws, some ten microseconds.
BUSY_MILLISECONDS = 5_000
# Commits between two looks for full buckets, which are as good as none.
SWEEP_COMMITS = 4_096

_SCHEMA = """
CREATE TABLE IF NOT EXISTS levels (
    bucket  TEXT    PRIMARY KEY,
    -- Decimal: more than 64 bits have room for.
    level   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    full_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID
"""


class SqliteRateBook:
    """Implements `astrocyte.stores.quotas.RateBook`; see there for what each method does and raises.

    Args:
        path: The file, made if it is not there.
        clock: Nanoseconds of the machine, as the buckets have them.

    Raises:
        StoreError: It cannot be opened.
    """

    def __init__(self, path: Path, clock: Callable[[], int] = monotonic_ns) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._commits = 0
        try:
            create_private(path)
            self._connection = apsw.Connection(str(path))
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
            self._connection.pragma("journal_mode", "WAL")
            # What a crash of the machine loses is as old as the machine's clock.
            self._connection.pragma("synchronous", "OFF")
            self._connection.execute(_SCHEMA)
        except (apsw.Error, OSError) as error:
            raise StoreError(f"the database of rates {str(path)!r} cannot be opened ({error})") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the buckets."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except apsw.Error as error:
                raise translate(error) from error

    def read(self, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Levels and their times."""
        found: dict[str, tuple[int, int]] = {}
        for key in keys:
            for level, at in self._connection.execute("SELECT level, at FROM levels WHERE bucket = ?", (key,)):
                found[key] = int(str(level)), int(str(at))
        return found

    def write(self, levels: Mapping[str, tuple[int, int, int]]) -> None:
        """Set levels."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO levels VALUES (?, ?, ?, ?)",
            [(key, str(level), at, full_at) for key, (level, at, full_at) in levels.items()],
        )
        self._commits += 1
        if self._commits % SWEEP_COMMITS == 0:
            self._connection.execute("DELETE FROM levels WHERE full_at <= ?", (self._clock(),))

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._connection.close()
