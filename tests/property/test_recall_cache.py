"""With the cache every answer is what it would be without: any order of writes and questions, any fields."""

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from astrocyte.api.requests import BatchRecall, Forget, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, DetailLevel, ForgetSelector, MemoryHit, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.recall.cache import RecallCache
from astrocyte.pipelines.recall.pipeline import RecallPipeline

ME = Caller()
WORDS = ("green tea", "black tea", "plum cake", "tea and cake in the garden", "the garden")
METADATA: tuple[dict[str, Any], ...] = ({}, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"})
queries = st.builds(
    RecallQuery,
    st.sampled_from(WORDS),
    st.sampled_from(("a", "b")),
    max_results=st.integers(1, 3),
    max_tokens=st.sampled_from((None, 3, 50)),
    metadata=st.sampled_from(METADATA),
    tags=st.sampled_from(((), ("x",))),
    include_sources=st.booleans(),
    include_trace=st.booleans(),
    detail_level=st.sampled_from(DetailLevel),
    external_context=st.sampled_from(((), (MemoryHit("a kettle", 1.0),))),
)
retains = st.tuples(
    st.just("retain"),
    st.sampled_from(("a", "b")),
    st.builds(
        RetainItem,
        st.sampled_from(WORDS) | st.text("tea cake", min_size=1).filter(str.strip),
        metadata=st.sampled_from(METADATA),
        tags=st.sampled_from(((), ("x",))),
        source=st.sampled_from((None, "diary")),
    ),
)
forgets = st.tuples(st.just("forget"), st.sampled_from(("a", "b")), st.sampled_from(("x",)))
asks = st.tuples(st.just("ask"), queries, st.none())
# Few different questions, so that many are asked again.
stories = st.lists(asks, min_size=1, max_size=3).flatmap(
    lambda few: st.lists(st.one_of(st.sampled_from(few), st.sampled_from(few), retains, forgets), max_size=14)
)


def plain(result: RecallResult) -> RecallResult:
    """Without what tells how long it took, and which tier answered."""
    trace = result.trace
    if trace is not None:
        trace = replace(
            trace,
            cache_hit=None,
            tier_used=None,
            latency_ms=None,
            strategy_timings_ms=None,
            stage_timings_ms=None,
        )
    return replace(result, hits=tuple(result.hits), trace=trace)


async def play(story: list[tuple[str, Any, Any]], cache_bytes: int) -> int:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"cache_bytes": cache_bytes}}))
    gate, recall = app.gate, app.gate._pipelines.recall
    assert isinstance(recall, RecallPipeline)
    cache = recall._cache or RecallCache(0)
    from_cache = 0
    try:
        for bank in ("a", "b"):
            await gate.call(ME, Retain(bank, RetainItem("tea")))
        for action, first, second in story:
            if action == "retain":
                await gate.call(ME, Retain(first, second))
            elif action == "forget":
                await gate.call(ME, Forget(first, ForgetSelector(tags=(second,))))
            else:
                answer = await gate.call(ME, Recall(first))
                # A batch never looks into the cache.
                (fresh,) = await gate.call(ME, BatchRecall([first]))
                assert plain(answer) == plain(fresh)
                from_cache += answer.trace is not None and bool(answer.trace.cache_hit)
            assert 0 <= cache.size_bytes <= cache_bytes
    finally:
        await app.close()
    return from_cache


@settings(max_examples=60, deadline=None)
@given(stories, st.sampled_from((9_000, 20_000, 1 << 20)))
def test_any_story_is_told_the_same(story: list[tuple[str, Any, Any]], cache_bytes: int) -> None:
    asyncio.run(play(story, cache_bytes))


def test_what_is_asked_again_comes_from_the_cache_until_something_changes() -> None:
    ask = ("ask", RecallQuery("tea", "a"), None)
    other = ("retain", "b", RetainItem("more tea"))
    own = ("retain", "a", RetainItem("more tea"))
    assert asyncio.run(play([ask, ask, other, ask], 1 << 20)) == 2
    assert asyncio.run(play([ask, own, ask], 1 << 20)) == 0
    assert asyncio.run(play([ask, ask], 0)) == 0


def test_types_of_metadata_are_part_of_the_question() -> None:
    story: list[tuple[str, Any, Any]] = []
    for value in (1, True, 1.0, "1"):
        story += [("retain", "a", RetainItem(f"tea {value!r}", metadata={"n": value}))]
    story += [("ask", RecallQuery("tea", "a", metadata={"n": value}), None) for value in (1, True, 1.0, "1")]
    assert asyncio.run(play(story, 1 << 20)) == 0
