"""The ranking of memories around entities equals one that is written down as it is defined, memory by memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from astrocyte.pipelines.graph.memory_ranking import Found, collect
from astrocyte.pipelines.graph.neighbors import (
    FURTHER_MEMORIES,
    MEMORIES_PER_ENTITY,
    MEMORY_ENTITIES,
    Reached,
    Spread,
    memory_hits,
)
from astrocyte.stores.graph.entity_graph import GraphMemory, Group

ENTITIES, MEMORIES = 40, 120


class Reader:
    """Random mentions of a few entities."""

    def __init__(self, choose: random.Random) -> None:
        self.rows = {
            key: sorted(choose.sample(range(1, MEMORIES), choose.randint(0, 80)), reverse=True)
            for key in range(2 * ENTITIES)
        }

    def mentioning(self, keys: Sequence[int], limit: int) -> dict[int, tuple[tuple[int, ...], bool]]:
        return {key: (tuple(self.rows[key][:limit]), len(self.rows[key]) > limit) for key in keys}

    def ids(self, keys: Sequence[int]) -> dict[int, str]:
        return {key: f"name:{key}" for key in keys}

    def memories(self, row_keys: Sequence[int]) -> list[GraphMemory]:
        # What was forgotten meanwhile is left out.
        return [GraphMemory(key, f"memory {key}", f"text {key}") for key in row_keys if key % 11]


def spread_of(choose: random.Random) -> Spread:
    """Entities of up to two steps; several have the same activation, as equal links bring."""
    found = Spread()
    for key in choose.sample(range(ENTITIES), choose.randint(1, 30)):
        members = (key, key + ENTITIES) if choose.random() < 0.3 else (key,)
        depth = choose.choice([0, 1, 1, 2, 2])
        activation = 1.0 if depth == 0 else choose.choice([0.1, 0.3, 0.36, choose.random()])
        found.reached[key] = Reached(Group(key, members), depth, activation, None)
    return found


def rows_of(reader: Reader, one: Reached) -> set[int]:
    most = MEMORIES_PER_ENTITY if one.depth == 0 else FURTHER_MEMORIES
    return {row_key for key in one.group.members for row_key in reader.rows[key][:most]}


def defined(reader: Reader, spreads: Sequence[Spread], limit: int, *, turns: bool) -> list[Found]:
    """The ranking as `collect` documents it."""
    best = [found.best()[:MEMORY_ENTITIES] for found in spreads]
    named = [(number, one, rows_of(reader, one)) for number, own in enumerate(best) for one in own]
    memories = sorted({row_key for _, _, rows in named for row_key in rows}, reverse=True)

    def activation(row_key: int, number: int) -> float:
        return sum(one.activation for own, one, rows in named if own == number and row_key in rows)

    def total(row_key: int) -> float:
        every = sum(activation(row_key, number) for number in range(len(spreads)))
        return every / (1.0 + every)

    def by(score: Any) -> list[int]:
        return sorted(memories, key=lambda row_key: (-score(row_key), -row_key))

    order = by(total)
    if turns:
        sides = [
            [row_key for row_key in by(lambda key, side=side: activation(key, side)) if activation(row_key, side)]
            for side in (0, 1)
        ]
        first = [row_key for row_key in order if activation(row_key, 0) >= 1.0 and activation(row_key, 1) >= 1.0]
        longest = max(map(len, sides))
        taken = [side[place] for place in range(longest) for side in sides if place < len(side)]
        order = list(dict.fromkeys([*first, *taken, *order]))
    found: list[Found] = []
    for row_key in order[:limit]:
        lead = max(((number, one) for number, one, rows in named if row_key in rows), key=lambda own: own[1].activation)
        least = min([total(row_key), *(one.score for one in found)])
        found.append(Found(row_key, least, *lead))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_collected_memories_are_those_of_the_definition(seed: int) -> None:
    choose = random.Random(seed)
    reader: Any = Reader(choose)
    turns = seed % 2 == 1
    spreads = [spread_of(choose) for _ in range(choose.choice([2, 3]) if turns else choose.choice([1, 1, 2]))]
    limit = choose.choice([1, 10, 100])
    found, wanted = (rank(reader, spreads, limit, turns=turns) for rank in (collect, defined))
    assert [one._replace(score=0.0) for one in found] == [one._replace(score=0.0) for one in wanted]
    assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_memory_hits_are_those_of_the_definition(seed: int) -> None:
    choose = random.Random(100 + seed)
    reader: Any = Reader(choose)
    reached = spread_of(choose).best(MEMORY_ENTITIES)
    limit = choose.choice([1, 10, 100])
    hits, cut = memory_hits(reader, reached, limit)
    named = {
        row_key: [one for one in reached if row_key in rows_of(reader, one)]
        for one in reached
        for row_key in rows_of(reader, one)
    }
    totals = {row_key: sum(one.activation for one in own) for row_key, own in named.items()}
    ranked = sorted(totals, key=lambda row_key: (-totals[row_key], -row_key))[:limit]
    assert [(hit.memory_id, hit.connected_entities, hit.depth) for hit in hits] == [
        (
            f"memory {row_key}",
            tuple(f"name:{one.group.canonical}" for one in named[row_key]),
            min(one.depth for one in named[row_key]),
        )
        for row_key in ranked
        if row_key % 11
    ]
    scores = [totals[row_key] / (1.0 + totals[row_key]) for row_key in ranked if row_key % 11]
    assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-12)
    most = {True: MEMORIES_PER_ENTITY, False: FURTHER_MEMORIES}
    left_out = any(len(reader.rows[key]) > most[one.depth == 0] for one in reached for key in one.group.members)
    assert cut == (left_out or len(named) > limit)
