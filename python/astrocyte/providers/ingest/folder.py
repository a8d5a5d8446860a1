"""Driver ``folder``: the text files of a local folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from astrocyte.errors import FailedPrecondition
from astrocyte.providers.ingest.fields import clean, label, values
from astrocyte.providers.ingest.protocols import PollItem, PollPage
from astrocyte.providers.options import read_options

# A folder of more is no folder of documents.
MOST_FILES = 100_000
MOST_DEPTH = 32
# Of the files of one page in memory.
MOST_PAGE_BYTES = 32 << 20
# Times of files are as exact as this on all common file systems: a file that changed since may change again unseen.
CLOCK_NS = 2_000_000_000
# A symbolic link in the place of a file or folder is not followed, and a pipe does not block.
FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
FOLDER_FLAGS = FILE_FLAGS | getattr(os, "O_DIRECTORY", 0)
Pattern = Annotated[str, Field(min_length=1, max_length=256)]
# Times of change in nanoseconds, of the inode and of the content, then size and inode. The first also tells a file that
# keeps the time of another one, and changed permissions.
Stamp = tuple[int, int, int, int]


class FolderOptions(BaseModel):
    """Options of the driver, from the keys of the source and its ``options``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    patterns: tuple[Pattern, ...] = Field(("*.md", "*.markdown", "*.txt", "*.json"), min_length=1)
    hidden: bool = False
    settle_seconds: float = Field(2.0, ge=0.0, le=3_600.0)
    max_file_bytes: int = Field(1_048_576, ge=1, le=16_777_216)


@dataclass(frozen=True, slots=True)
class _Found:
    """A file that fits the patterns; ``linked`` where it is a symbolic link, or else no file."""

    path: str
    stamp: Stamp
    linked: bool


class FolderFiles:
    """Implements `PollDriver`; see there for what each method does.

    A file is read if a time, its size or its inode changed since it was read last, and its version is the digest of its
    bytes. What was read is remembered in this process only: a new one reads all files once, and knows their versions.

    Args:
        options: Of the driver.
        clock: Nanoseconds since 1970.
    """

    def __init__(self, options: FolderOptions, clock: Callable[[], int] = time.time_ns) -> None:
        self._options = options
        self._clock = clock
        self._root = options.path
        self._seen: dict[str, Stamp] = {}

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._options.path.absolute())

    async def open(self) -> None:
        """Find the folder, which a symbolic link of the settings may name.

        Raises:
            OSError: There is none.
        """
        self._seen = {}
        self._root = await asyncio.to_thread(self._options.path.resolve, strict=True)

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """Files that changed, in the order of their paths."""
        found = await asyncio.to_thread(self._scan)
        self._seen = {path: stamp for path, stamp in self._seen.items() if path in found}
        changed = [file for path, file in sorted(found.items()) if self._seen.get(path) != file.stamp]
        while changed:
            items, read = await asyncio.to_thread(self._read, changed, limit)
            yield PollPage([item for item in items if item is not None], cursor, items.count(None))
            # What was handed on is durable by now.
            recent = self._clock() - CLOCK_NS
            self._seen |= {path: stamp for path, stamp in read if stamp[0] < recent}
            changed = changed[len(items) :]

    async def close(self) -> None:
        """Nothing to release."""

    def _scan(self) -> dict[str, _Found]:
        """The files by their paths, but those that are being written."""
        now, settle = self._clock(), round(self._options.settle_seconds * 1e9)
        found: dict[str, _Found] = {}
        for file in self._walk("", MOST_DEPTH):
            if not 0 <= now - file.stamp[0] < settle:
                found[file.path] = file
            if len(found) > MOST_FILES:
                raise FailedPrecondition(f"the folder has more than {MOST_FILES:,} files; set patterns")
        return found

    def _walk(self, inside: str, depth: int) -> Iterator[_Found]:
        try:
            folder = self._open_folder(inside)
        except OSError:
            if not inside:
                raise
            # It was deleted, or became a link, since its name was read.
            return
        try:
            with os.scandir(folder) as scan:
                entries = [(entry.name, _state(entry)) for entry in scan]
        finally:
            os.close(folder)
        for name, state in entries:
            path = f"{inside}/{name}" if inside else name
            if state is None or (name.startswith(".") and not self._options.hidden):
                continue
            if stat.S_ISDIR(state.st_mode):
                if depth:
                    yield from self._walk(path, depth - 1)
            elif any(PurePosixPath(path).match(pattern) for pattern in self._options.patterns):
                yield _Found(path, _stamp(state), linked=not stat.S_ISREG(state.st_mode))

    def _read(self, files: list[_Found], limit: int) -> tuple[list[PollItem | None], list[tuple[str, Stamp]]]:
        """Items of the first files, None in place of what cannot be read; and the stamps of those."""
        items: list[PollItem | None] = []
        stamps: list[tuple[str, Stamp]] = []
        total = 0
        for file in files[:limit]:
            data, stamp = self._data(file)
            items.append(None if data is None else _item(file.path, data, stamp))
            stamps.append((file.path, stamp))
            total += 0 if data is None else len(data)
            if total > MOST_PAGE_BYTES:
                break
        return items, stamps

    def _data(self, file: _Found) -> tuple[bytes | None, Stamp]:
        """The bytes of a file and its stamp; None for a link, a file that is too large, or one that is gone."""
        if file.linked:
            return None, file.stamp
        inside, _, name = file.path.rpartition("/")
        try:
            folder = self._open_folder(inside)
            try:
                opened = os.open(name, FILE_FLAGS, dir_fd=folder)
            finally:
                os.close(folder)
            with os.fdopen(opened, "rb") as handle:
                state = os.fstat(handle.fileno())
                # It may grow while it is read.
                data = handle.read(self._options.max_file_bytes + 1) if stat.S_ISREG(state.st_mode) else None
        except OSError:
            return None, file.stamp
        if data is None or len(data) > self._options.max_file_bytes:
            return None, file.stamp
        return data, _stamp(state)

    def _open_folder(self, path: str) -> int:
        """Open a folder below the root, one name after the other, so that no link is followed."""
        opened = os.open(self._root, FOLDER_FLAGS)
        for name in filter(None, path.split("/")):
            try:
                below = os.open(name, FOLDER_FLAGS, dir_fd=opened)
            finally:
                os.close(opened)
            opened = below
        return opened


def _state(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _stamp(state: os.stat_result) -> Stamp:
    return state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_ino


def _item(path: str, data: bytes, stamp: Stamp) -> PollItem | None:
    """A file as an item; None if its name or its content is no text."""
    try:
        text = clean(data.decode("utf-8-sig"))
        path.encode()
        modified = datetime.fromtimestamp(stamp[1] / 1e9, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
    if b"\0" in data or not path.isprintable():
        return None
    parsed: object = None
    if path.lower().endswith(".json"):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
    document = {"path": path, "name": PurePosixPath(path).name, "text": text, "modified_at": modified, "json": parsed}
    message = {"content": text, "source": label(path), "occurred_at": modified, "metadata": values(path=path)}
    return PollItem(path, hashlib.sha256(data).hexdigest(), document, message)


def create(options: Mapping[str, Any]) -> FolderFiles:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return FolderFiles(read_options(FolderOptions, options, "sources.options"))
