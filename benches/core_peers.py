"""The core beside its peers: one thread, the same rows, hybrid top-10 in one process, turn by turn.

    python -m benches.core_peers                       10,000 and 50,000 rows
    python -m benches.core_peers --rows 10000 --only astrocyte,numpy

Peers that are not installed are left out (`make bench-peers` installs them). Each block of queries goes to every peer
before the next block, so that noise of the machine meets all alike; medians are compared as ratios.
"""

from __future__ import annotations

import argparse
import os

# One thread for everybody; before numpy is imported, for its BLAS reads them once.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from astrocyte import core
from benches.corpus import Corpus, Queries, make_corpus, make_queries
from benches.machine import describe, resident_bytes

DIMENSIONS = 384
WORDS = 16
QUERY_WORDS = 6
TOP = 10
# What each arm proposes to the fusion.
DEPTH = 100
SEED = 20_250_112
QUERIES = 300
# Queries that one peer answers before it is the next one's turn: long enough for caches to be its own.
BLOCK = 25
# Rows per apply, as a busy writer commits them.
BATCH = 1_000
# Rows that the filter lets through.
SHARE = 0.02
RARE, COMMON = "rare", "common"

Answer = list[int]
Search = Callable[[int], Answer]
Peer = TypeVar("Peer")


class Ours:
    """The core, through the module that the pipelines use."""

    def __init__(self, corpus: Corpus, queries: Queries, folder: Path) -> None:
        self._queries = queries
        self._core = core.Core(str(folder))
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
        keyword = self._searcher.fast_field_values("key", found)
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
        return [point.id for point in self._shard.query(request)]

    def dense(self, index: int) -> Answer:
        request = self._edge.QueryRequest(limit=TOP, query=self._nearest(index))
        return [point.id for point in self._shard.query(request)]

    def _nearest(self, index: int) -> Any:  # noqa: ANN401 - a type of an optional peer
        return self._edge.Query.Nearest(self._queries.vectors[index].tolist(), using="dense")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--only", default="astrocyte,numpy,usearch,qdrant", help="peers, with commas between")
    options = parser.parse_args()
    # One processor: no peer gains by a thread that it was asked not to start.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        describe(
            "numpy", "usearch", "tantivy", "qdrant-edge-py",
            dimensions=DIMENSIONS, words=WORDS, top=TOP, depth=DEPTH, queries=options.queries, seed=SEED,
        )
    )  # fmt: skip
    for rows in options.rows:
        run(rows, options.queries, set(options.only.split(",")))


def run(rows: int, count: int, only: set[str]) -> None:
    """Build all peers over ``rows`` rows, ask them in turn, print the table."""
    corpus = make_corpus(rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    queries = make_queries(corpus, count, words=QUERY_WORDS)
    with tempfile.TemporaryDirectory() as name:
        ours = Ours(corpus, queries, folder := Path(name))
        numpy = Numpy(corpus, queries)
        searches: dict[str, Search] = {
            "astrocyte hybrid": ours.hybrid,
            "astrocyte hybrid, 2 % filter": ours.filtered,
            "astrocyte dense": ours.dense,
            "astrocyte keyword": ours.keyword,
        }
        found: dict[str, Search] = {"astrocyte": ours.dense}
        if "numpy" in only:
            searches["numpy f32 scan (dense only)"] = numpy.dense
        if "usearch" in only and (peer := available(lambda: UsearchTantivy(corpus, queries))):
            searches["usearch f16 + tantivy, fused in Python"] = peer.hybrid
            found["usearch f16"] = peer.dense
        if "qdrant" in only and (edge := available(lambda: QdrantEdge(corpus, queries, folder / "edge"))):
            searches["qdrant-edge hybrid"] = edge.hybrid
            found["qdrant-edge"] = edge.dense
        medians = measure(searches, count)
        print_table(rows, medians)
        exact = [set(numpy.dense(index)) for index in range(count)]
        shares = {
            name: statistics.fmean(len(exact[index] & set(search(index))) / TOP for index in range(count))
            for name, search in found.items()
        }
        print(f"recall@{TOP} of the dense arm against exact f32:", end=" ")
        print(", ".join(f"{name} {share:.4f}" for name, share in shares.items()))
        print(f"apply: {ours.rows_per_second:,.0f} rows/s; index {ours.stats['bytes'] / rows:.0f} bytes/row", end="; ")
        print(f"resident {resident_per_row(rows):.0f} bytes/row")


def available(build: Callable[[], Peer]) -> Peer | None:
    """What ``build`` makes, or None where the peer is not installed."""
    try:
        return build()
    except ImportError as error:
        print(f"left out: {error}")
        return None


def measure(searches: dict[str, Search], count: int) -> dict[str, tuple[float, float]]:
    """Median and 95th percentile in milliseconds of every search, asked in turn."""
    times: dict[str, list[float]] = {name: [] for name in searches}
    # The first block is asked twice and counted once: it warms everybody up.
    for first in [0, *range(0, count, BLOCK)]:
        for name, search in searches.items():
            for index in range(first, min(first + BLOCK, count)):
                started = time.perf_counter()
                search(index)
                times[name].append((time.perf_counter() - started) * 1e3)
    kept = {name: sorted(values[min(BLOCK, count) :]) for name, values in times.items()}
    return {name: (statistics.median(values), values[int(len(values) * 0.95)]) for name, values in kept.items()}


def print_table(rows: int, medians: dict[str, tuple[float, float]]) -> None:
    """Times, and how many times ours."""
    table = Table(title=f"{rows:,} rows", title_justify="left")
    for name in ("", "median ms", "p95 ms", "x ours"):
        table.add_column(name, justify="left" if not name else "right")
    for name, (median, high) in medians.items():
        ours = medians["astrocyte dense" if "dense" in name else "astrocyte hybrid"][0]
        table.add_row(name, f"{median:.3f}", f"{high:.3f}", f"{median / ours:.2f}")
    Console(width=100).print(table)


def resident_per_row(rows: int) -> float:
    """Growth of resident memory by row, in a fresh process that holds nothing else."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_grow, args=(rows, queue))
    child.start()
    growth: int = queue.get()
    child.join()
    return growth / rows


def _grow(rows: int, queue: multiprocessing.Queue[int]) -> None:
    """Fill a bank from rows that are made as they go, and tell how much the process grew."""
    with tempfile.TemporaryDirectory() as name, filled(rows, name) as growth:
        queue.put(growth)


@contextmanager
def filled(rows: int, folder: str) -> Iterator[int]:
    """A bank of ``rows`` rows; yields the bytes by which resident memory grew."""
    corpus = make_corpus(BATCH, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    random = np.random.default_rng(SEED)
    bank = core.Core(folder).bank(DIMENSIONS)
    before = resident_bytes()
    for position in range(1, rows // BATCH + 1):
        fresh: NDArray[np.float32] = corpus.vectors[random.permutation(BATCH)]
        bank.apply(
            position,
            [
                core.Row(
                    key := position * BATCH + offset,
                    key.to_bytes(16, "big"),
                    key.to_bytes(16, "little"),
                    corpus.texts[offset],
                    fresh[offset].tobytes(),
                    tokens=WORDS,
                    known_from=key,
                )
                for offset in range(BATCH)
            ],
        )
    yield resident_bytes() - before
    assert bank.position == rows // BATCH


if __name__ == "__main__":
    main()
