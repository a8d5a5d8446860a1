"""The ranking of private and canonical memories."""

import random
from collections.abc import Sequence
from math import exp
from typing import cast

import pytest

from astrocyte.model import AgentMemoryHit, ArmScore, MemoryHit, SourceTag
from astrocyte.pipelines.agent_memory.index import AgentIndex, Nearest
from astrocyte.pipelines.agent_memory.ranking import DEPTHS, best_memories, blended, canonical_hits, decay

DAY = 86_400_000


def hit(name: str, similarity: float, score: float | None = None) -> AgentMemoryHit:
    return AgentMemoryHit(name, name, SourceTag.PRIVATE, similarity, similarity if score is None else score)


def test_the_score_falls_to_one_in_e_after_the_decay_days() -> None:
    assert decay(0, 90 * DAY, 90.0) == pytest.approx(exp(-1))
    assert decay(0, 180 * DAY, 90.0) == pytest.approx(exp(-2))
    assert decay(DAY, DAY, 90.0) == 1.0


def test_a_memory_of_the_future_is_as_one_of_now() -> None:
    assert decay(5 * DAY, DAY, 90.0) == 1.0


class Memories:
    """An index of memories with chosen cosines and ages; counts those that were looked at."""

    def __init__(self, memories: Sequence[Nearest]) -> None:
        self.memories = sorted(memories, key=lambda one: -one.cosine)
        self.newest = max((one.updated_at for one in memories), default=0)
        self.looked = 0

    def nearest(self, vector: bytes, count: int, *, users: Sequence[str]) -> list[Nearest]:
        assert (vector, users) == (b"v", ("any",))
        self.looked = count
        return self.memories[:count]


def best(memories: Memories, now: int, decay_days: float, count: int) -> list[Nearest]:
    return best_memories(cast(AgentIndex, memories), b"v", ("any",), now, decay_days, count)


def test_an_old_memory_ranks_below_a_young_one_that_is_a_little_less_similar() -> None:
    old, young = Nearest(1, "old", 0, 0.8), Nearest(2, "young", 90 * DAY, 0.5)
    assert best(Memories([old, young]), 90 * DAY, 90.0, 2) == [young, old]
    assert best(Memories([old, young]), 90 * DAY, 3_000.0, 1) == [old]
    assert best(Memories([]), 90 * DAY, 90.0, 1) == []


@pytest.mark.parametrize("seed", range(40))
def test_few_are_looked_at_only_where_none_beyond_is_better(seed: int) -> None:
    rng = random.Random(seed)
    spread, days = rng.choice((0, 30, 400)), rng.choice((10.0, 90.0))
    least = rng.choice((-0.4, 0.1))
    memories = [
        Nearest(number, str(number), rng.randrange(spread * DAY + 1), rng.uniform(least, 0.9)) for number in range(300)
    ]
    now = (spread + rng.randrange(200)) * DAY
    index = Memories(memories)
    found = best(index, now, days, 18)
    score = [one.cosine * decay(one.updated_at, now, days) for one in memories]
    assert [one.cosine * decay(one.updated_at, now, days) for one in found] == sorted(score, reverse=True)[:18]
    # Memories of one age are in the order of their cosines.
    assert index.looked == DEPTHS[0] or spread > 0


@pytest.mark.parametrize(("number", "looked"), [(0, 32), (5, 32), (31, 32), (32, 1_000), (50, 1_000)])
def test_all_memories_of_an_agent_with_few_are_found_by_one_search(number: int, looked: int) -> None:
    index = Memories([Nearest(key, str(key), 0, key / 100 - 0.2) for key in range(number)])
    assert len(best(index, DAY, 90.0, 60)) == number
    assert index.looked == looked


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
