"""Recall through the gate: filters, times, detail, budget and the trace."""

import asyncio
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.model import (
    Caller,
    DedupAction,
    DetailLevel,
    Embedding,
    FusionMethod,
    RecallQuery,
    RecallResult,
    RetainItem,
    TagMatch,
    TimeRange,
)
from astrocyte.policy.gate import Gate

ME = Caller()
MAY = datetime(2024, 5, 1, tzinfo=UTC)
LONG = "The tea house opened in spring. It has nine tables and a garden. The owner bakes plum cake on Sundays."


async def recall(gate: Gate, query: str = "tea", **options: Any) -> RecallResult:
    return await gate.call(ME, Recall(RecallQuery(query, "b", **options)))


async def texts(gate: Gate, query: str = "tea", **options: Any) -> set[str]:
    return {hit.text for hit in (await recall(gate, query, **options)).hits}


@pytest.fixture
async def shelf(gate: Gate) -> Gate:
    """Five memories about tea that differ in everything that filters look at."""
    await gate.call(
        ME,
        BatchRetain(
            "b",
            [
                RetainItem("green tea", tags=("x", "y"), metadata={"n": 1, "s": "1"}, occurred_at=MAY, session_id="s1"),
                RetainItem("black tea", tags=("x",), metadata={"n": 1.0}, occurred_at=MAY + timedelta(days=30)),
                RetainItem("white tea", fact_type="preference", valid_from=MAY, valid_until=MAY + timedelta(days=9)),
                RetainItem("mint tea", content_type="event", speaker="Ann", source="diary", session_id="s1"),
                RetainItem("iced tea", tags=("z",), metadata={"n": True, "e": None}),
            ],
        ),
    )
    return gate


ALL = {"green tea", "black tea", "white tea", "mint tea", "iced tea"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"tags": ("x",)}, {"green tea", "black tea"}),
        ({"tags": ("x", "z")}, {"green tea", "black tea", "iced tea"}),
        ({"tags": ("x", "y"), "tag_match": TagMatch.ALL}, {"green tea"}),
        ({"tags": ("x",), "tag_match": TagMatch.NONE}, {"white tea", "mint tea", "iced tea"}),
        ({"tags": ("none",)}, set()),
        ({"fact_types": ("preference", "other")}, {"white tea"}),
        ({"session_id": "s1"}, {"green tea", "mint tea"}),
        ({"metadata": {"n": 1}}, {"green tea"}),
        ({"metadata": {"n": 1.0}}, {"black tea"}),
        ({"metadata": {"n": True}}, {"iced tea"}),
        ({"metadata": {"e": None}}, {"iced tea"}),
        ({"metadata": {"s": 1}}, set()),
        ({"metadata": {"n": 1, "s": "1"}}, {"green tea"}),
        ({"time_range": TimeRange(MAY, MAY)}, {"green tea"}),
        ({"time_range": TimeRange(None, MAY + timedelta(days=30))}, {"green tea", "black tea"}),
        ({"time_range": TimeRange(MAY + timedelta(days=31), None)}, {"white tea", "mint tea", "iced tea"}),
        ({"retained_range": TimeRange(None, MAY)}, set()),
        ({"retained_range": TimeRange(MAY, None)}, ALL),
        ({"valid_at": MAY}, ALL),
        ({"valid_at": MAY + timedelta(days=9)}, ALL),
        ({"valid_at": MAY + timedelta(days=10)}, ALL - {"white tea"}),
        ({"valid_at": MAY - timedelta(days=1)}, ALL - {"white tea"}),
        ({"as_of": MAY}, set()),
        ({"memory_ids": ("mem_3f8a", "x")}, set()),
    ],
)
async def test_filters_hold_on_every_arm(shelf: Gate, options: dict[str, Any], expected: set[str]) -> None:
    # The date in the question makes the temporal arm run too.
    for query in ("tea", "tea in May 2024"):
        assert await texts(shelf, query, **options) == expected


async def test_a_filter_of_ids(shelf: Gate) -> None:
    chosen = (await recall(shelf)).hits[2]
    assert await texts(shelf, memory_ids=(chosen.memory_id, "mem_none")) == {chosen.text}


async def test_sources_come_when_asked_for(shelf: Gate) -> None:
    without = (await recall(shelf, "mint", fact_types=("world",))).hits[0]
    assert (without.source, without.principal, without.metadata) == (None, None, {})
    hit = next(hit for hit in (await recall(shelf, "mint", include_sources=True)).hits if hit.text == "mint tea")
    assert (hit.source, hit.metadata, hit.speaker, hit.session_id) == ("diary", {}, "Ann", "s1")
    assert (hit.memory_layer, hit.principal, hit.bank_id, hit.version) == ("episodic", "local", "b", 1)


async def test_a_date_in_the_question_runs_the_temporal_arm(shelf: Gate) -> None:
    dated = await recall(shelf, "what tea in May 2024?")
    assert dated.trace is not None
    assert dated.trace.strategies_used == ("semantic", "keyword", "temporal")
    assert dated.trace.time_windows == (TimeRange(MAY, datetime(2024, 5, 31, 23, 59, 59, 999_000, tzinfo=UTC)),)
    assert dated.hits[0].text in {"green tea", "black tea"}
    plain = await recall(shelf, "what tea?")
    assert plain.trace is not None
    assert "temporal" not in (plain.trace.strategies_used or ())
    span = TimeRange(MAY, MAY + timedelta(days=60))
    ranged = await recall(shelf, "what tea?", time_range=span)
    assert ranged.trace is not None
    assert ranged.trace.time_windows == (span,)


async def test_relative_dates_count_from_the_reference(shelf: Gate) -> None:
    result = await recall(shelf, "tea last month", query_reference_date=datetime(2024, 6, 10, tzinfo=UTC))
    assert result.trace is not None
    assert result.trace.time_windows[0].start == MAY


async def test_detail_levels(gate: Gate) -> None:
    await gate.call(ME, Retain("b", RetainItem(LONG, occurred_at=MAY, speaker="Ann")))
    (title,) = (await recall(gate, detail_level=DetailLevel.TITLES)).hits
    assert title.text.startswith("Wednesday 1 May 2024 \u00b7 Ann \u00b7 The tea house opened in spring.")
    assert len(title.text) < 130
    assert title.token_count == count_tokens(title.text)
    assert (await recall(gate, detail_level=DetailLevel.FULL)).hits[0].text == LONG
    await gate.call(ME, Retain("b", RetainItem("plum cake", metadata={"title": "A recipe"})))
    hits = (await recall(gate, "plum cake", detail_level=DetailLevel.TITLES)).hits
    assert "A recipe" in {hit.text for hit in hits}


async def test_full_text_of_a_memory_of_many_chunks(gate: Gate) -> None:
    content = " ".join(f"Sentence {n} speaks of tea and of nothing else at all." for n in range(80))
    await gate.call(ME, Retain("b", RetainItem(content)))
    (hit,) = (await recall(gate, detail_level=DetailLevel.FULL)).hits
    assert (hit.text, hit.chunk_index) == (content, -1)
    assert hit.token_count == count_tokens(content)
    (cut,) = (await recall(gate, detail_level=DetailLevel.FULL, max_tokens=100)).hits
    assert cut.token_count <= 100
    assert cut.text.endswith(".")
    assert content.startswith(cut.text)


async def test_the_first_hit_is_cut_at_a_sentence_end(gate: Gate) -> None:
    await gate.call(ME, Retain("b", RetainItem(LONG)))
    result = await recall(gate, max_tokens=12)
    assert [hit.text for hit in result.hits] == ["The tea house opened in spring."]
    assert result.truncated
    tight = await recall(gate, max_tokens=3)
    assert tight.hits[0].text == "The tea house"
    assert tight.hits[0].token_count <= 3
    whole = await recall(gate, max_tokens=count_tokens(LONG))
    assert (whole.hits[0].text, whole.truncated) == (LONG, False)


async def test_a_hit_that_does_not_fit_is_passed_over(gate: Gate) -> None:
    await gate.call(ME, BatchRetain("b", [RetainItem("tea"), RetainItem(LONG), RetainItem("tea and jam")]))
    result = await recall(gate, max_tokens=count_tokens("tea") + count_tokens("tea and jam"))
    assert {hit.text for hit in result.hits} == {"tea", "tea and jam"}
    assert result.truncated
    assert result.total_available == 3


@pytest.mark.parametrize("level", list(DetailLevel))
async def test_budgets_hold(gate: Gate, level: DetailLevel) -> None:
    await gate.call(
        ME, BatchRetain("b", [RetainItem(f"{LONG} Number {n} of them." + " More tea." * n) for n in range(30)])
    )
    for budget in (1, 5, 20, 50, 200, 1_000):
        result = await recall(gate, max_tokens=budget, max_results=30, detail_level=level)
        assert sum(count_tokens(hit.text) for hit in result.hits) <= budget
        assert sum(hit.token_count for hit in result.hits) <= budget
        assert result.hits


async def test_a_wish_above_the_ceiling_is_cut_to_it() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "homeostasis": {"recall_max_tokens": 12}}))
    await app.gate.call(ME, Retain("b", RetainItem(LONG)))
    for wish in (None, 1_000_000):
        result = await recall(app.gate, max_tokens=wish)
        assert result.truncated
        assert result.hits[0].token_count <= 12
    await app.close()


async def test_layer_weights_and_arm_weights_change_the_order(shelf: Gate) -> None:
    assert (await recall(shelf, "green tea")).hits[0].text == "green tea"
    layers = {"episodic": 100.0, "semantic": 0.01}
    raised = await recall(shelf, "green tea", layer_weights=layers, fusion_method=FusionMethod.RRF)
    assert raised.hits[0].text == "mint tea"
    both = await recall(shelf, "green tea", layer_weights={"fact": 0.01, "episodic": 100.0})
    assert [hit.text for hit in both.hits] == [
        hit.text for hit in (await recall(shelf, "green tea", layer_weights={"semantic": 0.01, "episodic": 100.0})).hits
    ]
    only_words = await recall(shelf, weights={"semantic": 0.0, "keyword": 1.0})
    assert only_words.trace is not None
    assert only_words.trace.strategies_used == ("keyword",)


@pytest.mark.parametrize("method", list(FusionMethod))
async def test_the_trace_is_filled_in_full(shelf: Gate, method: FusionMethod) -> None:
    result = await recall(shelf, fusion_method=method, rank_constant=10.0 if method is FusionMethod.RRF else None)
    trace = result.trace
    assert trace is not None
    assert trace.fusion_method == method.value
    assert trace.total_candidates == 10
    assert trace.strategy_candidate_counts == {"semantic": 5, "keyword": 5}
    assert trace.layer_distribution == {"semantic": 4, "episodic": 1}
    assert set(trace.stage_timings_ms or {}) == {"analyse", "embed", "core", "feedback", "turns", "hydrate"}
    assert sum((trace.stage_timings_ms or {}).values()) <= (trace.latency_ms or 0.0)
    assert (trace.tier_used, trace.cache_hit, trace.wiki_tier_used, trace.position) == (3, False, False, 5)
    assert "5 of 5" in (trace.plan or "")
    for hit in result.hits:
        assert {arm.arm for arm in hit.arms} == {"semantic", "keyword"}
        assert all(1 <= arm.rank <= 5 for arm in hit.arms)
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert (await recall(shelf, include_trace=False)).trace is None


async def test_equal_scores_are_ordered_by_id(gate: Gate) -> None:
    await gate.call(ME, CreateBank("b", embedding_model="mine", dimensions=2))
    vector = Embedding("mine", 2, struct.pack("<2f", 1.0, 0.0))
    items = [RetainItem(f"note {n}", embedding=vector, dedup_action=DedupAction.WARN) for n in range(9)]
    await gate.call(ME, BatchRetain("b", items))
    hits = (await recall(gate, "", embedding=vector)).hits
    ids = [hit.memory_id or "" for hit in hits]
    assert len({hit.fused_score for hit in hits}) == 1
    assert ids == sorted(ids)


async def test_the_same_question_has_the_same_answer(shelf: Gate) -> None:
    first = await recall(shelf, "tea in May")
    for _ in range(5):
        assert (await recall(shelf, "tea in May")).hits == first.hits


@pytest.fixture
async def threaded() -> AsyncIterator[Gate]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"inline_rows": 0}}))
    yield app.gate
    await app.close()


async def test_the_executor_answers_as_the_loop_does(shelf: Gate, threaded: Gate) -> None:
    for name in sorted(ALL):
        await threaded.call(ME, Retain("b", RetainItem(name)))
    here, there = await recall(shelf), await recall(threaded)
    assert {hit.text for hit in here.hits} == {hit.text for hit in there.hits}


async def test_a_recall_of_a_large_bank_leaves_the_loop(threaded: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, left = asyncio.get_running_loop(), 0
    run = loop.run_in_executor

    def counting(*given: Any) -> Any:
        nonlocal left
        left += 1
        return run(*given)

    await threaded.call(ME, Retain("b", RetainItem("tea")))
    monkeypatch.setattr(loop, "run_in_executor", counting)
    for expected in (1, 2, 3):
        await recall(threaded, "tea")
        assert left == expected
