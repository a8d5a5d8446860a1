"""A vector store over pgvector. A search reads every vector of the bank that passes the filter: it is exact."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.core import vector_bytes, vector_values
from astrocyte.providers.storage.postgres.table import (
    COLUMNS,
    NAMES,
    SELECTED,
    PostgresTable,
    attributes_of,
    condition,
    values_of,
)
from astrocyte.providers.storage.protocols import StoreFilters, StoreHit, VectorItem

_PLACES = ", ".join(f"%({name})s" for name in NAMES)
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in ("embedding", *NAMES))


class PostgresVectorStore(PostgresTable):
    """Implements `astrocyte.providers.storage.VectorStore`."""

    KIND = "vectors"
    TABLES = (
        "CREATE EXTENSION IF NOT EXISTS vector",
        (
            "CREATE TABLE {schema}.vectors (bank_id text, id text, embedding vector NOT NULL, "
            f"{COLUMNS}, PRIMARY KEY (bank_id, id))"
        ),
        "CREATE INDEX vectors_of_memory ON {schema}.vectors (bank_id, memory_id)",
    )

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        """Store the items, replacing those of the same id."""
        rows = [
            {"bank_id": item.bank_id, "id": item.id, "embedding": _text(item.vector), **values_of(item.attributes)}
            for item in items
        ]
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(
                self._sql(
                    f"INSERT INTO {{schema}}.vectors (bank_id, id, embedding, {SELECTED})"  # noqa: S608 - own names
                    f" VALUES (%(bank_id)s, %(id)s, %(embedding)s::vector, {_PLACES})"
                    f" ON CONFLICT (bank_id, id) DO UPDATE SET {_CHANGED}"
                ),
                rows,
            )
        return [item.id for item in items]

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """The items nearest by cosine."""
        where, values = condition(filters)
        # The distance to or from a vector of zeros is not a number.
        query = self._sql(
            "SELECT id, memory_id, coalesce(nullif(1 - (embedding <=> %(wanted)s::vector) / 2, 'NaN'), 0.5) AS score"
            " FROM {schema}.vectors WHERE bank_id = %(bank_id)s AND {where}"
            ' ORDER BY score DESC, id COLLATE "C" LIMIT %(limit)s',
            where=where,
        )
        values |= {"bank_id": bank_id, "limit": limit, "wanted": _text(query_vector)}
        async with self._connection() as connection:
            found = await connection.execute(query, values)
            return [StoreHit(*row) for row in await found.fetchall()]

    async def list_vectors(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[VectorItem]:
        """All items by id."""
        query = self._sql(
            f"SELECT id, embedding::text, {SELECTED} FROM {{schema}}.vectors WHERE bank_id = %s"  # noqa: S608 - own names
            ' ORDER BY id COLLATE "C" LIMIT %s OFFSET %s'
        )
        async with self._connection() as connection:
            found = await connection.execute(query, (bank_id, limit, offset))
            return [
                VectorItem(row[0], bank_id, _bytes(row[1]), attributes_of(row[2:])) for row in await found.fetchall()
            ]


def _text(vector: bytes) -> str:
    """A vector in the text form of pgvector."""
    return f"[{','.join(map(repr, vector_values(vector)))}]"


def _bytes(text: str) -> bytes:
    return vector_bytes([float(value) for value in text[1:-1].split(",")])
