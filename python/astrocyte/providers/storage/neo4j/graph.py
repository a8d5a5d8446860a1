"""A graph store over Neo4j: memories and entities are nodes, a mention is a relationship between them.

    (:AstrocyteMemory)-[:Astrocyte_MENTIONS]->(:AstrocyteEntity)

A mention has the attributes of its version as properties, so that a walk is filtered at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from astrocyte.providers.storage.graph_protocol import GRAPH_SPI_VERSION, EntityLink
from astrocyte.providers.storage.neo4j.conditions import condition, properties_of
from astrocyte.providers.storage.neo4j.graph_records import Neo4jGraphRecords, settled
from astrocyte.providers.storage.protocols import StoreFilters, StoreHit

# Of a bank that is dropped, in one transaction: their relationships are held in memory until it is committed.
_NODES_AT_ONCE = 1_000

# Links of these ids that began or ended elsewhere, and the nodes that nothing else holds then.
_MOVED = """
UNWIND $links AS link
MATCH (x:{prefix}Memory)-[m:{prefix}_MENTIONS {bank_id: link.bank_id, id: link.id}]->(e:{prefix}Entity)
WHERE x.memory_id <> link.memory_id OR e.entity_id <> link.entity_id
DELETE m
WITH collect(x) + collect(e) AS ends
UNWIND ends AS n
WITH DISTINCT n WHERE n.record_id IS NULL AND NOT EXISTS { (n)--() }
DELETE n
"""
_STORED = """
UNWIND $links AS link
MERGE (b:{prefix}Bank {bank_id: link.bank_id})
MERGE (x:{prefix}Memory {bank_id: link.bank_id, memory_id: link.memory_id})
MERGE (e:{prefix}Entity {bank_id: link.bank_id, entity_id: link.entity_id})
SET e.name = coalesce(e.given_name, link.name), e.entity_type = link.entity_type
MERGE (x)-[m:{prefix}_MENTIONS {bank_id: link.bank_id, id: link.id}]->(e)
SET m = link
"""
_MENTIONED = """
MATCH (x:{prefix}Memory)-[m:{prefix}_MENTIONS]->(e) WHERE x.bank_id = $bank_id AND x.memory_id IN $ids
RETURN e.entity_id AS entity_id, count(m) AS mentions
"""
_DELETED = "MATCH (x:{prefix}Memory) WHERE x.bank_id = $bank_id AND x.memory_id IN $ids DETACH DELETE x"
_NAMED = """
MATCH ()-[m:{prefix}_MENTIONS]->() WHERE m.bank_id = $bank_id AND m.folded IN $names
RETURN m.entity_id AS entity_id
UNION
MATCH (e:{prefix}Entity) WHERE e.bank_id = $bank_id AND e.record_id IS NOT NULL
AND any(name IN e.folded WHERE name IN $names)
RETURN e.entity_id AS entity_id
"""
_STEP = """
MATCH (e:{prefix}Entity)<-[m:{prefix}_MENTIONS]-()
WHERE e.bank_id = $bank_id AND e.entity_id IN $frontier AND {where}
RETURN m.id AS id, m.memory_id AS memory_id ORDER BY id LIMIT $left
"""
_BESIDE = """
MATCH (x:{prefix}Memory)-[m:{prefix}_MENTIONS]->()
WHERE x.bank_id = $bank_id AND x.memory_id IN $reached AND {where}
RETURN DISTINCT m.entity_id AS entity_id
"""
_DROPPED = """
MATCH (n:{prefix}{label}) WHERE n.bank_id = $bank_id
WITH n LIMIT $most DETACH DELETE n RETURN count(*) AS nodes
"""


class Neo4jGraphStore(Neo4jGraphRecords):
    """Implements `astrocyte.providers.storage.GraphStore`."""

    SPI_VERSION: ClassVar[int] = GRAPH_SPI_VERSION

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        """Store the mentions, replacing those of the same id."""
        rows = {
            (link.bank_id, link.id): {
                "bank_id": link.bank_id,
                "id": link.id,
                "entity_id": link.entity_id,
                "name": link.name,
                "folded": link.folded,
                "entity_type": link.entity_type,
                **properties_of(link.attributes),
            }
            for link in links
        }
        if rows:
            values = {"links": list(rows.values())}
            await self._database.run((_MOVED, values), (_STORED, values))
        return [link.id for link in links]

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        """The entities of any of these names."""
        found = await self._database.read(_NAMED, {"bank_id": bank_id, "names": list(names)})
        return sorted([record["entity_id"] for record in found])[:limit]

    async def query_neighbors(
        self,
        entity_ids: Sequence[str],
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        filters: StoreFilters | None = None,
    ) -> list[StoreHit]:
        """Links of the entities, and of those named together with them."""
        where, values = condition(filters)
        step, beside = (text.replace("{where}", where) for text in (_STEP, _BESIDE))
        values["bank_id"] = bank_id
        seen: set[str] = set()
        frontier = set(entity_ids)
        hits: list[StoreHit] = []
        for depth in range(1, max_depth + 1):
            frontier = await self._joined(frontier, bank_id) - seen
            seen |= frontier
            # No more than are missing: a walk that reaches the limit ends here, and so needs no others to go on from.
            asked = {**values, "frontier": sorted(frontier), "left": limit - len(hits)}
            found = await self._database.read(step, asked)
            hits += [StoreHit(record["id"], record["memory_id"], 1.0 / depth) for record in found]
            if not frontier or len(hits) >= limit or depth == max_depth:
                break
            reached = sorted({record["memory_id"] for record in found})
            found = await self._database.read(beside, {**values, "reached": reached})
            named = {record["entity_id"] for record in found}
            frontier = (named | await self._linked(frontier, bank_id, filters)) - seen
        return hits

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the graph is current."""
        query = "MATCH (b:{prefix}Bank {bank_id: $bank_id}) RETURN b.position AS position"
        found = await self._database.read(query, {"bank_id": bank_id})
        return int(found[0]["position"] or 0) if found else 0

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the graph is current."""
        await self._database.run(
            (
                "MERGE (b:{prefix}Bank {bank_id: $bank_id}) SET b.position = $position",
                {"bank_id": bank_id, "position": position},
            )
        )

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all mentions of these memories in the bank, and the entities that nothing else holds."""
        values = {"bank_id": bank_id, "ids": list(ids)}
        found = await self._database.read(_MENTIONED, values)
        await self._database.run((_DELETED, values), *settled(bank_id, {record["entity_id"] for record in found}))
        return sum(record["mentions"] for record in found)

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        query = "MATCH (b:{prefix}Bank) WHERE b.bank_id STARTS WITH $beginning RETURN b.bank_id AS bank_id"
        return sorted([record["bank_id"] for record in await self._database.read(query, {"beginning": prefix})])

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it, its name last: what is interrupted is found and done again."""
        for label in ("Memory", "Entity", "Bank"):
            statement = _DROPPED.replace("{label}", label)
            values = {"bank_id": bank_id, "most": _NODES_AT_ONCE}
            while (await self._database.run((statement, values)))[0]["nodes"] == _NODES_AT_ONCE:
                pass

    async def health(self) -> bool:
        """True if the database answers."""
        return await self._database.healthy()

    async def close(self) -> None:
        """Release the connections."""
        await self._database.close()
