"""Reads of the entity graph: search, entities, neighbours, paths, counts and export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from astrocyte.api import LimitKind
from astrocyte.api.requests import (
    ExportGraph,
    FindPath,
    GetEntity,
    GetGraphStats,
    ListEntities,
    Neighbors,
    SearchEntities,
)
from astrocyte.errors import NotFound
from astrocyte.model import (
    Bank,
    Caller,
    EntityLink,
    EntityNeighbor,
    EntityPage,
    GraphEntity,
    GraphFormat,
    GraphHit,
    GraphNeighbors,
    GraphPath,
    GraphPaths,
    GraphStats,
    MemoryHit,
    RecallResult,
)
from astrocyte.pipelines.graph.export import export_pieces
from astrocyte.pipelines.graph.neighbors import neighbors
from astrocyte.pipelines.graph.paths import shortest_paths
from astrocyte.pipelines.graph.pipeline import GraphPipeline
from astrocyte.pipelines.graph.search import search
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations import graph_checks as checks
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_token, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.stores.graph.entity_graph import GraphReader, GraphView

T = TypeVar("T")
# Where the caller names no number.
USUAL_ENTITIES = 10
USUAL_NEIGHBORS = 20
USUAL_DEPTH = 2
USUAL_PATH_DEPTH = 4


class GraphReading:
    """Handlers of the calls that read an entity graph.

    Args:
        parts: The parts that the operations share.
        executor: Runs the reads.
    """

    def __init__(self, parts: OperationParts, executor: Executor) -> None:
        self._banks = parts.banks
        self._check = parts.check
        self._access = parts.access
        self._limits = parts.settings.limits
        self._rates = parts.policies.limits
        self._barriers = parts.policies.barriers
        self._graph: GraphPipeline = parts.pipelines.graph
        self._executor = executor

    async def search_entities(self, caller: Caller, request: SearchEntities) -> list[GraphEntity]:
        """The entities whose names match."""
        await self._admit(caller, "SearchEntities", request.bank_id)
        field_checks.label(request.query, "query", self._limits.name_chars)
        limit = checks.number(request.limit, "limit", USUAL_ENTITIES, self._limits.max_results)
        checks.entity_types(request.entity_types, "entity_types")
        view = await self._view(caller, "SearchEntities", request.bank_id, request.as_of)
        found = await self.read(view, lambda reader: search(reader, request.query, request.entity_types, limit))
        return self._told(view.bank, found)

    async def get_entity(self, caller: Caller, request: GetEntity) -> GraphEntity:
        """One entity."""
        self._banks.require(caller, "GetEntity", request.bank_id)
        checks.entity_id(request.entity_id, "entity_id")
        view = await self._view(caller, "GetEntity", request.bank_id, request.as_of)
        return await self.entity(view, request.entity_id)

    async def entity(self, view: GraphView, entity_id: str) -> GraphEntity:
        """The entity of an id, or the one that it is merged into.

        Raises:
            NotFound: The view has none.
        """

        def read(reader: GraphReader) -> list[GraphEntity]:
            keys = known_keys(reader, view.bank, [entity_id])
            return reader.entities(list(reader.groups(keys).values()))

        return self._told(view.bank, await self.read(view, read))[0]

    async def list_entities(self, caller: Caller, request: ListEntities) -> EntityPage:
        """A page of entities."""
        self._banks.require(caller, "ListEntities", request.bank_id)
        kind = request.entity_type or None
        if kind is not None:
            checks.entity_type(kind, "entity_type")
        limit = self._check.page_limit(request.page_size)
        view = await self._view(caller, "ListEntities", request.bank_id, request.as_of)
        scope = ("entities", caller.tenant, view.bank.key, kind, view.as_of)
        after = str(decode_token(request.page_token, scope, str, 1)[0]) if request.page_token else ""

        def read(reader: GraphReader) -> list[tuple[str, GraphEntity]]:
            rows = reader.listed(after, kind, limit.entries + 1)
            groups = reader.groups([key for _, key in rows])
            entities = self._told(view.bank, reader.entities([groups[key] for _, key in rows]))
            return [(name, one) for (name, _), one in zip(rows, entities, strict=True)]

        entities, last = cut_page(await self.read(view, read), limit)
        return EntityPage(entities, "" if last is None else encode_token(scope, [last]))

    async def neighbors(self, caller: Caller, request: Neighbors) -> GraphNeighbors:
        """Entities and memories around entities."""
        await self._admit(caller, "Neighbors", request.bank_id)
        checks.entity_ids(request.entity_ids, "entity_ids", checks.MOST_SEEDS)
        depth = checks.number(request.max_depth, "max_depth", USUAL_DEPTH, checks.MOST_DEPTH)
        limit = checks.number(request.limit, "limit", USUAL_NEIGHBORS, self._limits.max_results)
        checks.link_types(request.link_types)
        view = await self._view(caller, "Neighbors", request.bank_id, request.as_of, request.valid_at)

        def read(reader: GraphReader) -> GraphNeighbors:
            keys = known_keys(reader, view.bank, request.entity_ids)
            return neighbors(reader, keys, depth=depth, limit=limit, link_types=request.link_types)

        found = await self.read(view, read)
        entities = self._told(view.bank, [one.entity for one in found.entities])
        links = iter(self._told_links(view.bank, [one.via for one in found.entities if one.via is not None]))
        shown = tuple(
            EntityNeighbor(entity, one.depth, one.score, None if one.via is None else next(links))
            for entity, one in zip(entities, found.entities, strict=True)
        )
        return replace(found, entities=shown, memories=self._told_hits(view.bank, found.memories))

    async def find_path(self, caller: Caller, request: FindPath) -> GraphPaths:
        """The shortest paths between two entities."""
        await self._admit(caller, "FindPath", request.bank_id)
        checks.entity_id(request.source_id, "source_id")
        checks.entity_id(request.target_id, "target_id")
        depth = checks.number(request.max_depth, "max_depth", USUAL_PATH_DEPTH, checks.MOST_DEPTH)
        count = checks.number(request.max_paths, "max_paths", 1, checks.MOST_PATHS)
        checks.link_types(request.link_types)
        view = await self._view(caller, "FindPath", request.bank_id, request.as_of, request.valid_at)

        def read(reader: GraphReader) -> tuple[list[GraphPath], bool]:
            source, target = known_keys(reader, view.bank, [request.source_id, request.target_id])
            return shortest_paths(reader, source, target, depth=depth, count=count, link_types=request.link_types)

        paths, truncated = await self.read(view, read)
        told = tuple(
            GraphPath(tuple(self._told(view.bank, path.entities)), tuple(self._told_links(view.bank, path.links)))
            for path in paths
        )
        return GraphPaths(told, truncated)

    async def get_graph_stats(self, caller: Caller, request: GetGraphStats) -> GraphStats:
        """Counts of the graph."""
        self._banks.require(caller, "GetGraphStats", request.bank_id)
        return await self.stats(self._banks.current(caller, "GetGraphStats", request.bank_id))

    async def stats(self, bank: Bank) -> GraphStats:
        """Counts of the graph of a bank, and of the work in progress."""
        counted = await self.read(GraphView(bank), lambda reader: reader.stats())
        return await self._run(lambda: self._graph.with_progress(bank, counted))

    async def export_graph(self, caller: Caller, request: ExportGraph) -> AsyncIterator[str]:
        """The graph as text, in pieces."""
        self._banks.require(caller, "ExportGraph", request.bank_id)
        kind = field_checks.named(request.format, "format", GraphFormat)
        view = await self._view(caller, "ExportGraph", request.bank_id, request.as_of)
        await self._graph.store.record_export(view.bank, by=self._access.name(caller))
        pieces = export_pieces(
            lambda read: self.read(view, read),
            kind,
            lambda entities: self._told(view.bank, entities),
            lambda links: self._told_links(view.bank, links),
        )
        async for piece in pieces:
            # The caller may take its time, and lose the right meanwhile.
            self._access.require(caller, "ExportGraph", request.bank_id, view.bank)
            yield piece

    async def _admit(self, caller: Caller, operation: str, bank_id: str) -> None:
        self._banks.require(caller, operation, bank_id)
        await self._rates.admit((Demand(caller.tenant, bank_id, LimitKind.RECALL),))

    async def _view(
        self,
        caller: Caller,
        operation: str,
        bank_id: str,
        as_of: datetime | None,
        valid_at: datetime | None = None,
    ) -> GraphView:
        """The view of a call, once the graph has caught up with the memories."""
        checks.times(as_of, valid_at)
        bank = self._banks.handle(caller, operation, bank_id)
        await self._graph.caught_up()
        return GraphView(bank, optional_ms(as_of), optional_ms(valid_at))

    async def read(self, view: GraphView, read: Callable[[GraphReader], T]) -> T:
        """The result of a read of one committed state."""

        def work() -> T:
            with self._graph.store.reader(view) as reader:
                return read(reader)

        return await self._run(work)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _told(self, bank: Bank, entities: Sequence[GraphEntity]) -> list[GraphEntity]:
        """Entities as they may leave."""
        names = [name for one in entities for name in (one.name, *one.aliases)]
        told = iter(self._barriers.told(bank.bank_id, names))
        return [replace(one, name=next(told), aliases=tuple(next(told) for _ in one.aliases)) for one in entities]

    def _told_links(self, bank: Bank, links: Sequence[EntityLink]) -> list[EntityLink]:
        """Links as they may leave."""
        told = self._barriers.told(bank.bank_id, [one.evidence for one in links])
        return [replace(one, evidence=text) for one, text in zip(links, told, strict=True)]

    def _told_hits(self, bank: Bank, hits: Sequence[GraphHit]) -> tuple[GraphHit, ...]:
        """Memories as they may leave; those that may not are left out."""
        shown = [MemoryHit(one.text, one.score, one.memory_id, bank.bank_id) for one in hits]
        result = self._barriers.output((bank.bank_id,), "Neighbors", RecallResult(shown, len(shown), truncated=False))
        texts = {hit.memory_id: hit.text for hit in result.hits}
        return tuple(replace(one, text=texts[one.memory_id]) for one in hits if one.memory_id in texts)


def known_keys(reader: GraphReader, bank: Bank, entity_ids: Sequence[str]) -> list[int]:
    """The keys of entities, in their order.

    Raises:
        NotFound: The view has no such entity.
    """
    keys = reader.keys(entity_ids)
    unknown = next((one for one in entity_ids if one not in keys), None)
    if unknown is not None:
        raise NotFound(
            f"there is no entity {unknown!r} in bank {bank.bank_id!r}; search for its name",
            metadata={"entity_id": unknown, "bank_id": bank.bank_id},
        )
    return [keys[one] for one in entity_ids]
