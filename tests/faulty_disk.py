"""A disk that counts what is asked of it, and fails when told to: a layer over SQLite's own file access."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

_NAMES = (f"faulty-{number}" for number in itertools.count())

# Called with what is done ("write" or "sync") and to which kind of file ("wal", "main", "other"); raises to fail it.
Fault = Callable[[str, str], None]


def _kind(flags: int) -> str:
    if flags & apsw.SQLITE_OPEN_WAL:
        return "wal"
    return "main" if flags & apsw.SQLITE_OPEN_MAIN_DB else "other"


class FaultyDisk(apsw.VFS):
    """Registered under ``name`` while it lives."""

    def __init__(self) -> None:
        self.name = next(_NAMES)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.fault: Fault | None = None
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's
        return _File(self, name, flags)

    def note(self, action: str, kind: str) -> None:
        self.counts[action, kind] += 1
        if self.fault is not None:
            self.fault(action, kind)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._kind = _kind(flags[0])
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's
        self._disk.note("write", self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's
        self._disk.note("sync", self._kind)
        super().xSync(flags)


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        disk.fault = None
        disk.unregister()


def no_space(action: str, kind: str) -> None:
    """Every write of the log fails as on a full disk."""
    if action == "write" and kind == "wal":
        raise apsw.FullError("no space left on device")


def failing_sync(action: str, kind: str) -> None:
    """Every sync of the log fails as on a broken disk."""
    if action == "sync" and kind == "wal":
        raise apsw.IOError("input/output error")
