"""Promises that hold by a guard, and the proof that it is the guard that holds them."""

from collections.abc import AsyncIterator
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    Forget,
    GetMemory,
    ListMemories,
    Recall,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
    TagMatch,
    TimeRange,
)
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.recall.row_filter import compile_filter
from astrocyte.pipelines.search.core_request import Planner
from astrocyte.stores.records import IndexBatch
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
            "astrocyte.wiring.storage.open_store", lambda path, **options: unguarded(path, **options, _guarded=False)
        )
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


async def returned_after_forgetting(app: App, **options: Any) -> set[str]:
    gate = app.gate
    await gate.call(ME, CreateBank("b"))
    # The index is loaded before anything is stored, so that it only knows what the deaf listener tells it.
    await gate.call(ME, Recall(RecallQuery("tea", "b")))
    forgotten = await gate.call(ME, Retain("b", RetainItem("green tea")))
    kept = await gate.call(ME, Retain("b", RetainItem("black tea")))
    memory = await gate.call(ME, GetMemory("b", kept.memory_id or ""))
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(forgotten.memory_id or "",))))
    if options.pop("in_the_past", False):
        options["as_of"] = memory.retained_at + timedelta(milliseconds=1)
    result = await gate.call(ME, Recall(RecallQuery("tea", "b", **options)))
    assert result.total_available == 2, "the stale index proposes both"
    return {hit.text for hit in result.hits}


@pytest.mark.parametrize("past", [False, True])
async def test_what_was_forgotten_is_not_returned_even_by_a_stale_index(stale: App, *, past: bool) -> None:
    assert await returned_after_forgetting(stale, in_the_past=past) == {"black tea"}


@pytest.mark.parametrize("stale", [False], indirect=True)
async def test_without_the_guard_a_stale_index_would_return_it(stale: App) -> None:
    assert await returned_after_forgetting(stale) == {"black tea", "green tea"}


async def returned_after_replacing(app: App) -> tuple[list[str], list[str]]:
    """Hits for the words of the old version, and for those of the new one."""
    gate = app.gate
    await gate.call(ME, CreateBank("b"))
    await gate.call(ME, Recall(RecallQuery("tea", "b")))
    kept = await gate.call(ME, Retain("b", RetainItem("green tea")))
    update = MemoryUpdate(kept.memory_id or "", frozenset({"content"}), content="black tea")
    await gate.call(ME, UpdateMemory("b", update))
    # The stale index holds both versions for current, and proposes the one that fits better.
    old, new = await gate.call(ME, BatchRecall([RecallQuery("green tea", "b"), RecallQuery("black tea", "b")]))
    assert old.total_available == new.total_available > 0
    return [hit.text for hit in old.hits], [hit.text for hit in new.hits]


async def test_a_replaced_version_is_not_returned_by_a_stale_index(stale: App) -> None:
    assert await returned_after_replacing(stale) == ([], ["black tea"])


@pytest.mark.parametrize("stale", [False], indirect=True)
async def test_without_the_guard_a_stale_index_would_return_the_replaced_version(stale: App) -> None:
    assert await returned_after_replacing(stale) == (["green tea"], ["black tea"])


KEPT = RetainItem(
    "green tea",
    tags=("a", "b"),
    metadata={"n": 1, "s": "x"},
    fact_type="world",
    session_id="s1",
    occurred_at=datetime(2024, 5, 8, 12, tzinfo=UTC),
)
OTHER = RetainItem(
    "black tea",
    tags=("a", "c"),
    metadata={"n": 1.0, "s": "x"},
    fact_type="experience",
    session_id="s2",
    occurred_at=datetime(2024, 5, 9, 12, tzinfo=UTC),
)
BARE = RetainItem("plain tea")
MAY_8 = TimeRange(datetime(2024, 5, 8, 12, tzinfo=UTC), datetime(2024, 5, 8, 12, 0, 0, 999, tzinfo=UTC))
LONG_AGO = TimeRange(None, datetime(2020, 1, 1, tzinfo=UTC))
FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"tags": ("b", "x")}, {"green tea"}),
    ({"tags": ("a",)}, {"green tea", "black tea"}),
    ({"tags": ("a", "b"), "tag_match": TagMatch.ALL}, {"green tea"}),
    ({"tags": ("c",), "tag_match": TagMatch.NONE}, {"green tea", "plain tea"}),
    ({"fact_types": ("experience",)}, {"black tea"}),
    ({"metadata": {"n": 1}}, {"green tea"}),
    ({"metadata": {"n": 1, "s": "y"}}, set()),
    ({"session_id": "s2"}, {"black tea"}),
    ({"time_range": MAY_8}, {"green tea"}),
    ({"time_range": TimeRange(datetime(2024, 5, 9, tzinfo=UTC), None)}, {"black tea", "plain tea"}),
    ({"retained_range": LONG_AGO}, set()),
    ({"tags": ("a",), "session_id": "s1"}, {"green tea"}),
]
NO_FILTER: dict[str, Any] = {
    "tags": (),
    "tag_match": TagMatch.ANY,
    "fact_types": (),
    "memory_ids": (),
    "metadata": {},
    "session_id": None,
    "time_range": None,
    "retained_range": None,
}


@pytest.fixture
async def lying(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    """An application whose index is never told of a filter, and so answers as if every row passed."""
    ask = Planner.request

    def unfiltered(planner: Planner, plan: Any) -> Any:
        told = copy(plan)
        told.query = replace(plan.query, **NO_FILTER)
        return ask(planner, told)

    monkeypatch.setattr(Planner, "request", unfiltered)
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    await app.gate.call(ME, BatchRetain("b", [KEPT, OTHER, BARE]))
    yield app
    await app.close()


async def met(app: App, options: dict[str, Any]) -> set[str]:
    return {hit.text for hit in (await app.gate.call(ME, Recall(RecallQuery("tea", "b", **options)))).hits}


@pytest.mark.parametrize(("options", "expected"), FILTERS)
async def test_a_filter_holds_whatever_the_index_says(lying: App, options: dict[str, Any], expected: set[str]) -> None:
    assert await met(lying, options) == expected
    batch = await lying.gate.call(ME, BatchRecall([RecallQuery("tea", "b", **options), RecallQuery("tea", "b")]))
    everything = {"green tea", "black tea", "plain tea"}
    assert [{hit.text for hit in result.hits} for result in batch] == [expected, everything]


async def test_memory_ids_hold_whatever_the_index_says(lying: App) -> None:
    page = await lying.gate.call(ME, ListMemories("b"))
    green = next(memory for memory in page.memories if memory.content == "green tea")
    # The index compares bytes, so that hex digits may come in either case.
    shouted = f"mem_{green.memory_id.removeprefix('mem_').upper()}"
    assert await met(lying, {"memory_ids": (shouted, "mem_nobody")}) == {"green tea"}
    assert await met(lying, {"memory_ids": ("mem_nobody",)}) == set()


@pytest.mark.parametrize(("options", "expected"), FILTERS)
async def test_without_the_second_look_a_lying_index_would_be_believed(
    lying: App, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], expected: set[str]
) -> None:
    monkeypatch.setattr("astrocyte.pipelines.recall.result_assembly.compile_filter", lambda _query: None)
    assert await met(lying, options) > expected


def test_a_query_without_a_filter_pays_for_none() -> None:
    assert compile_filter(RecallQuery("tea", "b")) is None
