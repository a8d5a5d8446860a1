"""Memories around the entities that activation reached, with the path to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from astrocyte.model import MemoryPath
from astrocyte.pipelines.graph.neighbors import MEMORY_ENTITIES, Reached, Spread, mentioning
from astrocyte.stores.graph.entity_graph import GraphReader


class Found(NamedTuple):
    """A memory that the graph led to.

    Attributes:
        row_key: Its visible version.
        score: From 0 to 1.
        spread: Number of the spread that led to it.
        entity: The most active entity that it mentions; of one that a memory led to, that which this mentions.
        through: Row key of the memory from which a link led to it; None for one that mentions the entity.
        link_type: Type of that link.
    """

    row_key: int
    score: float
    spread: int
    entity: Reached
    through: int | None = None
    link_type: str = ""


# The most active entity that a memory mentions, with the number of its spread.
_Lead = tuple[int, Reached]


def collect(reader: GraphReader, spreads: Sequence[Spread], limit: int, *, turns: bool) -> list[Found]:
    """The memories that mention what was reached, best first, of equals the newest.

    Args:
        reader: The graph.
        spreads: One of each anchor.
        limit: Number of memories.
        turns: True if the first two anchors take turns, so that each has half of the list.
    """
    leads: dict[int, _Lead] = {}
    sums = [_activations(reader, number, found, leads) for number, found in enumerate(spreads)]
    if len(sums) == 1:
        totals = {row_key: own / (1.0 + own) for row_key, own in sums[0].items()}
    else:
        totals = {row_key: _score(sum(own[row_key] for own in sums if row_key in own)) for row_key in leads}
    order = _in_turns(sums, totals) if turns else _ranked(totals)
    ranked: list[Found] = []
    least = 1.0
    for row_key in order[:limit]:
        least = min(least, totals[row_key])
        ranked.append(Found(row_key, least, *leads[row_key]))
    return ranked


def _activations(reader: GraphReader, number: int, found: Spread, leads: dict[int, _Lead]) -> dict[int, float]:
    """The activation that the entities of a spread bring to each memory; notes the leads that are more active."""
    activations: dict[int, float] = {}
    best = found.best(MEMORY_ENTITIES)
    for one, rows in zip(best, mentioning(reader, best)[0], strict=True):
        own, lead = one.activation, (number, one)
        for row_key in rows:
            known = activations.get(row_key)
            if known is not None:
                activations[row_key] = known + own
                continue
            activations[row_key] = own
            # The entities of a spread come most active first, so only those of earlier spreads may be more active.
            if number == 0 or row_key not in leads or own > leads[row_key][1].activation:
                leads[row_key] = lead
    return activations


class FoundPaths(Mapping[str, MemoryPath]):
    """The path to each memory: from an entity of the question over links between entities, and at last memories.

    A recall returns a few of the memories, so each path is made when it is asked for.

    Args:
        reader: The graph.
        spreads: Those that led to the memories.
        found: The memories.
        ids: Ids of memories by row key; others have no path.
        bank_id: Their bank.
    """

    def __init__(
        self,
        reader: GraphReader,
        spreads: Sequence[Spread],
        found: Sequence[Found],
        ids: Mapping[int, str],
        bank_id: str,
    ) -> None:
        self._ids = ids
        self._bank_id = bank_id
        self._found: dict[str, Found] = {}
        for one in found:
            if one.row_key in ids and (one.through is None or one.through in ids):
                self._found.setdefault(ids[one.row_key], one)
        ends = {(one.spread, one.entity.group.canonical): one.entity for one in self._found.values()}
        self._ways = {key: _way(reader, spreads[key[0]], entity) for key, entity in ends.items()}
        self._names = reader.ids(list({step.group.canonical for way in self._ways.values() for step in way}))

    def __getitem__(self, memory_id: str) -> MemoryPath:
        one = self._found[memory_id]
        way = self._ways[one.spread, one.entity.group.canonical]
        links = [step.via.link_type for step in way if step.via is not None]
        through = ""
        if one.through is not None:
            links.append(one.link_type)
            through = self._ids[one.through]
        entity_ids = tuple(self._names[step.group.canonical] for step in way)
        return MemoryPath(memory_id, entity_ids, tuple(links), self._bank_id, through)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _score(activation: float) -> float:
    return activation / (1.0 + activation)


def _ranked(scores: Mapping[int, float]) -> list[int]:
    order = [(-score, -row_key) for row_key, score in scores.items()]
    order.sort()
    return [-row_key for _, row_key in order]


def _in_turns(sums: Sequence[Mapping[int, float]], totals: Mapping[int, float]) -> list[int]:
    """Memories of the two sides in turns, what mentions an anchor of each first; then what neither leads to."""
    left, right = sums[:2]
    both = [row_key for row_key, own in left.items() if own >= 1.0 and right.get(row_key, 0.0) >= 1.0]
    order = dict.fromkeys(_ranked({row_key: totals[row_key] for row_key in both}))
    order |= dict.fromkeys(_alternate([_ranked(left), _ranked(right)]))
    order |= dict.fromkeys(_ranked(totals))
    return list(order)


def _alternate(queues: Sequence[Sequence[int]]) -> Iterable[int]:
    for place in range(max(map(len, queues))):
        for queue in queues:
            if place < len(queue):
                yield queue[place]


def _way(reader: GraphReader, spread: Spread, last: Reached) -> list[Reached]:
    """The entities from an anchor to a reached one, each by the link that brought most."""
    way = [last]
    while (edge := way[-1].via) is not None:
        way.append(spread.reached[reader.groups([edge.origin])[edge.origin].canonical])
    return way[::-1]
