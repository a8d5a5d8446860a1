"""A small bank that is evicted comes back from a checkpoint; one that is not has none."""

import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

from astrocyte.api.requests import BatchRetain, Forget, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Label, Written, write_checkpoint
from astrocyte.model import Caller, ForgetSelector, MemoryHit, RecallQuery, RetainItem
from astrocyte.pipelines.index import checkpoints
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS

ME = Caller()
BANKS = ("a", "b", "c")
MEMORIES = 40
LARGE = 1_000


def opened(folder: Path, **index: Any) -> App:
    """An application in whose memory there is room for one bank."""
    index = {"checkpoint_rows": LARGE, "checkpoint_evicted_rows": 10, "memory_bytes": 1, **index}
    settings = {"data_dir": str(folder), "index": index, "signal_quality": {"dedup": {"action": "warn"}}}
    return App(Settings.from_mapping(settings))


async def fill(app: App, bank_id: str, count: int = MEMORIES, first: int = 0) -> list[str]:
    items = [RetainItem(f"note {number} about {('tea', 'jam')[number % 2]}") for number in range(first, first + count)]
    return [one.memory_id or "" for one in await app.gate.call(ME, BatchRetain(bank_id, items))]


async def answer(app: App, bank_id: str) -> tuple[MemoryHit, ...]:
    return tuple((await app.gate.call(ME, Recall(RecallQuery("tea, note 7", bank_id, max_results=50)))).hits)


def generations(folder: Path) -> list[str]:
    return sorted(f"{path.parent.name}/{path.name}" for path in (folder / CHECKPOINTS).glob("*/g*"))


async def written(app: App) -> None:
    """Wait for the checkpoints that were begun."""
    app.storage.executor.submit(lambda: None).result(10)
    assert app.storage.checkpoints is not None
    app.storage.checkpoints._thread.submit(lambda: None).result(10)


def refuse(*_args: object, **_options: object) -> NoReturn:
    raise AssertionError("all rows were read")


async def round_trip(folder: Path, **index: Any) -> tuple[App, list[tuple[MemoryHit, ...]]]:
    """An application whose banks were filled, asked, and evicted, but for the last one that was asked; the answers."""
    app = opened(folder, **index)
    for bank_id in BANKS:
        await fill(app, bank_id)
        await written(app)
    answers = []
    for bank_id in BANKS:
        answers.append(await answer(app, bank_id))
        await written(app)
    return app, answers


async def test_an_evicted_bank_comes_back_without_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, expected = await round_trip(tmp_path)
    assert generations(tmp_path) == ["1/g1", "2/g1", "3/g1"]
    monkeypatch.setattr(SqliteStore, "iter_versions", refuse)
    assert [await answer(app, bank_id) for bank_id in BANKS] == expected
    await app.close()


async def test_what_came_after_the_eviction_is_there_and_what_was_forgotten_is_not(tmp_path: Path) -> None:
    app, _ = await round_trip(tmp_path)
    (new,) = await fill(app, "a", 1, first=100)
    # The first bank is in memory again for that; the second one's checkpoint is of before what follows.
    known = [hit.memory_id or "" for hit in await answer(app, "b")]
    await answer(app, "a")
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(known[0],))))
    assert [hit.memory_id for hit in await answer(app, "b")] == known[1:]
    assert new in [hit.memory_id for hit in await answer(app, "a")]
    await app.close()


async def test_it_is_written_again_when_it_has_changed_and_once(tmp_path: Path) -> None:
    app, _ = await round_trip(tmp_path)
    for bank_id in ("a", "b", "a", "b"):
        await answer(app, bank_id)
        await written(app)
    # Nothing has changed.
    assert generations(tmp_path) == ["1/g1", "2/g1", "3/g1"]
    await fill(app, "a", 10, first=100)
    for bank_id in ("a", "b"):
        await answer(app, bank_id)
        await written(app)
    # Of a small bank the one before is not kept.
    assert generations(tmp_path) == ["1/g2", "2/g1", "3/g1"]
    await app.close()


async def test_an_erasure_removes_it_first(tmp_path: Path) -> None:
    app, _ = await round_trip(tmp_path)
    erased = (await answer(app, "b"))[0].memory_id or ""
    assert "2/g1" in generations(tmp_path)
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(erased,)), compliance=True, reason="asked"))
    assert not [one for one in generations(tmp_path) if one.startswith("2/")]
    await app.close()


@pytest.mark.parametrize("index", [{"memory_bytes": 1 << 30}, {"checkpoint_evicted_rows": MEMORIES + 1}])
async def test_none_is_written_of_banks_that_stay_or_are_tiny(tmp_path: Path, index: dict[str, int]) -> None:
    app, _ = await round_trip(tmp_path, **index)
    await app.close()
    assert generations(tmp_path) == []


@pytest.mark.parametrize(("large", "durable"), [(MEMORIES, True), (MEMORIES + 1, False)])
async def test_only_large_banks_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, *, durable: bool
) -> None:
    forced: list[bool] = []

    def write(core: CoreBank, directory: str, label: Label, *, durable: bool) -> Written:
        forced.append(durable)
        return write_checkpoint(core, directory, label, durable=durable)

    monkeypatch.setattr(checkpoints, "write_checkpoint", write)
    app, _ = await round_trip(tmp_path, checkpoint_rows=large)
    await app.close()
    assert forced
    assert set(forced) == {durable}


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Checkpoints are written when this is set."""
    go_on = threading.Event()

    def write(core: CoreBank, directory: str, label: Label, *, durable: bool) -> Written:
        go_on.wait(10)
        return write_checkpoint(core, directory, label, durable=durable)

    monkeypatch.setattr(checkpoints, "write_checkpoint", write)
    return go_on


async def test_banks_go_as_they_are_where_too_many_wait(tmp_path: Path, writing: threading.Event) -> None:
    app = opened(tmp_path)
    for bank_id in BANKS:
        await fill(app, bank_id)
        await answer(app, bank_id)
    app.storage.executor.submit(lambda: None).result(10)
    writing.set()
    await written(app)
    assert generations(tmp_path) == ["1/g1"]
    await app.close()


async def test_what_was_erased_while_an_index_waited_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writing: threading.Event
) -> None:
    # All that are evicted are written.
    monkeypatch.setattr("astrocyte.pipelines.index.slot_table.LOW_MARK", -(1 << 40))
    app = opened(tmp_path)
    for bank_id in BANKS:
        await fill(app, bank_id)
        await answer(app, bank_id)
    app.storage.executor.submit(lambda: None).result(10)
    # The first bank is being written, the second waits for that, and has a memory less meanwhile.
    erased = (await answer(app, "b"))[0].memory_id or ""
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(erased,)), compliance=True, reason="asked"))
    writing.set()
    await written(app)
    assert generations(tmp_path)[0] == "1/g1"
    hay = b"".join(path.read_bytes() for path in (tmp_path / CHECKPOINTS / "2").rglob("*") if path.is_file())
    assert bytes.fromhex(erased.removeprefix("mem_")) not in hay
    await app.close()
