"""A restart from a checkpoint answers as one from rows; what is damaged is not used; what is erased is in none."""

import asyncio
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    DeleteBank,
    Forget,
    GetBank,
    GetMemory,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Label, Written, write_checkpoint
from astrocyte.model import Caller, Embedding, ForgetSelector, MemoryHit, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines import forget
from astrocyte.pipelines.index import checkpoints, rows
from astrocyte.pipelines.index.checkpoints import Checkpoints
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS

ME = Caller()
WORDS = ("tea", "green", "jam", "garden", "noon", "rain")
FILES = ("MANIFEST", "versions", "planes", "words", "vectors", "names", "members")
HOUR = 3_600_000


def opened(folder: Path, *, now: Callable[[], int] | None = None, **index: Any) -> App:
    index = {"checkpoint_rows": 1, **index}
    settings = {
        "vector_store": "sqlite",
        "data_dir": str(folder),
        "index": index,
        "signal_quality": {"dedup": {"action": "warn"}},
        "forget": {"purge_after_days": 1},
    }
    made = Settings.from_mapping(settings)
    return App(made) if now is None else App(made, clock=now)


async def fill(app: App, count: int, first: int = 0, bank_id: str = "b") -> list[str]:
    """Memory ids of notes in three conversations."""
    items = [
        RetainItem(
            f"{WORDS[n % 6]} and {WORDS[n // 6 % 6]} number {n}",
            tags=(f"tag{n % 5}",),
            session_id=(None, "one", "two")[n % 3],
        )
        for n in range(first, first + count)
    ]
    return [one.memory_id or "" for one in await app.gate.call(ME, BatchRetain(bank_id, items))]


async def answers(app: App, bank_id: str = "b") -> list[tuple[int, tuple[MemoryHit, ...]]]:
    queries = [
        RecallQuery(text, bank_id, max_results=50, session_id=session)
        for text in ("green tea in the garden", "jam at noon", "number 7")
        for session in (None, "one")
    ]
    return [(result.total_available, tuple(result.hits)) for result in await app.gate.call(ME, BatchRecall(queries))]


def generations(folder: Path) -> list[Path]:
    return sorted((folder / CHECKPOINTS).glob("*/g*"))


@pytest.fixture
def no_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reading a bank's rows fails."""

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise AssertionError("all rows were read")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "iter_versions", refuse)
        yield


async def made(folder: Path, count: int = 200) -> tuple[list[str], list[Any]]:
    """A data directory with one bank and its checkpoint: memory ids, and answers from rows."""
    app = opened(folder)
    ids = await fill(app, count)
    expected = await answers(app)
    await app.close()
    assert len(generations(folder)) >= 1
    return ids, expected


async def reopened(folder: Path, **index: Any) -> list[Any]:
    app = opened(folder, **index)
    try:
        return await answers(app)
    finally:
        await app.close()


@pytest.mark.usefixtures("no_rows")
async def test_a_restart_reads_the_checkpoint_and_no_rows(tmp_path: Path) -> None:
    app = opened(tmp_path)
    await app.gate.call(ME, CreateBank("b"))
    await fill_without_rows(app)
    expected = await answers(app)
    await app.close()
    with capture_logs() as logs:
        assert await reopened(tmp_path) == expected
    (entry,) = [entry for entry in logs if entry["event"] == "checkpoint_loaded"]
    assert entry["behind"] == 0


async def fill_without_rows(app: App) -> None:
    """The index is there before the first row, so it learns all from commits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "iter_versions", lambda *_a, **_o: iter(()))
        await app.gate.call(ME, Recall(RecallQuery("tea", "b")))
    await fill(app, 200)


async def test_what_changed_since_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, _ = await made(tmp_path)
    # Changes that no checkpoint sees.
    monkeypatch.setattr(Checkpoints, "due", lambda *_a: False)
    app = opened(tmp_path)
    await fill(app, 30, first=500)
    for memory_id in ids[:20]:
        await app.gate.call(
            ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content=f"jam {memory_id}"))
        )
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=tuple(ids[10:40]))))
    for memory_id in ids[30:40]:
        await app.gate.call(ME, UndeleteMemory("b", memory_id))
    await app.gate.call(
        ME, UpdateMemory("b", MemoryUpdate(ids[35], frozenset({"content"}), content="green rain at last"))
    )
    expected = await answers(app)
    await app.close()
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "iter_versions", None)
        assert await reopened(tmp_path) == expected
    shutil.rmtree(tmp_path / CHECKPOINTS)
    assert await reopened(tmp_path) == expected


async def test_a_checkpoint_that_is_far_behind_is_not_worth_the_replay(tmp_path: Path) -> None:
    ids, _ = await made(tmp_path, 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "due", lambda *_a: False)
        app = opened(tmp_path)
        for _ in range(2):
            for memory_id in ids:
                await app.gate.call(
                    ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"tags"}), tags=(f"t{memory_id}",)))
                )
        expected = await answers(app)
        await app.close()
    with capture_logs() as logs:
        assert await reopened(tmp_path) == expected
    # It was read, and then written anew from the rows.
    assert [entry["event"] for entry in logs if entry["event"].startswith("checkpoint_")] == [
        "checkpoint_loaded",
        "checkpoint_written",
    ]


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def zeroed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(len(content[middle : middle + 64]))
    # Zeros that were there already are no damage.
    content[-1] ^= 1
    path.write_bytes(content)


def missing(path: Path) -> None:
    path.unlink()


def lengthened(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


def replaced(path: Path) -> None:
    """An entry that cannot be read at all, even by the superuser, whom no permission stops."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [truncated, flipped, zeroed, missing, lengthened, replaced])
async def test_a_damaged_checkpoint_is_refused_and_rows_are_read(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    _, expected = await made(tmp_path, 60)
    for generation in generations(tmp_path):
        damage(generation / name)
    damaged = set(generations(tmp_path))
    with capture_logs() as logs:
        assert await reopened(tmp_path) == expected
    refused = [entry for entry in logs if entry["event"] == "checkpoint_refused"]
    # One that does not say what it is may be swept away before it is looked at.
    assert len(refused) == len(damaged) or (name == "MANIFEST" and not refused)
    assert not [entry for entry in logs if entry["event"] == "checkpoint_loaded"]
    # A new one takes its place.
    with capture_logs() as logs:
        assert await reopened(tmp_path) == expected
    assert [entry["event"] for entry in logs if entry["event"].startswith("checkpoint_")] == ["checkpoint_loaded"]


async def test_the_generation_before_is_used_when_the_newest_is_damaged(tmp_path: Path) -> None:
    await made(tmp_path)
    app = opened(tmp_path)
    await fill(app, 100, first=300)
    expected = await answers(app)
    await app.close()
    older, newer = generations(tmp_path)
    flipped(newer / "planes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "iter_versions", None)
        with capture_logs() as logs:
            assert await reopened(tmp_path) == expected
    loaded = next(entry for entry in logs if entry["event"] == "checkpoint_loaded")
    assert loaded["behind"] == 100
    assert older.exists()


@pytest.mark.parametrize("generations_kept", [1, 2, 3])
async def test_so_many_generations_are_kept(tmp_path: Path, generations_kept: int) -> None:
    for round_ in range(5):
        app = opened(tmp_path, checkpoint_generations=generations_kept)
        await fill(app, 50, first=round_ * 50)
        await answers(app)
        await app.close()
    found = generations(tmp_path)
    assert len(found) == generations_kept
    assert [path.name for path in found] == [f"g{n}" for n in range(6 - generations_kept, 6)]


async def test_another_banks_checkpoint_is_refused(tmp_path: Path) -> None:
    app = opened(tmp_path)
    await fill(app, 40, bank_id="a")
    await fill(app, 40, first=100, bank_id="b")
    expected = await answers(app, "a"), await answers(app, "b")
    await app.close()
    one, other = sorted((tmp_path / CHECKPOINTS).iterdir())
    for folder in (one, other):
        folder.rename(folder.with_name(f"{folder.name}x"))
    one.with_name(f"{one.name}x").rename(other)
    other.with_name(f"{other.name}x").rename(one)
    app = opened(tmp_path)
    with capture_logs() as logs:
        assert (await answers(app, "a"), await answers(app, "b")) == expected
    await app.close()
    reasons = [entry["reason"] for entry in logs if entry["event"] == "checkpoint_refused"]
    assert len(reasons) >= 2
    assert all("another" in reason for reason in reasons)


async def test_a_database_from_a_copy_does_not_take_checkpoints_of_another_history(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await made(folder, 40)
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(CHECKPOINTS))
    app = opened(folder)
    await fill(app, 40, first=100)
    await answers(app)
    await app.close()
    # The copy comes back beneath the newer checkpoints, and goes on otherwise, further than they did.
    for path in (tmp_path / "copy").iterdir():
        shutil.copy(path, folder / path.name)
    (folder / "astrocyte.db-wal").unlink(missing_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "load", lambda *_a: None)
        app = opened(folder, checkpoint_rows=10_000)
        await fill(app, 60, first=200)
        await app.close()
    with capture_logs() as logs:
        app = opened(folder)
        found = await answers(app)
        await app.close()
    assert any("another history" in entry.get("reason", "") for entry in logs)
    shutil.rmtree(folder / CHECKPOINTS)
    assert await reopened(folder) == found


async def test_code_that_indexes_otherwise_reads_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, expected = await made(tmp_path, 40)
    monkeypatch.setattr("astrocyte.pipelines.index.checkpoints.RECIPE", rows.RECIPE + 1)
    with capture_logs() as logs:
        assert await reopened(tmp_path) == expected
    assert "it is of another version" in next(entry["reason"] for entry in logs if "reason" in entry)


async def test_small_banks_have_no_checkpoint(tmp_path: Path) -> None:
    app = opened(tmp_path, checkpoint_rows=100)
    await fill(app, 60)
    await answers(app)
    await app.close()
    assert generations(tmp_path) == []


async def test_turned_off_there_are_none_and_those_of_before_go(tmp_path: Path) -> None:
    _, expected = await made(tmp_path, 40)
    assert await reopened(tmp_path, checkpoints=False) == expected
    assert not (tmp_path / CHECKPOINTS).exists()


SECRET_VECTOR = struct.pack("<4f", 12_345.5, 3.25, -7.75, 1.0)


def traces(folder: Path, memory_id: str) -> set[str]:
    """Traces of the secret memory in any file below the folder."""
    parts = {
        "tag": b"Qzxtag",
        "metadata": b"Qzxvalue",
        "session": b"Qzxsession",
        "content": b"Qzxcontent",
        "id": bytes.fromhex(memory_id.removeprefix("mem_")),
        "vector": unit_bytes(),
    }
    hay = b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {name for name, part in parts.items() if part in hay}


def unit_bytes() -> bytes:
    """Some values of the secret's vector as the index keeps it: of length one."""
    values = struct.unpack("<4f", SECRET_VECTOR)
    norm = sum(float(value) ** 2 for value in values) ** 0.5
    return struct.pack("<4f", *(value / norm for value in values))


def given(*values: float) -> Embedding:
    return Embedding("given", len(values), struct.pack(f"<{len(values)}f", *values))


async def with_secret(folder: Path, **options: Any) -> tuple[App, str]:
    """An app over one bank of given vectors that has a checkpoint with a secret in it."""
    app = opened(folder, **options)
    await app.gate.call(ME, CreateBank("b", embedding_model="given", dimensions=4))
    items = [RetainItem(f"note {n}", embedding=given(float(n % 7), 1.0, 2.0, 0.5)) for n in range(100)]
    await app.gate.call(ME, BatchRetain("b", items))
    item = RetainItem(
        "Qzxcontent and more",
        embedding=given(*struct.unpack("<4f", SECRET_VECTOR)),
        tags=("Qzxtag",),
        metadata={"key": "Qzxvalue"},
        session_id="Qzxsession",
    )
    memory_id = (await app.gate.call(ME, Retain("b", item))).memory_id or ""
    await written(app)
    assert app.storage.checkpoints is not None
    # As if there were none, so that closing writes one of everything; nothing of before stays.
    app.storage.checkpoints._positions.clear()
    await app.close()
    for older in generations(folder)[:-1]:
        shutil.rmtree(older)
    app = opened(folder, **options)
    await look(app)
    await written(app)
    return app, memory_id


async def look(app: App) -> None:
    await app.gate.call(ME, Recall(RecallQuery("note", "b", embedding=given(1.0, 1.0, 2.0, 0.5))))


async def written(app: App) -> None:
    """Return when no checkpoint waits to be written."""
    assert app.storage.checkpoints is not None
    await asyncio.wrap_future(app.storage.checkpoints._thread.submit(lambda: None))


IN_CHECKPOINT = {"tag", "metadata", "session", "id", "vector"}


async def test_an_erasure_leaves_nothing_in_a_checkpoint(tmp_path: Path) -> None:
    app, secret = await with_secret(tmp_path)
    assert traces(tmp_path / CHECKPOINTS, secret) == IN_CHECKPOINT
    result = await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(secret,)), compliance=True, reason="asked"))
    assert result.receipt is not None
    # The id stays in the change log, as that of something erased.
    assert traces(tmp_path, secret) <= {"id"}
    assert generations(tmp_path) == []
    await look(app)
    await app.close()
    assert generations(tmp_path) != []
    assert traces(tmp_path / CHECKPOINTS, secret) == set()


async def test_without_the_guard_a_checkpoint_would_keep_what_is_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "sweep", lambda _self: None)
        app, secret = await with_secret(tmp_path)
        patch.setattr(forget, "without_checkpoints", lambda _checkpoints, _bank, work: work())
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(secret,)), compliance=True, reason="asked"))
        assert traces(tmp_path / CHECKPOINTS, secret) == IN_CHECKPOINT
    # The next sweep finds it.
    assert app.storage.checkpoints is not None
    app.storage.checkpoints.sweep()
    assert traces(tmp_path / CHECKPOINTS, secret) == set()
    await app.close()


async def test_a_checkpoint_that_was_begun_before_an_erasure_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, secret = await with_secret(tmp_path)
    begun, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def write(core: CoreBank, directory: str, label: Label, *, durable: bool) -> Written:
        result = write_checkpoint(core, directory, label, durable=durable)
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
        return result

    monkeypatch.setattr(checkpoints, "write_checkpoint", write)
    assert app.storage.checkpoints is not None
    bank = await app.gate.call(ME, GetBank("b"))
    index = app.storage.registry.loaded(bank)
    assert index is not None
    writing = app.storage.checkpoints.write(bank, index.core)
    await asyncio.wait_for(begun.wait(), 10)
    assert traces(tmp_path / CHECKPOINTS, secret) == IN_CHECKPOINT
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(secret,)), compliance=True, reason="asked"))
    assert traces(tmp_path / CHECKPOINTS, secret) == set()
    go_on.set()
    await asyncio.wrap_future(writing)
    assert generations(tmp_path) == []
    monkeypatch.undo()
    await app.close()
    assert traces(tmp_path / CHECKPOINTS, secret) == set()


async def test_a_purge_takes_the_checkpoints_of_before_it_was_forgotten_and_no_others(tmp_path: Path) -> None:
    now = [1_700_000_000_000]
    app, secret = await with_secret(tmp_path, now=lambda: now[0])
    before = set(generations(tmp_path))
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(secret,))))
    await app.close()
    # A plain forget is undone by the replay, and makes no new checkpoint.
    assert set(generations(tmp_path)) == before
    assert traces(tmp_path / CHECKPOINTS, secret) == IN_CHECKPOINT
    app = opened(tmp_path, now=lambda: now[0])
    await app.gate.call(
        ME, BatchRetain("b", [RetainItem(f"more {n}", embedding=given(1.0, float(n), 2.0, 0.5)) for n in range(40)])
    )
    await look(app)
    await written(app)
    later = set(generations(tmp_path)) - before
    assert len(later) == 1
    assert app.storage.checkpoints is not None
    now[0] += 25 * HOUR
    assert await app.storage.store.purge(now[0]) == 1
    app.storage.checkpoints.sweep()
    assert set(generations(tmp_path)) == later
    assert traces(tmp_path / CHECKPOINTS, secret) == set()
    await app.close()


async def test_a_deleted_banks_checkpoints_go_with_it(tmp_path: Path) -> None:
    app, secret = await with_secret(tmp_path)
    await app.gate.call(ME, DeleteBank("b"))
    assert list((tmp_path / CHECKPOINTS).iterdir()) == []
    assert traces(tmp_path, secret) == set()
    await app.close()


async def test_the_first_sweep_removes_what_a_crash_left(tmp_path: Path) -> None:
    await made(tmp_path, 40)
    (newest,) = generations(tmp_path)
    unfinished = newest.with_name("g9.tmp")
    shutil.copytree(newest, unfinished)
    orphan = newest.parent.with_name("999")
    shutil.copytree(newest.parent, orphan)
    # Nobody's business.
    (tmp_path / CHECKPOINTS / "notes.txt").write_text("mine")
    app = opened(tmp_path)
    assert app.storage.checkpoints is not None
    app.storage.checkpoints.sweep()
    await app.close()
    assert not unfinished.exists()
    assert not orphan.exists()
    assert newest.exists()
    assert (tmp_path / CHECKPOINTS / "notes.txt").exists()


async def test_an_evicted_bank_comes_back_from_its_checkpoint(tmp_path: Path) -> None:
    app = opened(tmp_path, memory_bytes=1)
    await fill(app, 100, bank_id="a")
    await fill(app, 100, first=300, bank_id="b")
    expected = await answers(app, "a")
    with capture_logs() as logs:
        await answers(app, "b")
        await written(app)
        assert await answers(app, "a") == expected
    await app.close()
    assert [entry for entry in logs if entry["event"] == "checkpoint_loaded"]


async def test_a_full_disk_gets_no_checkpoint_and_the_bank_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(1, 1, 0))
    app = opened(tmp_path)
    with capture_logs() as logs:
        await fill(app, 60)
        expected = await answers(app)
        await app.close()
    assert "checkpoint_skipped" in [entry["event"] for entry in logs]
    monkeypatch.undo()
    assert generations(tmp_path) == []
    assert await reopened(tmp_path) == expected


async def test_a_checkpoint_that_cannot_be_removed_stops_an_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, secret = await with_secret(tmp_path)
    monkeypatch.setattr("astrocyte.pipelines.index.checkpoints.REMOVE_SECONDS", 0.0)
    monkeypatch.setattr(shutil, "rmtree", lambda *_a, **_o: None)
    with pytest.raises(Exception, match="nothing was erased"):
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(secret,)), compliance=True, reason="asked"))
    monkeypatch.undo()
    assert (await app.gate.call(ME, GetMemory("b", secret))).memory_id == secret
    await app.close()


def test_what_is_indexed_of_a_memory_is_as_the_recipe_says() -> None:
    """When this fails, what was indexed before is not what would be now: raise RECIPE, and give the new values here."""
    assert rows.RECIPE == 3
    assert rows.indexed_text("tea", "Ana", 1_700_000_000_000) == "Ana tea Tuesday 14 November 2023"
    assert rows.indexed_text("tea", None, None) == "tea"
    assert rows.speaker_label("ana") == ("speaker", "@ana")
    assert (rows.FIRST_NAME, rows.QUESTION, rows.ADDRESS) == ("~", ("turn", "@question"), ("turn", "@address"))
    pairs = rows.metadata_pairs({"a": None, "b": True, "c": "x", "d": 3, "e": -0.0, "f": 1.5})
    assert pairs == [("a", "n"), ("b", "t"), ("c", "sx"), ("d", "i3"), ("e", "d0.0"), ("f", "d1.5")]


@pytest.mark.parametrize("name", [*FILES, ""])
async def test_a_fifo_in_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    app = opened(tmp_path)
    await fill(app, 40)
    before = await answers(app)
    await app.close()
    for generation in generations(tmp_path):
        place = generation / name if name else generation
        if not name:
            shutil.rmtree(generation)
        else:
            place.unlink()
        os.mkfifo(place)
    app = opened(tmp_path)
    async with asyncio.timeout(10):
        assert await answers(app) == before
    await app.close()
    assert not any(path.is_fifo() for path in (tmp_path / CHECKPOINTS).rglob("*"))
