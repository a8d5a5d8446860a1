"""All search methods of the index in one process, at equal recall: `index.dense` and `index.lexical`.

    python -m benches.methods                       20,000 rows
    python -m benches.methods --rows 100000
    python -m benches.methods --rows 40000 --sentences sentences.npz

Each method of the dense arm keeps the fewest candidates that find .98 of the ten nearest rows, or the most. All banks
hold the same rows and are asked in turn, a block of queries each, so that noise of the machine meets all alike. Times
are processor times of the asking thread, which does all work alone. "built" is processor time of graphs and inverted
indexes, on all threads of the build.
"""

from __future__ import annotations

import argparse
import os

# Before the core makes its pool: the asking thread then does all work of a recall.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benches.corpus import Corpus, Queries
from benches.machine import describe
from benches.peers.embedded import DEPTH, RECALL, SEED, TOP, WORDS, Numpy, Ours, Search, load

DENSE = ("scan", "graph", "usearch")
LEXICAL = ("postings", "tantivy")
# Candidates of a graph search, the default first.
CANDIDATES = (160, 320, 640, 1_280)
QUERIES = 300
BLOCK = 25


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000])
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    options = parser.parse_args()
    print(
        describe(
            "numpy", rows=options.rows, texts="sentences" if options.sentences else "synthetic", words=WORDS, top=TOP,
            depth=DEPTH, queries=options.queries, seed=SEED, recall=RECALL, threads=1,
        )
    )  # fmt: skip
    for rows in options.rows:
        run(rows, options.queries, options.sentences)


def run(rows: int, count: int, source: Path | None) -> None:
    """Build a bank for each combination over ``rows`` rows, ask all in turn, print the table."""
    corpus, queries = load(rows, count, source)
    count = len(queries.texts)
    numpy = Numpy(corpus, queries)
    exact = [set(numpy.dense(index)) for index in range(count)]
    with tempfile.TemporaryDirectory() as name:
        banks: dict[tuple[str, str], tuple[Ours, int, float]] = {}
        for dense in DENSE:
            candidates = CANDIDATES[0]
            for lexical in LEXICAL:
                bank, candidates, share = reaching(corpus, queries, Path(name), (dense, lexical), exact, candidates)
                banks[dense, lexical] = bank, candidates, share
                print(f"built {dense} + {lexical}, {candidates} candidates, recall {share:.4f}: {bank.plan(0)}")
        searches: dict[tuple[str, str, str], Search] = {}
        for (dense, lexical), (bank, _, _) in banks.items():
            kinds = {"dense": bank.dense, "keyword": bank.keyword, "hybrid": bank.hybrid, "filtered": bank.filtered}
            searches |= {(dense, lexical, kind): search for kind, search in kinds.items()}
        times = measure(searches, count)
    table = Table(title=f"{rows:,} rows of {corpus.vectors.shape[1]} dimensions, p50 ms", title_justify="left")
    headings = (
        "dense",
        "lexical",
        "candidates",
        "recall@10",
        "built s",
        "bytes/row",
        "mapped/row",
        *("dense", "keyword", "hybrid"),
    )
    for heading in (*headings, "hybrid p95", "hybrid, 2 % filter"):
        table.add_column(heading, justify="right" if table.columns[1:] else "left")
    for (dense, lexical), (bank, candidates, share) in banks.items():
        median = {kind: statistics.median(times[dense, lexical, kind]) for _, _, kind in searches}
        high = sorted(times[dense, lexical, "hybrid"])[int(count * 0.95)]
        table.add_row(
            dense, lexical, "" if dense == "scan" else str(candidates), f"{share:.4f}", f"{bank.build_seconds:.1f}",
            f"{bank.stats['bytes'] / rows:.0f}", f"{bank.stats['bytes_mapped'] / rows:.0f}",
            f"{median['dense']:.3f}", f"{median['keyword']:.3f}", f"{median['hybrid']:.3f}", f"{high:.3f}",
            f"{median['filtered']:.3f}",
        )  # fmt: skip
    Console(width=140).print(table)


def reaching(
    corpus: Corpus,
    queries: Queries,
    folder: Path,
    methods: tuple[str, str],
    exact: list[set[int]],
    fewest: int,
) -> tuple[Ours, int, float]:
    """The bank with the fewest candidates, from ``fewest`` on, that reaches the recall, or with the most.

    Args:
        corpus: The rows.
        queries: The queries.
        folder: Folder of temporary files.
        methods: The dense and the lexical method.
        exact: The nearest rows of each query.
        fewest: Candidates that are tried first.

    Returns:
        The bank, its candidates and the share of the nearest rows that it finds.
    """
    dense, lexical = methods
    bank = Ours(
        corpus, queries, folder, graph_rows=len(corpus.texts), graph_candidates=fewest, sampling=0.0,
        dense=dense, lexical=lexical,
    )  # fmt: skip
    share = statistics.fmean(len(near & set(bank.dense(at))) / TOP for at, near in enumerate(exact))
    more = [candidates for candidates in CANDIDATES if candidates > fewest]
    if share >= RECALL or not more:
        return bank, fewest, share
    return reaching(corpus, queries, folder, methods, exact, more[0])


def measure(searches: dict[tuple[str, str, str], Search], count: int) -> dict[tuple[str, str, str], list[float]]:
    """Processor milliseconds of every query of every search, asked in turn; the first block only warms up."""
    times: dict[tuple[str, str, str], list[float]] = {name: [] for name in searches}
    for turn, first in enumerate([0, *range(0, count, BLOCK)]):
        for name, search in searches.items():
            for index in range(first, min(first + BLOCK, count)):
                started = time.thread_time()
                search(index)
                if turn:
                    times[name].append((time.thread_time() - started) * 1e3)
    return times


if __name__ == "__main__":
    main()
