"""After rows were erased: the log is emptied and the file is scrubbed, a block at a time, so that others can write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TypeVar

import apsw

from astrocyte.errors import StoreError
from astrocyte.stores.sqlite.deletion.scrubbing import Scrubber
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.engine.writer import Slices, Writer

T = TypeVar("T")
# How long a reader may keep the log from being emptied: twice what a read is allowed to take.
CLEAN_SECONDS = 10.0
# How long one try to empty the log waits for readers, with the writer's other callers behind it.
TRY_MILLISECONDS = 10


class Cleaner:
    """Runs on the writer's thread, within a sliced job; one at a time.

    ``user_version`` is not 0 from the first erased row until the files are clean, so that a cleaning that a crash cut
    short is made up for.
    """

    def __init__(self, writer: Writer, scrubber: Scrubber | None, busy_milliseconds: int) -> None:
        self._writer = writer
        self._scrubber = scrubber
        self._busy_milliseconds = busy_milliseconds

    def needed(self) -> bool:
        """True if rows were erased since the files were clean."""
        return self._writer.transact(lambda transaction: bool(transaction.connection.pragma("user_version")))

    def clean(self) -> Slices[None]:
        """Empty the log and scrub the file.

        Raises:
            StoreError: A reader kept the log from being emptied for too long.
        """
        if self._scrubber is not None and self._scrubber.usable:
            block: int | None = 0
            while block is not None:
                # Nothing is written between the two: a page in the log would bring its gap back.
                block = yield from self._empty_log(partial(self._scrub, self._scrubber, block))
                yield
        elif self._scrubber is not None:
            yield from self._empty_log(self._vacuum)
            yield from self._empty_log(_nothing)
        self._writer.transact(lambda transaction: note_unclean(transaction.connection, unclean=False))

    def _vacuum(self) -> None:
        self._writer.connection.execute("VACUUM")

    def _empty_log(self, work: Callable[[], T]) -> Slices[T]:
        """Empty the log, then do some work before anybody writes; returns its result."""
        deadline = monotonic() + CLEAN_SECONDS
        while True:
            with self._writer.turn:
                if self._log_emptied():
                    return work()
            if monotonic() > deadline:
                raise StoreError(
                    "the rows are erased, but a reader of the database keeps their bytes in the write-ahead log; "
                    "end the reader and erase again"
                )
            yield

    def _log_emptied(self) -> bool:
        connection = self._writer.connection
        connection.set_busy_timeout(TRY_MILLISECONDS)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        except apsw.FullError as error:
            # The log may hold pages that the database file has yet to grow by.
            if not self._writer.release_ballast():
                raise translate(error) from error
            return False
        finally:
            connection.set_busy_timeout(self._busy_milliseconds)
        return True

    def _scrub(self, scrubber: Scrubber, block: int) -> int | None:
        connection = self._writer.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            pages, following = scrubber.run(block)
            if pages and self._writer.sharing is not None:
                # A commit, so that other processes let go of the pages that they have in memory. It changes a page that
                # holds the schema alone.
                connection.pragma("user_version", connection.pragma("user_version") + 1)
                connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if pages:
            # A cached page still has its gap, and would bring it back with its next change.
            connection.execute("PRAGMA shrink_memory")
        return following


def _nothing() -> None:
    return
