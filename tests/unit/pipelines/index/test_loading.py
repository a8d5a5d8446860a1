"""Loading from rows in parts answers as the index that took the commits, wherever the parts end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, Forget, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Answer, Core, RecallRequest, Row
from astrocyte.core import Bank as CoreBank
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RetainItem
from astrocyte.pipelines.index import loading
from astrocyte.pipelines.index.loading import load_index

ME = Caller()
COUNT = 60


@pytest.fixture
async def app(tmp_path: Path) -> Any:
    settings = {
        "vector_store": "sqlite",
        "data_dir": str(tmp_path),
        "signal_quality": {"dedup": {"enabled": False}},
    }
    opened = App(Settings.from_mapping(settings))
    items = [RetainItem(f"note {n} of the garden", tags=(f"t{n % 7}",), session_id=f"s{n % 3}") for n in range(COUNT)]
    kept = await opened.gate.call(ME, BatchRetain("b", items))
    for number, one in enumerate(kept[::5]):
        update = MemoryUpdate(
            one.memory_id or "", frozenset({"content"}), content=f"a changed note of the garden {number}"
        )
        await opened.gate.call(ME, UpdateMemory("b", update))
    await opened.gate.call(ME, Forget("b", ForgetSelector(memory_ids=tuple(one.memory_id or "" for one in kept[1::5]))))
    yield opened
    await opened.close()


def answer(core: Any) -> Answer:
    response: Answer = core.recall(RecallRequest(text="note changed garden 7 12", k=COUNT, depth=COUNT))
    return response


class Recorded:
    """A bank whose commits are noted by their numbers of rows."""

    def __init__(self, bank: CoreBank, applied: list[int]) -> None:
        self._bank = bank
        self._applied = applied

    def apply(self, position: int, upserts: Sequence[Row] = (), *rest: Any, **options: Any) -> None:
        self._applied.append(len(upserts))
        self._bank.apply(position, upserts, *rest, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bank, name)


@pytest.mark.parametrize(
    ("size", "parts"), [(1, [1, 2, 4, 8, 8, 8, 8, 8, 8, 5]), (7, [7, 14, 28, 11]), (1_000, [COUNT])]
)
async def test_parts_make_the_index_that_took_the_commits(
    app: App, size: int, parts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = app.storage.store.get_bank(ME.tenant, "b")
    assert bank is not None
    (tmp_path / "scratch").mkdir()
    whole = load_index(app.storage.store, Core(str(tmp_path / "scratch")), None, bank)
    applied: list[int] = []
    make = Core.bank
    monkeypatch.setattr(Core, "bank", lambda core, *given: Recorded(make(core, *given), applied))
    monkeypatch.setattr(loading, "READ_AT_ONCE", size)
    # Parts grow until they are this large.
    monkeypatch.setattr(loading, "MOST_AT_ONCE", 8 * size)
    loaded = load_index(app.storage.store, Core(str(tmp_path / "scratch")), None, bank)
    assert applied == parts
    assert loaded.core.position == bank.position
    assert loaded.row_count == whole.row_count
    assert [(hit.key, hit.score) for hit in answer(loaded.core).hits] == [
        (hit.key, hit.score) for hit in answer(whole.core).hits
    ]
    assert len(answer(loaded.core).hits) == COUNT - len(range(1, COUNT, 5))


async def test_more_parts_than_positions_lose_no_row(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit while rows are read has a position that the bank, as it was looked up, does not have."""
    bank = app.storage.store.get_bank(ME.tenant, "b")
    assert bank is not None
    await app.gate.call(ME, Retain("b", RetainItem("the last note of the garden")))
    (tmp_path / "scratch").mkdir()
    early = replace(bank, position=2)
    monkeypatch.setattr(loading, "READ_AT_ONCE", 5)
    monkeypatch.setattr(loading, "MOST_AT_ONCE", 5)
    loaded = load_index(app.storage.store, Core(str(tmp_path / "scratch")), None, early)
    assert loaded.core.position == 2
    assert len(answer(loaded.core).hits) == COUNT - len(range(1, COUNT, 5)) + 1
