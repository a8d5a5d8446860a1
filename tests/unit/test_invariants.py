"""Promises that hold by a guard, and the proof that it is the guard that holds them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.registry import IndexRegistry
from astrocyte.stores.protocols import IndexBatch
from astrocyte.stores.sqlite import store as sqlite_store

ME = Caller()


def deaf(_registry: IndexRegistry, batch: IndexBatch) -> None:
    """A listener that hears of new rows but of nothing that ends or goes."""
    slot = _registry._slots.get(batch.bank.key)
    if slot is not None and slot.index is not None and batch.upserts:
        slot.index.apply(IndexBatch(batch.bank, batch.position, batch.upserts))


@pytest.fixture
async def stale(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """An application whose index never learns that something was forgotten or replaced."""
    monkeypatch.setattr(IndexRegistry, "on_commit", deaf)
    if not getattr(request, "param", True):
        unguarded = sqlite_store.SqliteStore
        monkeypatch.setattr(
            "astrocyte.app.open_store", lambda path, clock: unguarded(path, clock=clock, _guarded=False)
        )
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


async def returned_after_forgetting(app: App, **options: Any) -> set[str]:
    gate = app.gate
    await gate.create_bank(ME, "b")
    # The index is loaded before anything is stored, so that it only knows what the deaf listener tells it.
    await gate.recall(ME, RecallQuery("tea", "b"))
    forgotten = await gate.retain(ME, "b", RetainItem("green tea"))
    kept = await gate.retain(ME, "b", RetainItem("black tea"))
    memory = await gate.get_memory(ME, "b", kept.memory_id or "")
    await gate.forget(ME, "b", ForgetSelector(memory_ids=(forgotten.memory_id or "",)))
    if options.pop("in_the_past", False):
        options["as_of"] = memory.retained_at + timedelta(milliseconds=1)
    result = await gate.recall(ME, RecallQuery("tea", "b", **options))
    assert result.total_available == 2, "the stale index proposes both"
    return {hit.text for hit in result.hits}


@pytest.mark.parametrize("past", [False, True])
async def test_what_was_forgotten_is_not_returned_even_by_a_stale_index(stale: App, *, past: bool) -> None:
    assert await returned_after_forgetting(stale, in_the_past=past) == {"black tea"}


@pytest.mark.parametrize("stale", [False], indirect=True)
async def test_without_the_guard_a_stale_index_would_return_it(stale: App) -> None:
    assert await returned_after_forgetting(stale) == {"black tea", "green tea"}


async def test_a_replaced_version_is_not_returned_by_a_stale_index(stale: App) -> None:
    gate = stale.gate
    await gate.create_bank(ME, "b")
    await gate.recall(ME, RecallQuery("tea", "b"))
    kept = await gate.retain(ME, "b", RetainItem("green tea"))
    update = MemoryUpdate(kept.memory_id or "", frozenset({"content"}), content="black tea")
    await gate.update_memory(ME, "b", update)
    result = await gate.recall(ME, RecallQuery("tea", "b"))
    assert [hit.text for hit in result.hits if hit.text == "green tea"] == []
