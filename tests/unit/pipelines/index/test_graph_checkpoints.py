"""A graph outlives a restart: it is written with the bank, put back in the background, and erased with it."""

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from astrocyte.api.requests import BatchRetain, Forget, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.errors import StoreError
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem
from astrocyte.pipelines.index import checkpoints
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS

ME = Caller()
MEMORIES = 200
# The background waits half a second for the end of an import.
PATIENCE = 30.0
QUERY = RecallQuery("tea, note 7", "b", include_trace=True)


def opened(folder: Path, **index: Any) -> App:
    """An application whose banks of a hundred rows get a graph, and are asked by it."""
    index = {"checkpoint_rows": 1, "graph_rows": 100, "scan_rows": 1, "sampling": 0.0, "build_share": 1.0, **index}
    settings = {"data_dir": str(folder), "index": index, "signal_quality": {"dedup": {"action": "warn"}}}
    return App(Settings.from_mapping(settings))


async def fill(app: App, count: int = MEMORIES, first: int = 0) -> list[str]:
    items = [RetainItem(f"note {number} about {('tea', 'jam')[number % 2]}") for number in range(first, first + count)]
    return [one.memory_id or "" for one in await app.gate.call(ME, BatchRetain("b", items))]


async def index_of(app: App) -> BankIndex:
    await app.gate.call(ME, Recall(QUERY))
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank("b")))
    assert index is not None
    return index


async def with_graph(app: App) -> CoreBank:
    """The bank's index once it has a graph."""
    index = await index_of(app)
    async with asyncio.timeout(PATIENCE):
        while not index.core.stats()["segments"]:  # noqa: ASYNC110 - the core has no event
            await asyncio.sleep(0.01)
    return index.core


async def written(app: App) -> None:
    """Wait for the checkpoints that were begun."""
    assert app.storage.checkpoints is not None
    await asyncio.wrap_future(app.storage.checkpoints._thread.submit(lambda: None))


def graphs(folder: Path) -> list[str]:
    return sorted(f"{path.parent.name}/{path.name}" for path in (folder / CHECKPOINTS).glob("*/*/graph*"))


def generations(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / CHECKPOINTS).glob("*/g*"))


async def made(folder: Path) -> list[str]:
    """A data directory whose last checkpoint has a graph: memory ids."""
    app = opened(folder)
    ids = await fill(app)
    await with_graph(app)
    await app.close()
    assert len(graphs(folder)) == 1
    return ids


async def test_a_graph_that_came_after_the_last_commit_is_written_at_the_end(tmp_path: Path) -> None:
    app = opened(tmp_path)
    await fill(app)
    await written(app)
    assert generations(tmp_path) == ["g1"]
    assert (await with_graph(app)).unsaved_graph_rows == MEMORIES
    assert graphs(tmp_path) == []
    await app.close()
    assert graphs(tmp_path) == ["g2/graph0"]


async def test_it_is_put_back_after_a_restart_and_not_written_once_more(tmp_path: Path) -> None:
    await made(tmp_path)
    before = generations(tmp_path)
    app = opened(tmp_path)
    core = await with_graph(app)
    # One that was built would not be saved.
    assert (core.stats()["graph_rows"], core.unsaved_graph_rows) == (MEMORIES, 0)
    result = await app.gate.call(ME, Recall(QUERY))
    assert result.trace is not None
    assert result.trace.plan is not None
    assert result.trace.plan.startswith("graph")
    await app.close()
    assert generations(tmp_path) == before


async def test_a_damaged_graph_costs_the_graph_alone(tmp_path: Path) -> None:
    await made(tmp_path)
    (path,) = (tmp_path / CHECKPOINTS).glob("*/*/graph0")
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    before = generations(tmp_path)
    app = opened(tmp_path)
    core = await with_graph(app)
    assert (core.stats()["graph_rows"], core.unsaved_graph_rows) == (MEMORIES, MEMORIES)
    assert generations(tmp_path) == before
    await app.close()
    # The one that was built takes its place.
    assert generations(tmp_path)[-1] not in before


async def test_a_graph_is_not_tried_again_and_again_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(tmp_path)
    await fill(app)
    await with_graph(app)
    tries = []

    def fail(*_args: object, **_options: object) -> NoReturn:
        tries.append(1)
        raise StoreError("the disk is full")

    monkeypatch.setattr(checkpoints, "write_checkpoint", fail)
    for number in range(5):
        await fill(app, 1, first=1_000 + number)
        await written(app)
    assert len(tries) == 1
    monkeypatch.undo()
    await app.close()


async def test_an_erasure_takes_the_graph_with_it(tmp_path: Path) -> None:
    ids = await made(tmp_path)
    app = opened(tmp_path)
    await with_graph(app)
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(ids[5],)), compliance=True, reason="asked"))
    assert graphs(tmp_path) == []
    await app.close()
    # What is written afterwards is of the others.
    assert len(graphs(tmp_path)) == 1
    again = opened(tmp_path)
    assert (await with_graph(again)).stats()["memories"] == MEMORIES - 1
    await again.close()
