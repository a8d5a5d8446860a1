"""The files of a data directory: the database, the lock that makes it one process's, the ballast, others' names."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import apsw

from astrocyte.errors import StoreLocked

DATABASE = "astrocyte.db"
LOCK = "astrocyte.lock"
BALLAST = "astrocyte.ballast"
QUOTAS = "quotas.db"
CHECKPOINTS = "checkpoints"

# What rebuilding writes at once where the system cannot reserve space.
BLOCK_BYTES = 1 << 20


class DirectoryLock:
    """An exclusive lock on a data directory, held until it is released or the process dies."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreLocked(
                f"the data directory {str(directory)!r} is in use by another process (pid {owner}); "
                "stop it, or give this one another data_dir",
                metadata={"data_dir": str(directory), "pid": owner},
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another process open the directory. The file stays: removing it would race with the next owner."""
        os.close(self._fd)


class Ballast:
    """Space held back, so that forgetting and erasing still work on a full disk.

    Both need room for the write-ahead log before anything is freed. When they meet a full disk the ballast is released
    to them; until it can be built again, other writes are refused.
    """

    def __init__(self, path: Path | None, size: int) -> None:
        self._path = path
        self._size = size if path is not None else 0

    @property
    def held(self) -> bool:
        """True if the space is there to be released."""
        if self._path is None or self._size == 0:
            return True
        try:
            return self._path.stat().st_size >= self._size
        except FileNotFoundError:
            return False

    def release(self) -> bool:
        """Give the space back to the disk; False when there was none to give."""
        if self._path is None or self._size == 0 or not self._path.exists():
            return False
        self._path.unlink()
        return True

    def build(self) -> bool:
        """Take the space; False when the disk has not enough."""
        if self.held or self._path is None:
            return True
        try:
            with self._path.open("wb") as file:
                _reserve(file.fileno(), self._size)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        return True


def _reserve(fd: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    block = bytes(BLOCK_BYTES)
    for start in range(0, size, BLOCK_BYTES):
        os.write(fd, block[: size - start])


def create_private(path: Path) -> None:
    """Make a file that only its owner may read, unless it is there; SQLite gives its other files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def note_unclean(connection: apsw.Connection, *, unclean: bool) -> None:
    """Note that rows were erased, or that the files are clean."""
    if bool(connection.pragma("user_version")) != unclean:
        connection.pragma("user_version", int(unclean))
