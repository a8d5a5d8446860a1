"""Retrieval arm over the entity graph: memories around the entities that a question names."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import Executor

from astrocyte.model import Entity
from astrocyte.pipelines.graph.neighbors import MEMORY_ENTITIES, memory_hits, memory_paths, spread
from astrocyte.pipelines.search.arm_paths import PathList
from astrocyte.pipelines.search.entity_arm import MOST_MEMORIES, MOST_SHARE, phrases
from astrocyte.providers.stages import ArmQuery
from astrocyte.stores.entity_graph import EntityGraphStore, GraphReader, GraphView
from astrocyte.stores.protocols import MemoryStore

ARM = "graph"
# Types of the entities that a run of words may name. E-mail addresses and hashtags come from the extraction at retain.
TYPES = ("person", "org", "place", "project", "product", "event", "name", "email", "hashtag")
# Entities of a question at which the search begins; both sides of a comparison are among them.
MOST_SEEDS = 8
# Links from the entities of the question.
DEPTH = 2


class GraphArm:
    """Proposes memories that mention the entities of a question, or entities linked with these.

    Args:
        store: Knows the banks.
        graph: Their graphs.
        executor: Runs the reads.
    """

    def __init__(self, store: MemoryStore, graph: EntityGraphStore, executor: Executor) -> None:
        self._store = store
        self._graph = graph
        self._executor = executor

    async def search(self, query: ArmQuery, *, deadline: float) -> Sequence[tuple[str, float]]:
        """Ids of memories with their activation, best first; none if the question names no entity of the bank."""
        del deadline
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._search, query)

    def _search(self, query: ArmQuery) -> Sequence[tuple[str, float]]:
        bank = self._store.get_bank(query.tenant, query.bank_id)
        ids = [f"{kind}:{slug}" for slug in _slugs(query.text) for kind in TYPES]
        if bank is None or not ids:
            return []
        with self._graph.reader(GraphView(bank, query.filters.as_of, query.filters.valid_at)) as reader:
            seeds = self._seeds(reader, ids)
            if not seeds:
                return []
            found = spread(reader, seeds, depth=DEPTH)
            best = found.best()[:MEMORY_ENTITIES]
            hits, _ = memory_hits(reader, best, query.limit)
            proposals = PathList((hit.memory_id, hit.score) for hit in hits)
            proposals.paths = memory_paths(reader, found, best, hits, bank.bank_id)
        return proposals

    @staticmethod
    def _seeds(reader: GraphReader, ids: Sequence[str]) -> list[int]:
        """The entities of the question, longest names first; those that nearly every memory mentions tell nothing."""
        keys = list(reader.keys(ids).values())
        groups = {group.canonical: group for group in reader.groups(keys).values()}
        most = max(1, min(MOST_MEMORIES, math.ceil(MOST_SHARE * reader.mention_counts())))
        entities = reader.entities(list(groups.values()))
        return [key for key, entity in zip(groups, entities, strict=True) if entity.mention_count <= most][:MOST_SEEDS]


def _slugs(text: str) -> list[str]:
    """The runs of words that may be names, as the ids of entities have them, longest first."""
    found = (Entity(phrase).id.partition(":")[2] for phrase in phrases(text))
    return list(dict.fromkeys(slug for slug in found if slug))
