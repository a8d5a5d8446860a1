"""The core beside its peers: one thread, the same rows, hybrid top-10 in one process, turn by turn.

    python -m benches.core_peers                       10,000 and 50,000 rows
    python -m benches.core_peers --rows 10000 --only astrocyte,numpy
    python -m benches.core_peers --rows 40000 --sentences sentences.npz

Peers that are not installed are left out (`make bench-peers` installs them). Each block of queries goes to every peer
before the next block, so that noise of the machine meets all alike; medians are compared as ratios. A filtered query is
compared with those peers that take the filter: usearch's Python package has none. usearch keeps the fewest candidates
that find .98 of the ten nearest rows.
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
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from astrocyte import core
from benches.corpus import make_corpus
from benches.machine import describe, native_float, resident_bytes
from benches.peers.embedded import (
    BATCH,
    DEPTH,
    DIMENSIONS,
    RECALL,
    SEED,
    TOP,
    WORDS,
    Numpy,
    Ours,
    QdrantEdge,
    Search,
    UsearchTantivy,
    load,
)

QUERIES = 300
# Queries that one peer answers before it is the next one's turn: long enough for caches to be its own.
BLOCK = 25
FILTERED = ", 2 % filter"
Peer = TypeVar("Peer")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--only", default="astrocyte,numpy,usearch,qdrant", help="peers, with commas between")
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    options = parser.parse_args()
    # One processor: no peer gains by a thread that it was asked not to start.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        describe(
            "numpy", "usearch", "tantivy", "qdrant-edge-py",
            rows=options.rows, texts="sentences" if options.sentences else "synthetic", top=TOP, depth=DEPTH,
            queries=options.queries, seed=SEED, threads=1, usearch_type=native_float(),
        )
    )  # fmt: skip
    for rows in options.rows:
        run(rows, options.queries, set(options.only.split(",")), options.sentences)


def run(rows: int, count: int, only: set[str], source: Path | None) -> None:
    """Build all peers over ``rows`` rows, ask them in turn, print the table."""
    corpus, queries = load(rows, count, source)
    # A file of sentences may have fewer questions.
    count = len(queries.texts)
    print(f"{rows:,} rows of {corpus.vectors.shape[1]} dimensions, {count} queries")
    with tempfile.TemporaryDirectory() as name:
        ours = Ours(corpus, queries, folder := Path(name))
        numpy = Numpy(corpus, queries)
        exact = [set(numpy.dense(index)) for index in range(count)]
        searches: dict[str, Search] = {
            "astrocyte hybrid": ours.hybrid,
            "astrocyte hybrid, 2 % filter": ours.filtered,
            "astrocyte dense": ours.dense,
            "astrocyte dense, 2 % filter": ours.filtered_dense,
            "astrocyte keyword": ours.keyword,
        }
        found: dict[str, Search] = {"astrocyte": ours.dense}
        if "numpy" in only:
            searches["numpy f32 scan (dense only)"] = numpy.dense
            searches["numpy f32 scan (dense only), 2 % filter"] = numpy.filtered
        if "usearch" in only and (peer := available(lambda: UsearchTantivy(corpus, queries, threads=1))):
            kind = f"usearch {native_float()} ({peer.kernel}, {peer.reach(exact, RECALL)} candidates)"
            searches[f"{kind} + tantivy, fused in Python"] = peer.hybrid
            searches[f"{kind} (dense only)"] = found[kind] = peer.dense
        if "qdrant" in only and (edge := available(lambda: QdrantEdge(corpus, queries, folder / "edge", threads=1))):
            searches["qdrant-edge hybrid"] = edge.hybrid
            searches["qdrant-edge hybrid, 2 % filter"] = edge.filtered
            found["qdrant-edge"] = edge.dense
        medians = measure(searches, count)
        print_table(rows, medians)
        shares = {
            name: statistics.fmean(len(exact[index] & set(search(index))) / TOP for index in range(count))
            for name, search in found.items()
        }
        print(f"recall@{TOP} of the dense arm against exact f32:", end=" ")
        print(", ".join(f"{name} {share:.4f}" for name, share in shares.items()))
        print(f"apply: {ours.rows_per_second:,.0f} rows/s; index {ours.stats['bytes'] / rows:.0f} bytes/row", end="; ")
        print(f"resident {resident_per_row(rows):.0f} bytes/row")


def available(build: Callable[[], Peer]) -> Peer | None:
    """The product of ``build``, or None where the peer is not installed."""
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
        kind = "dense" if "dense" in name else "keyword" if "keyword" in name else "hybrid"
        # Filtered queries are compared with filtered ones.
        ours = medians[f"astrocyte {kind}{FILTERED if name.endswith(FILTERED) else ''}"][0]
        table.add_row(name, f"{median:.3f}", f"{high:.3f}", f"{median / ours:.2f}")
    Console(width=120).print(table)


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
