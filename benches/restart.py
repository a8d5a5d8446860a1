"""A restart with one large bank: the first answer from a checkpoint, and from rows.

    python -m benches.restart --rows 100000 1000000

Rows are synthetic (benches/corpus.py), their vectors given. Each start is a process of its own, timed from the making
of the application to the first answer of a hybrid recall; the files are in the page cache, as after a restart of the
process and not of the machine. While the checkpoint is written, one caller recalls and one retains, as before it. --dir
keeps the data, so that a second run need not make them.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from structlog.testing import capture_logs

from astrocyte.api.requests import Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import content_hash
from astrocyte.model import Caller, Embedding, RecallQuery, RetainItem
from astrocyte.server import _settle
from astrocyte.stores.records import Insert, NewMemory
from astrocyte.stores.sqlite import open_store
from benches.corpus import Corpus, make_corpus, make_queries
from benches.machine import describe

SEED = 20_250_112
DIMENSIONS = 384
WORDS = 16
# Memories of one commit, and rows that are made at once.
COMMIT = 512
PART = 50_000
STARTS = 3
BANK = "large"
MODEL = "given"
ME = Caller()
# Seconds of calls before the checkpoint, to compare with those beside it.
BEFORE = 3.0


def _settings(folder: Path, *, checkpoints: bool) -> Settings:
    return Settings.from_mapping(
        {
            "vector_store": "sqlite",
            "data_dir": str(folder),
            # What builds graphs would take a processor from what is measured.
            "index": {"checkpoints": checkpoints, "graph_rows": 0},
            "signal_quality": {"dedup": {"enabled": False}},
        }
    )


async def _fill(folder: Path, rows: int) -> float:
    """Write the rows to the database alone; returns how long that took."""
    store = open_store(folder)
    start = time.perf_counter()
    bank = await store.create_bank(
        ME.tenant, BANK, display_name="", description="", embedding_model=MODEL, dimensions=DIMENSIONS
    )
    for first in range(0, rows, PART):
        corpus = make_corpus(min(PART, rows - first), dimensions=DIMENSIONS, words=WORDS, seed=SEED + first)
        memories = [_memory(first + number, corpus, number) for number in range(len(corpus.texts))]
        for at in range(0, len(memories), COMMIT):
            await store.commit(bank, [Insert(memory) for memory in memories[at : at + COMMIT]])
    store.close()
    return time.perf_counter() - start


def _memory(key: int, corpus: Corpus, number: int) -> NewMemory:
    content = f"{corpus.texts[number]} ({key})"
    return NewMemory(
        memory_id=f"mem_{key:032x}",
        content=content,
        content_hash=content_hash(content),
        content_type="text",
        fact_type="world",
        memory_layer="semantic",
        token_count=WORDS,
        vector=corpus.vectors[number].tobytes(),
        tags=(f"tag{key % 100}",),
        session_id=f"session{key // 50}" if key % 2 else None,
    )


def _queries(count: int) -> list[RecallQuery]:
    corpus = make_corpus(2_000, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    queries = make_queries(corpus, count, words=6)
    return [
        RecallQuery(text, BANK, embedding=Embedding(MODEL, DIMENSIONS, vector.tobytes()))
        for text, vector in zip(queries.texts, queries.vectors, strict=True)
    ]


def _first_answer(folder: Path, pipe: Connection, *, checkpoints: bool) -> None:
    """In a process of its own: seconds to the first answer, and what it was."""

    async def run() -> tuple[float, list[str | None]]:
        (query,) = _queries(1)
        start = time.perf_counter()
        app = App(_settings(folder, checkpoints=checkpoints))
        # What a server sets of the garbage collector before it serves.
        _settle()
        result = await app.gate.call(ME, Recall(query))
        seconds = time.perf_counter() - start
        found = [hit.memory_id for hit in result.hits]
        await app.close()
        return seconds, found

    pipe.send(asyncio.run(run()))


def _start(folder: Path, *, checkpoints: bool) -> tuple[float, list[str | None]]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_first_answer, args=(folder, theirs), kwargs={"checkpoints": checkpoints})
    process.start()
    answer: tuple[float, list[str | None]] = ours.recv()
    process.join()
    return answer


async def _write_beside_calls(folder: Path) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The log of the checkpoint, and milliseconds of calls before it and beside it."""
    times: dict[str, list[float]] = {name: [] for name in ("recall", "recall beside", "retain", "retain beside")}
    with capture_logs() as logs:
        app = App(_settings(folder, checkpoints=False))
        await app.gate.call(ME, Recall(_queries(1)[0]))
        asked = [_ask(app, times["recall"]), _store(app, times["retain"], "before")]
        tasks = [asyncio.create_task(one) for one in asked]
        await asyncio.sleep(BEFORE)
        await _end(tasks)
        await app.close()
        app = App(_settings(folder, checkpoints=True))
        await app.gate.call(ME, Recall(_queries(1)[0]))
        tasks = [
            asyncio.create_task(_ask(app, times["recall beside"])),
            asyncio.create_task(_store(app, times["retain beside"], "beside")),
        ]
        while not any(entry["event"] == "checkpoint_written" for entry in logs):  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.05)
        await _end(tasks)
        await app.close()
    return dict(next(entry for entry in logs if entry["event"] == "checkpoint_written")), times


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(app: App, times: list[float]) -> None:
    queries = _queries(100)
    while True:
        for query in queries:
            start = time.perf_counter()
            await app.gate.call(ME, Recall(query))
            times.append((time.perf_counter() - start) * 1e3)


async def _store(app: App, times: list[float], word: str) -> None:
    vector = make_corpus(1, dimensions=DIMENSIONS, words=WORDS, seed=SEED).vectors[0].tobytes()
    while True:
        item = RetainItem(f"{word} {len(times)}", embedding=Embedding(MODEL, DIMENSIONS, vector))
        start = time.perf_counter()
        await app.gate.call(ME, Retain(BANK, item))
        times.append((time.perf_counter() - start) * 1e3)


def _measure(console: Console, folder: Path, rows: int) -> None:
    if not folder.exists():
        seconds = asyncio.run(_fill(folder, rows))
        console.print(f"{rows:,} rows committed in {seconds:.0f} s ({rows / seconds:,.0f} rows/s)")
    from_rows = [_start(folder, checkpoints=False) for _ in range(STARTS)]
    written, times = asyncio.run(_write_beside_calls(folder))
    console.print(
        f"checkpoint: {written['bytes'] / rows:,.0f} bytes a row, written in {written['seconds']:.1f} s; "
        f"a commit waited {written['longest_hold_ms']:.2f} ms at most"
    )
    table = Table(box=None, pad_edge=False)
    for name in ("call", "calls", "p50 ms", "p99 ms", "slowest ms"):
        table.add_column(name, justify="left" if name == "call" else "right")
    for name, some in times.items():
        p99 = statistics.quantiles(some, n=100)[98] if len(some) > 1 else some[0]
        table.add_row(name, str(len(some)), f"{statistics.median(some):.2f}", f"{p99:.2f}", f"{max(some):.2f}")
    console.print(table)
    from_checkpoint = [_start(folder, checkpoints=True) for _ in range(STARTS)]
    rows_s, checkpoint_s = (sorted(s for s, _ in starts) for starts in (from_rows, from_checkpoint))
    console.print(
        f"first answer of {rows:,} rows: from rows {rows_s[0]:.2f} s (median {statistics.median(rows_s):.2f}), from a "
        f"checkpoint {checkpoint_s[0]:.2f} s (median {statistics.median(checkpoint_s):.2f}), "
        f"{statistics.median(rows_s) / statistics.median(checkpoint_s):.1f} x sooner"
    )
    if len({tuple(found) for _, found in from_rows}) != 1 or len({tuple(found) for _, found in from_checkpoint}) != 1:
        raise SystemExit("the same question had two answers")


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--dir", type=Path, default=None, help="make the data here, or use what is there")
    options = parser.parse_args()
    console = Console(highlight=False, width=200)
    console.print(describe("numpy", rows=options.rows, dimensions=DIMENSIONS, words=WORDS, seed=SEED))
    with tempfile.TemporaryDirectory() as temporary:
        for rows in options.rows:
            _measure(console, (options.dir or Path(temporary)) / str(rows), rows)


if __name__ == "__main__":
    main()
