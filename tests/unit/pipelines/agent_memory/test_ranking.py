"""The ranking of private and canonical memories."""

from math import exp

import pytest

from astrocyte.model import AgentMemoryHit, ArmScore, MemoryHit, SourceTag
from astrocyte.pipelines.agent_memory.index import Nearest
from astrocyte.pipelines.agent_memory.ranking import blended, canonical_hits, decay, youngest_nearest

DAY = 86_400_000


def hit(name: str, similarity: float, score: float | None = None) -> AgentMemoryHit:
    return AgentMemoryHit(name, name, SourceTag.PRIVATE, similarity, similarity if score is None else score)


def test_the_score_falls_to_one_in_e_after_the_decay_days() -> None:
    assert decay(0, 90 * DAY, 90.0) == pytest.approx(exp(-1))
    assert decay(0, 180 * DAY, 90.0) == pytest.approx(exp(-2))
    assert decay(DAY, DAY, 90.0) == 1.0


def test_a_memory_of_the_future_is_as_one_of_now() -> None:
    assert decay(5 * DAY, DAY, 90.0) == 1.0


def test_an_old_memory_ranks_below_a_young_one_that_is_a_little_less_similar() -> None:
    old, young = Nearest(1, "old", 0, 0.8), Nearest(2, "young", 90 * DAY, 0.5)
    assert youngest_nearest([old, young], 90 * DAY, 90.0, 2) == [young, old]
    assert youngest_nearest([old, young], 90 * DAY, 3_000.0, 1) == [old]


def test_hits_are_in_one_order_and_equal_ones_by_id() -> None:
    hits = [hit("c", 0.5), hit("b", 0.9, 0.2), hit("a", 0.5), hit("d", 0.1)]
    assert [one.memory_id for one in blended(hits, 3, 0.2)] == ["a", "c", "b"]
    assert [one.memory_id for one in blended(hits, 9, -1.0)] == ["a", "c", "b", "d"]


def test_a_canonical_hit_has_the_cosine_of_the_semantic_arm() -> None:
    both = MemoryHit("x", 0.9, "m1", "adr", arms=(ArmScore("keyword", 1, 7.0), ArmScore("semantic", 2, 0.4)))
    words = MemoryHit("y", 0.8, "m2", "adr", arms=(ArmScore("keyword", 2, 5.0),))
    (found,) = canonical_hits([both, words])
    assert (found.memory_id, found.bank_id, found.similarity, found.score) == ("m1", "adr", 0.4, 0.4)
    assert found.source_tag is SourceTag.CANONICAL
