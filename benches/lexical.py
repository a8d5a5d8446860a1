"""The keyword arm beside tantivy: the hundred best of BM25 over the same texts, one thread each.

    python -m benches.lexical --rows 200000 1000000
    python -m benches.lexical --rows 100000 --sentences sentences.npz

Both sides get the same words, stop words and stemmer (`benches.analysis`). Each side is built and asked in a process of
its own, and is charged the processor time of its thread, which other work on the machine hardly changes. Ours is asked
through a whole recall without a vector, so that the filter, the memories' ids and the mean and deviation of all scores
are in it; tantivy is asked for addresses and scores. Ours with graphs has a vector of eight components for each row,
which are not asked for: a bank with graphs looks words up in another way.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from astrocyte import core
from benches import sentences
from benches.analysis import ANALYZER, plain, stop_words, tantivy_index
from benches.corpus import make_corpus, make_queries
from benches.machine import describe, resident_bytes

WORDS = 16
QUERY_WORDS = 6
DEPTH = 100
QUERIES = 200
SEED = 20_250_112
# The least that a bank of ours may have; the texts are what counts.
DIMENSIONS = 8
BATCH = 1_000

Ask = Callable[[str], int]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000])
    parser.add_argument("--only", nargs="+", default=list(SIDES), choices=list(SIDES), help="sides")
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    options = parser.parse_args()
    texts = {"texts": "sentences"} if options.sentences else {"words": WORDS, "query_words": QUERY_WORDS}
    print(describe("tantivy", rows=options.rows, **texts, depth=DEPTH, queries=QUERIES, seed=SEED, threads=1))
    for rows in options.rows:
        table = Table(title=f"{rows:,} texts", title_justify="left")
        for name in ("", "build s", "resident MB", "p50 ms", "p95 ms"):
            table.add_column(name, justify="left" if not name else "right")
        for name in options.only:
            built, resident, times = measured(name, rows, options.sentences)
            p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
            table.add_row(name, f"{built:.1f}", f"{resident / 1e6:.0f}", f"{p50 * 1e3:.3f}", f"{p95 * 1e3:.3f}")
        Console(width=100).print(table)


def measured(name: str, rows: int, source: Path | None) -> tuple[float, int, list[float]]:
    """Processor seconds of the build, resident bytes that it added, and processor seconds of each query."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(theirs, name, rows, source))
    child.start()
    result: tuple[float, int, list[float]] = ours.recv()
    child.join()
    return result


def load(rows: int, source: Path | None) -> tuple[list[str], np.ndarray, list[str]]:
    """Texts and questions of plain words, and a vector for each text."""
    corpus = make_corpus(rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    if source is None:
        return corpus.texts, corpus.vectors, make_queries(corpus, QUERIES, words=QUERY_WORDS).texts
    real, queries, _ = sentences.load(source, rows, seed=SEED)
    asked = [plain(text) for text in queries.texts]
    # A question of nothing but stop words has no answer on one of the sides.
    asked = [text for text in asked if set(text.split()) - set(stop_words())]
    return [plain(text) for text in real.texts], corpus.vectors, asked


def work(pipe: Connection, name: str, rows: int, source: Path | None) -> None:
    """Build one side, ask it, tell what that took."""
    texts, vectors, queries = load(rows, source)
    with tempfile.TemporaryDirectory() as folder:
        before, started = resident_bytes(), time.process_time()
        ask = SIDES[name](texts, vectors, folder)
        built, resident = time.process_time() - started, resident_bytes() - before
        times = []
        # Asked once to warm up.
        for query in [queries[0], *queries]:
            begin = time.thread_time()
            found = ask(query)
            times.append(time.thread_time() - begin)
            assert found <= DEPTH
        pipe.send((built, resident, times[1:]))


def scanned(texts: list[str], _: np.ndarray, folder: str) -> Ask:
    """A bank of ours without vectors, and so without graphs."""
    return _ours(core.Core(folder).bank(DIMENSIONS), texts, None)


def graphed(texts: list[str], vectors: np.ndarray, folder: str) -> Ask:
    """A bank of ours with graphs."""
    bank = core.Core(folder, graph_rows=len(texts), scan_rows=1, build_share=1.0, sampling=0.0).bank(DIMENSIONS)
    ask = _ours(bank, texts, vectors)
    while bank.stats()["graph_rows"] < len(texts) * 0.9:
        time.sleep(0.1)
    return ask


def _ours(bank: core.Bank, texts: list[str], vectors: np.ndarray | None) -> Ask:
    for first in range(0, len(texts), BATCH):
        rows = [
            core.Row(
                key,
                key.to_bytes(16, "big"),
                key.to_bytes(16, "little"),
                texts[key],
                None if vectors is None else vectors[key].tobytes(),
                tokens=len(texts[key].split()),
                known_from=key,
            )
            for key in range(first, min(first + BATCH, len(texts)))
        ]
        bank.apply(first // BATCH + 1, rows)
    return lambda text: len(bank.recall(core.RecallRequest(text=text, k=DEPTH, depth=DEPTH)).hits)


def tantivy(texts: list[str], _: np.ndarray, __: str) -> Ask:
    """The wheel, in memory, with the core's stop words and stems, in the segments that it makes by itself."""
    import tantivy as engine  # noqa: PLC0415 - an optional peer

    schema = engine.SchemaBuilder()
    schema.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    index = tantivy_index(engine, schema.build())
    writer = index.writer(heap_size=500_000_000, num_threads=1)
    for text in texts:
        writer.add_document(engine.Document(body=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda text: len(searcher.search(index.parse_query(text, ["body"]), DEPTH, count=False).hits)


SIDES: dict[str, Callable[[list[str], np.ndarray, str], Ask]] = {
    "astrocyte": scanned,
    "astrocyte, graphs": graphed,
    "tantivy": tantivy,
}


if __name__ == "__main__":
    main()
