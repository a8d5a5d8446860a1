"""Segments of usearch and tantivy come back after a restart; an erasure leaves nothing in a file of theirs."""

import asyncio
import contextlib
import gc
import hashlib
import os
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Forget, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import write_checkpoint
from astrocyte.model import Bank, Caller, Embedding, ForgetSelector, RecallQuery, RetainItem
from astrocyte.pipelines.index import checkpoints
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS

ME = Caller()
MEMORIES = 200
DIMENSIONS = 8
PATIENCE = 30.0
HOUR = 3_600_000
# Its bytes in a graph of usearch are found nowhere else.
SECRET = (1.0, 0.5, -0.25, 0.125, -0.0625, 0.75, -0.375, 0.3125)


def opened(folder: Path, clock: list[int] | None = None, **index: Any) -> App:
    """An application whose banks of a hundred rows get segments of both libraries."""
    index = {"checkpoint_rows": 1, "graph_rows": 100, "scan_rows": 1, "sampling": 0.0, "build_share": 1.0, **index}
    settings = Settings.from_mapping(
        {
            "data_dir": str(folder),
            "index": {"dense": "usearch", "lexical": "tantivy", **index},
            "signal_quality": {"dedup": {"enabled": False}},
            "forget": {"purge_after_days": 1},
        }
    )
    return App(settings) if clock is None else App(settings, clock=lambda: clock[0])


def given(values: tuple[float, ...]) -> Embedding:
    return Embedding("given", len(values), struct.pack(f"<{len(values)}f", *values))


QUERY = RecallQuery("tea, note 7", "b", include_trace=True, embedding=given(tuple(map(float, range(1, 9)))))


async def fill(app: App) -> list[str]:
    """Memory ids of notes with vectors of their own; the sixth has the secret one."""
    await app.gate.call(ME, CreateBank("b", embedding_model="given", dimensions=DIMENSIONS))
    items = []
    for number in range(MEMORIES):
        vector = [((number + 3) * (at + 1) * 7919 % 1000) / 500 - 1 for at in range(DIMENSIONS)]
        values = SECRET if number == 5 else tuple(vector)
        text = f"note {number} about {('tea', 'jam')[number % 2]}"
        items.append(RetainItem(text, embedding=given(values)))
    return [one.memory_id or "" for one in await app.gate.call(ME, BatchRetain("b", items))]


def levels(vector: tuple[float, ...]) -> bytes:
    """The bytes by which usearch knows a vector."""
    largest = max(abs(one) for one in vector)
    return struct.pack(f"{len(vector)}b", *(round(one * 127 / largest) for one in vector))


async def plan_of(app: App) -> str:
    result = await app.gate.call(ME, Recall(QUERY))
    assert result.trace is not None
    return result.trace.plan or ""


async def index_of(app: App) -> CoreBank:
    await app.gate.call(ME, Recall(QUERY))
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank("b")))
    assert index is not None
    return index.core


async def with_segments(app: App) -> CoreBank:
    """The bank's index once both libraries search it."""
    core = await index_of(app)
    async with asyncio.timeout(PATIENCE):
        while "tantivy" not in (plan := await plan_of(app)) or "usearch" not in plan:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    return core


def mapped(folder: Path) -> frozenset[bytes]:
    """Digests of the files without names below a folder that this process has mapped."""
    digests = set()
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
            if str(folder) in line and line.endswith("(deleted)"):
                start, end = (int(one, 16) for one in line.split()[0].split("-"))
                # One that was unmapped meanwhile cannot be read.
                with contextlib.suppress(OSError):
                    digests.add(hashlib.sha256(os.pread(memory.fileno(), end - start, start)).digest())
    return frozenset(digests)


async def collected(folder: Path) -> None:
    """Wait until applications that were closed have let go of their files."""
    async with asyncio.timeout(PATIENCE):
        while mapped(folder):
            gc.collect()
            await asyncio.sleep(0.01)


def files(folder: Path) -> list[bytes]:
    """The contents of all files of the index below a data directory, of those without names too."""
    # Not the database: closing a descriptor of it would drop this process's locks on it.
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.parent != folder]
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(descriptor.readlink())
            if target.startswith(str(folder)) and target.endswith("(deleted)"):
                contents.append(descriptor.read_bytes())
    return contents


def segments(folder: Path) -> set[str]:
    return {path.name for path in (folder / CHECKPOINTS).glob("*/g*/*") if path.name.startswith(("graph", "postings"))}


async def made(folder: Path) -> list[str]:
    """A data directory whose checkpoint has segments: memory ids."""
    app = opened(folder)
    ids = await fill(app)
    await with_segments(app)
    await app.close()
    assert segments(folder) == {"graph0", "postings0"}
    return ids


async def test_a_restart_opens_segments_and_builds_none(tmp_path: Path) -> None:
    await made(tmp_path)
    app = opened(tmp_path)
    core = await with_segments(app)
    # What was built would not be saved.
    assert (core.unsaved_graph_rows, core.unsaved_word_rows) == (0, 0)
    assert core.stats()["bytes_mapped"] > 0
    await app.close()


async def test_damaged_segments_are_built_again(tmp_path: Path) -> None:
    await made(tmp_path)
    for path in (tmp_path / CHECKPOINTS).glob("*/g*/*"):
        if path.name.startswith(("graph", "postings")):
            path.write_bytes(path.read_bytes()[:-1] + b"!")
    app = opened(tmp_path)
    core = await with_segments(app)
    assert (core.unsaved_graph_rows, core.unsaved_word_rows) == (MEMORIES, MEMORIES)
    await app.close()


async def test_an_erasure_leaves_nothing_in_files_of_segments(tmp_path: Path) -> None:
    ids = await made(tmp_path)
    await collected(tmp_path)
    app = opened(tmp_path)
    await with_segments(app)
    assert any(levels(SECRET) in content for content in files(tmp_path))
    before = mapped(tmp_path)
    assert len(before) == 2
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(ids[5],)), compliance=True, reason="asked"))
    assert not any(levels(SECRET) in content for content in files(tmp_path))
    # The vector is overwritten in the file of the graph, and the index of tantivy with its words is dropped.
    assert not mapped(tmp_path) & before
    await with_segments(app)
    await app.close()
    assert segments(tmp_path) == {"graph0", "postings0"}
    del app
    await collected(tmp_path)
    again = opened(tmp_path)
    assert (await with_segments(again)).stats()["memories"] == MEMORIES - 1
    assert not any(levels(SECRET) in content for content in files(tmp_path))
    await again.close()


async def test_segments_that_are_built_while_a_checkpoint_is_written_are_saved_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, finish, write = threading.Event(), threading.Event(), write_checkpoint

    def slow(*arguments: Any, **options: Any) -> Any:
        written = write(*arguments, **options)
        copied.set()
        assert finish.wait(PATIENCE)
        return written

    monkeypatch.setattr(checkpoints, "write_checkpoint", slow)
    app = opened(tmp_path)
    await fill(app)
    registry = app.storage.registry
    assert registry._checkpoints is not None
    bank = await app.gate.call(ME, GetBank("b"))
    # Of an index that has none.
    registry._checkpoints.write(bank, registry._core.bank(DIMENSIONS))
    assert await asyncio.to_thread(copied.wait, PATIENCE)
    await with_segments(app)
    # Closing waits for the one that is being written.
    threading.Timer(0.5, finish.set).start()
    await app.close()
    assert segments(tmp_path) == {"graph0", "postings0"}


async def test_without_the_scrub_an_erasure_would_leave_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await made(tmp_path)
    await collected(tmp_path)
    app = opened(tmp_path)
    await with_segments(app)
    before = mapped(tmp_path)

    async def nothing(_registry: IndexRegistry, _bank: Bank) -> None:
        """Leave everything where it is."""

    monkeypatch.setattr(IndexRegistry, "scrub", nothing)
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(ids[5],)), compliance=True, reason="asked"))
    core = await index_of(app)
    assert (len(mapped(tmp_path) & before), core.unsaved_word_rows) == (1, 0)
    await app.close()


async def test_a_forget_overwrites_the_vector_and_a_purge_drops_the_words(tmp_path: Path) -> None:
    clock = [1_000 * HOUR]
    app = opened(tmp_path, clock, checkpoints=False)
    ids = await fill(app)
    await with_segments(app)
    before = mapped(tmp_path)
    assert any(levels(SECRET) in content for content in files(tmp_path))
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(ids[5],)), reason="asked"))
    assert not any(levels(SECRET) in content for content in files(tmp_path))
    forgotten = mapped(tmp_path)
    assert (len(forgotten), len(forgotten & before)) == (2, 1)
    clock[0] += 48 * HOUR
    await app.storage.store.purge(clock[0])
    # A purge itself changes nothing in memory.
    assert mapped(tmp_path) == forgotten
    await app.storage.registry.scrub_all()
    # Only the graph is left.
    assert mapped(tmp_path) & forgotten == forgotten - before
    await with_segments(app)
    await app.close()
