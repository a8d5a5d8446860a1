"""One large bank behind the server: recalls over gRPC by the scan, and by graphs.

    python -m benches.large_server --rows 1000000 --sentences sentences.npz

Rows are those of benches.scale; their vectors, and those of the questions, come with the calls. The same questions are
asked of a server that only scans and of one with graphs, one after the other on one data directory: times compare as
far as the machine stays as it is. --dir keeps the data, so that a second run need not make them. --kinds gives the rows
dates, or dates and sessions of twenty turns, in which context windows apply.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from rich.console import Console
from rich.progress import track
from rich.table import Table

from astrocyte.core import content_hash
from astrocyte.model import Caller
from astrocyte.stores.records import Insert, NewMemory
from astrocyte.stores.sqlite import open_store
from astrocyte.v1 import admin_pb2, types_pb2
from astrocyte.v1 import memory_pb2 as pb
from astrocyte.v1.admin_pb2_grpc import AdminServiceStub
from benches.corpus import Corpus, Queries
from benches.machine import PROCESSORS, describe, processor_seconds, resident_bytes
from benches.scale import GRAPH_ROWS, SEED, corpus_of
from benches.server import SERVICE, rate, running

BANK = "large"
MODEL = "given"
COMMIT = 512
CALLERS = 8
# Rows without dates, with a date each, and with dates and sessions of so many turns.
PLAIN, DATED, SESSIONS = "plain", "dated", "sessions"
TURNS = 20
FIRST_MS, MINUTE_MS = 1_735_689_600_000, 60_000
# Every question so often, after a round that is not counted.
ROUNDS = 3
# Seconds of the processor in a second: a server that nobody asks takes some hundredths.
AT_REST = 0.1
Hits = list[list[str]]


async def _fill(folder: Path, corpus: Corpus, kind: str) -> None:
    """Write the rows to the database alone."""
    store = open_store(folder)
    bank = await store.create_bank(
        Caller().tenant,
        BANK,
        display_name="",
        description="",
        embedding_model=MODEL,
        dimensions=corpus.vectors.shape[1],
    )
    for first in track(range(0, len(corpus.texts), COMMIT), description="rows"):
        last = min(len(corpus.texts), first + COMMIT)
        await store.commit(bank, [Insert(_memory(corpus, number, kind)) for number in range(first, last)])
    store.close()


def _memory(corpus: Corpus, number: int, kind: str) -> NewMemory:
    text = corpus.texts[number]
    return NewMemory(
        memory_id=f"mem_{number:032x}",
        content=text,
        content_hash=content_hash(text),
        content_type="text",
        fact_type="world",
        memory_layer="semantic",
        token_count=len(text.split()),
        vector=corpus.vectors[number].tobytes(),
        occurred_at=None if kind == PLAIN else FIRST_MS + number * MINUTE_MS,
        session_id=f"session-{number // TURNS}" if kind == SESSIONS else None,
    )


@contextmanager
def _server(folder: Path, graph_rows: int) -> Iterator[tuple[int, str]]:
    """The process and the address of a server; all processors are for building."""
    own = {"ASTROCYTE_INDEX__GRAPH_ROWS": str(graph_rows), "ASTROCYTE_INDEX__BUILD_SHARE": str(PROCESSORS)}
    before = dict(os.environ)
    os.environ.update(own)
    try:
        with running("-m", "astrocyte", "--data-dir", str(folder), "serve", "--port", "0") as process:
            yield process.pid, process.address
    finally:
        os.environ.clear()
        os.environ.update(before)


def _requests(queries: Queries) -> list[bytes]:
    return [
        pb.RecallRequest(
            bank_id=BANK,
            query=text,
            embedding=types_pb2.Embedding(model=MODEL, dimensions=len(vector), values=vector.tobytes()),
        ).SerializeToString()
        for text, vector in zip(queries.texts, queries.vectors, strict=True)
    ]


def _wait_for_graphs(console: Console, channel: grpc.Channel, rows: int) -> None:
    stub: Any = AdminServiceStub(channel)
    start = time.perf_counter()
    with console.status("graphs are built"):
        while stub.GetBankStats(admin_pb2.GetBankStatsRequest(bank_id=BANK)).stats.index.graph_rows < rows:
            time.sleep(1.0)
    console.print(f"all rows in graphs after {time.perf_counter() - start:.0f} s")


def _wait_for_rest(console: Console, pid: int) -> None:
    """Until the server does nothing by itself: after a start it moves vectors, and memory into huge pages."""
    with console.status("the server comes to rest"):
        busy = True
        while busy:
            before = processor_seconds(pid)
            time.sleep(1.0)
            busy = processor_seconds(pid) - before > AT_REST


def _ask(address: str, pid: int, requests: list[bytes]) -> tuple[list[float], float, Hits]:
    """Milliseconds of each call of one caller, of the server's processor per call, and the memories found."""
    times = []
    with grpc.insecure_channel(address) as channel:
        recall: Any = channel.unary_unary(f"{SERVICE}/Recall")
        answers = [recall(request) for request in requests]
        before = processor_seconds(pid)
        for request in requests * ROUNDS:
            start = time.perf_counter()
            recall(request)
            times.append((time.perf_counter() - start) * 1e3)
        burnt = processor_seconds(pid) - before
    hits = [[hit.memory_id for hit in pb.RecallResponse.FromString(answer).hits] for answer in answers]
    return times, burnt / len(times) * 1e3, hits


def _measure(console: Console, folder: Path, corpus: Corpus, queries: Queries, kind: str) -> None:
    rows = len(corpus.texts)
    if not folder.exists():
        asyncio.run(_fill(folder, corpus, kind))
    requests = _requests(queries)
    table = Table(box=None, pad_edge=False)
    columns = ("", "p50 ms", "p95 ms", "server CPU ms", f"calls/s, {CALLERS} callers", "hits of the scan's", "MB")
    for name in columns:
        table.add_column(name, justify="right" if name else "left")
    wanted: Hits = []
    for name, graph_rows in (("scan", 0), ("graphs", min(rows, GRAPH_ROWS))):
        with _server(folder, graph_rows) as (pid, address), grpc.insecure_channel(address) as channel:
            recall: Any = channel.unary_unary(f"{SERVICE}/Recall")
            # The first call loads the bank.
            recall(requests[0], timeout=600)
            if graph_rows:
                _wait_for_graphs(console, channel, rows)
            _wait_for_rest(console, pid)
            times, burnt, found = _ask(address, pid, requests)
            several = asyncio.run(rate(address, f"{SERVICE}/Recall", requests * ROUNDS, CALLERS))
            wanted = wanted or found
            met = sum(len(set(one) & set(other)) for one, other in zip(found, wanted, strict=True))
            table.add_row(
                name,
                f"{statistics.median(times):.2f}",
                f"{statistics.quantiles(times, n=20)[18]:.2f}",
                f"{burnt:.2f}",
                f"{several:,.0f}",
                f"{met / sum(map(len, wanted)):.4f}",
                f"{resident_bytes(pid) / 1e6:,.0f}",
            )
    console.print(f"{rows:,} rows, {kind}")
    console.print(table)


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--kinds", nargs="+", choices=(PLAIN, DATED, SESSIONS), default=[PLAIN], help="kinds of rows")
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    parser.add_argument("--dir", type=Path, help="make the data here, or use what is there")
    options = parser.parse_args()
    console = Console(highlight=False, width=200)
    console.print(describe("grpcio", "apsw", rows=options.rows, seed=SEED))
    with tempfile.TemporaryDirectory() as temporary:
        for rows in options.rows:
            corpus, queries = corpus_of(console, rows, options.sentences)
            for kind in options.kinds:
                folder = (options.dir or Path(temporary)) / f"{rows}-{kind}"
                _measure(console, folder, corpus, queries, kind)


if __name__ == "__main__":
    main()
