"""Memories that links lead to from the best ones found: near vectors, and near turns of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from astrocyte.pipelines.graph.memory_ranking import Found
from astrocyte.pipelines.graph.neighbors import DECAY
from astrocyte.stores.graph.entity_graph import GraphReader

# Memories from which links are followed: the best.
SEEDS = 10
# Turns of the same session before and after.
DISTANCE = 2
# Milliseconds in which the nearness of two times halves: seven days.
HALF_LIFE_MS = 7 * 86_400_000
# Memories that are added at most, and the least activation that adds one.
MOST_ADDED, LEAST = 30, 0.05
SIMILAR_TO, NEXT_TO = "similar_to", "next_to"

# The nearest memories of some, by row key: row keys with cosines.
Near = Callable[[Sequence[int]], Mapping[int, Sequence[tuple[int, float]]]]


class _Step(NamedTuple):
    """A link from a seed to another memory, and what it passes on of the seed's activation."""

    seed: Found
    row_key: int
    weight: float
    link_type: str


def expand(reader: GraphReader, found: Sequence[Found], near: Near) -> list[Found]:
    """The memories that one link leads to and that were not found before, most active first.

    Args:
        reader: The graph, with the filter of the recall.
        found: Memories, best first.
        near: Tells which memories have near vectors, within the filter.
    """
    seeds = {one.row_key: one for one in found[:SEEDS]}
    if not seeds:
        return []
    known = {one.row_key for one in found}
    rest: dict[int, float] = {}
    best: dict[int, tuple[float, Found]] = {}
    for step in (*_similar(seeds, near), *_beside(reader, seeds)):
        passed = step.seed.score * DECAY * min(1.0, max(0.0, step.weight))
        if step.row_key in known or passed <= 0.0:
            continue
        rest[step.row_key] = rest.get(step.row_key, 1.0) * (1.0 - passed)
        if step.row_key not in best or passed > best[step.row_key][0]:
            origin = step.seed
            way = Found(step.row_key, 0.0, origin.spread, origin.entity, origin.row_key, step.link_type)
            best[step.row_key] = passed, way
    added = [way._replace(score=1.0 - rest[row_key]) for row_key, (_, way) in best.items()]
    added.sort(key=lambda one: (-one.score, -one.row_key))
    return [one for one in added[:MOST_ADDED] if one.score > LEAST]


def _similar(seeds: Mapping[int, Found], near: Near) -> list[_Step]:
    found = near(list(seeds))
    return [
        _Step(seeds[row_key], other, cosine, SIMILAR_TO)
        for row_key, several in found.items()
        for other, cosine in several
    ]


def _beside(reader: GraphReader, seeds: Mapping[int, Found]) -> list[_Step]:
    """Turns near in place and in time weigh more."""
    return [
        _Step(seeds[one.row_key], one.other, 0.5 ** (one.apart / HALF_LIFE_MS) / one.steps, NEXT_TO)
        for one in reader.memory_links.beside(list(seeds), DISTANCE)
    ]
