"""Records of entities and links of callers in Neo4j.

    (:AstrocyteEntity)-[:Astrocyte_ALIAS_OF]->(:AstrocyteEntity)
    (:AstrocyteEntity)-[:Astrocyte_LINKS]->(:AstrocyteEntity)

A record is properties of its entity, ``record_id`` among them, and its aliases are relationships. An entity stays as
long as it has a record or a relationship. One server writes a bank, so what is read first is there when it is changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.providers.storage.graph_protocol import EntityRecord, LinkRecord
from astrocyte.providers.storage.neo4j.conditions import metadata_of, pairs_of
from astrocyte.providers.storage.neo4j.database import Database, Record, Statement
from astrocyte.providers.storage.protocols import CURRENT, StoreFilters

# What an entity is called that no caller named and no memory mentions: the words of its id.
_WORDS = "replace(last(split({entity}.entity_id, ':')), '-', ' ')"
_TYPE = "toUpper(head(split({entity}.entity_id, ':')))"
_NEW = f"ON CREATE SET {{entity}}.name = {_WORDS}, {{entity}}.entity_type = {_TYPE}"
_NAMED = f"""
MATCH (e:{{prefix}}Entity) WHERE e.bank_id = $bank_id AND e.entity_id IN $entity_ids
OPTIONAL MATCH (e)<-[m:{{prefix}}_MENTIONS]-()
WITH e, m ORDER BY m.known_from, m.id
WITH e, head(collect(m.name)) AS mentioned
SET e.name = coalesce(e.given_name, mentioned, {_WORDS.replace("{entity}", "e")})
"""
_CLEARED = """
MATCH (e:{prefix}Entity) WHERE e.bank_id = $bank_id AND e.entity_id IN $entity_ids
AND e.record_id IS NULL AND NOT EXISTS { (e)--() }
DELETE e
"""
_RECORDS_FOUND = """
MATCH (e:{prefix}Entity) WHERE e.bank_id = $bank_id AND e.record_id IN $ids
OPTIONAL MATCH (e)-[:{prefix}_ALIAS_OF]->(o)
RETURN e.entity_id AS entity_id, collect(o.entity_id) AS others
"""
_RECORDS_DELETED = """
MATCH (e:{prefix}Entity) WHERE e.bank_id = $bank_id AND e.record_id IN $ids
REMOVE e.record_id, e.given_name, e.aliases, e.folded, e.metadata
WITH e MATCH (e)-[a:{prefix}_ALIAS_OF]->() DELETE a
"""
_RECORDS_STORED = """
MERGE (b:{prefix}Bank {bank_id: $bank_id})
WITH b UNWIND $records AS record
MERGE (e:{prefix}Entity {bank_id: $bank_id, entity_id: record.entity_id})
SET e += record
"""
_ALIASES_STORED = f"""
UNWIND $aliases AS pair
MATCH (e:{{prefix}}Entity {{bank_id: $bank_id, entity_id: pair[0]}})
MERGE (o:{{prefix}}Entity {{bank_id: $bank_id, entity_id: pair[1]}}) {_NEW.replace("{entity}", "o")}
CREATE (e)-[:{{prefix}}_ALIAS_OF {{bank_id: $bank_id}}]->(o)
"""
_RECORDS_LISTED = """
MATCH (e:{prefix}Entity) WHERE e.bank_id = $bank_id AND e.record_id IS NOT NULL
OPTIONAL MATCH (e)-[:{prefix}_ALIAS_OF]->(o)
WITH e, o ORDER BY o.entity_id
RETURN properties(e) AS record, collect(o.entity_id) AS others ORDER BY record.record_id SKIP $offset LIMIT $limit
"""
_LINKS_FOUND = """
MATCH (s)-[l:{prefix}_LINKS]->(t) WHERE l.bank_id = $bank_id AND l.id IN $ids
RETURN s.entity_id AS entity_id, [t.entity_id] AS others
"""
_LINKS_DELETED = "MATCH ()-[l:{prefix}_LINKS]->() WHERE l.bank_id = $bank_id AND l.id IN $ids DELETE l"
_LINKS_STORED = f"""
MERGE (b:{{prefix}}Bank {{bank_id: $bank_id}})
WITH b UNWIND $links AS link
MERGE (s:{{prefix}}Entity {{bank_id: $bank_id, entity_id: link.source_id}}) {_NEW.replace("{entity}", "s")}
MERGE (t:{{prefix}}Entity {{bank_id: $bank_id, entity_id: link.target_id}}) {_NEW.replace("{entity}", "t")}
CREATE (s)-[l:{{prefix}}_LINKS]->(t)
SET l = link
"""
_LINKS_LISTED = """
MATCH ()-[l:{prefix}_LINKS]->() WHERE l.bank_id = $bank_id
RETURN properties(l) AS link ORDER BY l.id SKIP $offset LIMIT $limit
"""
_JOINED = """
MATCH (e:{prefix}Entity)-[:{prefix}_ALIAS_OF]-(o)
WHERE e.bank_id = $bank_id AND e.entity_id IN $fresh
RETURN DISTINCT o.entity_id AS entity_id
"""
_LINKED = """
MATCH (e:{prefix}Entity)-[l:{prefix}_LINKS]-(o)
WHERE e.bank_id = $bank_id AND e.entity_id IN $frontier AND l.walked
AND ($as_of IS NULL OR l.created_at <= $as_of)
AND ($valid_at IS NULL OR (coalesce(l.valid_from, $valid_at) <= $valid_at
AND coalesce(l.valid_until, $valid_at) >= $valid_at))
RETURN DISTINCT o.entity_id AS entity_id
"""


class Neo4jGraphRecords:
    """The part of a graph store that holds records and links; `Neo4jGraphStore` has the mentions.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store_entities(self, entities: Sequence[EntityRecord]) -> list[str]:
        """Store the records, replacing those of the same id."""
        for bank_id in dict.fromkeys(one.bank_id for one in entities):
            records = {one.id: one for one in entities if one.bank_id == bank_id}
            pairs = [[one.entity_id, other] for one in records.values() for other in one.alias_of]
            touched = await self._touched(_RECORDS_FOUND, list(records), bank_id)
            touched |= {one.entity_id for one in records.values()}
            await self._database.run(
                (_RECORDS_DELETED, {"bank_id": bank_id, "ids": list(records)}),
                (_RECORDS_STORED, {"bank_id": bank_id, "records": [_properties(one) for one in records.values()]}),
                (_ALIASES_STORED, {"bank_id": bank_id, "aliases": pairs}),
                *settled(bank_id, touched),
            )
        return [one.id for one in entities]

    async def delete_entities(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the records of these ids, and the entities that nothing else holds."""
        values = {"bank_id": bank_id, "ids": list(ids)}
        found = await self._database.read(_RECORDS_FOUND, values)
        await self._database.run((_RECORDS_DELETED, values), *settled(bank_id, _ends(found)))
        return len(found)

    async def list_entities(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[EntityRecord]:
        """All records by id."""
        found = await self._database.read(_RECORDS_LISTED, {"bank_id": bank_id, "offset": offset, "limit": limit})
        return [_entity(row["record"], row["others"]) for row in found]

    async def store_links(self, links: Sequence[LinkRecord]) -> list[str]:
        """Store the links, replacing those of the same id."""
        for bank_id in dict.fromkeys(one.bank_id for one in links):
            rows = {
                one.id: {name: getattr(one, name) for name in LinkRecord.__slots__}
                | {"metadata": pairs_of(one.metadata)}
                for one in links
                if one.bank_id == bank_id
            }
            touched = await self._touched(_LINKS_FOUND, list(rows), bank_id)
            await self._database.run(
                (_LINKS_DELETED, {"bank_id": bank_id, "ids": list(rows)}),
                (_LINKS_STORED, {"bank_id": bank_id, "links": list(rows.values())}),
                *settled(bank_id, touched),
            )
        return [one.id for one in links]

    async def delete_links(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the links of these ids, and the entities that nothing else holds."""
        values = {"bank_id": bank_id, "ids": list(ids)}
        found = await self._database.read(_LINKS_FOUND, values)
        await self._database.run((_LINKS_DELETED, values), *settled(bank_id, _ends(found)))
        return len(found)

    async def list_links(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[LinkRecord]:
        """All links by id."""
        found = await self._database.read(_LINKS_LISTED, {"bank_id": bank_id, "offset": offset, "limit": limit})
        return [LinkRecord(**{**row["link"], "metadata": metadata_of(row["link"]["metadata"])}) for row in found]

    async def graph_position(self, bank_id: str) -> int:
        """The position up to which records and links are current."""
        query = "MATCH (b:{prefix}Bank {bank_id: $bank_id}) RETURN b.graph_position AS position"
        found = await self._database.read(query, {"bank_id": bank_id})
        return int(found[0]["position"] or 0) if found else 0

    async def advance_graph(self, bank_id: str, position: int) -> None:
        """Set the position up to which records and links are current."""
        await self._database.run(
            (
                "MERGE (b:{prefix}Bank {bank_id: $bank_id}) SET b.graph_position = $position",
                {"bank_id": bank_id, "position": position},
            )
        )

    async def _joined(self, entity_ids: set[str], bank_id: str) -> set[str]:
        """The entities, and those that aliases join to them."""
        group, fresh = set(entity_ids), set(entity_ids)
        while fresh:
            found = await self._database.read(_JOINED, {"bank_id": bank_id, "fresh": sorted(fresh)})
            fresh = {record["entity_id"] for record in found} - group
            group |= fresh
        return group

    async def _linked(self, entity_ids: set[str], bank_id: str, filters: StoreFilters | None) -> set[str]:
        """The entities that links which pass the filter lead to."""
        wanted = filters or CURRENT
        times = {"as_of": wanted.as_of, "valid_at": wanted.valid_at}
        found = await self._database.read(_LINKED, {"bank_id": bank_id, "frontier": sorted(entity_ids), **times})
        return {record["entity_id"] for record in found}

    async def _touched(self, query: str, ids: Sequence[str], bank_id: str) -> set[str]:
        return _ends(await self._database.read(query, {"bank_id": bank_id, "ids": list(ids)}))


def settled(bank_id: str, entity_ids: set[str]) -> list[Statement]:
    """Statements after a change of what holds entities: those that are left get their names, the others go."""
    values = {"bank_id": bank_id, "entity_ids": sorted(entity_ids)}
    return [(_CLEARED, values), (_NAMED, values)] if entity_ids else []


def _ends(found: Sequence[Record]) -> set[str]:
    return {one for row in found for one in (row["entity_id"], *row["others"])}


def _properties(one: EntityRecord) -> Record:
    return {
        "record_id": one.id,
        "entity_id": one.entity_id,
        "entity_type": one.entity_type,
        "given_name": one.name,
        "aliases": list(one.aliases),
        "folded": list(one.folded),
        "metadata": pairs_of(one.metadata),
    }


def _entity(row: Record, others: Sequence[str]) -> EntityRecord:
    return EntityRecord(
        row["record_id"],
        row["bank_id"],
        row["entity_id"],
        row["entity_type"],
        row.get("given_name"),
        tuple(row["aliases"]),
        tuple(row["folded"]),
        tuple(others),
        metadata_of(row["metadata"]),
    )
