"""A disk that counts what is asked of it, fails when told to, and can lose its power.

It is a layer over SQLite's own file access. What was written since the last sync of a file may be there after a power
cut, or not, or in part, in any order.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

_NAMES = (f"faulty-{number}" for number in itertools.count())

# Called with what is done ("write" or "sync") and to which kind of file ("wal", "main", "other"); raises to fail it.
Fault = Callable[[str, str], None]


@dataclass
class _Contents:
    """A file as it is for certain, and what was done to it since: (offset, bytes), or (size, None) for a cut."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.durable, offset, data)
        self.pending.clear()

    def after_power_cut(self, chosen: random.Random) -> bytes:
        image = bytearray(self.durable)
        survivors = [one for one in self.pending if chosen.random() < 0.5]
        chosen.shuffle(survivors)
        for offset, data in survivors:
            torn = data is not None and chosen.random() < 0.25
            _apply(image, offset, data[: len(data) // 2] if torn and data is not None else data)
        return bytes(image)


def _apply(image: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del image[offset:]
        return
    image.extend(bytes(max(0, offset - len(image))))
    image[offset : offset + len(data)] = data


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
        self._files: dict[str, _Contents] = {}
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's
        super().xDelete(filename, syncdir)
        self._files.pop(filename, None)

    def contents(self, name: str | apsw.URIFilename | None) -> _Contents:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        return self._files.setdefault(path, _Contents())

    def cut_power(self, directory: Path, chosen: random.Random) -> None:
        """Write the files as a power cut at this instant might leave them."""
        directory.mkdir()
        for path, contents in self._files.items():
            (directory / Path(path).name).write_bytes(contents.after_power_cut(chosen))

    def note(self, action: str, kind: str) -> None:
        self.counts[action, kind] += 1
        if self.fault is not None:
            self.fault(action, kind)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._kind = _kind(flags[0])
        self._contents = disk.contents(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's
        self._disk.note("write", self._kind)
        super().xWrite(data, offset)
        self._contents.pending.append((offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's
        self._disk.note("sync", self._kind)
        super().xSync(flags)
        self._contents.sync()

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's
        super().xTruncate(newsize)
        self._contents.pending.append((newsize, None))


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
