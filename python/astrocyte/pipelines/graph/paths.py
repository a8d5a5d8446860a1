"""Shortest paths between two entities, without repeated entities."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from astrocyte.model import GraphPath
from astrocyte.pipelines.graph.neighbors import FAN_OUT, FURTHER_MEMORIES, edge_links
from astrocyte.stores.graph.entity_graph import Edge, GraphReader, Group

# Entities of one distance whose links are read: the first reached, by the heaviest links.
MOST_EXPANDED = 256
# Partial paths that are looked at for one answer.
MOST_PARTIAL = 20_000


class _Known:
    """The part of the graph that was read, walked from both ends."""

    def __init__(self, reader: GraphReader, link_types: Sequence[str]) -> None:
        self._reader = reader
        self._link_types = link_types
        self.groups: dict[int, Group] = {}
        self.edges: dict[int, dict[int, Edge]] = {}
        self.truncated = False

    def canonical(self, key: int) -> int:
        """The canonical key of an entity."""
        group = self._reader.groups([key])[key]
        self.groups[group.canonical] = group
        return group.canonical

    def read(self, frontier: Sequence[int]) -> None:
        """Read the edges of entities. Each is known at both ends, with the heaviest link between the two."""
        if len(frontier) > MOST_EXPANDED:
            self.truncated = True
        of = {key: one for one in frontier[:MOST_EXPANDED] for key in self.groups[one].members}
        edges, cut = self._reader.edges(list(of), self._link_types, FURTHER_MEMORIES, FAN_OUT)
        self.truncated = self.truncated or cut
        groups = self._reader.groups(list(dict.fromkeys(edge.target for edge in edges)))
        # Heaviest first.
        for edge in edges:
            one, group = of[edge.origin], groups[edge.target]
            self.groups.setdefault(group.canonical, group)
            if group.canonical != one:
                self.edges.setdefault(one, {}).setdefault(group.canonical, edge)
                self.edges.setdefault(group.canonical, {}).setdefault(one, edge)


def shortest_paths(
    reader: GraphReader, source: int, target: int, *, depth: int, count: int, link_types: Sequence[str]
) -> tuple[list[GraphPath], bool]:
    """Up to ``count`` paths of up to ``depth`` links, shortest first, and whether a bound cut the search.

    Links are walked both ways. Of paths of one length, the one with the heavier links comes first.
    """
    known = _Known(reader, link_types)
    start, end = known.canonical(source), known.canonical(target)
    _walk(known, start, end, depth, first_only=count == 1)
    left = _distances(known.edges, end, depth)
    found: list[tuple[int, ...]] = []
    # Length of the whole path at least, what its links lack in weight, the path so far.
    waiting: list[tuple[int, float, tuple[int, ...]]] = []
    if start in left:
        waiting.append((left[start], 0.0, (start,)))
    looked = 0
    while waiting and len(found) < count:
        _, cost, path = heapq.heappop(waiting)
        looked += 1
        if looked > MOST_PARTIAL:
            known.truncated = True
            break
        if path[-1] == end:
            found.append(path)
            continue
        for other, edge in known.edges.get(path[-1], {}).items():
            if other in left and other not in path and len(path) + left[other] <= depth:
                heapq.heappush(waiting, (len(path) + left[other], cost + 1.0 - edge.weight, (*path, other)))
    return [_path(reader, known, path) for path in found], known.truncated


def _walk(known: _Known, start: int, end: int, depth: int, *, first_only: bool) -> None:
    """Read what paths of up to ``depth`` links consist of: half of the way from each end.

    With ``first_only`` it stops where the two halves meet, for a shorter path than the one found then there is none.
    """
    reached: tuple[set[int], set[int]] = ({start}, {end})
    frontiers: list[list[int]] = [[start], [end]]
    for step in range(depth):
        if first_only and not reached[0].isdisjoint(reached[1]):
            return
        side = step % 2
        known.read(frontiers[side])
        following: dict[int, float] = {}
        for one in frontiers[side]:
            for other, edge in known.edges.get(one, {}).items():
                if other not in reached[side]:
                    following[other] = max(following.get(other, 0.0), edge.weight)
        frontiers[side] = sorted(following, key=lambda key: (-following[key], key))
        reached[side].update(following)


def _distances(edges: Mapping[int, Mapping[int, Edge]], end: int, depth: int) -> dict[int, int]:
    """The number of links from entities to ``end``."""
    distances, frontier = {end: 0}, [end]
    for distance in range(1, depth + 1):
        following = [other for key in frontier for other in edges.get(key, ()) if other not in distances]
        frontier = list(dict.fromkeys(following))
        distances |= dict.fromkeys(frontier, distance)
    return distances


def _path(reader: GraphReader, known: _Known, path: Sequence[int]) -> GraphPath:
    edges = [known.edges[one][other] for one, other in pairwise(path)]
    links = edge_links(reader, edges)
    entities = reader.entities([known.groups[key] for key in path])
    made = [
        # Co-occurrence has no direction: it is shown along the path.
        replace(links[edge], entity_a=one.id, entity_b=other.id) if edge.link_key is None else links[edge]
        for edge, (one, other) in zip(edges, pairwise(entities), strict=True)
    ]
    return GraphPath(tuple(entities), tuple(made))
