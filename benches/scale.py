"""One large bank in the core: scan beside graph, with and without a filter, at several sizes.

    python -m benches.scale --rows 100000 1000000
    python -m benches.scale --rows 100000 1000000 --sentences sentences.npz

Rows are synthetic (benches/corpus.py): clustered vectors and words by Zipf's law, which have nothing to do with each
other; or sentences of question sets and mixtures of them (benches/sentences.py). Say which where the figures go. Each
size fills one bank that only scans and one that folds, from the same rows; both answer the same questions in turn.
Processor time is that of all threads, which other load on the machine changes less. The second is written to a
checkpoint and read from it, and its graphs are put back. With --memory-only the originals stay in memory, as without a
scratch file.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from astrocyte.core import Bank, Core, Label, RecallRequest, Row, content_hash, write_checkpoint
from benches import sentences
from benches.corpus import Corpus, Queries, make_corpus, make_queries
from benches.machine import PROCESSORS, describe, resident_bytes

SEED = 20_250_112
DIMENSIONS = 384
WORDS = 16
QUERY_WORDS = 6
QUERIES = 200
# Where a graph begins to be worth its memory, if anywhere; the product begins at twice as many.
GRAPH_ROWS = 50_000
BLOCK = 20
# Rows per commit.
BATCH = 10_000
# One row in so many bears the tag of the filter.
TAGGED = 100
LABEL = Label("bank", "model", "recipe")


def _rows(corpus: Corpus, first: int, last: int) -> list[Row]:
    return [
        Row(
            number + 1,
            number.to_bytes(16, "big"),
            content_hash(f"{number} {corpus.texts[number]}"),
            corpus.texts[number],
            corpus.vectors[number].tobytes(),
            tokens=len(corpus.texts[number].split()),
            known_from=number,
            tags=("one",) if number % TAGGED == 0 else (),
        )
        for number in range(first, last)
    ]


def _fill(bank: Bank, corpus: Corpus) -> float:
    """Apply all rows; returns the seconds that the core took."""
    seconds = 0.0
    count = len(corpus.texts)
    for position, first in enumerate(range(0, count, BATCH), start=1):
        rows = _rows(corpus, first, min(count, first + BATCH))
        start = time.perf_counter()
        bank.apply(position, rows)
        seconds += time.perf_counter() - start
    return seconds


def _restart(core: Core, bank: Bank, dimensions: int, folder: Path) -> str:
    """Times of a checkpoint with graphs: to write, to answer from, and until its graphs are back."""
    folder.mkdir(parents=True)
    start = time.perf_counter()
    written = write_checkpoint(bank, str(folder), LABEL)
    wrote = time.perf_counter()
    loaded = core.load(str(folder), dimensions, LABEL)
    there = time.perf_counter()
    # The background is at it already; this waits for its end.
    loaded.fold()
    back = time.perf_counter()
    assert loaded.unsaved_graph_rows == 0, "a graph was built, not put back"
    size = written.bytes / loaded.stats()["rows"]
    return (
        f"checkpoint of {size:.0f} bytes a row: written in {wrote - start:.2f} s, loaded in {there - wrote:.2f} s, "
        f"graphs back {back - there:.2f} s later"
    )


def _built(console: Console, core: Core, corpus: Corpus, folder: Path) -> Bank:
    """A bank of all rows with its graphs, from the checkpoint in the folder if an earlier run kept one."""
    rows, dimensions = corpus.vectors.shape
    if folder.exists():
        bank = core.load(str(folder), dimensions, LABEL)
        bank.fold()
        assert bank.stats()["rows"] == rows, f"{folder} holds {bank.stats()['rows']} rows"
        return bank
    before = resident_bytes()
    bank = core.bank(dimensions)
    seconds = _fill(bank, corpus)
    start = time.perf_counter()
    bank.fold()
    built = time.perf_counter() - start
    resident = resident_bytes() - before
    stats = bank.stats()
    console.print(
        f"{rows:,} rows: applied in {seconds:.1f} s ({rows / seconds:,.0f} rows/s), all in graphs {built:.1f} s later: "
        f"{stats['segments']} segments of {stats['graph_rows']:,} rows; {stats['bytes'] / rows:.0f} bytes a row by our "
        f"count, {resident / rows:.0f} resident"
    )
    console.print(_restart(core, bank, dimensions, folder))
    return bank


@dataclass
class Answers:
    """Milliseconds and processor milliseconds of each question, keys of the hits, and the plan of the last response."""

    times: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    keys: list[list[int]] = field(default_factory=list)
    plan: str = ""

    def ask(self, bank: Bank, requests: Sequence[RecallRequest]) -> None:
        """Add the responses of one block of questions."""
        for request in requests:
            start, used = time.perf_counter(), time.process_time()
            response = bank.recall(request)
            self.processor.append((time.process_time() - used) * 1e3)
            self.times.append((time.perf_counter() - start) * 1e3)
            self.keys.append([hit.key for hit in response.hits])
            self.plan = response.trace.plan


def _recall(found: list[list[int]], wanted: list[list[int]]) -> float:
    met = sum(len(set(one) & set(other)) for one, other in zip(found, wanted, strict=True))
    return met / sum(len(one) for one in wanted)


def corpus_of(console: Console, rows: int, source: Path | None, dimensions: int = DIMENSIONS) -> tuple[Corpus, Queries]:
    """Rows and questions: synthetic, or what `benches.sentences` wrote and as much as is wanted of its mixtures."""
    if source is None:
        corpus = make_corpus(rows, dimensions=dimensions, words=WORDS, seed=SEED)
        return corpus, make_queries(corpus, QUERIES, words=QUERY_WORDS)
    corpus, queries, real = sentences.load(source, rows, seed=SEED)
    words = sum(len(text.split()) for text in corpus.texts) / rows
    asked = sum(len(text.split()) for text in queries.texts) / len(queries.texts)
    console.print(
        f"{real:,} sentences and {rows - real:,} mixtures of two, {words:.1f} words each; "
        f"{len(queries.texts)} questions of {asked:.1f} words; {corpus.vectors.shape[1]} dimensions"
    )
    return corpus, queries


def _measure(
    console: Console, corpus: Corpus, queries: Queries, scratch: str | None, scan_rows: int, folder: Path
) -> None:
    core = Core(scratch, graph_rows=GRAPH_ROWS, build_share=float(PROCESSORS), sampling=0.0, scan_rows=scan_rows)
    large = _built(console, core, corpus, folder)
    flat = Core(scratch, graph_rows=0).bank(corpus.vectors.shape[1])
    _fill(flat, corpus)
    table = Table(box=None, pad_edge=False)
    columns = (
        "scan p50 ms",
        "large p50 ms",
        "large p95 ms",
        "x",
        "scan CPU ms",
        "large CPU ms",
        "x",
        "hits of the scan's",
    )
    for name in ("question", *columns, "plan"):
        table.add_column(name, justify="left" if name in {"question", "plan"} else "right")
    for name, with_text, with_vector, tags in (
        ("hybrid", True, True, ()),
        ("hybrid, 1 % filter", True, True, ("one",)),
        ("dense", False, True, ()),
        ("keyword", True, False, ()),
    ):
        requests = [
            RecallRequest(text=text if with_text else None, vector=vector.tobytes() if with_vector else None, tags=tags)
            for text, vector in zip(queries.texts, queries.vectors, strict=True)
        ]
        Answers().ask(large, requests[:20])
        Answers().ask(flat, requests[:5])
        scan, graphs = Answers(), Answers()
        # In turn, so that other load on the machine affects both.
        for first in range(0, len(requests), BLOCK):
            part = requests[first : first + BLOCK]
            scan.ask(flat, part)
            graphs.ask(large, part)
        slow, fast = statistics.median(scan.times), statistics.median(graphs.times)
        used, less = statistics.median(scan.processor), statistics.median(graphs.processor)
        table.add_row(
            name,
            f"{slow:.2f}",
            f"{fast:.2f}",
            f"{statistics.quantiles(graphs.times, n=20)[18]:.2f}",
            f"{slow / fast:.1f}",
            f"{used:.2f}",
            f"{less:.2f}",
            f"{used / less:.1f}",
            f"{_recall(graphs.keys, scan.keys):.4f}",
            graphs.plan,
        )
    console.print(table)


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--memory-only", action="store_true", help="keep the original vectors in memory")
    parser.add_argument("--scan-rows", type=int, default=0, help="index.scan_rows; 0 leaves the plan to the costs")
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS, help="of synthetic rows")
    parser.add_argument("--keep", type=Path, help="a folder for checkpoints, from which the next run of it begins")
    options = parser.parse_args()
    console = Console(highlight=False, width=200)
    own = {} if options.sentences else {"dimensions": options.dimensions, "words": WORDS, "queries": QUERIES}
    console.print(describe("numpy", rows=options.rows, **own, seed=SEED))
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            corpus, queries = corpus_of(console, rows, options.sentences, options.dimensions)
            scratch, kept = None if options.memory_only else folder, (options.keep or Path(folder)) / str(rows)
            _measure(console, corpus, queries, scratch, options.scan_rows, kept)


if __name__ == "__main__":
    main()
