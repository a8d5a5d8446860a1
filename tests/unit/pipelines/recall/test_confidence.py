"""Scores that people can read: calibrated relevance, confidence, and the fused score beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte import Astrocyte, MultiBankStrategy
from astrocyte.core import relevance_at_rank, text_relevance
from astrocyte.model import FusionMethod, MemoryHit
from astrocyte.pipelines.recall.relevance import descending, set_scores

RELEVANCES = st.lists(st.floats(0.0, 1.0), max_size=8)
FACTS = (
    "Ulla repairs clocks in Ghent.",
    "The boiler key hangs behind the door.",
    "Petra is allergic to walnuts.",
    "We sold the green canoe to Hamid.",
    "The spare tyre is in the cellar.",
)
ASKED = ("who repairs clocks in Ghent?", "where does the boiler key hang?", "what is Petra allergic to?")
FOREIGN = ("what is the capital of Peru?", "how tall is the lighthouse?", "when does the ferry to Malta leave?")


async def brain_of(facts: tuple[str, ...], bank_id: str = "b") -> Astrocyte:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    for fact in facts:
        await brain.retain(fact, bank_id=bank_id)
    return brain


@given(RELEVANCES)
def test_scores_fall_with_the_rank_and_stay_in_bounds(relevances: list[float]) -> None:
    hits = [MemoryHit("text", one) for one in relevances]
    set_scores(hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= one for score, one in zip(scores, relevances, strict=True))
    assert scores[:1] == pytest.approx(relevances[:1])


@given(RELEVANCES)
def test_hits_of_several_lists_keep_the_order_and_lose_no_more_than_they_must(relevances: list[float]) -> None:
    hits = descending([MemoryHit("text", one) for one in relevances])
    assert [hit.score for hit in hits] == [min(relevances[: place + 1]) for place in range(len(relevances))]


def test_a_rank_further_down_is_less_likely() -> None:
    found = [relevance_at_rank(0.6, rank) for rank in (1, 2, 5, 20)]
    assert found[0] == pytest.approx(0.6)
    assert found == sorted(found, reverse=True)


def test_a_text_without_the_words_of_the_query_is_hardly_relevant() -> None:
    assert text_relevance(ASKED[0], FACTS[0]) > 0.6
    assert text_relevance(ASKED[0], FACTS[1]) < 0.2


@pytest.mark.parametrize("count", range(1, len(FACTS) + 1))
async def test_small_banks_answer_what_they_hold_and_abstain_from_the_rest(count: int) -> None:
    brain = await brain_of(FACTS[:count])
    for question in ASKED[:count]:
        result = await brain.recall(question, bank_id="b", max_results=1)
        assert not result.abstain, question
        assert result.hits[0].score > 0.5
        assert (await brain.reflect(question, bank_id="b")).abstained is False
    for question in FOREIGN:
        assert (await brain.recall(question, bank_id="b")).abstain, question
        assert (await brain.reflect(question, bank_id="b")).abstained, question
    await brain.close()


@pytest.mark.parametrize("method", FusionMethod)
async def test_the_score_means_the_same_with_every_fusion(method: FusionMethod) -> None:
    brain = await brain_of(FACTS)
    first = (await brain.recall(ASKED[0], bank_id="b")).hits[0]
    hits = (await brain.recall(ASKED[0], bank_id="b", fusion_method=method)).hits
    assert hits[0].text == first.text
    assert hits[0].score == pytest.approx(first.score)
    scores, fused = [hit.score for hit in hits], [hit.fused_score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert fused == sorted(fused, key=lambda one: -(one or 0.0))
    await brain.close()


async def test_a_shorter_answer_has_the_same_scores() -> None:
    brain = await brain_of(FACTS)
    long = [hit.score for hit in (await brain.recall(ASKED[2], bank_id="b", max_results=5)).hits]
    for count in range(1, 5):
        short = [hit.score for hit in (await brain.recall(ASKED[2], bank_id="b", max_results=count)).hits]
        assert short == long[:count]
    await brain.close()


@pytest.mark.parametrize("method", FusionMethod)
async def test_several_banks_have_calibrated_scores_too(method: FusionMethod) -> None:
    brain = await brain_of(FACTS[:3])
    for fact in FACTS[3:]:
        await brain.retain(fact, bank_id="other")
    strategy = MultiBankStrategy("parallel", fusion_method=method)
    result = await brain.recall("who has the green canoe?", banks=["b", "other"], strategy=strategy)
    assert not result.abstain
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 < score <= 1.0 for score in scores)
    assert all(hit.fused_score is not None for hit in result.hits)
    await brain.close()


async def test_reflect_is_as_sure_as_recall_where_the_subject_is_the_right_one() -> None:
    brain = await brain_of(FACTS)
    for question in ASKED:
        recalled = await brain.recall(question, bank_id="b")
        assert (await brain.reflect(question, bank_id="b")).confidence == pytest.approx(recalled.confidence)
    await brain.close()
