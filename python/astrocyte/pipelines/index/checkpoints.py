"""Checkpoints of indexes: storage, schedule of writes, and removal.

A bank's checkpoints lie in a directory of the bank's key, one directory for each generation. A generation is written
under another name, read back, and then renamed; what has its name is whole, unless the disk damages it, which the core
finds out before it reads it. Then the one before is used, and at last the rows: a checkpoint saves time, and nothing
else. Hits are read back from the rows in any case.

A checkpoint knows its position and, by a digest, the change there, so that it is not taken for one of a database that
was put back from a copy and went on otherwise. Every change after the position is replayed.

A small bank is read from its rows at the start. But where banks come and go for want of memory, one that was evicted is
back from a checkpoint in an eighth of the time. So it gets one then, if not too many wait for that: one that is not
forced to the disk, and of which there is one generation.

One is written at a time, by a thread of its own, while the bank goes on. Who erases holds checkpoints off for that
long and has those that are there removed first, so that none outlives what it was made of; `sweep` removes those that a
purge or a crash leaves behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TypeVar

import structlog

from astrocyte.config.loading.environment import package_version
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Core, IndexOptions, Label, describe_checkpoint, failpoint, write_checkpoint
from astrocyte.errors import AstrocyteError, StoreError, frames
from astrocyte.model import Bank, Change, ChangeKind
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.rows import RECIPE
from astrocyte.stores.protocols import MemoryStore

# A generation's directory is this and its number; while it is written, it ends in the other.
GENERATION = "g"
UNFINISHED = ".tmp"
# While a bank is used, a checkpoint is written when this share of its rows has changed: to replay them takes a quarter
# of the time of reading all rows, and a growing bank is written about five times over.
GROWN_SHARE = 0.25
# When it is let go of, it is cheaper to write a checkpoint than to replay more than this share at the next start.
LEFT_SHARE = 0.02
# A disk with less room than this many times the index gets no checkpoint.
ROOM = 2
# How long a checkpoint may resist its removal: one that is being written makes a file now and then.
REMOVE_SECONDS = 10.0
# Changes read at once.
CHANGES_AT_ONCE = 10_000

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Checkpoints:
    """The checkpoints of a data directory. Safe to use from any thread.

    Args:
        folder: Where they lie; it is made with the first.
        store: Whose banks.
        core: What reads them.
        rows: Rows from which on a bank is large: worth a checkpoint at any time.
        evicted_rows: Rows from which on a smaller one is worth one when it is evicted.
        generations: How many are kept of a large bank.
    """

    def __init__(
        self, folder: Path, store: MemoryStore, core: Core, *, rows: int, evicted_rows: int, generations: int
    ) -> None:
        self._folder = folder
        self._store = store
        self._core = core
        # Smaller banks have no checkpoint unless they are evicted.
        self.rows = rows
        self._evicted_rows = evicted_rows
        self._generations = generations
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="astrocyte-checkpoint")
        # Of several processes on a data directory, one writes.
        self.writes = not store.shared
        # Guards what follows, and the names of directories.
        self._lock = threading.Lock()
        # Position of the newest checkpoint of each bank, or of the last try.
        self._positions: dict[int, int] = {}
        # Rows of graphs and of indexes of tantivy that the last try, which failed, did not save.
        self._unsaved: dict[int, int] = {}
        # The last one that was queued: one thread writes them in order.
        self._last: Future[None] | None = None
        # Bytes of the indexes that wait to be written, by bank.
        self._waiting: dict[int, int] = {}
        self._held: Counter[int] = Counter()
        # The directory that is being written.
        self._writing: Path | None = None

    def load(self, bank: Bank, options: IndexOptions) -> CoreBank | None:
        """The bank as its newest good checkpoint has it, or None; what is no good is removed.

        Args:
            bank: Which one.
            options: Language of its Latin words, and tier.
        """
        for generation in self._of(bank.key):
            start = monotonic()
            try:
                position, note = _described(generation)
                if position > bank.position or not self._known(bank, note):
                    raise StoreError("it is of another history than the database")
                core = self._core.load(str(generation), bank.dimensions, self._label(bank), *options)
            except AstrocyteError as error:
                # The reason names files of the checkpoint and numbers, no content.
                log.warning("checkpoint_refused", bank_key=bank.key, generation=generation.name, reason=str(error))
                _remove(generation)
                continue
            self._positions[bank.key] = position
            self._unsaved.pop(bank.key, None)
            log.log(
                self._level(core.stats()["rows"]),
                "checkpoint_loaded",
                bank_key=bank.key,
                position=position,
                behind=bank.position - position,
                seconds=round(monotonic() - start, 3),
            )
            return core
        return None

    def outdate(self, bank_key: int) -> None:
        """Schedule a new checkpoint of the bank: its vectors changed, and the checkpoint on disk is invalid."""
        self._positions.pop(bank_key, None)

    def refuse(self, bank: Bank) -> None:
        """Remove the bank's checkpoints, because they cannot be loaded."""
        shutil.rmtree(self._path(bank.key), ignore_errors=True)
        self._positions.pop(bank.key, None)

    def due(self, bank_key: int, index: BankIndex, share: float) -> bool:
        """True if a bank must be written: it is large, and this share of it has changed since, or got graphs."""
        return self.writes and not index.small(self.rows - 1) and self._changed(bank_key, index, share)

    def due_evicted(self, bank_key: int, index: BankIndex, room: int) -> bool:
        """True if an evicted bank must be written: it has changed, and a checkpoint makes its next load faster.

        A small bank is not written while the banks that wait hold more than ``room`` bytes: it would keep their memory.
        """
        if not self.writes:
            return False
        if index.small(self.rows - 1):
            with self._lock:
                waiting = sum(self._waiting.values())
            if index.small(self._evicted_rows - 1) or waiting > room:
                return False
        return self._changed(bank_key, index, LEFT_SHARE)

    def _changed(self, bank_key: int, index: BankIndex, share: float) -> bool:
        """True if this share of a bank has changed since it was written, and it is not queued for writing."""
        if bank_key in self._waiting:
            return False
        written, rows = self._positions.get(bank_key), index.row_count * share
        if written is None or index.core.position - written > rows:
            return True
        return _unsaved(index.core) - self._unsaved.get(bank_key, 0) > rows

    def write(self, bank: Bank, core: CoreBank, size: int = 0) -> Future[None]:
        """Write a checkpoint in the background; the bank may change or be evicted meanwhile.

        ``size`` are the bytes that nobody else keeps.
        """
        with self._lock:
            self._waiting[bank.key] = size
        self._last = self._thread.submit(self._write, bank, core)
        return self._last

    def hold(self, bank_key: int) -> None:
        """Remove a bank's checkpoints, and write none until as many calls of `release`."""
        with self._lock:
            self._held[bank_key] += 1
            self._positions.pop(bank_key, None)
        remove_directory(self._path(bank_key))

    def release(self, bank_key: int) -> None:
        """Allow checkpoints of a bank again."""
        with self._lock:
            self._held -= Counter([bank_key])

    def discard(self, bank_key: int) -> None:
        """Remove the checkpoints of a deleted bank. If that fails, `sweep` tries again."""
        try:
            # For ever: its key does not come back.
            self.hold(bank_key)
        except StoreError as error:
            log.warning("checkpoint_left", bank_key=bank_key, reason=error.reason)

    def sweep(self) -> None:
        """Remove unfinished files of a crash, and checkpoints that are of deleted banks or hold erased data."""
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if not (path.name.isdecimal() and path.is_dir()):
                continue
            bank = self._store.bank_of_key(int(path.name))
            if bank is None:
                remove_directory(path)
                continue
            for generation in path.iterdir():
                with self._lock:
                    unfinished = generation.name.endswith(UNFINISHED) and generation != self._writing
                whole = _number(generation) and not generation.name.endswith(UNFINISHED)
                if unfinished or (whole and self._stale(bank, generation)):
                    remove_directory(generation)

    def wait(self) -> None:
        """Return when what was queued before is written."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Finish what waits."""
        self._thread.shutdown(wait=True)

    def _write(self, bank: Bank, core: CoreBank) -> None:
        try:
            self._write_now(bank, core)
        except Exception as error:  # noqa: BLE001 - it is a copy: whatever went wrong, nothing is lost
            log.warning("checkpoint_failed", bank_key=bank.key, error=type(error).__name__, frames=frames(error))
        finally:
            with self._lock:
                self._waiting.pop(bank.key, None)
                self._writing = None

    def _write_now(self, bank: Bank, core: CoreBank) -> None:
        start = monotonic()
        position = core.position
        note = self._note(bank, position)
        stats = core.stats()
        large = stats["rows"] >= self.rows
        with self._lock:
            if self._held[bank.key] or note is None:
                return
            # Not again before it has grown once more, whatever comes of this.
            self._positions[bank.key] = position
            self._unsaved[bank.key] = _unsaved(core)
            folder = self._path(bank.key)
            for made in (self._folder, folder):
                made.mkdir(mode=0o700, exist_ok=True)
            if shutil.disk_usage(folder).free < ROOM * (stats["bytes"] + stats["bytes_scratch"]):
                log.warning("checkpoint_skipped", bank_key=bank.key, reason="the disk has too little room")
                return
            number = max((_number(one) for one in folder.iterdir()), default=0) + 1
            unfinished = self._writing = folder / f"{GENERATION}{number}{UNFINISHED}"
            unfinished.mkdir(mode=0o700)
        try:
            written = write_checkpoint(core, str(unfinished), self._label(bank, note), durable=large)
            failpoint("checkpoint.publish")
            with self._lock:
                # What was held off meanwhile has lost its directory, or loses it now. And an evicted index that had to
                # wait does not know of an erasure that has come and gone since.
                if self._held[bank.key] or self._erased_since(bank, written.position):
                    return
                unfinished.rename(folder / f"{GENERATION}{number}")
                del self._unsaved[bank.key]
            if large:
                _sync(folder)
            failpoint("checkpoint.renamed")
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        for old in self._of(bank.key)[self._generations if large else 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        failpoint("checkpoint.pruned")
        log.log(
            self._level(stats["rows"]),
            "checkpoint_written",
            bank_key=bank.key,
            position=written.position,
            bytes=written.bytes,
            seconds=round(monotonic() - start, 3),
            longest_hold_ms=round(written.longest_hold * 1e3, 3),
        )

    def _level(self, rows: int) -> int:
        """The log level of a checkpoint: small banks come and go many times a second."""
        return logging.INFO if rows >= self.rows else logging.DEBUG

    def _stale(self, bank: Bank, generation: Path) -> bool:
        """True if the checkpoint may hold data that was erased since it was written."""
        try:
            position, _ = _described(generation)
        except AstrocyteError:
            return True
        return self._erased_since(bank, position)

    def _erased_since(self, bank: Bank, position: int) -> bool:
        """True if an index of that position may hold data that was erased later."""
        # What was forgotten before had left the index by then.
        forgotten: set[str] = set()
        for change in self._changes(bank, position):
            if change.kind is ChangeKind.FORGOTTEN:
                forgotten.add(change.memory_id)
            elif change.kind is ChangeKind.ERASED and change.memory_id in forgotten:
                return True
        return False

    def _changes(self, bank: Bank, after: int) -> Iterator[Change]:
        while changes := self._store.changes(bank, after=after, limit=CHANGES_AT_ONCE):
            yield from changes
            after = changes[-1].position

    def _of(self, bank_key: int) -> list[Path]:
        """The bank's generations, newest first."""
        try:
            found = [path for path in self._path(bank_key).iterdir() if not path.name.endswith(UNFINISHED)]
        except OSError:
            return []
        return sorted((path for path in found if _number(path)), key=_number, reverse=True)

    def _path(self, bank_key: int) -> Path:
        return self._folder / str(bank_key)

    @staticmethod
    def _label(bank: Bank, note: str = "") -> Label:
        made = round(bank.created_at.timestamp() * 1_000)
        recipe = f"{package_version()}/{RECIPE}"
        return Label(f"{bank.key}-{made}", bank.embedding_model, recipe, note)

    def _note(self, bank: Bank, position: int) -> str | None:
        """A position and a digest of the change there; None if the change log lacks it."""
        changes = self._store.changes(bank, after=position - 1, limit=1)
        if not changes or changes[0].position != position:
            return None
        change = changes[0]
        said = f"{change.kind.value} {change.memory_id} {change.changed_at.timestamp():.3f}"
        return f"{position} {hashlib.blake2b(said.encode(), digest_size=16).hexdigest()}"

    def _known(self, bank: Bank, note: str) -> bool:
        """True if the database has the change that the note names."""
        position = note.split(" ", 1)[0]
        return position.isdecimal() and self._note(bank, int(position)) == note


async def without_checkpoints(checkpoints: Checkpoints, bank: Bank, work: Callable[[], Awaitable[T]]) -> T:
    """Run an erasure in a bank that has no checkpoint from before its start until its end.

    A caller that gives up does not stop the work, and so not what holds checkpoints off.

    Raises:
        StoreError: A checkpoint cannot be removed; nothing was done.
    """

    async def erase() -> T:
        try:
            await asyncio.get_running_loop().run_in_executor(None, checkpoints.hold, bank.key)
            return await work()
        finally:
            checkpoints.release(bank.key)

    task = asyncio.ensure_future(erase())
    # Nobody else may be left to look at its failure.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def remove_directory(path: Path) -> None:
    """Remove checkpoints, even while one is being written.

    Raises:
        StoreError: They cannot be removed.
    """
    deadline = monotonic() + REMOVE_SECONDS
    while path.exists():
        _remove(path)
        if monotonic() > deadline:
            raise StoreError(
                "checkpoints of indexes cannot be removed, so nothing was erased; "
                "make the directory `checkpoints` of the data directory writable and try again"
            )


def _unsaved(core: CoreBank) -> int:
    """Rows of graphs and of indexes of tantivy that the newest checkpoint does not have."""
    return core.unsaved_graph_rows + core.unsaved_word_rows


def _remove(path: Path) -> None:
    """Remove a directory, or what is in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _described(generation: Path) -> tuple[int, str]:
    """Return position and note of a checkpoint that has nothing but regular files: opening a FIFO waits for its writer.

    Raises:
        StoreError: It has something else, or cannot be read.
    """
    try:
        entries = list(os.scandir(generation))
    except OSError as error:
        raise StoreError(f"its directory cannot be read ({type(error).__name__})") from error
    if not all(entry.is_file(follow_symlinks=False) for entry in entries):
        raise StoreError("it contains something else than regular files")
    return describe_checkpoint(str(generation))


def _number(path: Path) -> int:
    """The generation's number; 0 for another file."""
    digits = path.name.removeprefix(GENERATION).removesuffix(UNFINISHED)
    return int(digits) if digits.isdecimal() and digits != path.name else 0


def _sync(folder: Path) -> None:
    """Sync a directory, so that its entries are durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
