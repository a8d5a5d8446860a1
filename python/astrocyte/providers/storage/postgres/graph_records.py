"""Records of entities and links of callers in PostgreSQL: a table of each, with a position of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from psycopg import sql
from psycopg.types.json import Jsonb

from astrocyte.providers.storage.graph_protocol import EntityRecord, LinkRecord
from astrocyte.providers.storage.postgres.database import Connection
from astrocyte.providers.storage.postgres.table import PostgresTable
from astrocyte.providers.storage.protocols import CURRENT, StoreFilters

_ENTITY = ("entity_id", "entity_type", "name", "aliases", "folded", "alias_of", "metadata")
_LINK = (
    "source_id",
    "target_id",
    "link_type",
    "evidence",
    "confidence",
    "created_at",
    "valid_from",
    "valid_until",
    "walked",
    "metadata",
)
_JOINED = (
    "SELECT entity_id, alias_of FROM {schema}.entity_records WHERE bank_id = %(bank_id)s"
    " AND (entity_id = ANY(%(fresh)s) OR alias_of && %(fresh)s::text[])"
)
_LINKED = (
    "SELECT source_id, target_id FROM {schema}.link_records WHERE bank_id = %(bank_id)s"
    " AND (source_id = ANY(%(frontier)s) OR target_id = ANY(%(frontier)s)) AND walked"
    " AND (%(as_of)s::bigint IS NULL OR created_at <= %(as_of)s)"
    " AND (%(valid_at)s::bigint IS NULL OR (coalesce(valid_from, %(valid_at)s) <= %(valid_at)s"
    " AND coalesce(valid_until, %(valid_at)s) >= %(valid_at)s))"
)


class PostgresGraphRecords(PostgresTable):
    """The part of a graph store that holds records and links; `PostgresGraphStore` has the mentions."""

    # Of the positions up to which records and links are current.
    GRAPH_KIND: ClassVar[str] = "graph_records"
    RECORD_TABLES: ClassVar[tuple[str, ...]] = (
        (
            "CREATE TABLE {schema}.entity_records (bank_id text, id text, entity_id text NOT NULL,"
            " entity_type text NOT NULL, name text, aliases text[] NOT NULL, folded text[] NOT NULL,"
            " alias_of text[] NOT NULL, metadata jsonb NOT NULL, PRIMARY KEY (bank_id, id))"
        ),
        "CREATE INDEX entity_records_of_entity ON {schema}.entity_records (bank_id, entity_id)",
        "CREATE INDEX entity_records_by_name ON {schema}.entity_records USING gin (folded)",
        "CREATE INDEX entity_records_by_alias ON {schema}.entity_records USING gin (alias_of)",
        (
            "CREATE TABLE {schema}.link_records (bank_id text, id text, source_id text NOT NULL,"
            " target_id text NOT NULL, link_type text NOT NULL, evidence text NOT NULL,"
            " confidence double precision NOT NULL, created_at bigint NOT NULL, valid_from bigint, valid_until bigint,"
            " walked boolean NOT NULL, metadata jsonb NOT NULL, PRIMARY KEY (bank_id, id))"
        ),
        "CREATE INDEX link_records_from ON {schema}.link_records (bank_id, source_id)",
        "CREATE INDEX link_records_to ON {schema}.link_records (bank_id, target_id)",
    )

    async def store_entities(self, entities: Sequence[EntityRecord]) -> list[str]:
        """Store the records, replacing those of the same id."""
        return await self._store("entity_records", _ENTITY, entities)

    async def delete_entities(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the records of these ids."""
        return await self._delete("entity_records", ids, bank_id)

    async def list_entities(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[EntityRecord]:
        """All records by id."""
        rows = await self._listed("entity_records", _ENTITY, bank_id, offset, limit)
        return [EntityRecord(**row) for row in rows]

    async def store_links(self, links: Sequence[LinkRecord]) -> list[str]:
        """Store the links, replacing those of the same id."""
        return await self._store("link_records", _LINK, links)

    async def delete_links(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete the links of these ids."""
        return await self._delete("link_records", ids, bank_id)

    async def list_links(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[LinkRecord]:
        """All links by id."""
        return [LinkRecord(**row) for row in await self._listed("link_records", _LINK, bank_id, offset, limit)]

    async def graph_position(self, bank_id: str) -> int:
        """The position up to which records and links are current."""
        return await self.read_position(self.GRAPH_KIND, bank_id)

    async def advance_graph(self, bank_id: str, position: int) -> None:
        """Set the position up to which records and links are current."""
        await self.write_position(self.GRAPH_KIND, bank_id, position)

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        async with self._connection() as connection:
            found = await connection.execute(
                self._sql(
                    "SELECT bank_id FROM {schema}.positions WHERE kind = %(kind)s AND starts_with(bank_id, %(prefix)s)"
                    " UNION SELECT bank_id FROM {schema}.entity_records WHERE starts_with(bank_id, %(prefix)s)"
                    " UNION SELECT bank_id FROM {schema}.link_records WHERE starts_with(bank_id, %(prefix)s)"
                ),
                {"kind": self.GRAPH_KIND, "prefix": prefix},
            )
            of_graphs = {row[0] for row in await found.fetchall()}
        return sorted({*await super().list_banks(prefix), *of_graphs})

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it. What is interrupted leaves a part with its position whole."""
        await super().drop_bank(bank_id)
        async with self._connection() as connection:
            for table in ("entity_records", "link_records"):
                await connection.execute(
                    self._sql("DELETE FROM {schema}.{records} WHERE bank_id = %s", records=sql.Identifier(table)),
                    (bank_id,),
                )
            await connection.execute(
                self._sql("DELETE FROM {schema}.positions WHERE kind = %s AND bank_id = %s"), (self.GRAPH_KIND, bank_id)
            )

    async def _joined(self, connection: Connection, entity_ids: set[str], bank_id: str) -> set[str]:
        """The entities, and those that aliases join to them."""
        group, fresh = set(entity_ids), set(entity_ids)
        while fresh:
            values = {"bank_id": bank_id, "fresh": sorted(fresh)}
            found = await connection.execute(self._sql(_JOINED), values)
            pairs = [(entity_id, other) for entity_id, several in await found.fetchall() for other in several]
            fresh = {end for pair in pairs if not fresh.isdisjoint(pair) for end in pair} - group
            group |= fresh
        return group

    async def _linked(
        self, connection: Connection, entity_ids: set[str], bank_id: str, filters: StoreFilters | None
    ) -> set[str]:
        """The entities that links which pass the filter lead to."""
        wanted = filters or CURRENT
        found = await connection.execute(
            self._sql(_LINKED),
            {
                "bank_id": bank_id,
                "frontier": sorted(entity_ids),
                "as_of": wanted.as_of,
                "valid_at": wanted.valid_at,
            },
        )
        return {end for row in await found.fetchall() for end in row}

    async def _store(
        self, table: str, columns: Sequence[str], items: Sequence[EntityRecord] | Sequence[LinkRecord]
    ) -> list[str]:
        places = ", ".join(f"%({name})s" for name in ("bank_id", "id", *columns))
        changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(
                self._sql(
                    f"INSERT INTO {{schema}}.{{records}} (bank_id, id, {', '.join(columns)}) VALUES ({places})"  # noqa: S608 - own names
                    f" ON CONFLICT (bank_id, id) DO UPDATE SET {changed}",
                    records=sql.Identifier(table),
                ),
                [{name: _bound(getattr(item, name)) for name in ("bank_id", "id", *columns)} for item in items],
            )
        return [item.id for item in items]

    async def _delete(self, table: str, ids: Sequence[str], bank_id: str) -> int:
        async with self._connection() as connection:
            done = await connection.execute(
                self._sql(
                    "DELETE FROM {schema}.{records} WHERE bank_id = %s AND id = ANY(%s)", records=sql.Identifier(table)
                ),
                (bank_id, list(ids)),
            )
        return done.rowcount

    async def _listed(
        self, table: str, columns: Sequence[str], bank_id: str, offset: int, limit: int
    ) -> list[dict[str, Any]]:
        names = ("id", "bank_id", *columns)
        async with self._connection() as connection:
            found = await connection.execute(
                self._sql(
                    f"SELECT {', '.join(names)} FROM {{schema}}.{{records}} WHERE bank_id = %s"  # noqa: S608 - own names
                    ' ORDER BY id COLLATE "C" LIMIT %s OFFSET %s',
                    records=sql.Identifier(table),
                ),
                (bank_id, limit, offset),
            )
            rows = await found.fetchall()
        return [{name: _read(value) for name, value in zip(names, row, strict=True)} for row in rows]


def _bound(value: object) -> object:
    """A field in the form for psycopg; PostgreSQL has no text with a zero character."""
    match value:
        case str():
            return value.replace("\0", " ")
        case tuple():
            return [str(one).replace("\0", " ") for one in value]
        case Mapping():
            return Jsonb({key: str(one).replace("\0", " ") for key, one in value.items()})
        case _:
            return value


def _read(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
