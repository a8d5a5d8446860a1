"""A graph store over tables: a mention has its entity with it, and a walk is some queries for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from astrocyte.providers.storage.graph_protocol import AHEAD, GRAPH_SPI_VERSION, EntityLink
from astrocyte.providers.storage.postgres.graph_records import PostgresGraphRecords
from astrocyte.providers.storage.postgres.table import COLUMNS, NAMES, SELECTED, condition, values_of
from astrocyte.providers.storage.protocols import StoreFilters, StoreHit

_OWN = ("entity_id", "name", "folded", "entity_type")
_PLACES = ", ".join(f"%({name})s" for name in ("bank_id", "id", *_OWN, *NAMES))
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in (*_OWN, *NAMES))


class PostgresGraphStore(PostgresGraphRecords):
    """Implements `astrocyte.providers.storage.GraphStore`."""

    SPI_VERSION: ClassVar[int] = GRAPH_SPI_VERSION
    KIND = "entity_links"
    TABLES = (
        (
            "CREATE TABLE {schema}.entity_links (bank_id text, id text, entity_id text NOT NULL, name text NOT NULL,"
            f" folded text NOT NULL, entity_type text NOT NULL, {COLUMNS}, PRIMARY KEY (bank_id, id))"
        ),
        "CREATE INDEX entity_links_of_memory ON {schema}.entity_links (bank_id, memory_id)",
        "CREATE INDEX entity_links_of_entity ON {schema}.entity_links (bank_id, entity_id)",
        "CREATE INDEX entity_links_by_name ON {schema}.entity_links (bank_id, folded)",
        *PostgresGraphRecords.RECORD_TABLES,
        # Before the records, entities had other ids than in the entity graph: what there is by then is filled anew.
        f"UPDATE {{schema}}.positions SET position = {AHEAD} WHERE kind = 'entity_links'",  # noqa: S608 - a number of our own
    )

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        """Store the links, replacing those of the same id."""
        rows = [
            {
                "bank_id": link.bank_id,
                "id": link.id,
                **{name: getattr(link, name).replace("\0", " ") for name in _OWN},
                **values_of(link.attributes),
            }
            for link in links
        ]
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(
                self._sql(
                    f"INSERT INTO {{schema}}.entity_links (bank_id, id, {', '.join(_OWN)}, {SELECTED})"  # noqa: S608 - own names
                    f" VALUES ({_PLACES}) ON CONFLICT (bank_id, id) DO UPDATE SET {_CHANGED}"
                ),
                rows,
            )
        return [link.id for link in links]

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        """The entities of any of these names."""
        query = self._sql(
            "SELECT entity_id FROM (SELECT entity_id FROM {schema}.entity_links"
            " WHERE bank_id = %(bank_id)s AND folded = ANY(%(names)s)"
            " UNION SELECT entity_id FROM {schema}.entity_records"
            " WHERE bank_id = %(bank_id)s AND folded && %(names)s::text[]) named"
            ' ORDER BY entity_id COLLATE "C" LIMIT %(limit)s'
        )
        async with self._connection() as connection:
            found = await connection.execute(query, {"bank_id": bank_id, "names": list(names), "limit": limit})
            return [row[0] for row in await found.fetchall()]

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
        step = self._sql(
            "SELECT id, memory_id FROM {schema}.entity_links"
            " WHERE bank_id = %(bank_id)s AND entity_id = ANY(%(frontier)s) AND {where}"
            ' ORDER BY id COLLATE "C"',
            where=where,
        )
        beside = self._sql(
            "SELECT DISTINCT entity_id FROM {schema}.entity_links"
            " WHERE bank_id = %(bank_id)s AND memory_id = ANY(%(reached)s) AND {where}",
            where=where,
        )
        values["bank_id"] = bank_id
        seen: set[str] = set()
        frontier = set(entity_ids)
        hits: list[StoreHit] = []
        async with self._connection() as connection:
            for depth in range(1, max_depth + 1):
                frontier = await self._joined(connection, frontier, bank_id) - seen
                seen |= frontier
                found = await connection.execute(step, {**values, "frontier": sorted(frontier)})
                rows = await found.fetchall()
                hits += [StoreHit(row[0], row[1], 1.0 / depth) for row in rows]
                if not frontier or len(hits) >= limit or depth == max_depth:
                    break
                reached = sorted({row[1] for row in rows})
                found = await connection.execute(beside, {**values, "reached": reached})
                named = {row[0] for row in await found.fetchall()}
                frontier = (named | await self._linked(connection, frontier, bank_id, filters)) - seen
        return hits[:limit]
