"""Lifts in the core equal those of the stages after it: the same hits, scores and texts."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Caller, DetailLevel, FusionMethod, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.recall.post_ranking import Rescorer

ME = Caller()
WORDS = [f"word{number}" for number in range(60)]
SPEAKERS = ("User", "assistant", "ME", "Ann", None, "userland")
QUESTIONS = ("which {} did I take to the {}?", "what is our {} and my {}?", "why did we {}, I mean {}?")
MOST_TOKENS = 4_000


def memories(seed: int) -> list[RetainItem]:
    """Short turns, notes outside of conversations, and long texts of several chunks, by several speakers."""
    draw = random.Random(seed)
    items = []
    for number in range(120):
        long = number % 17 == 0
        words = draw.choices(WORDS, weights=range(60, 0, -1), k=400 if long else 8)
        text = ". ".join(" ".join(words[first : first + 8]) for first in range(0, len(words), 8))
        session = f"s{number // 9}" if number % 5 else None
        items.append(RetainItem(f"{number}: {text}.", session_id=session, speaker=draw.choice(SPEAKERS)))
    return items


@pytest.fixture(params=[{}, {"feedback": 0.0}, {"context_windows": False, "dedup_threshold": 0.9}], ids=str)
async def app(request: pytest.FixtureRequest) -> AsyncIterator[App]:
    settings = {"vector_store": "in_memory", "recall": {"feedback_pieces": 100.0, **request.param}}
    app = App(Settings.from_mapping(settings))
    await app.gate.call(ME, BatchRetain("b", memories(seed=len(str(request.param)))))
    yield app
    await app.close()


def parts(app: App) -> tuple[RecallPipeline, Bank]:
    pipeline: Any = app.gate._pipelines.recall
    bank = pipeline.assembly._store.get_bank(ME.tenant, "b")
    assert bank is not None
    return pipeline, bank


async def by_stages(pipeline: RecallPipeline, bank: Bank, query: RecallQuery) -> RecallResult:
    plan = await pipeline.plan(bank, query, MOST_TOKENS, 0.0)
    await pipeline.embed([plan])
    result = await pipeline.answer(plan)
    assert plan.lift is None
    return result


def said(result: RecallResult) -> tuple[object, ...]:
    assert result.trace is not None
    stages = set(result.trace.stage_timings_ms or {})
    untimed = replace(result.trace, latency_ms=0.0, strategy_timings_ms={}, stage_timings_ms={})
    return tuple(result.hits), replace(result, hits=(), trace=untimed), stages


async def test_the_core_lifts_as_the_stages_do(app: App) -> None:
    pipeline, bank = parts(app)
    draw = random.Random(1)
    boosted = 0
    for turn in range(60):
        query = RecallQuery(
            draw.choice(QUESTIONS).format(*draw.sample(WORDS, 2)),
            "b",
            max_results=draw.choice((1, 3, 10, 30)),
            max_tokens=draw.choice((None, 3, 25, 120)),
            fusion_method=draw.choice((None, FusionMethod.RRF)),
        )
        lifted, staged = await pipeline.run(bank, query, MOST_TOKENS), await by_stages(pipeline, bank, query)
        assert said(lifted) == said(staged), f"turn {turn}: {query}"
        boosted += sum(bool(hit.boosts) for hit in lifted.hits)
    assert boosted


async def test_a_batch_is_lifted_as_its_single_calls(app: App) -> None:
    pipeline, bank = parts(app)
    queries = [RecallQuery(form.format("word3", "word9"), "b") for form in (*QUESTIONS, "the {} of the {}")]
    batch = await pipeline.run_many([(bank, query, MOST_TOKENS, "") for query in queries])
    assert [tuple(one.hits) for one in batch] == [
        tuple((await pipeline.run(bank, query, MOST_TOKENS)).hits) for query in queries
    ]


def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a stage ran")

    monkeypatch.setattr(Rescorer, "run", refuse)


async def test_no_more_rows_are_read_than_shown(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, bank = parts(app)
    refusing(monkeypatch)
    read: list[int] = []
    store: Any = pipeline.assembly._store
    hydrate = store.hydrate

    def counting(bank: Bank, passages: Any, visibility: Any) -> Any:
        read.append(len(passages))
        return hydrate(bank, passages, visibility)

    monkeypatch.setattr(store, "hydrate", counting)
    result = await pipeline.run(bank, RecallQuery("which word1 did I take to the word2?", "b"), MOST_TOKENS)
    assert read == [len(result.hits)]
    assert any(hit.boosts for hit in result.hits)


@pytest.mark.parametrize("level", [DetailLevel.FULL, DetailLevel.TITLES])
async def test_what_counts_other_texts_is_left_to_the_stages(
    app: App, monkeypatch: pytest.MonkeyPatch, level: DetailLevel
) -> None:
    pipeline, bank = parts(app)
    refusing(monkeypatch)
    with pytest.raises(AssertionError, match="a stage ran"):
        await pipeline.run(
            bank, RecallQuery("which word1 did I take to the word2?", "b", detail_level=level), MOST_TOKENS
        )
