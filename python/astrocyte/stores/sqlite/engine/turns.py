"""Locks of the processes that share a data directory, on files in it. The system releases those of a dead process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType


class Turn:
    """A lock that one process holds at a time; used by one thread of each.

    SQLite's own lock is asked again at growing intervals, up to a tenth of a second. Here the system wakes who waits.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def taken(self) -> bool:
        """Take the lock for `release`, unless another process has it."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let go of what `taken` took."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)
