"""The protocol of external stores for entities: their mentions in memories, their names, and links of callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from astrocyte.providers.storage.protocols import Attributes, OutsideStore, StoreFilters, StoreHit

# The version of this protocol. Version 1 had mentions alone.
GRAPH_SPI_VERSION = 2
# A position that no bank reaches. A store that has it for a bank is filled anew.
AHEAD = 2**62


@dataclass(frozen=True, slots=True)
class EntityLink:
    """A mention: a link from a version of a memory to an entity.

    ``id`` is unique in the bank; ``folded`` is the name as it is looked for.
    """

    id: str
    bank_id: str
    entity_id: str
    name: str
    folded: str
    entity_type: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """The record of an entity beside its mentions: fields that callers set, and aliases.

    ``id`` and ``entity_id`` are unique in the bank. ``name`` is None where no caller gave one; ``folded`` has the names
    of callers, ``name`` and ``aliases``, as they are looked for. ``alias_of`` has the ids of the entities of which this
    one is another name. ``metadata`` is as that of `Attributes`.
    """

    id: str
    bank_id: str
    entity_id: str
    entity_type: str
    name: str | None = None
    aliases: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    alias_of: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A link that a caller made from one entity to another.

    ``id`` is unique in the bank. ``confidence`` is from 0 to 1, ``valid_from`` and ``valid_until`` are both included.
    Without ``walked`` it says whether two entities are the same one, and walks do not go along it: what holds is in
    ``alias_of`` of `EntityRecord`. ``metadata`` is as that of `Attributes`.
    """

    id: str
    bank_id: str
    source_id: str
    target_id: str
    link_type: str
    evidence: str
    confidence: float
    created_at: int
    valid_from: int | None = None
    valid_until: int | None = None
    walked: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict)

    def passes(self, filters: StoreFilters) -> bool:
        """True if a walk goes along it: it was made by ``as_of``, and holds at ``valid_at``. This is the definition."""
        made = filters.as_of is None or self.created_at <= filters.as_of
        return self.walked and made and filters.holds((self.valid_from, self.valid_until))


class GraphStore(OutsideStore, Protocol):
    """Finds memories by the entities that they name, and by entities that are named together, linked, or one.

    An entity exists as long as a mention, a record or a link names it. Records and links follow a position of their
    own, `graph_position`. `OutsideStore.delete` is about mentions; `OutsideStore.drop_bank` and
    `OutsideStore.list_banks` are about everything.
    """

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        """Store the mentions, replacing those of the same bank and id; returns their ids, in order."""

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        """The ids of the entities that have any of these names, as ``folded`` has them, in ascending order.

        Names are those of mentions and of records.
        """

    async def query_neighbors(
        self,
        entity_ids: Sequence[str],
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        filters: StoreFilters | None = None,
    ) -> list[StoreHit]:
        """Mentions of the entities, then of those that a memory names together with one of them, or a link leads to.

        The score is 1 / depth, the mentions of the entities themselves having depth 1; best first, equal scores by id.
        Only mentions and links that pass the filter are seen, and walked along, links in both directions. Entities of
        which one is an alias of the other, at any distance and in either direction, have the same depth.
        """

    async def store_entities(self, entities: Sequence[EntityRecord]) -> list[str]:
        """Store the records, replacing those of the same bank and id; returns their ids, in order."""

    async def delete_entities(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the records of these ids in the bank; returns their number. Mentions and links stay."""

    async def list_entities(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[EntityRecord]:
        """All records of the bank by id, from an offset on."""

    async def store_links(self, links: Sequence[LinkRecord]) -> list[str]:
        """Store the links, replacing those of the same bank and id; returns their ids, in order."""

    async def delete_links(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the links of these ids in the bank; returns their number."""

    async def list_links(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[LinkRecord]:
        """All links of the bank by id, from an offset on."""

    async def graph_position(self, bank_id: str) -> int:
        """The position up to which records and links are current; 0 for an unknown bank."""

    async def advance_graph(self, bank_id: str, position: int) -> None:
        """Set the position up to which records and links are current, as durably as the earlier writes."""
