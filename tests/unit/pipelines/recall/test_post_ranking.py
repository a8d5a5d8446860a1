"""Stages after the core: boosts, utility and curated recall, through the gate; each bounded, and told of."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Forget, ListMemories, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import (
    Caller,
    FusionMethod,
    MemoryHit,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    RetainItem,
)
from astrocyte.pipelines.recall.boosts import names_of, quotes_of

ME = Caller()
MAY = datetime(2024, 5, 1, tzinfo=UTC)
DAY_MS = 86_400_000
# Equal in all that the arms look at, so that order is by id, and only a boost can change it.
ALIKE = [f"tea {word}" for word in ("kettle", "teapot", "saucer", "napkin")]


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(clock: Callable[[], int] | None = None, **settings: Any) -> AsyncIterator[App]:
    values = Settings.from_mapping({"vector_store": "in_memory", **settings})
    app = App(values) if clock is None else App(values, clock=clock)
    try:
        yield app
    finally:
        await app.close()


def boosts(**rules: Any) -> dict[str, Any]:
    return {"recall": {"boosts": rules, "feedback": 0.0, "context_windows": False}}


async def ask(app: App, query: str = "tea", **options: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(query, "b", **options)))


def lift(hit: MemoryHit, name: str) -> float:
    return math.fsum(value for found, value in hit.boosts if found == name)


async def by_text(app: App, query: str = "tea", **options: Any) -> dict[str, MemoryHit]:
    return {hit.text: hit for hit in (await ask(app, query, **options)).hits}


async def test_without_a_stage_nothing_is_boosted_and_no_stage_is_timed() -> None:
    async with opened() as app:
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in ALIKE]))
        result = await ask(app, 'what did Mara call "tea kettle"?')
    assert [hit.boosts for hit in result.hits] == [()] * len(result.hits)
    assert [hit.utility_score for hit in result.hits] == [None] * len(result.hits)
    assert result.trace is not None
    assert result.trace.stage_timings_ms is not None
    assert set(result.trace.stage_timings_ms) == {"embed", "analyse", "core", "feedback", "turns", "hydrate"}


async def test_recency_halves_with_every_half_life_from_the_newest_memory() -> None:
    async with opened(**boosts(recency={"weight": 0.8, "half_life_days": 10})) as app:
        times = [MAY, MAY - timedelta(days=10), MAY - timedelta(days=20)]
        items = [RetainItem(text, occurred_at=when) for text, when in zip(ALIKE, times, strict=False)]
        await app.gate.call(ME, BatchRetain("b", items))
        hits = await by_text(app)
        assert [lift(hits[text], "recency") for text in ALIKE[:3]] == pytest.approx([0.8, 0.4, 0.2])
        later = await by_text(app, query_reference_date=MAY + timedelta(days=10))
        assert [lift(later[text], "recency") for text in ALIKE[:3]] == pytest.approx([0.4, 0.2, 0.1])
        result = await ask(app)
    assert result.trace is not None
    assert "boosts" in (result.trace.stage_timings_ms or {})


async def test_proof_counts_confirmations_up_to_its_bound() -> None:
    counts: list[Any] = [1, 3, 500, True, "9", None, float("nan"), -4]
    async with opened(**boosts(proof={"weight": 0.1, "bound": 0.5})) as app:
        texts = [f"tea number {place}" for place in range(len(counts))]
        await app.gate.call(
            ME,
            BatchRetain(
                "b",
                [
                    RetainItem(text, metadata={"proof_count": count})
                    for text, count in zip(texts, counts, strict=True)
                    if not isinstance(count, float)
                ],
            ),
        )
        hits = await by_text(app)
    expected = {texts[1]: 0.2, texts[2]: 0.5}
    assert {text: lift(hit, "proof") for text, hit in hits.items()} == pytest.approx(
        {text: expected.get(text, 0.0) for text in hits}
    )
    assert list(hits)[:2] == [texts[2], texts[1]]


async def test_names_lift_whoever_holds_them_and_leave_other_questions_alone() -> None:
    async with opened(**boosts(names={"weight": 0.3, "bound": 0.4})) as app:
        await app.gate.call(
            ME,
            BatchRetain(
                "b", [RetainItem("tea with Mara and Ines"), RetainItem("tea", speaker="Mara"), RetainItem("tea pot")]
            ),
        )
        hits = await by_text(app, "which tea did Mara and Ines drink?")
        assert {text: lift(hit, "names") for text, hit in hits.items()} == pytest.approx(
            {"tea with Mara and Ines": 0.4, "tea": 0.3, "tea pot": 0.0}
        )
        plain = await ask(app, "Which tea was it?")
    assert all(hit.boosts == () for hit in plain.hits)
    assert plain.trace is not None
    assert "boosts" not in (plain.trace.stage_timings_ms or {})


async def test_quotes_lift_the_phrase_as_it_was_said() -> None:
    async with opened(**boosts(quotes={"weight": 1.0})) as app:
        texts = ["They said: over the Moon!", "over and over the pale moon", "the moon"]
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in texts]))
        hits = await by_text(app, "who was “over the moon”?")
    assert {text: lift(hit, "quotes") for text, hit in hits.items()} == {texts[0]: 1.0, texts[1]: 0.0, texts[2]: 0.0}


@pytest.mark.parametrize(
    ("query", "names", "quotes"),
    [
        ("Where did Mara's sister meet Anders on Monday?", {"mara", "anders"}, []),
        ("Mara met whom? Did I know?", set(), []),
        ('who said "a b" and «c d»?', set(), ["a b", "c d"]),
        ("it's Ann's and Bob's", {"ann", "bob"}, []),
        ('an empty "" one', set(), []),
    ],
)
def test_what_a_question_names_and_quotes(query: str, names: set[str], quotes: list[str]) -> None:
    assert names_of(query) == names
    assert quotes_of(query) == quotes


async def test_a_boost_brings_a_memory_into_the_answer_that_the_core_would_have_cut() -> None:
    words = [f"tea {place}" for place in range(15)]
    async with opened(**boosts(proof={"weight": 5.0, "bound": 5.0})) as app:
        await app.gate.call(
            ME,
            BatchRetain(
                "b", [RetainItem(text, metadata={"proof_count": 2 if text == words[-1] else 1}) for text in words]
            ),
        )
        result = await ask(app, max_results=3)
    assert len(result.hits) == 3
    assert result.hits[0].text == words[-1]
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


async def test_the_budget_holds_in_the_new_order() -> None:
    async with opened(**boosts(proof={"weight": 5.0, "bound": 5.0})) as app:
        long = "tea " * 40
        await app.gate.call(
            ME,
            BatchRetain(
                "b", [RetainItem("tea cup"), RetainItem(long, metadata={"proof_count": 2}), RetainItem("tea pot")]
            ),
        )
        result = await ask(app, max_tokens=8)
    assert result.truncated
    assert result.hits[0].text.startswith("tea tea")
    assert sum(hit.token_count for hit in result.hits) <= 8


async def test_with_ranks_a_boost_is_measured_in_first_places() -> None:
    async with opened(**boosts(proof={"weight": 1.0})) as app:
        await app.gate.call(
            ME, BatchRetain("b", [RetainItem("tea cup", metadata={"proof_count": 2}), RetainItem("tea pot")])
        )
        hits = await by_text(app, fusion_method=FusionMethod.RRF)
    assert lift(hits["tea cup"], "proof") == pytest.approx(1 / 61)


async def test_frequency_lifts_what_was_found_before_and_forgets_with_the_memory() -> None:
    async with opened(**boosts(frequency={"weight": 0.5, "bound": 1.0})) as app:
        await app.gate.call(ME, BatchRetain("b", [RetainItem("green tea"), RetainItem("black coffee")]))
        seen = [lift((await by_text(app, "green tea", max_results=1))["green tea"], "frequency") for _ in range(5)]
        assert seen == pytest.approx([0.0, 0.5, 0.5 * math.log2(3), 1.0, 1.0])
        page = await app.gate.call(ME, ListMemories("b"))
        recall: Any = app.gate._pipelines.recall
        usage = recall._rescorer.usage
        assert usage is not None
        assert len(usage._counts) == 1
        from astrocyte.model import ForgetSelector

        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=tuple(one.memory_id for one in page.memories))))
        assert len(usage._counts) == 0


async def test_utility_is_the_mean_of_its_parts() -> None:
    clock = Clock()
    async with opened(clock, recall={"utility": {"enabled": True}}) as app:
        await app.gate.call(ME, Retain("b", RetainItem("green tea")))
        clock.now += 28 * DAY_MS
        (first,) = (await ask(app)).hits
        assert first.utility_score == pytest.approx(0.2 * 0.5)
        clock.now += 7 * DAY_MS
        (second,) = (await ask(app)).hits
    freshness = 0.2 * 2 ** (-35 / 28)
    assert second.utility_score == pytest.approx(0.3 * 0.5 + 0.2 * 0.01 + 0.3 * 1.0 + freshness)
    assert second.boosts == ()


async def test_utility_counts_no_more_memories_than_it_may() -> None:
    async with opened(recall={"utility": {"enabled": True, "entries": 2}}) as app:
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in ALIKE]))
        await ask(app)
        recall: Any = app.gate._pipelines.recall
        usage = recall._rescorer.usage
        assert usage is not None
        assert len(usage._counts) == 2


async def test_curated_recall_is_the_mean_of_its_shares() -> None:
    async with opened(curated_recall={"enabled": True}, recall={"feedback": 0.0}) as app:
        items = [
            RetainItem("tea cup", occurred_at=MAY, fact_type="experience", source="diary"),
            RetainItem("tea pot", occurred_at=MAY - timedelta(days=30), fact_type="world"),
        ]
        await app.gate.call(ME, BatchRetain("b", items))
        hits = (await ask(app)).hits
        core = {hit.text: (hit.fused_score or 0.0) - lift(hit, "curated") for hit in hits}
        low, high = min(core.values()), max(core.values())
        span = high - low or 1.0
        parts = {"tea cup": (1.0, 1.0, 0.5), "tea pot": (0.5, 0.7, 0.5)}
        for hit in hits:
            original = (core[hit.text] - low) / span if high > low else 1.0
            fresh, reliable, salient = parts[hit.text]
            value = 0.3 * original + 0.3 * fresh + 0.2 * reliable + 0.2 * salient
            assert hit.fused_score == pytest.approx(low + span * value)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_curated_recall_leaves_out_what_scores_too_little() -> None:
    settings = {"enabled": True, "original": 0.0, "freshness": 0.0, "salience": 0.0, "reliability": 1.0}
    async with opened(curated_recall={**settings, "min_score": 0.8}) as app:
        await app.gate.call(
            ME,
            BatchRetain("b", [RetainItem("tea cup", fact_type="experience"), RetainItem("tea pot", fact_type="world")]),
        )
        assert [hit.text for hit in (await ask(app)).hits] == ["tea cup"]


async def test_a_filter_holds_on_the_candidates_of_stages() -> None:
    async with opened(**boosts(proof={"weight": 5.0, "bound": 5.0})) as app:
        await app.gate.call(
            ME,
            BatchRetain("b", [RetainItem("tea cup", tags=("x",)), RetainItem("tea pot", metadata={"proof_count": 9})]),
        )
        assert set(await by_text(app, tags=("x",))) == {"tea cup"}


async def test_a_batch_equals_its_single_calls() -> None:
    async with opened(**boosts(proof={"weight": 0.5}, names={"weight": 0.5})) as app:
        await app.gate.call(
            ME,
            BatchRetain(
                "b", [RetainItem(f"tea for Mara {place}", metadata={"proof_count": place}) for place in range(30)]
            ),
        )
        queries = [RecallQuery(text, "b", max_results=7) for text in ("tea", "what did Mara drink?", "tea")]
        batch = await app.gate.call(ME, BatchRecall(queries))
        assert [one.hits for one in batch] == [(await app.gate.call(ME, Recall(query))).hits for query in queries]


async def test_several_banks_are_fused_with_what_the_stages_added() -> None:
    async with opened(**boosts(proof={"weight": 3.0, "bound": 3.0})) as app:
        await app.gate.call(ME, BatchRetain("a", [RetainItem(text) for text in ALIKE]))
        await app.gate.call(
            ME, BatchRetain("b", [RetainItem("tea spoon", metadata={"proof_count": 2}), RetainItem("tea cosy")])
        )
        query = RecallQuery("tea", banks=("a", "b"), strategy=MultiBankStrategy("parallel"))
        result = await app.gate.call(ME, Recall(query))
    first = result.hits[0]
    assert (first.text, first.bank_id) == ("tea spoon", "b")
    assert lift(first, "proof") == pytest.approx(3.0)
    assert result.trace is not None
    assert "boosts" in (result.trace.stage_timings_ms or {})


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"recall": {"cache_bytes": 1000, "utility": {"enabled": True}}}, "recall"),
        ({"recall": {"cache_bytes": 1000, "boosts": {"frequency": {"weight": 1.0}}}}, "recall"),
        ({"recall": {"boosts": {"names": {"weight": -1.0}}}}, "recall.boosts.names.weight"),
        (
            {"curated_recall": dict.fromkeys(("original", "freshness", "reliability", "salience"), 0.0)},
            "curated_recall",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Settings.from_mapping(settings)
    assert refused.value.metadata["key"].startswith(key)


async def test_a_small_boost_does_not_shuffle_the_head_that_feedback_kept() -> None:
    async with opened(recall={"boosts": {"recency": {"weight": 0.01}}}) as app, opened() as bare:
        texts = [f"tea {'cup ' * (place % 3)}pot number {place} of the garden table" for place in range(40)]
        for one in (app, bare):
            await one.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in texts]))
        query = "tea cup of the garden"
        boosted, kept = await ask(app, query), await ask(bare, query)
    assert [hit.text for hit in boosted.hits[:3]] == [hit.text for hit in kept.hits[:3]]


async def own(app: App, query: str) -> dict[str | None, float]:
    return {hit.speaker: lift(hit, "own") for hit in (await ask(app, query)).hits}


async def test_a_question_in_the_first_person_is_about_what_its_asker_said() -> None:
    items = [RetainItem(f"the tea shop is project {who}", speaker=who) for who in ("assistant", "User", "Ann")]
    async with opened() as app:
        await app.gate.call(ME, BatchRetain("b", items))
        assert await own(app, "which tea shop did I plan?") == {"User": 1.5, "assistant": 0.0, "Ann": 0.0}
        assert await own(app, "what is OUR tea shop?") == {"User": 1.5, "assistant": 0.0, "Ann": 0.0}
        for other in ("which tea shop is it?", "which tea shop did you recommend to me?", "Is it in Maine?"):
            assert set((await own(app, other)).values()) == {0.0}


async def test_feedback_leaves_banks_of_long_memories_alone() -> None:
    paragraph = " ".join(f"Sentence {place} tells of tea and of the garden." for place in range(60))
    async with opened() as app:
        await app.gate.call(ME, BatchRetain("long", [RetainItem(f"{paragraph} {word}") for word in ALIKE]))
        await app.gate.call(ME, BatchRetain("short", [RetainItem(text) for text in ALIKE]))
        for bank, runs in (("long", False), ("short", True)):
            result = await app.gate.call(ME, Recall(RecallQuery("tea kettle", bank)))
            assert result.trace is not None
            assert result.trace.stage_timings_ms is not None
            assert (result.trace.stage_timings_ms["feedback"] > 0.0) is runs


HARBOUR = [
    "At the harbour Ole likes to play.",
    "At the harbour Ole likes the violin.",
    "At the harbour Ole likes fish.",
]


async def test_a_memory_that_names_a_thing_of_the_asked_kind_is_lifted_at_most_to_the_bound() -> None:
    async with opened(**boosts(kinds={"weight": 3.0, "bound": 1.5})) as app:
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in HARBOUR]))
        asked = await by_text(app, "Which instruments does Ole play at the harbour?")
        other = await by_text(app, "What does Ole play at the harbour?")
        named = await by_text(app, "Which instruments beside the violin does Ole play?")
    assert [lift(asked[text], "kinds") for text in HARBOUR] == [0.0, pytest.approx(1.5), 0.0]
    assert all(lift(hit, "kinds") == 0.0 for found in (other, named) for hit in found.values())


async def test_things_of_the_asked_kind_obey_the_filter_and_the_time_of_the_question() -> None:
    clock = Clock()
    async with opened(clock) as app:
        items = [RetainItem(text, tags=("a" if place else "b",)) for place, text in enumerate(HARBOUR)]
        await app.gate.call(ME, BatchRetain("b", items))
        before = datetime.fromtimestamp(clock.now / 1e3, UTC)
        clock.now += DAY_MS
        await app.gate.call(ME, Retain("b", RetainItem("At the harbour Ole plays the cello.", tags=("a",))))
        question = "Which instruments does Ole play at the harbour?"
        found = await by_text(app, question, tags=("a",), as_of=before)
    assert set(found) == set(HARBOUR[1:])
    assert lift(found[HARBOUR[1]], "kinds") > 0.0


async def test_the_first_hits_of_a_question_for_a_kind_do_not_depend_on_their_number() -> None:
    async with opened() as app:
        texts = [
            f"At the harbour Ole likes to play {'the flute' if one % 7 == 0 else 'ball'} {one}." for one in range(40)
        ]
        await app.gate.call(ME, BatchRetain("b", [RetainItem(text) for text in texts]))
        question = "Which instruments does Ole play at the harbour?"
        few = await ask(app, question, max_results=10)
        many = await ask(app, question, max_results=40)
    assert [hit.text for hit in few.hits] == [hit.text for hit in many.hits[:10]]
    assert sum(lift(hit, "kinds") > 0.0 for hit in many.hits) <= 20
