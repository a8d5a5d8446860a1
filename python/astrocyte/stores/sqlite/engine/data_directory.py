"""The files of a data directory: names, the lock and the ballast."""

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
# Of several processes; that of one are in its memory.
RATES = "rates.db"
AGENT_MEMORY = "agent_memory.db"
CHECKPOINTS = "checkpoints"
# Refresh tokens of proxy sources.
SOURCE_TOKENS = "source_tokens"

# What rebuilding writes at once where the system cannot reserve space.
BLOCK_BYTES = 1 << 20


class DirectoryLock:
    """A lock on a data directory, held until it is released or the process dies.

    The directory itself is locked, so that the lock survives the removal of the lock file. The file names the owner,
    and is locked as well for versions that lock nothing else.

    Args:
        directory: The data directory.
        shared: Allow other readers; the directory need not be writable.

    Raises:
        StoreLocked: Another process owns the directory.
        OSError: The lock file cannot be opened.
    """

    def __init__(self, directory: Path, *, shared: bool = False) -> None:
        self._fds = [os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        path = directory / LOCK
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            if not shared or path.exists():
                flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
                # A FIFO in its place must not be waited for.
                self._fds.append(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
            for fd in self._fds:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
            if not shared:
                os.ftruncate(self._fds[-1], 0)
                os.pwrite(self._fds[-1], str(os.getpid()).encode(), 0)
        except BlockingIOError:
            owner = os.read(self._fds[-1], 32).decode("ascii", "replace").strip() if len(self._fds) > 1 else ""
            self.release()
            raise StoreLocked(
                f"the data directory {str(directory)!r} is in use by another process (pid {owner or 'unknown'}); "
                "stop it, or give this one another data_dir",
                metadata={"data_dir": str(directory), "pid": owner or "unknown"},
            ) from None
        except OSError:
            self.release()
            raise

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The files that hold the lock: a process that inherits them holds it too."""
        return tuple(self._fds)

    def release(self) -> None:
        """Let another process open the directory. The file stays: removing it would race with the next owner."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


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
            # Without blocking: a FIFO in its place has no reader.
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            try:
                _reserve(fd, self._size)
            finally:
                os.close(fd)
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
    """Sync a directory, so that its entries are durable."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def note_unclean(connection: apsw.Connection, *, unclean: bool) -> None:
    """Note that rows were erased, or that the files are clean."""
    if bool(connection.pragma("user_version")) != unclean:
        connection.pragma("user_version", int(unclean))
