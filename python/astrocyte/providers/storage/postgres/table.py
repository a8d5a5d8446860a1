"""The base of the PostgreSQL stores: a table with one row per item and a column per filtered attribute."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from psycopg import Error, sql
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from astrocyte.errors import StoreError
from astrocyte.providers.storage.postgres.database import Connection, Database
from astrocyte.providers.storage.protocols import CURRENT, SPI_VERSION, Attributes, StoreFilters

# Of every table of items.
COLUMNS = (
    "memory_id text NOT NULL, retained_at bigint NOT NULL, known_from bigint NOT NULL, known_until bigint,"
    " occurred_at bigint, valid_from bigint, valid_until bigint, fact_type text NOT NULL, session_id text,"
    " tags text[] NOT NULL, metadata jsonb NOT NULL"
)
NAMES = (
    "memory_id",
    "retained_at",
    "known_from",
    "known_until",
    "occurred_at",
    "valid_from",
    "valid_until",
    "fact_type",
    "session_id",
    "tags",
    "metadata",
)
SELECTED = ", ".join(NAMES)
_TAGGED = {
    "any": "tags && %(tags)s::text[]",
    "all": "tags @> %(tags)s::text[]",
    "none": "NOT tags && %(tags)s::text[]",
}

_AS_OF = "known_from <= %(as_of)s AND (known_until IS NULL OR known_until > %(as_of)s)"
# By the names of `StoreFilters`: what is asked where they are given.
_CONDITIONS = {
    "tags": "",
    "fact_types": "fact_type = ANY(%(fact_types)s)",
    "memory_ids": "memory_id = ANY(%(memory_ids)s)",
    "session_id": "session_id = %(session_id)s",
    "metadata": "metadata @> %(metadata)s",
    "valid_at": (
        "(valid_from IS NULL OR valid_from <= %(valid_at)s) AND (valid_until IS NULL OR valid_until >= %(valid_at)s)"
    ),
}


class PostgresTable:
    """Items in one table.

    Args:
        database: Where it is.
    """

    SPI_VERSION: ClassVar[int] = SPI_VERSION
    KIND: ClassVar[str]
    TABLES: ClassVar[Sequence[str]]

    def __init__(self, database: Database) -> None:
        self._database = database

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the table is current."""
        return await self.read_position(self.KIND, bank_id)

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the table is current."""
        await self.write_position(self.KIND, bank_id, position)

    async def read_position(self, kind: str, bank_id: str) -> int:
        """A position of that kind; 0 for none."""
        async with self._connection() as connection:
            query = self._sql("SELECT position FROM {schema}.positions WHERE kind = %(kind)s AND bank_id = %(bank_id)s")
            row = await self._database.one(connection, query, {"kind": kind, "bank_id": bank_id})
        return 0 if row is None else int(row[0])

    async def write_position(self, kind: str, bank_id: str, position: int) -> None:
        """Set a position of that kind."""
        async with self._connection() as connection:
            await connection.execute(
                self._sql(
                    "INSERT INTO {schema}.positions VALUES (%s, %s, %s)"
                    " ON CONFLICT (kind, bank_id) DO UPDATE SET position = excluded.position"
                ),
                (kind, bank_id, position),
            )

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all items of these memories in the bank."""
        async with self._connection() as connection:
            done = await connection.execute(
                self._sql("DELETE FROM {schema}.{table} WHERE bank_id = %s AND memory_id = ANY(%s)"),
                (bank_id, list(ids)),
            )
        return done.rowcount

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        async with self._connection() as connection:
            found = await connection.execute(
                self._sql(
                    "SELECT bank_id FROM {schema}.positions WHERE kind = %(kind)s AND starts_with(bank_id, %(prefix)s)"
                    " UNION SELECT bank_id FROM {schema}.{table} WHERE starts_with(bank_id, %(prefix)s)"
                ),
                {"kind": self.KIND, "prefix": prefix},
            )
            # Sorted here: the database's collation may be another.
            return sorted([row[0] for row in await found.fetchall()])

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it."""
        async with self._connection() as connection:
            await connection.execute(self._sql("DELETE FROM {schema}.{table} WHERE bank_id = %s"), (bank_id,))
            await connection.execute(
                self._sql("DELETE FROM {schema}.positions WHERE kind = %s AND bank_id = %s"), (self.KIND, bank_id)
            )

    async def health(self) -> bool:
        """True if the database answers."""
        try:
            async with self._connection() as connection:
                await connection.execute("SELECT 1")
        except (Error, PoolTimeout, StoreError, OSError):
            return False
        return True

    async def close(self) -> None:
        """Release the connections."""
        await self._database.close()

    def _connection(self) -> AbstractAsyncContextManager[Connection]:
        return self._database.connection(self.KIND, self.TABLES)

    def _sql(self, text: str, **parts: sql.Composable) -> sql.Composed:
        return self._database.sql(text, table=sql.Identifier(self.KIND), **parts)


def values_of(item: Attributes) -> dict[str, Any]:
    """The columns of an item's attributes, by name."""
    return {
        "memory_id": item.memory_id,
        "retained_at": item.retained_at,
        "known_from": item.known_from,
        "known_until": item.known_until,
        "occurred_at": item.occurred_at,
        "valid_from": item.valid_from,
        "valid_until": item.valid_until,
        "fact_type": item.fact_type,
        "session_id": item.session_id,
        "tags": list(item.tags),
        "metadata": Jsonb(dict(item.metadata)),
    }


def attributes_of(row: Sequence[Any]) -> Attributes:
    """The attributes of a row that `SELECTED` read."""
    named = dict(zip(NAMES, row, strict=True))
    return Attributes(**{**named, "tags": tuple(named["tags"])})


def condition(filters: StoreFilters | None) -> tuple[sql.SQL, dict[str, Any]]:
    """A filter as SQL over the columns, and its parameters."""
    wanted = filters or CURRENT
    parts = ["known_until IS NULL" if wanted.as_of is None else _AS_OF]
    values: dict[str, Any] = {"as_of": wanted.as_of}
    for name, text in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None and value not in ((), {}):
            parts.append(_TAGGED[wanted.tag_match] if name == "tags" else text)
            values[name] = _bound(value)
    for name, column in (("time_range", "coalesce(occurred_at, retained_at)"), ("retained_range", "retained_at")):
        for bound, sign in zip(getattr(wanted, name) or (), (">=", "<="), strict=False):
            if bound is not None:
                key = f"{name}_{len(values)}"
                parts.append(f"{column} {sign} %({key})s")
                values[key] = bound
    return sql.SQL(" AND ".join(parts)), values


def _bound(value: object) -> object:
    """A value in the form for psycopg."""
    match value:
        case tuple():
            return list(value)
        case dict():
            return Jsonb(value)
        case _:
            return value
