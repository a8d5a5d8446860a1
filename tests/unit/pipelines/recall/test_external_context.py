"""Results of another system in the answer: filtered, blended, within count and budget, and never stored."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrocyte.api.requests import BatchRetain, ListMemories, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.errors import ValidationError
from astrocyte.model import Caller, DetailLevel, MemoryHit, RecallQuery, RecallResult, RetainItem, TagMatch, TimeRange
from astrocyte.pipelines.recall.external_context import ARM, blend, passing
from astrocyte.policy.gate import Gate

ME = Caller()
MAY = datetime(2024, 5, 1, tzinfo=UTC)
WIKI = MemoryHit("The garden tea house closes on Mondays", 0.9, tags=("wiki",), occurred_at=MAY, source="wiki")
TICKET = MemoryHit("Ticket 12: tea machine broken", 0.3, fact_type="ticket", metadata={"n": 12}, retained_at=MAY)


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    await app.gate.call(ME, BatchRetain("b", [RetainItem("green tea is in the garden"), RetainItem("black tea")]))
    yield app.gate
    await app.close()


async def recall(gate: Gate, **options: Any) -> RecallResult:
    options = {"external_context": (TICKET, WIKI), **options}
    return await gate.call(ME, Recall(RecallQuery("tea in the garden", "b", **options)))


def texts(result: RecallResult) -> list[str]:
    return [hit.text for hit in result.hits]


async def test_items_stand_among_the_memories_by_their_own_order(gate: Gate) -> None:
    result = await recall(gate)
    assert set(texts(result)) == {"green tea is in the garden", "black tea", WIKI.text, TICKET.text}
    # The best of both lists stand together, the memory first; the lists keep their orders.
    assert texts(result)[:2] == ["green tea is in the garden", WIKI.text]
    assert texts(result).index(WIKI.text) < texts(result).index(TICKET.text)
    found = next(hit for hit in result.hits if hit.text == WIKI.text)
    assert found.memory_id is not None
    assert found.memory_id.startswith("ext_")
    assert [(arm.arm, arm.rank, arm.score) for arm in found.arms] == [(ARM, 1, 0.9)]
    assert found.source is None
    assert found.token_count == count_tokens(WIKI.text)
    trace = result.trace
    assert trace is not None
    assert ARM in (trace.strategies_used or ())
    assert (trace.strategy_candidate_counts or {})[ARM] == 2
    assert ARM in (trace.stage_timings_ms or {})
    assert result.total_available == 4


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"tags": ("wiki",)}, [WIKI]),
        ({"tags": ("wiki",), "tag_match": TagMatch.NONE}, [TICKET]),
        ({"fact_types": ("ticket",)}, [TICKET]),
        ({"metadata": {"n": 12}}, [TICKET]),
        ({"metadata": {"n": 13}}, []),
        ({"session_id": "s"}, []),
        ({"memory_ids": ("mem_" + "0" * 32,)}, []),
        ({"time_range": TimeRange(MAY, MAY)}, [WIKI, TICKET]),
        ({"time_range": TimeRange(MAY + timedelta(days=1), None)}, []),
        ({"retained_range": TimeRange(MAY, MAY)}, [TICKET]),
        ({"as_of": MAY}, [TICKET]),
        ({"as_of": MAY - timedelta(days=1)}, []),
    ],
)
async def test_the_filter_holds_for_them_too(gate: Gate, options: dict[str, Any], kept: list[MemoryHit]) -> None:
    given = {WIKI.text, TICKET.text}
    result = await recall(gate, **options)
    assert [text for text in texts(result) if text in given] == [item.text for item in kept]


async def test_they_are_never_stored(gate: Gate) -> None:
    await recall(gate)
    assert len((await gate.call(ME, ListMemories("b"))).memories) == 2
    assert set(texts(await recall(gate, external_context=()))) == {"green tea is in the garden", "black tea"}


async def test_of_equal_texts_the_memory_is_kept(gate: Gate) -> None:
    result = await recall(gate, external_context=(MemoryHit("black tea", 1.0),))
    assert sorted(texts(result)) == ["black tea", "green tea is in the garden"]
    assert all(hit.memory_id and hit.memory_id.startswith("mem_") for hit in result.hits)


async def test_count_budget_and_detail_hold_for_both_together(gate: Gate) -> None:
    assert len((await recall(gate, max_results=2)).hits) == 2
    tight = await recall(gate, max_tokens=8)
    assert tight.truncated
    assert sum(hit.token_count for hit in tight.hits) <= 8
    titles = await recall(gate, detail_level=DetailLevel.TITLES, include_sources=True)
    assert "Wednesday 1 May 2024 \u00b7 The garden tea house closes on Mondays" in texts(titles)
    assert "wiki" in [hit.source for hit in titles.hits]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (MemoryHit("", 1.0), "external_context[0].text"),
        (MemoryHit("  ", 1.0), "external_context[0].text"),
        (MemoryHit("tea", float("nan")), "external_context[0].score"),
        (MemoryHit("tea", 1.0, occurred_at=datetime(2024, 5, 1)), "external_context[0].occurred_at"),  # noqa: DTZ001
        (MemoryHit("tea", 1.0, tags=("",)), "external_context[0].tags"),
        ("tea", "external_context[0]"),
    ],
)
async def test_what_is_wrong_is_refused(gate: Gate, item: Any, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        await recall(gate, external_context=(item,))
    assert (caught.value.field or "").startswith(field)


async def test_no_more_than_hits_may_be(gate: Gate) -> None:
    with pytest.raises(ValidationError) as caught:
        await recall(gate, external_context=(WIKI,) * 201)
    assert caught.value.field == "external_context"


scored = st.builds(MemoryHit, st.text("abc ", min_size=1).filter(str.strip), st.floats(-1e9, 1e9))


@settings(deadline=None)
@given(st.lists(scored, max_size=6), st.lists(scored, max_size=6), st.floats(0, 4), st.integers(0, 40))
def test_any_two_lists_blend(memories: list[MemoryHit], items: list[MemoryHit], weight: float, budget: int) -> None:
    query = RecallQuery("q", "b", max_results=5, external_context=tuple(items))
    hits = sorted(memories, key=lambda hit: -hit.score)
    blended, _ = blend(query, hits, passing(query), weight=weight, budget=budget)
    scores = [hit.score for hit in blended]
    assert scores == sorted(scores, reverse=True)
    assert len(blended) <= 5
    assert sum(hit.token_count for hit in blended) <= budget
    if weight == 0:
        assert not any(hit.arms for hit in blended)
