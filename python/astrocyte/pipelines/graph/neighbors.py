"""Entities and memories around entities: activation that spreads over links, less with each step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from astrocyte.model import EntityLink, EntityNeighbor, GraphHit, GraphNeighbors, LinkOrigin
from astrocyte.pipelines.graph.budget import Budget
from astrocyte.stores.graph.entity_graph import CO_OCCURS, Edge, GraphReader, Group

# Part of the activation that one link passes on.
DECAY = 0.6
# Entities of one depth whose links are followed: the most active.
FRONTIER = 16
# Links of each kind that are followed from one entity, and the memories whose other entities count as co-occurring:
# more at the first step, which the question is about.
FAN_OUT = 32
FIRST_MEMORIES, FURTHER_MEMORIES = 64, 8
# Memories that are looked at of each entity that the question is about, the newest.
MEMORIES_PER_ENTITY = 64
# Entities whose memories are collected.
MEMORY_ENTITIES = 16


class Reached(NamedTuple):
    """An entity that was reached."""

    group: Group
    depth: int
    activation: float
    via: Edge | None


@dataclass(slots=True)
class Spread:
    """The entities that were reached, by canonical key, and whether a bound cut the search."""

    reached: dict[int, Reached] = field(default_factory=dict)
    truncated: bool = False

    def best(self, count: int | None = None) -> list[Reached]:
        """The entities, or so many of them, most active first."""
        order = [(-one.activation, one.depth, canonical) for canonical, one in self.reached.items()]
        first = sorted(order) if count is None else nsmallest(count, order)
        return [self.reached[canonical] for _, _, canonical in first]


def spread(
    reader: GraphReader,
    keys: Iterable[int],
    *,
    depth: int,
    link_types: Sequence[str] = (),
    budget: Budget | None = None,
) -> Spread:
    """Activate entities and let the activation spread over links.

    Args:
        reader: The graph.
        keys: Entities with activation 1.
        depth: Number of steps.
        link_types: Only over these links; none for all.
        budget: Links that it may follow; None for as many as one search may.
    """
    budget = budget or Budget()
    found = Spread()
    for group in reader.groups(list(keys)).values():
        found.reached[group.canonical] = Reached(group, 0, 1.0, None)
    frontier = list(found.reached.values())
    for step in range(1, depth + 1):
        arrived = _step(reader, frontier, found, step, (link_types, budget))
        for canonical, one in arrived.items():
            found.reached[canonical] = one
        frontier = sorted(arrived.values(), key=lambda one: (-one.activation, one.group.canonical))
        if step < depth and len(frontier) > FRONTIER:
            found.truncated = True
            frontier = frontier[:FRONTIER]
    return found


def _step(
    reader: GraphReader, frontier: Sequence[Reached], found: Spread, step: int, over: tuple[Sequence[str], Budget]
) -> dict[int, Reached]:
    """The entities that are first reached by this step, over links of some types and within a budget."""
    link_types, budget = over
    if not budget.left:
        found.truncated = True
        return {}
    activation = {key: one.activation for one in frontier for key in one.group.members}
    memories = FIRST_MEMORIES if step == 1 else FURTHER_MEMORIES
    own, cut = reader.edges(list(activation), link_types, memories, FAN_OUT)
    found.truncated = found.truncated or cut or len(own) > budget.left
    own = own[: budget.left]
    budget.spend(len(own))
    groups = reader.groups(list({edge.target for edge in own}))
    reached = found.reached
    rest: dict[int, float] = {}
    best: dict[int, tuple[float, Edge, Group]] = {}
    for edge in own:
        origin, target, _, weight, _, _ = edge
        group = groups[target]
        canonical = group.canonical
        if canonical in reached:
            continue
        passed = activation[origin] * DECAY * weight
        # Independent paths add up as independent chances do, and never beyond 1.
        rest[canonical] = rest.get(canonical, 1.0) * (1.0 - min(1.0, passed))
        known = best.get(canonical)
        if known is None or passed > known[0]:
            best[canonical] = passed, edge, group
    return {key: Reached(group, step, 1.0 - rest[key], edge) for key, (_, edge, group) in best.items()}


def neighbors(
    reader: GraphReader, keys: Sequence[int], *, depth: int, limit: int, link_types: Sequence[str]
) -> GraphNeighbors:
    """Entities and memories around entities, best first."""
    found = spread(reader, keys, depth=depth, link_types=link_types)
    best = found.best()
    shown = best[:limit]
    entities = dict(
        zip([one.group.canonical for one in shown], reader.entities([one.group for one in shown]), strict=True)
    )
    links = edge_links(reader, [one.via for one in shown if one.via is not None])
    neighbours = tuple(
        EntityNeighbor(
            entities[one.group.canonical], one.depth, one.activation, None if one.via is None else links[one.via]
        )
        for one in shown
    )
    memories, cut = memory_hits(reader, best[:MEMORY_ENTITIES], limit)
    truncated = found.truncated or cut or len(best) > limit
    return GraphNeighbors(neighbours, memories, truncated)


def memory_hits(reader: GraphReader, reached: Sequence[Reached], limit: int) -> tuple[tuple[GraphHit, ...], bool]:
    """The memories that mention the most active entities, best first, and whether a bound cut them."""
    totals: dict[int, float] = {}
    rows_of, cut = mentioning(reader, reached)
    for one, rows in zip(reached, rows_of, strict=True):
        activation = one.activation
        for row_key in rows:
            totals[row_key] = totals.get(row_key, 0.0) + activation
    # Of equals the newest.
    order = [(-total, -row_key) for row_key, total in totals.items()]
    order.sort()
    ranked = [-row_key for _, row_key in order[:limit]]
    named: dict[int, list[Reached]] = {row_key: [] for row_key in ranked}
    for one, rows in zip(reached, rows_of, strict=True):
        for row_key in rows & named.keys():
            named[row_key].append(one)
    ids = reader.ids([one.group.canonical for one in reached])
    memories = {memory.row_key: memory for memory in reader.memories(ranked)}
    hits = []
    for row_key in ranked:
        memory, own_reached = memories.get(row_key), named[row_key]
        if memory is not None:
            names = tuple(ids[one.group.canonical] for one in own_reached)
            depth = min(one.depth for one in own_reached)
            score = totals[row_key] / (1.0 + totals[row_key])
            hits.append(GraphHit(memory.memory_id, memory.content, names, depth, score))
    return tuple(hits), cut or len(totals) > limit


def mentioning(reader: GraphReader, reached: Sequence[Reached]) -> tuple[list[set[int]], bool]:
    """The newest versions that mention each entity, by any of its names, and whether a bound cut them."""
    found: dict[int, tuple[tuple[int, ...], bool]] = {}
    for asked, most in ((True, MEMORIES_PER_ENTITY), (False, FURTHER_MEMORIES)):
        keys = [key for one in reached if (one.depth == 0) is asked for key in one.group.members]
        if keys:
            found |= reader.mentioning(keys, most)
    rows = [{row_key for key in one.group.members for row_key in found[key][0]} for one in reached]
    return rows, any(more for _, more in found.values())


def edge_links(reader: GraphReader, edges: Sequence[Edge]) -> dict[Edge, EntityLink]:
    """The link of each edge; that of a co-occurrence is made here."""
    stored = reader.links([edge.link_key for edge in edges if edge.link_key is not None])
    shared = [edge for edge in edges if edge.link_key is None]
    ids = reader.ids([key for edge in shared for key in (edge.origin, edge.target)])
    found: dict[Edge, EntityLink] = {}
    for edge in edges:
        if edge.link_key is None:
            ends = ids[edge.origin], ids[edge.target]
            found[edge] = EntityLink(*ends, CO_OCCURS, confidence=edge.weight, origin=LinkOrigin.CO_OCCURRENCE)
        else:
            found[edge] = stored[edge.link_key]
    return found
