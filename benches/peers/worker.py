"""One peer in a process of its own: built from the corpus, then asked through a pipe."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benches.corpus import Corpus, Queries
from benches.peers.databases import Chroma, Lance, Postgres
from benches.peers.embedded import Answer, Ours, QdrantEdge, UsearchTantivy, load

# From so many rows on the second of ours has a graph.
GRAPH_ROWS = 50_000
# By name: how each is built. The first is what the others are compared with.
PEERS: Mapping[str, Callable[[Corpus, Queries, Path], Any]] = {
    "astrocyte": Ours,
    "astrocyte, graphs": lambda corpus, queries, folder: Ours(corpus, queries, folder, graph_rows=GRAPH_ROWS),
    "qdrant-edge": QdrantEdge,
    "usearch + tantivy": lambda corpus, queries, _: UsearchTantivy(corpus, queries),
    "LanceDB": Lance,
    "Chroma": Chroma,
    "pgvector + tsvector": Postgres,
}


@dataclass(frozen=True)
class Built:
    """The build of a peer; `resident_bytes` is the increase of its own and its children's."""

    seconds: float
    resident_bytes: int
    has_hybrid: bool


@dataclass(frozen=True)
class Block:
    """Ask some queries one after the other; answered by times in milliseconds and answers."""

    kind: str
    queries: Sequence[int]


@dataclass(frozen=True)
class Load:
    """Ask without a pause from several threads at once; answered by queries per second."""

    kind: str
    callers: int
    seconds: float


def work(pipe: Connection, name: str, rows: int, count: int, source: Path | None, folder: Path) -> None:
    """Build the peer, tell so (or what went wrong, as text), and answer until None comes."""
    corpus, queries = load(rows, count, source)
    before = _resident()
    started = time.perf_counter()
    try:
        peer = PEERS[name](corpus, queries, folder)
    except ImportError as error:
        pipe.send(f"left out: {error}")
        return
    seconds = time.perf_counter() - started
    pipe.send(Built(seconds, _resident() - before, peer.hybrid is not None))
    while (order := pipe.recv()) is not None:
        search: Callable[[int], Answer] = getattr(peer, order.kind)
        pipe.send(_block(search, order) if isinstance(order, Block) else _load(search, order, count))
    if close := getattr(peer, "close", None):
        close()


def _block(search: Callable[[int], Answer], order: Block) -> tuple[list[float], list[Answer]]:
    times, answers = [], []
    for index in order.queries:
        started = time.perf_counter()
        answers.append(search(index))
        times.append((time.perf_counter() - started) * 1e3)
    return times, answers


def _load(search: Callable[[int], Answer], order: Load, count: int) -> float:
    answered = [0] * order.callers
    begin, end = threading.Barrier(order.callers + 1), threading.Event()

    def call(caller: int) -> None:
        # The first question opens what a thread needs, and is not counted.
        search(caller)
        begin.wait()
        while not end.is_set():
            search((caller * 37 + answered[caller]) % count)
            answered[caller] += 1

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(order.callers)]
    for thread in threads:
        thread.start()
    begin.wait()
    started = time.perf_counter()
    time.sleep(order.seconds)
    end.set()
    for thread in threads:
        thread.join()
    return sum(answered) / (time.perf_counter() - started)


def _resident() -> int:
    """Bytes that this process and all below it hold, shared pages counted once (PSS)."""
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        for line in (process / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for children in process.glob("task/*/children"):
            waiting += [int(child) for child in children.read_text(encoding="ascii").split()]
    return total
