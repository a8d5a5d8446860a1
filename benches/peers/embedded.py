"""The peers that run inside the process: what they hold and how they are asked.

Each is built from a corpus and answers by the number of a query with keys of rows, best first. Hybrid means meaning and
words, a hundred candidates each, fused to ten. All get the same words (`benches.analysis`) and as many threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from astrocyte import core
from benches import sentences
from benches.analysis import ANALYZER, plain, tantivy_index
from benches.corpus import Corpus, Queries, make_corpus, make_queries
from benches.machine import PROCESSORS, native_float

DIMENSIONS = 384
WORDS = 16
QUERY_WORDS = 6
TOP = 10
# What each arm proposes to the fusion.
DEPTH = 100
SEED = 20_250_112
# Recall at which graphs are compared, and candidates of a search that may reach it.
RECALL = 0.98
CANDIDATES = (16, 32, 64, 96, 128, 160, 200, 256, 320)
# Rows per apply, as a busy writer commits them.
BATCH = 1_000
# Rows that the filter lets through.
SHARE = 0.02
RARE, COMMON = "rare", "common"

Answer = list[int]
Search = Callable[[int], Answer]


def load(rows: int, count: int, source: Path | None) -> tuple[Corpus, Queries]:
    """Rows and questions, synthetic or of the file that `benches.sentences` wrote, as plain words."""
    if source is None:
        corpus = make_corpus(rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
        return corpus, make_queries(corpus, count, words=QUERY_WORDS)
    corpus, queries, _ = sentences.load(source, rows, seed=SEED)
    texts = [plain(text) for text in queries.texts[:count]]
    return Corpus(SEED, [plain(text) for text in corpus.texts], corpus.vectors), Queries(texts, queries.vectors[:count])


class Ours:
    """The core, through the module that the pipelines use."""

    def __init__(
        self,
        corpus: Corpus,
        queries: Queries,
        folder: Path,
        *,
        graph_rows: int = 0,
        **options: Any,  # noqa: ANN401 - further options of the core
    ) -> None:
        self._queries = queries
        self._core = core.Core(str(folder), graph_rows=graph_rows, build_share=float(PROCESSORS), **options)
        self._bank = self._core.bank(corpus.vectors.shape[1])
        every = round(1 / SHARE)
        rows = [
            core.Row(
                key,
                key.to_bytes(16, "big"),
                key.to_bytes(16, "little"),
                text,
                corpus.vectors[key].tobytes(),
                tokens=len(text.split()),
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
        started = time.process_time()
        self._bank.fold()
        self.build_seconds = time.process_time() - started
        self.stats = self._bank.stats()

    def hybrid(self, index: int) -> Answer:
        return self._ask(index, text=self._queries.texts[index], vector=self._queries.vectors[index].tobytes())

    def filtered(self, index: int) -> Answer:
        text, vector = self._queries.texts[index], self._queries.vectors[index].tobytes()
        return self._ask(index, text=text, vector=vector, tags=(RARE,))

    def dense(self, index: int) -> Answer:
        return self._ask(index, vector=self._queries.vectors[index].tobytes())

    def filtered_dense(self, index: int) -> Answer:
        return self._ask(index, vector=self._queries.vectors[index].tobytes(), tags=(RARE,))

    def keyword(self, index: int) -> Answer:
        return self._ask(index, text=self._queries.texts[index])

    def plan(self, index: int) -> str:
        """The plan of a hybrid query."""
        text, vector = self._queries.texts[index], self._queries.vectors[index].tobytes()
        return self._bank.recall(core.RecallRequest(k=TOP, depth=DEPTH, text=text, vector=vector)).trace.plan

    def _ask(self, _: int, **parts: object) -> Answer:
        request = core.RecallRequest(k=TOP, depth=DEPTH, **parts)  # type: ignore[arg-type] # parts are its fields
        return [hit.key for hit in self._bank.recall(request).hits]


class Numpy:
    """The exact answer of the dense arm: one matrix product, then the ten best."""

    def __init__(self, corpus: Corpus, queries: Queries) -> None:
        self._vectors, self._queries = corpus.vectors, queries
        self._kept = np.arange(0, len(corpus.vectors), round(1 / SHARE))
        self._kept_vectors = corpus.vectors[self._kept]

    def filtered(self, index: int) -> Answer:
        """The dense arm over the rows of the filter, which are copied beforehand."""
        scores = self._kept_vectors @ self._queries.vectors[index]
        best = np.argsort(-scores, kind="stable")[:TOP]
        return [int(key) for key in self._kept[best]]

    def dense(self, index: int) -> Answer:
        scores = self._vectors @ self._queries.vectors[index]
        best = np.argpartition(-scores, TOP)[:TOP]
        return [int(key) for key in best[np.argsort(-scores[best], kind="stable")]]


class UsearchTantivy:
    """The two engines' wheels, fused by reciprocal rank in Python.

    Vectors are of the shortest float type that the processor has instructions for.
    """

    def __init__(self, corpus: Corpus, queries: Queries, *, threads: int = PROCESSORS) -> None:
        import tantivy  # noqa: PLC0415 - an optional peer
        from usearch.index import Index  # noqa: PLC0415 - as above

        self._queries = queries
        self._dense = Index(ndim=corpus.vectors.shape[1], metric="cos", dtype=native_float())
        # What the wheel runs, which says "serial" where it has no kernel for the type.
        self.kernel = self._dense.hardware_acceleration
        self._dense.add(np.arange(len(corpus.texts), dtype=np.uint64), corpus.vectors, threads=threads)
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("key", fast=True)
        schema.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
        self._index = tantivy_index(tantivy, schema.build())
        writer = self._index.writer(num_threads=threads)
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

    def reach(self, wanted: Sequence[set[int]], floor: float) -> int:
        """Set the fewest candidates of a search with which the dense arm finds the wanted share, or the most.

        Args:
            wanted: The nearest rows of each query.
            floor: The share of them to find.

        Returns:
            The number of candidates.
        """
        for candidates in CANDIDATES:
            self._dense.expansion_search = candidates
            if statistics.fmean(len(near & set(self.dense(at))) / TOP for at, near in enumerate(wanted)) >= floor:
                break
        return candidates

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

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path, *, threads: int = PROCESSORS) -> None:
        import qdrant_edge as edge  # noqa: PLC0415 - an optional peer

        self._edge, self._queries = edge, queries
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=corpus.vectors.shape[1], distance=edge.Distance.Cosine)},
            sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            max_search_threads=threads,
        )
        self._shard = edge.EdgeShard.create(str(folder), config)
        # It does not measure the mean length.
        words = statistics.fmean(len(text.split()) for text in corpus.texts)
        self._bm25 = edge.Bm25(edge.Bm25Config(avg_len=words))
        every = round(1 / SHARE)
        self._rare = edge.Filter(must=[edge.FieldCondition("tag", match=edge.MatchValue(RARE))])
        self._shard.update(edge.UpdateOperation.create_field_index("tag", edge.PayloadSchemaType.Keyword))
        for first in range(0, len(corpus.texts), BATCH):
            points = [
                edge.Point(
                    key,
                    {"dense": corpus.vectors[key].tolist(), "words": self._bm25.embed_document(corpus.texts[key])},
                    {"tag": RARE if key % every == 0 else COMMON},
                )
                for key in range(first, min(first + BATCH, len(corpus.texts)))
            ]
            self._shard.update(edge.UpdateOperation.upsert_points(points))
        self._shard.optimize()

    def hybrid(self, index: int) -> Answer:
        return self._fused(index, None)

    def filtered(self, index: int) -> Answer:
        return self._fused(index, self._rare)

    def _fused(self, index: int, kept: Any) -> Answer:  # noqa: ANN401 - a type of an optional peer
        edge = self._edge
        dense = self._nearest(index)
        words = edge.Query.Nearest(self._bm25.embed_query(self._queries.texts[index]), using="words")
        request = edge.QueryRequest(
            limit=TOP,
            prefetches=[edge.Prefetch(limit=DEPTH, query=query, filter=kept) for query in (dense, words)],
            query=edge.Fusion.Rrf(k=60),
        )
        return [int(point.id) for point in self._shard.query(request)]

    def dense(self, index: int) -> Answer:
        request = self._edge.QueryRequest(limit=TOP, query=self._nearest(index))
        return [int(point.id) for point in self._shard.query(request)]

    def _nearest(self, index: int) -> Any:  # noqa: ANN401 - a type of an optional peer
        return self._edge.Query.Nearest(self._queries.vectors[index].tolist(), using="dense")
