"""The peers that run inside the process: what they hold and how they are asked.

Each is built from a corpus and answers by the number of a query with keys of rows, best first. Hybrid means meaning and
words, a hundred candidates each, fused to ten.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from astrocyte import core
from benches.corpus import Corpus, Queries
from benches.machine import PROCESSORS

DIMENSIONS = 384
WORDS = 16
QUERY_WORDS = 6
TOP = 10
# What each arm proposes to the fusion.
DEPTH = 100
SEED = 20_250_112
# Rows per apply, as a busy writer commits them.
BATCH = 1_000
# Rows that the filter lets through.
SHARE = 0.02
RARE, COMMON = "rare", "common"

Answer = list[int]
Search = Callable[[int], Answer]


class Ours:
    """The core, through the module that the pipelines use."""

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path, *, graph_rows: int = 0) -> None:
        self._queries = queries
        self._core = core.Core(str(folder), graph_rows=graph_rows, build_share=float(PROCESSORS))
        self._bank = self._core.bank(DIMENSIONS)
        every = round(1 / SHARE)
        rows = [
            core.Row(
                key,
                key.to_bytes(16, "big"),
                key.to_bytes(16, "little"),
                text,
                corpus.vectors[key].tobytes(),
                tokens=WORDS,
                known_from=key,
                tags=(RARE if key % every == 0 else COMMON,),
            )
            for key, text in enumerate(corpus.texts)
        ]
        started = time.perf_counter()
        for position, first in enumerate(range(0, len(rows), BATCH), start=1):
            self._bank.apply(position, rows[first : first + BATCH])
        self.rows_per_second = len(rows) / (time.perf_counter() - started)
        # What graphs there are to be, before the first question.
        self._bank.fold()
        self.stats = self._bank.stats()

    def hybrid(self, index: int) -> Answer:
        return self._ask(index, text=self._queries.texts[index], vector=self._queries.vectors[index].tobytes())

    def filtered(self, index: int) -> Answer:
        text, vector = self._queries.texts[index], self._queries.vectors[index].tobytes()
        return self._ask(index, text=text, vector=vector, tags=(RARE,))

    def dense(self, index: int) -> Answer:
        return self._ask(index, vector=self._queries.vectors[index].tobytes())

    def keyword(self, index: int) -> Answer:
        return self._ask(index, text=self._queries.texts[index])

    def _ask(self, _: int, **parts: object) -> Answer:
        request = core.RecallRequest(k=TOP, depth=DEPTH, **parts)  # type: ignore[arg-type] # parts are its fields
        return [hit.key for hit in self._bank.recall(request).hits]


class Numpy:
    """The exact answer of the dense arm: one matrix product, then the ten best."""

    def __init__(self, corpus: Corpus, queries: Queries) -> None:
        self._vectors, self._queries = corpus.vectors, queries

    def dense(self, index: int) -> Answer:
        scores = self._vectors @ self._queries.vectors[index]
        best = np.argpartition(-scores, TOP)[:TOP]
        return [int(key) for key in best[np.argsort(-scores[best], kind="stable")]]


class UsearchTantivy:
    """The two engines' wheels, fused by reciprocal rank in Python."""

    def __init__(self, corpus: Corpus, queries: Queries) -> None:
        import tantivy  # noqa: PLC0415 - an optional peer
        from usearch.index import Index  # noqa: PLC0415 - as above

        self._queries = queries
        self._dense = Index(ndim=DIMENSIONS, metric="cos", dtype="f16")
        self._dense.add(np.arange(len(corpus.texts), dtype=np.uint64), corpus.vectors, threads=1)
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("key", fast=True)
        schema.add_text_field("body", tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build())
        writer = self._index.writer(num_threads=1)
        for key, text in enumerate(corpus.texts):
            writer.add_document(tantivy.Document(key=key, body=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def hybrid(self, index: int) -> Answer:
        near = self._nearest(index, DEPTH)
        query = self._index.parse_query(self._queries.texts[index], ["body"])
        found = [address for _, address in self._searcher.search(query, DEPTH, count=False).hits]
        keyword = [int(key) for key in self._searcher.fast_field_values("key", found) if key is not None]
        return fuse(near, keyword)

    def dense(self, index: int) -> Answer:
        return self._nearest(index, TOP)

    def _nearest(self, index: int, count: int) -> Answer:
        keys: Answer = self._dense.search(self._queries.vectors[index], count, threads=1).keys.tolist()
        return keys


def fuse(*rankings: list[int]) -> Answer:
    """Reciprocal rank fusion with the usual k of 60; ties by key."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (60 + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))[:TOP]


class QdrantEdge:
    """qdrant's in-process shard: dense and BM25 sparse vectors, fused by reciprocal rank inside."""

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path) -> None:
        import qdrant_edge as edge  # noqa: PLC0415 - an optional peer

        self._edge, self._queries = edge, queries
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Cosine)},
            sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            max_search_threads=1,
        )
        self._shard = edge.EdgeShard.create(str(folder), config)
        # Its default mean length is 256 words; ours are all of 16.
        self._bm25 = edge.Bm25(edge.Bm25Config(avg_len=float(WORDS)))
        for first in range(0, len(corpus.texts), BATCH):
            points = [
                edge.Point(
                    key,
                    {"dense": corpus.vectors[key].tolist(), "words": self._bm25.embed_document(corpus.texts[key])},
                )
                for key in range(first, min(first + BATCH, len(corpus.texts)))
            ]
            self._shard.update(edge.UpdateOperation.upsert_points(points))
        self._shard.optimize()

    def hybrid(self, index: int) -> Answer:
        edge = self._edge
        dense = self._nearest(index)
        words = edge.Query.Nearest(self._bm25.embed_query(self._queries.texts[index]), using="words")
        request = edge.QueryRequest(
            limit=TOP,
            prefetches=[edge.Prefetch(limit=DEPTH, query=dense), edge.Prefetch(limit=DEPTH, query=words)],
            query=edge.Fusion.Rrf(k=60),
        )
        return [int(point.id) for point in self._shard.query(request)]

    def dense(self, index: int) -> Answer:
        request = self._edge.QueryRequest(limit=TOP, query=self._nearest(index))
        return [int(point.id) for point in self._shard.query(request)]

    def _nearest(self, index: int) -> Any:  # noqa: ANN401 - a type of an optional peer
        return self._edge.Query.Nearest(self._queries.vectors[index].tolist(), using="dense")
