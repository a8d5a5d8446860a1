"""Retrieval arm over the entity graph: memories around the entities that a question names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from astrocyte.core import Core
from astrocyte.model import Bank, Intent
from astrocyte.pipelines.graph.budget import MOST_LINKS, Budget
from astrocyte.pipelines.graph.comparison import sides
from astrocyte.pipelines.graph.link_expansion import expand
from astrocyte.pipelines.graph.memory_ranking import FoundPaths, collect
from astrocyte.pipelines.graph.near_memories import NearMemories
from astrocyte.pipelines.graph.neighbors import spread
from astrocyte.pipelines.graph.question_entities import anchors_of
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.index.rows import bytes_to_id, id_to_bytes
from astrocyte.pipelines.query.intent import classify
from astrocyte.pipelines.search.arm_paths import PathList
from astrocyte.providers.stages import ArmQuery
from astrocyte.providers.storage import StoreFilters
from astrocyte.stores.graph.entity_graph import EntityGraphStore, GraphView
from astrocyte.stores.memory_filter import MemoryFilter
from astrocyte.stores.protocols import MemoryStore

ARM = "graph"
# Links from the entities of the question.
DEPTH = 2


class GraphArm:
    """Proposes memories that mention the entities of a question, or to which links lead from these.

    Args:
        store: Knows the banks.
        graph: Their graphs.
        registry: Their indexes.
        core: Searches these.
        executor: Runs the reads.
        intents: Intents of the questions for which it runs; none for all.
    """

    def __init__(
        self,
        store: MemoryStore,
        graph: EntityGraphStore,
        registry: IndexRegistry,
        core: Core,
        executor: Executor,
        intents: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._graph = graph
        self._registry = registry
        self._core = core
        self._executor = executor
        self._intents = frozenset(intents)

    async def search(self, query: ArmQuery, *, deadline: float) -> Sequence[tuple[str, float]]:
        """Ids of memories with their activation, best first; none if the question names no entity of the bank."""
        bank = self._store.get_bank(query.tenant, query.bank_id)
        if bank is None or not query.text or not self._wanted(query.text):
            return []
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._search, bank, query, deadline)

    def _wanted(self, question: str) -> bool:
        """True if the arm runs for a question; "A or B" compares, too."""
        intents = self._intents
        if not intents or classify(question).intent in intents:
            return True
        return Intent.COMPARATIVE in intents and sides(question) is not None

    def _search(self, bank: Bank, query: ArmQuery, deadline: float) -> Sequence[tuple[str, float]]:
        filters = query.filters
        with self._graph.reader(GraphView(bank, filters.as_of, filters.valid_at, memory_filter(filters))) as reader:
            anchors = anchors_of(reader, query.text)
            if not anchors.groups:
                return []
            share = MOST_LINKS // len(anchors.groups)
            spreads = [spread(reader, keys, depth=DEPTH, budget=Budget(share, deadline)) for keys in anchors.groups]
            found = collect(reader, spreads, query.limit, turns=anchors.compared)
            near = NearMemories(self._core, self._registry.peek(bank), reader, filters)
            found += expand(reader, found, near.of)
            # What was found first stays first among equals.
            found.sort(key=lambda one: -one.score)
            found = found[: query.limit]
            keys = dict.fromkeys(key for one in found for key in (one.row_key, one.through) if key is not None)
            ids = reader.memory_links.memory_ids(list(keys))
            proposals = PathList((ids[one.row_key], one.score) for one in found if one.row_key in ids)
            proposals.paths = FoundPaths(reader, spreads, found, ids, bank.bank_id)
        return proposals


def memory_filter(filters: StoreFilters) -> MemoryFilter:
    """A filter as the entity graph takes it; ids in the one way in which they are stored."""
    given = [id_to_bytes(one) for one in filters.memory_ids]
    known = tuple(bytes_to_id(one) for one in given if one is not None)
    return MemoryFilter(
        tags=filters.tags,
        tag_match=filters.tag_match,
        fact_types=filters.fact_types,
        # An id that is none lets nothing pass, as in the index.
        memory_ids=known or (("",) if given else ()),
        session_id=filters.session_id,
        metadata=tuple(filters.metadata.items()),
        happened=filters.time_range or (None, None),
        retained=filters.retained_range or (None, None),
    )
