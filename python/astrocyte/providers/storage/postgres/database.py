"""The database of a PostgreSQL store: connections, schema, and the position of each bank."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from astrocyte.errors import StoreError

Connection = AsyncConnection[TupleRow]
Query = sql.SQL | sql.Composed

# Two servers that start at once make the tables one after the other; any number that nobody else takes.
_LOCK = 0x6173_7472_6F63


class PostgresOptions(BaseModel):
    """The address of the database, and options of its use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dsn: SecretStr = Field(description="How to connect: postgresql://user:password@host/database.")
    schema_name: str = Field("astrocyte", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    connections: int = Field(4, ge=1, le=64)
    connect_seconds: float = Field(5.0, gt=0.0, le=300.0)
    language: str = Field("english", pattern=r"^[a-z_]{1,63}$")


class Database:
    """A schema of one database, made at the first use.

    Args:
        options: Where it is.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self.language = options.language
        self._options = options
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._opening = asyncio.Lock()
        self._made: set[str] = set()

    def sql(self, text: str, **parts: sql.Composable) -> sql.Composed:
        """A statement of this package's own, with ``{schema}`` and the parts filled in."""
        return sql.SQL(text).format(schema=sql.Identifier(self._options.schema_name), **parts)

    @asynccontextmanager
    async def connection(self, kind: str, tables: Sequence[str], language: str = "") -> AsyncIterator[Connection]:
        """A connection within a transaction, which is committed at the end.

        Args:
            kind: What the tables are for: one name per kind of store.
            tables: Statements that make them, in order; each further one is a new version.
            language: What the tables were filled by; where it changes, they are emptied and filled anew.

        Raises:
            StoreError: A newer version made the tables.
        """
        pool = await self._opened()
        async with pool.connection() as connection:
            if kind not in self._made:
                await self._make(connection, kind, tables, language)
                await connection.commit()
                self._made.add(kind)
            yield connection

    async def close(self) -> None:
        """Release the connections."""
        if self._pool is not None:
            await self._pool.close()

    async def _opened(self) -> AsyncConnectionPool[Connection]:
        async with self._opening:
            if self._pool is None:
                pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
                    self._options.dsn.get_secret_value(),
                    min_size=0,
                    max_size=self._options.connections,
                    timeout=self._options.connect_seconds,
                    name="astrocyte",
                    open=False,
                )
                await pool.open()
                self._pool = pool
            return self._pool

    async def _make(self, connection: Connection, kind: str, tables: Sequence[str], language: str) -> None:
        """Create the tables of a kind, or migrate them to this version."""
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await connection.execute(self.sql("CREATE SCHEMA IF NOT EXISTS {schema}"))
        await connection.execute(
            self.sql(
                "CREATE TABLE IF NOT EXISTS {schema}.kinds"
                " (kind text PRIMARY KEY, version integer NOT NULL, language text NOT NULL)"
            )
        )
        await connection.execute(
            self.sql(
                "CREATE TABLE IF NOT EXISTS {schema}.positions"
                " (kind text, bank_id text, position bigint NOT NULL, PRIMARY KEY (kind, bank_id))"
            )
        )
        row = await self.one(
            connection, self.sql("SELECT version, language FROM {schema}.kinds WHERE kind = %(kind)s"), {"kind": kind}
        )
        version, filled_by = (0, language) if row is None else row
        if version > len(tables):
            raise StoreError(
                f"schema {self._options.schema_name!r} of the database was created by a newer version; upgrade "
                "Astrocyte",
                metadata={"kind": kind, "version": str(version)},
            )
        for statement in tables[version:]:
            await connection.execute(self.sql(statement))
        if filled_by != language:
            await connection.execute(self.sql("TRUNCATE {schema}.{kind}", kind=sql.Identifier(kind)))
            await connection.execute(self.sql("DELETE FROM {schema}.positions WHERE kind = %s"), (kind,))
        await connection.execute(
            self.sql(
                "INSERT INTO {schema}.kinds VALUES (%(kind)s, %(version)s, %(language)s)"
                " ON CONFLICT (kind) DO UPDATE SET version = excluded.version, language = excluded.language"
            ),
            {"kind": kind, "version": len(tables), "language": language},
        )

    @staticmethod
    async def one(connection: Connection, query: Query, values: dict[str, Any]) -> TupleRow | None:
        """The first row of a statement."""
        return await (await connection.execute(query, values)).fetchone()
