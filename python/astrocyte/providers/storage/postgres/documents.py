"""A document store over PostgreSQL's full-text search: words are stemmed by the language of the options."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from astrocyte.providers.storage.postgres.database import Connection
from astrocyte.providers.storage.postgres.table import (
    COLUMNS,
    NAMES,
    SELECTED,
    PostgresTable,
    attributes_of,
    condition,
    values_of,
)
from astrocyte.providers.storage.protocols import Document, StoreFilters, StoreHit

_PLACES = ", ".join(f"%({name})s" for name in NAMES)
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in ("text", "words", *NAMES))
# 1: a word counts less in a longer text; 32: scores end below 1.
_NORMALISED = 1 | 32


class PostgresDocumentStore(PostgresTable):
    """Implements `astrocyte.providers.storage.DocumentStore`."""

    KIND = "documents"
    TABLES = (
        (
            "CREATE TABLE {schema}.documents (bank_id text, id text, text text NOT NULL, words tsvector NOT NULL, "
            f"{COLUMNS}, PRIMARY KEY (bank_id, id))"
        ),
        "CREATE INDEX documents_of_memory ON {schema}.documents (bank_id, memory_id)",
        "CREATE INDEX documents_words ON {schema}.documents USING gin (words)",
    )

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store the documents, replacing those of the same id."""
        rows = [
            {
                "bank_id": document.bank_id,
                "id": document.id,
                # PostgreSQL's text holds no NUL.
                "text": document.text.replace("\0", " "),
                "language": self._database.language,
                **values_of(document.attributes),
            }
            for document in documents
        ]
        async with self._connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(
                self._sql(
                    f"INSERT INTO {{schema}}.documents (bank_id, id, text, words, {SELECTED}) VALUES (%(bank_id)s,"  # noqa: S608 - own names
                    f" %(id)s, %(text)s, to_tsvector(%(language)s::regconfig, %(text)s), {_PLACES})"
                    f" ON CONFLICT (bank_id, id) DO UPDATE SET {_CHANGED}"
                ),
                rows,
            )
        return [document.id for document in documents]

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """Documents that contain a word of the query."""
        where, values = condition(filters)
        # Of a question any word will do; PostgreSQL's own reading is that all must be there.
        statement = self._sql(
            "WITH asked AS (SELECT replace(plainto_tsquery(%(language)s::regconfig, %(query)s)::text, '&', '|')"
            "::tsquery AS query) SELECT id, memory_id, ts_rank(words, query, %(normalised)s)::float8 AS score"
            " FROM {schema}.documents, asked WHERE bank_id = %(bank_id)s AND words @@ query AND {where}"
            ' ORDER BY score DESC, id COLLATE "C" LIMIT %(limit)s',
            where=where,
        )
        values |= {
            "bank_id": bank_id,
            "limit": limit,
            "query": query.replace("\0", " "),
            "language": self._database.language,
            "normalised": _NORMALISED,
        }
        async with self._connection() as connection:
            found = await connection.execute(statement, values)
            return [StoreHit(*row) for row in await found.fetchall()]

    async def get_document(self, document_id: str, bank_id: str) -> Document | None:
        """The document of that id."""
        query = self._sql(
            f"SELECT text, {SELECTED} FROM {{schema}}.documents"  # noqa: S608 - own names
            " WHERE bank_id = %(bank_id)s AND id = %(id)s"
        )
        async with self._connection() as connection:
            row = await self._database.one(connection, query, {"bank_id": bank_id, "id": document_id})
        return None if row is None else Document(document_id, bank_id, row[0], attributes_of(row[1:]))

    def _connection(self) -> AbstractAsyncContextManager[Connection]:
        return self._database.connection(self.KIND, self.TABLES, self._database.language)
