"""Recall over HTTP beside the same recall over gRPC, on one server: latency, calls per second, processor time.

    python -m benches.gateway

The same queries are asked over both, in alternating blocks. Both clients send requests that were serialised before and
do not look at the answers; the one for HTTP keeps its connections open. Processor time is that of the server process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from benches.corpus import english_texts
from benches.machine import describe, processor_seconds
from benches.server import BANK, BLOCK, CALLERS, QUERY_WORDS, SEED, SERVICE, TURNS, WORDS, fill, rate, recall_request

ROWS = 10_000
CALLS = 2_000
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, str, str]]:
    """A server with both doors: its process id and addresses."""
    options = ["--data-dir", str(folder), "serve", "--port", "0", "--http", "0"]
    command = [sys.executable, "-m", "astrocyte", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        assert child.stdout is not None
        try:
            addresses = [child.stdout.readline().split()[-1] for _ in range(2)]
            yield child.pid, addresses[0], addresses[1].removeprefix("http://")
        finally:
            child.terminate()


def request_bytes(query: str, host: str) -> bytes:
    """A recall, as an HTTP client sends it."""
    body = json.dumps({"bank_id": BANK, "query": query}).encode()
    head = (
        f"POST /v1/recall HTTP/1.1\r\nhost: {host}\r\naccept: */*\r\naccept-encoding: gzip, deflate\r\n"
        f"connection: keep-alive\r\nuser-agent: bench\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def missing(received: bytes) -> int:
    """Bytes of an answer that are still to come; 1 while its head is incomplete."""
    end = received.find(HEAD_END)
    if end < 0:
        return 1
    start = received.index(LENGTH) + len(LENGTH)
    return end + len(HEAD_END) + int(received[start : received.index(b"\r\n", start)]) - len(received)


def ask_over_http(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and read its answer."""
    connection.sendall(request)
    received = b""
    while missing(received) > 0:
        received += connection.recv(1 << 18)
    assert received.startswith(b"HTTP/1.1 200"), received[:200]
    return received


async def http_rate(address: str, requests: list[bytes], callers: int) -> float:
    """Calls per second of ``callers``, each on a connection of its own."""
    host, _, port = address.rpartition(":")
    waiting = iter(requests)
    opened = [await asyncio.open_connection(host, int(port)) for _ in range(callers)]

    async def caller(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for request in waiting:
            writer.write(request)
            received = b""
            while missing(received) > 0:
                received += await reader.read(1 << 18)

    started = time.perf_counter()
    await asyncio.gather(*(caller(*each) for each in opened))
    elapsed = time.perf_counter() - started
    for _, writer in opened:
        writer.close()
    return len(requests) / elapsed


def latencies(pid: int, asks: dict[str, Callable[[int], object]], calls: int) -> dict[str, tuple[float, float, float]]:
    """Median and p95 in milliseconds, and processor milliseconds per call, in alternating blocks."""
    times: dict[str, list[float]] = {name: [] for name in asks}
    burnt = dict.fromkeys(asks, 0.0)
    for first in range(-BLOCK, calls, BLOCK):
        for name, ask in asks.items():
            before = processor_seconds(pid)
            for index in range(first, first + BLOCK):
                started = time.perf_counter()
                ask(index)
                times[name].append(time.perf_counter() - started)
            if first >= 0:
                burnt[name] += processor_seconds(pid) - before
    made = {}
    for name, values in times.items():
        kept = sorted(values[BLOCK:])
        made[name] = (statistics.median(kept) * 1e3, kept[int(len(kept) * 0.95)] * 1e3, burnt[name] / calls * 1e3)
    return made


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    print(describe("grpcio", "uvicorn", "httptools", "orjson", rows=options.rows, calls=options.calls, seed=SEED))
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (pid, address, web):
        asyncio.run(fill(address, english_texts(options.rows, words=WORDS, seed=SEED)))
        queries = english_texts(options.calls + BLOCK, words=QUERY_WORDS, seed=SEED + 1, numbered=False)
        report(pid, address, web, queries)


def report(pid: int, address: str, web: str, queries: list[str]) -> None:
    """Measure and print."""
    calls = len(queries) - BLOCK
    messages = [recall_request(query).SerializeToString() for query in queries]
    requests = [request_bytes(query, web) for query in queries]
    host, _, port = web.rpartition(":")
    with grpc.insecure_channel(address) as channel, socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        recall: Any = channel.unary_unary(f"{SERVICE}/Recall")
        found = latencies(
            pid,
            {
                "gRPC": lambda index: recall(messages[index]),
                "HTTP": lambda index: ask_over_http(connection, requests[index]),
            },
            calls,
        )
        sizes = len(recall(messages[0])), len(ask_over_http(connection, requests[0]))
    for name, (median, high, burnt) in found.items():
        print(f"{name}: p50 {median:.3f} ms, p95 {high:.3f} ms, {burnt:.3f} ms of the server's processor")
    print(f"HTTP / gRPC: p50 {found['HTTP'][0] / found['gRPC'][0]:.2f}; bytes of an answer {sizes[1]} / {sizes[0]}")
    rates: dict[str, list[float]] = {"gRPC": [], "HTTP": []}
    spending = dict.fromkeys(rates, 0.0)
    for _ in range(TURNS):
        before = processor_seconds(pid)
        rates["gRPC"].append(asyncio.run(rate(address, f"{SERVICE}/Recall", messages[:calls], CALLERS)))
        between = processor_seconds(pid)
        rates["HTTP"].append(asyncio.run(http_rate(web, requests[:calls], CALLERS)))
        spending["gRPC"] += between - before
        spending["HTTP"] += processor_seconds(pid) - between
    ratios = [over_http / over_grpc for over_grpc, over_http in zip(*rates.values(), strict=True)]
    for name, values in rates.items():
        spent = spending[name] / (calls * TURNS) * 1e3
        print(
            f"{name}, {CALLERS} callers: median {statistics.median(values):,.0f} calls/s of {TURNS} turns, "
            f"{spent:.3f} ms of the server's processor"
        )
    print(f"HTTP / gRPC: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) calls/s")


if __name__ == "__main__":
    main()
