"""Translates SQLite's errors for the layers above."""

from __future__ import annotations

import errno
from enum import Enum, auto

import apsw
import structlog

from astrocyte.errors import AstrocyteError, DiskFull, RateLimited, StoreError, frames

log = structlog.get_logger(__name__)

# Seconds after which a caller may try again: a lock of another process, or a queue, is gone by then or worth a look.
RETRY_AFTER_SECONDS = 1.0

# The write-ahead index could not grow: reported as an I/O error, but it is want of space.
_NO_SPACE = {apsw.SQLITE_FULL, apsw.SQLITE_IOERR_SHMSIZE}


class Failure(Enum):
    """The answer to a failed statement."""

    FULL = auto()
    BUSY = auto()
    BROKEN = auto()
    OTHER = auto()


# What this package's own file access meets; any other error of the system came from elsewhere.
_BY_ERRNO = {errno.ENOSPC: Failure.FULL, errno.EDQUOT: Failure.FULL, errno.EIO: Failure.BROKEN}


def classify(error: BaseException) -> Failure:
    """The kind of a failure. ``BROKEN`` means that the file or the disk can no longer be trusted."""
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    if isinstance(error, apsw.Error):
        # Absent on errors that APSW itself raises.
        code = getattr(error, "extendedresult", -1)
        if isinstance(error, apsw.FullError) or code in _NO_SPACE:
            return Failure.FULL
        if isinstance(error, (apsw.BusyError, apsw.LockedError)):
            return Failure.BUSY
        if isinstance(error, (apsw.IOError, apsw.CorruptError, apsw.NotADBError)):
            return Failure.BROKEN
    return Failure.OTHER


def report(event: str, error: BaseException, **fields: object) -> None:
    """Log an error by its type and place. A traceback could show the values of variables, which are content."""
    log.error(event, error=type(error).__name__, frames=frames(error), **fields)


def translate(error: BaseException) -> AstrocyteError:
    """The error for the caller of a write that was not committed, or of a read."""
    if isinstance(error, AstrocyteError):
        return error
    kind = classify(error)
    if kind is Failure.FULL:
        return DiskFull("the disk of the data directory is full; nothing was changed; free space and try again")
    if kind is Failure.BUSY:
        return RateLimited(
            "another process holds the lock of the database; nothing was changed; try again",
            retry_after=RETRY_AFTER_SECONDS,
        )
    # The text of SQLite's errors names tables and columns, never values.
    detail = str(error) if isinstance(error, apsw.Error) else type(error).__name__
    return StoreError(f"the database failed ({detail}); nothing was changed", metadata={"cause": type(error).__name__})
