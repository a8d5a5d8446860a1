"""The graph store in plain Python: the reference implementation of its protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from astrocyte.providers.storage.graph_protocol import GRAPH_SPI_VERSION, EntityLink, EntityRecord, LinkRecord
from astrocyte.providers.storage.in_memory_shelf import Shelf, best
from astrocyte.providers.storage.protocols import CURRENT, StoreFilters, StoreHit

R = TypeVar("R", EntityRecord, LinkRecord)
Shelves = dict[str, dict[str, R]]


class InMemoryGraphStore(Shelf[EntityLink]):
    """Implements `astrocyte.providers.storage.GraphStore`."""

    SPI_VERSION: ClassVar[int] = GRAPH_SPI_VERSION

    def __init__(self) -> None:
        super().__init__()
        self._entities: Shelves[EntityRecord] = {}
        self._links: Shelves[LinkRecord] = {}
        self._graph_positions: dict[str, int] = {}

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        """Store the mentions, replacing those of the same id."""
        return self.put(links)

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        """The entities of any of these names."""
        mentions = self._banks.get(bank_id, {}).values()
        named = {mention.entity_id for mention in mentions if mention.folded in names}
        return sorted(named | self.recorded(names, bank_id))[:limit]

    async def query_neighbors(
        self,
        entity_ids: Sequence[str],
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        filters: StoreFilters | None = None,
    ) -> list[StoreHit]:
        """Mentions of the entities, and of those named together with them, or linked."""
        mentions = self.passing(bank_id, filters)
        seen: set[str] = set()
        frontier = set(entity_ids)
        hits: list[StoreHit] = []
        for depth in range(1, max_depth + 1):
            frontier = self.joined(frontier, bank_id) - seen
            seen |= frontier
            reached = [mention for mention in mentions if mention.entity_id in frontier]
            hits += [StoreHit(mention.id, mention.attributes.memory_id, 1.0 / depth) for mention in reached]
            memories = {mention.attributes.memory_id for mention in reached}
            beside = {mention.entity_id for mention in mentions if mention.attributes.memory_id in memories}
            frontier = (beside | self.linked(frontier, bank_id, filters)) - seen
        return best(hits, limit)

    async def store_entities(self, entities: Sequence[EntityRecord]) -> list[str]:
        """Store the records, replacing those of the same id."""
        return _put(self._entities, entities)

    async def delete_entities(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the records of these ids."""
        return _delete(self._entities, ids, bank_id)

    async def list_entities(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[EntityRecord]:
        """All records by id."""
        return _listed(self._entities, bank_id)[offset : offset + limit]

    async def store_links(self, links: Sequence[LinkRecord]) -> list[str]:
        """Store the links, replacing those of the same id."""
        return _put(self._links, links)

    async def delete_links(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the links of these ids."""
        return _delete(self._links, ids, bank_id)

    async def list_links(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[LinkRecord]:
        """All links by id."""
        return _listed(self._links, bank_id)[offset : offset + limit]

    async def graph_position(self, bank_id: str) -> int:
        """The position up to which records and links are current."""
        return self._graph_positions.get(bank_id, 0)

    async def advance_graph(self, bank_id: str, position: int) -> None:
        """Set the position up to which records and links are current."""
        self._graph_positions[bank_id] = position

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        of_graphs = {bank_id for bank_id in self._graph_positions if bank_id.startswith(prefix)}
        for shelves in (self._entities, self._links):
            of_graphs.update(bank_id for bank_id, items in shelves.items() if items and bank_id.startswith(prefix))
        return sorted({*await super().list_banks(prefix), *of_graphs})

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it."""
        await super().drop_bank(bank_id)
        self._entities.pop(bank_id, None)
        self._links.pop(bank_id, None)
        self._graph_positions.pop(bank_id, None)

    def recorded(self, names: Sequence[str], bank_id: str) -> set[str]:
        """The entities that have any of these names in their records."""
        records = self._entities.get(bank_id, {}).values()
        return {record.entity_id for record in records if not set(names).isdisjoint(record.folded)}

    def joined(self, entity_ids: Iterable[str], bank_id: str) -> set[str]:
        """The entities, and those that aliases join to them."""
        records = self._entities.get(bank_id, {}).values()
        pairs = [(record.entity_id, other) for record in records for other in record.alias_of]
        group, fresh = set(entity_ids), set(entity_ids)
        while fresh:
            fresh = {end for pair in pairs if not fresh.isdisjoint(pair) for end in pair} - group
            group |= fresh
        return group

    def linked(self, entity_ids: set[str], bank_id: str, filters: StoreFilters | None) -> set[str]:
        """The entities that links which pass the filter lead to."""
        links = [link for link in self._links.get(bank_id, {}).values() if link.passes(filters or CURRENT)]
        ends = [(link.source_id, link.target_id) for link in links]
        return {end for pair in ends if not entity_ids.isdisjoint(pair) for end in pair}


def _put(shelves: Shelves[R], items: Sequence[R]) -> list[str]:
    for item in items:
        shelves.setdefault(item.bank_id, {})[item.id] = item
    return [item.id for item in items]


def _delete(shelves: Shelves[R], ids: Sequence[str], bank_id: str) -> int:
    items = shelves.get(bank_id, {})
    return len([items.pop(one) for one in dict.fromkeys(ids) if one in items])


def _listed(shelves: Shelves[R], bank_id: str) -> list[R]:
    return sorted(shelves.get(bank_id, {}).values(), key=lambda item: item.id)
