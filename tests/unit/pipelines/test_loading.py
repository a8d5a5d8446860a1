"""Loading from rows in parts answers as the index that took the commits, wherever the parts end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Core, RecallRequest, RecallResponse
from astrocyte.model import Bank, Caller, ForgetSelector, MemoryUpdate, RetainItem
from astrocyte.pipelines.loading import load_index
from astrocyte.stores.protocols import MemoryStore, VersionRecord

ME = Caller()
COUNT = 60


class InParts:
    """A store whose versions come so many at a time."""

    def __init__(self, store: MemoryStore, size: int) -> None:
        self._store, self._size = store, size

    def iter_versions(self, bank: Bank, *, batch_size: int) -> Iterator[list[VersionRecord]]:
        return self._store.iter_versions(bank, batch_size=self._size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
async def app(tmp_path: Path) -> Any:
    settings = {
        "vector_store": "sqlite",
        "data_dir": str(tmp_path),
        "signal_quality": {"dedup": {"enabled": False}},
    }
    opened = App(Settings.from_mapping(settings))
    items = [RetainItem(f"note {n} of the garden", tags=(f"t{n % 7}",), session_id=f"s{n % 3}") for n in range(COUNT)]
    kept = await opened.gate.retain_batch(ME, "b", items)
    for number, one in enumerate(kept[::5]):
        update = MemoryUpdate(
            one.memory_id or "", frozenset({"content"}), content=f"a changed note of the garden {number}"
        )
        await opened.gate.update_memory(ME, "b", update)
    await opened.gate.forget(ME, "b", ForgetSelector(memory_ids=tuple(one.memory_id or "" for one in kept[1::5])))
    yield opened
    await opened.close()


def answer(core: Any) -> RecallResponse:
    response: RecallResponse = core.recall(RecallRequest(text="note changed garden 7 12", k=COUNT, depth=COUNT))
    return response


@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_parts_make_the_index_that_took_the_commits(app: App, size: int, tmp_path: Path) -> None:
    bank = app._store.get_bank(ME.tenant, "b")
    assert bank is not None
    (tmp_path / "scratch").mkdir()
    loaded = load_index(InParts(app._store, size), Core(str(tmp_path / "scratch")), None, bank)  # type: ignore[arg-type]
    whole = load_index(app._store, Core(str(tmp_path / "scratch")), None, bank)
    assert loaded.core.position == bank.position
    assert loaded.row_count == whole.row_count
    assert [(hit.key, hit.score) for hit in answer(loaded.core).hits] == [
        (hit.key, hit.score) for hit in answer(whole.core).hits
    ]
    assert len(answer(loaded.core).hits) == COUNT - len(range(1, COUNT, 5))


async def test_more_parts_than_positions_lose_no_row(app: App, tmp_path: Path) -> None:
    """What a commit adds while rows are read is of a position that the bank, as it was looked up, does not have."""
    bank = app._store.get_bank(ME.tenant, "b")
    assert bank is not None
    await app.gate.retain(ME, "b", RetainItem("the last note of the garden"))
    (tmp_path / "scratch").mkdir()
    early = replace(bank, position=2)
    loaded = load_index(InParts(app._store, 5), Core(str(tmp_path / "scratch")), None, early)  # type: ignore[arg-type]
    assert loaded.core.position == 2
    assert len(answer(loaded.core).hits) == COUNT - len(range(1, COUNT, 5)) + 1
