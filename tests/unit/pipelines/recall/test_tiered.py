"""Recall by tiers: which one answers and why, that filters hold in each, and what a language model may add."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.api.requests import BatchRecall, BatchRetain, DeleteBank, Forget, GetBank, ListMemories, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import (
    Caller,
    DetailLevel,
    Embedding,
    ForgetSelector,
    MemoryHit,
    RecallQuery,
    RecallResult,
    RecallTrace,
    RetainItem,
)
from astrocyte.pipelines.recall.recent_words import RecentWords, alike

ME = Caller()
TEAS = [f"the {kind} teapot stands in the kitchen" for kind in ("green", "black", "white", "round", "large")]
QUESTION = "where is the teapot in the kitchen?"


@asynccontextmanager
async def opened(tiers: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[App]:
    values = {"vector_store": "in_memory", "tiered_retrieval": {"enabled": True, **(tiers or {})}, **settings}
    app = App(Settings.from_mapping(values))
    try:
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in TEAS]))
        yield app
    finally:
        await app.close()


async def ask(app: App, query: str = QUESTION, **options: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(query, "b", **options)))


def step(trace: RecallTrace) -> tuple[str, int | None]:
    """The answer and its tier: of the two of tier 2 the one that was tried last."""
    names = {1: "cache", 2: trace.tier_reason.rsplit("; ", 1)[-1].partition(":")[0], 3: "full", 4: "agentic"}
    return names[trace.tier_used or 0], trace.tier_used


async def tier(app: App, query: str = QUESTION, **options: Any) -> tuple[str, int | None]:
    trace = (await ask(app, query, **options)).trace
    assert trace is not None
    return step(trace)


def scripted(*queries: str) -> dict[str, Any]:
    return {"llm_provider": "mock", "llm_provider_config": {"replies": [json.dumps({"queries": list(queries)})]}}


async def test_without_tiers_every_answer_is_the_full_one() -> None:
    async with opened({"enabled": False}) as app:
        result = await ask(app)
    assert result.trace is not None
    assert (result.trace.tier_used, result.trace.tier_reason) == (3, "")


async def test_the_newest_memories_answer_first_and_nothing_is_embedded() -> None:
    async with opened() as app:
        recall: Any = app.gate._pipelines.recall

        async def never(_texts: list[str]) -> list[bytes | None]:
            raise AssertionError("embedded a question that words answer")

        recall._recall._embed = never
        result = await ask(app)
    assert result.trace is not None
    assert step(result.trace) == ("recent", 2)
    assert result.trace.tier_reason == "recent: 5 good of 3 wanted"
    assert {hit.text for hit in result.hits} == set(TEAS)


async def test_a_misspelt_word_finds_what_was_said_a_moment_ago() -> None:
    async with opened({"min_score": 0.6}) as app:
        assert await tier(app, "teepot kitchn") == ("recent", 2)
        assert {hit.text for hit in (await ask(app, "teepot kitchn")).hits} == set(TEAS)


async def test_older_memories_answer_by_their_words_and_others_in_full() -> None:
    async with opened({"recent_memories": 2}) as app:
        assert await tier(app) == ("keyword", 2)
        assert await tier(app, "crockery of porcelain") == ("full", 3)
        result = await ask(app, "crockery of porcelain")
    assert result.trace is not None
    assert result.trace.tier_reason == "recent: 0 good of 3 wanted; keyword: 0 good of 3 wanted"


async def test_an_equal_question_is_answered_from_the_cache() -> None:
    async with opened(recall={"cache_bytes": 1_000_000}) as app:
        assert await tier(app) == ("recent", 2)
        assert await tier(app, "crockery of porcelain") == ("full", 3)
        assert await tier(app, "crockery of porcelain") == ("cache", 1)
        await app.gate.call(ME, Retain("b", RetainItem("crockery of porcelain")))
        assert await tier(app, "crockery of porcelain") == ("full", 3)


async def test_who_says_how_to_be_answered_is_answered_so() -> None:
    async with opened() as app:
        assert await tier(app, weights={"keyword": 1.0}) == ("full", 3)
        assert await tier(app, external_context=(MemoryHit("a kettle", 1.0),)) == ("full", 3)
        assert await tier(app, "why?") == ("full", 3)
        bank = await app.gate.call(ME, GetBank("b"))
        vector = Embedding(bank.embedding_model, bank.dimensions, b"\0\0\x80\x3f" * bank.dimensions)
        assert await tier(app, embedding=vector) == ("full", 3)


async def test_max_tier_keeps_to_words() -> None:
    async with opened({"max_tier": 2}) as app:
        assert await tier(app, "crockery of porcelain") == ("keyword", 2)


async def test_filters_hold_in_every_tier() -> None:
    async with opened({"min_results": 1}, **scripted("the kitchen")) as app:
        tagged = "the tin teapot stands in the kitchen"
        await app.gate.call(ME, Retain("b", RetainItem(tagged, tags=("x",))))
        for tiers in ({}, {"max_tier": 4}):
            for query in (QUESTION, "crockery of porcelain"):
                result = await ask(app, query, tags=("x",))
                assert {hit.text for hit in result.hits} <= {tagged}, tiers
        long_ago = datetime(2001, 1, 1, tzinfo=UTC)
        assert (await ask(app, as_of=long_ago)).hits == ()


async def test_what_was_forgotten_or_deleted_is_in_no_tier() -> None:
    async with opened({"min_results": 1}) as app:
        page = await app.gate.call(ME, ListMemories("b"))
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(page.memories[0].memory_id,))))
        assert {hit.text for hit in (await ask(app)).hits} == {one.content for one in page.memories[1:]}
        recent = app.gate._pipelines.recall._recent  # type: ignore[attr-defined]
        assert sum(len(held) for held in recent._banks.values()) == len(TEAS) - 1
        await app.gate.call(ME, DeleteBank("b"))
        assert not recent._banks


async def test_a_language_model_puts_the_question_otherwise() -> None:
    async with opened({"max_tier": 4}, **scripted(QUESTION, "the round teapot", "", "the round teapot")) as app:
        result = await ask(app, "crockery of porcelain", max_results=2)
    assert result.trace is not None
    assert result.trace.tier_used == 4
    assert result.trace.tier_reason.endswith("agentic: 2 other queries")
    assert len(result.hits) == 2
    assert "the round teapot stands in the kitchen" in [hit.text for hit in result.hits]
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


@pytest.mark.parametrize("reply", ["no JSON", "[]", '{"queries": [1]}', '{"queries": []}'])
async def test_a_language_model_that_does_not_help_costs_nothing_but_time(reply: str) -> None:
    model = {"llm_provider": "mock", "llm_provider_config": {"replies": [reply]}}
    async with opened({"max_tier": 4}, **model) as app, opened({"enabled": False}) as bare:
        result, full = await ask(app, "crockery of porcelain"), await ask(bare, "crockery of porcelain")
    assert [hit.text for hit in result.hits] == [hit.text for hit in full.hits]
    assert result.trace is not None
    assert result.trace.tier_used == 3
    assert "agentic: " in result.trace.tier_reason


async def test_the_budget_holds_over_all_queries() -> None:
    async with opened({"max_tier": 4}, **scripted(QUESTION)) as app:
        for level in DetailLevel:
            result = await ask(app, "crockery of porcelain", max_tokens=20, detail_level=level)
            assert sum(hit.token_count for hit in result.hits) <= 20
            assert result.hits


async def test_a_batch_equals_its_single_calls() -> None:
    async with opened() as app:
        queries = [RecallQuery(text, "b") for text in (QUESTION, "crockery of porcelain", "why?")]
        batch = await app.gate.call(ME, BatchRecall(queries))
        for one, query in zip(batch, queries, strict=True):
            alone = await app.gate.call(ME, Recall(query))
            assert tuple(one.hits) == tuple(alone.hits)
            assert one.trace is not None
            assert alone.trace is not None
            assert one.trace.tier_reason == alone.trace.tier_reason
            assert (await app.gate.call(ME, Recall(replace(query, include_trace=False)))).trace is None


def test_a_tier_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        App(Settings.from_mapping({"vector_store": "in_memory", "tiered_retrieval": {"enabled": True, "max_tier": 4}}))
    assert refused.value.metadata["key"] == "tiered_retrieval.max_tier"


def distance_of_one(one: str, other: str) -> bool:
    """By the definition: every change of one letter, tried."""
    changed = {one[:at] + one[at + 1 :] for at in range(len(one))}
    changed |= {one[:at] + letter + one[at:] for at in range(len(one) + 1) for letter in "ab"}
    changed |= {one[:at] + letter + one[at + 1 :] for at in range(len(one)) for letter in "ab"}
    changed |= {one[:at] + one[at + 1] + one[at] + one[at + 2 :] for at in range(len(one) - 1)}
    return one != other and other in changed and min(len(one), len(other)) >= 4


@given(st.text("ab", max_size=7), st.text("ab", max_size=7))
def test_words_are_alike_that_differ_in_one_letter(one: str, other: str) -> None:
    assert alike(one, other) is distance_of_one(one, other)


def test_without_words_nothing_is_near() -> None:
    assert RecentWords(10, 10).match(1, "where is it?", 0.3).memory_ids == ()
