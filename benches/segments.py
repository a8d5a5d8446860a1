"""Memory and restart of the segments of each search method: `index.dense` and `index.lexical`.

    python -m benches.segments                      200,000 rows of 256 dimensions
    python -m benches.segments --rows 1000000

Each bank is built and restarted in processes of its own. "anonymous" is anonymous memory that the segments add per row
once they are built (`RssAnon`); "mapped" are bytes in files that the system can drop. The restart loads a checkpoint
whose files are in the page cache: seconds until the bank is loaded, until the first answer of a hybrid recall, and
until graphs and inverted indexes answer. Wall-clock times.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from astrocyte import core
from benches.corpus import make_corpus, make_queries
from benches.machine import describe

ROWS = 200_000
DIMENSIONS = 256
WORDS = 16
QUERY_WORDS = 6
SEED = 20_250_112
BATCH = 4_096
LABEL = core.Label("bank", "given", "1", "")
METHODS = (("graph", "postings"), ("graph", "tantivy"), ("usearch", "postings"), ("usearch", "tantivy"))
# Seconds after which a bank without its segments is given up.
PATIENCE = 900.0


@dataclass(frozen=True, slots=True)
class Built:
    """A bank that was built: bytes and seconds."""

    bank: float
    anonymous: float
    mapped: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Restarted:
    """A bank that was loaded: seconds from the start, and anonymous bytes per row."""

    loaded: float
    answered: float
    whole: float
    anonymous: float


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    print(describe("numpy", rows=options.rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED))
    title = f"{options.rows:,} rows of {DIMENSIONS} dimensions; bytes per row, seconds"
    table = Table(title=title, title_justify="left")
    for heading in ("dense", "lexical", "bank", "anonymous", "mapped", "built", "loaded", "answered", "whole", "after"):
        table.add_column(heading, justify="right" if len(table.columns) > 1 else "left")
    for dense, lexical in METHODS:
        with tempfile.TemporaryDirectory() as name:
            context = multiprocessing.get_context("spawn")
            with context.Pool(1, maxtasksperchild=1) as pool:
                built = pool.apply(build, (Path(name), options.rows, dense, lexical))
                again = pool.apply(restart, (Path(name), options.rows, dense, lexical))
        table.add_row(
            dense, lexical, f"{built.bank:.0f}", f"{built.anonymous:.0f}", f"{built.mapped:.0f}",
            f"{built.seconds:.1f}", f"{again.loaded:.2f}", f"{again.answered:.2f}", f"{again.whole:.2f}",
            f"{again.anonymous:.0f}",
        )  # fmt: skip
    Console(width=140).print(table)


def build(folder: Path, rows: int, dense: str, lexical: str) -> Built:
    """Build a bank with its segments and write its checkpoint."""
    owner = _core(folder, rows, dense, lexical)
    bank = owner.bank(DIMENSIONS)
    before = _anonymous(owner)
    _fill(bank, rows)
    filled = _anonymous(owner)
    start = time.perf_counter()
    bank.fold()
    seconds = time.perf_counter() - start
    built = _anonymous(owner)
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    core.write_checkpoint(bank, str(checkpoint), LABEL)
    mapped = bank.stats().get("bytes_mapped", 0)
    return Built((filled - before) / rows, (built - filled) / rows, mapped / rows, seconds)


def restart(folder: Path, rows: int, dense: str, lexical: str) -> Restarted:
    """Load the checkpoint, and ask until the segments answer."""
    owner = _core(folder, rows, dense, lexical)
    queries = make_queries(make_corpus(1_000, dimensions=DIMENSIONS, words=WORDS, seed=SEED), 1, words=QUERY_WORDS)
    request = core.RecallRequest(k=10, depth=100, text=queries.texts[0], vector=queries.vectors[0].tobytes())
    before = _anonymous(owner)
    start = time.perf_counter()
    bank = owner.load(str(folder / "checkpoint"), DIMENSIONS, LABEL)
    loaded = time.perf_counter() - start
    plan = bank.recall(request).trace.plan
    answered = time.perf_counter() - start
    while not (plan.startswith("graph") and (lexical == "postings" or "tantivy" in plan)):
        if time.perf_counter() - start > PATIENCE:
            raise RuntimeError(plan)
        time.sleep(0.01)
        plan = bank.recall(request).trace.plan
    whole = time.perf_counter() - start
    return Restarted(loaded, answered, whole, (_anonymous(owner) - before) / rows)


def _core(folder: Path, rows: int, dense: str, lexical: str) -> core.Core:
    return core.Core(
        str(folder), graph_rows=min(rows, 100_000), build_share=2.0, scan_rows=1, sampling=0.0,
        dense=dense, lexical=lexical,
    )  # fmt: skip


def _fill(bank: core.Bank, count: int) -> None:
    corpus = make_corpus(count, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    for position, first in enumerate(range(0, count, BATCH), start=1):
        rows = [
            core.Row(
                key, key.to_bytes(16, "big"), key.to_bytes(16, "little"), corpus.texts[key],
                corpus.vectors[key].tobytes(), tokens=WORDS, known_from=key,
            )
            for key in range(first, min(first + BATCH, count))
        ]  # fmt: skip
        bank.apply(position, rows)


def _anonymous(owner: core.Core) -> int:
    """Bytes of anonymous memory of this process, without what was freed."""
    gc.collect()
    owner.release_memory()
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == "RssAnon":
            return int(value.split()[0]) << 10
    raise RuntimeError("the system does not count anonymous memory")


if __name__ == "__main__":
    main()
