"""Memory, restart and latency of each tier and search method: `index.tier`, `index.dense` and `index.lexical`.

    python -m benches.segments                      200,000 rows of 256 dimensions
    python -m benches.segments --rows 1000000
    python -m benches.segments --tiers disk,memory  the default methods of both tiers alone
    python -m benches.segments --tiers disk --cgroup /sys/fs/cgroup/small

Each bank is built and restarted in processes of its own. "anonymous" is anonymous memory that the segments add per row
once they are built (`RssAnon`); "mapped" are bytes in files that the system can drop. The restart loads a checkpoint
whose files are in the page cache: seconds until the bank is loaded, until the first answer of a hybrid recall, and
until graphs and inverted indexes answer. "after" is anonymous memory per row of the whole bank by then, "p50" and "p99"
are milliseconds of warm hybrid recalls, "@10" is the share of the ten nearest of a scan that they find by vector.
Wall-clock times. With `--cgroup` the restarted process joins that control group, whose limit of memory then holds for
its page cache too.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
METHODS = (
    ("memory", "graph", "postings"),
    ("memory", "graph", "tantivy"),
    ("memory", "usearch", "postings"),
    ("memory", "usearch", "tantivy"),
    ("disk", "auto", "postings"),
    # As before, but usearch inserts one vector after the other.
    ("disk", "usearch", "postings"),
)
# Recalls of which the percentiles are taken, after as many that warm up.
RECALLS = 500
NEAREST = 10
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
    p50: float
    p99: float
    recall: float


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--tiers", default="", help="only the default methods of these tiers, separated by commas")
    parser.add_argument("--cgroup", type=Path, help="directory of the control group that restarted processes join")
    options = parser.parse_args()
    tiers = [name for name in options.tiers.split(",") if name]
    methods = [next(one for one in METHODS if one[0] == name) for name in tiers] or METHODS
    print(describe("numpy", rows=options.rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED))
    title = f"{options.rows:,} rows of {DIMENSIONS} dimensions; bytes per row, seconds"
    table = Table(title=title, title_justify="left")
    headings = "tier dense lexical bank anonymous mapped built loaded answered whole after p50 p99 @10"
    for heading in headings.split():
        table.add_column(heading, justify="right" if len(table.columns) > 2 else "left")
    for tier, dense, lexical in methods:
        with tempfile.TemporaryDirectory() as name:
            context = multiprocessing.get_context("spawn")
            with context.Pool(1, maxtasksperchild=1) as pool:
                built = pool.apply(build, (Path(name), options.rows, tier, dense, lexical))
                again = pool.apply(restart, (Path(name), options.rows, tier, dense, lexical, options.cgroup))
        table.add_row(
            tier, dense, lexical, f"{built.bank:.0f}", f"{built.anonymous:.0f}", f"{built.mapped:.0f}",
            f"{built.seconds:.1f}", f"{again.loaded:.2f}", f"{again.answered:.2f}", f"{again.whole:.2f}",
            f"{again.anonymous:.0f}", f"{again.p50:.2f}", f"{again.p99:.2f}", f"{again.recall:.3f}",
        )  # fmt: skip
    Console(width=160).print(table)


def build(folder: Path, rows: int, tier: str, dense: str, lexical: str) -> Built:
    """Build a bank with its segments and write its checkpoint."""
    owner = _core(folder, rows, tier, dense, lexical)
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


def restart(folder: Path, rows: int, tier: str, dense: str, lexical: str, cgroup: Path | None) -> Restarted:
    """Load the checkpoint, and ask until the segments answer."""
    owner = _core(folder, rows, tier, dense, lexical)
    corpus = make_corpus(rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    queries = make_queries(corpus, 2 * RECALLS, words=QUERY_WORDS)
    del corpus
    requests = [
        core.RecallRequest(k=NEAREST, depth=100, text=text, vector=vector.tobytes())
        for text, vector in zip(queries.texts, queries.vectors, strict=True)
    ]
    request = requests[0]
    if cgroup is not None:
        # What is cached or used until now stays with the groups of those who used it, so nothing may be cached.
        for file in folder.rglob("*"):
            _drop_from_cache(file)
        (cgroup / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    before = _anonymous(owner)
    start = time.perf_counter()
    bank = owner.load(str(folder / "checkpoint"), DIMENSIONS, LABEL)
    loaded = time.perf_counter() - start
    plan = bank.recall(request).trace.plan
    answered = time.perf_counter() - start
    while not (plan.startswith("graph") and ((tier, lexical) == ("memory", "postings") or "tantivy" in plan)):
        if time.perf_counter() - start > PATIENCE:
            raise RuntimeError(plan)
        time.sleep(0.01)
        plan = bank.recall(request).trace.plan
    whole = time.perf_counter() - start
    for one in requests[:RECALLS]:
        bank.recall(one)
    seconds = []
    for one in requests[RECALLS:]:
        start = time.perf_counter()
        bank.recall(one)
        seconds.append(time.perf_counter() - start)
    p50, p99 = np.percentile(seconds, (50, 99)) * 1e3
    anonymous = (_anonymous(owner) - before) / rows
    return Restarted(loaded, answered, whole, anonymous, p50, p99, _found(bank, queries.vectors[:RECALLS]))


def _drop_from_cache(file: Path) -> None:
    """Have the system forget the pages of a file that it has read or written."""
    if file.is_file():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _found(bank: core.Bank, vectors: np.ndarray) -> float:
    """The share of the nearest rows by scans that recalls by vector alone find."""
    met = wanted = 0
    for vector in vectors:
        request = core.RecallRequest(k=NEAREST, depth=100, vector=vector.tobytes())
        exact = {hit.key for hit in bank.explain(request, []).response.hits}
        met += len(exact & {hit.key for hit in bank.recall(request).hits})
        wanted += len(exact)
    return met / wanted


def _core(folder: Path, rows: int, tier: str, dense: str, lexical: str) -> core.Core:
    return core.Core(
        str(folder), graph_rows=min(rows, 100_000), build_share=2.0, scan_rows=1, sampling=0.0,
        dense=dense, lexical=lexical, tier=tier,
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
