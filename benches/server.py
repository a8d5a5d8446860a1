"""The server beside a bare gRPC echo: latency, processor time per call, batches, durable writes.

    python -m benches.server

The echo is grpc.aio's. Both are processes of their own, driven by one client that sends and receives bytes without
looking at them, turn by turn in one run. The echo answers with as many bytes as a recall does, and does nothing else:
what remains is ours. Processor time is that of the server process, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from rich.console import Console
from rich.table import Table

from astrocyte.v1 import memory_pb2 as pb
from astrocyte.v1.memory_pb2_grpc import MemoryServiceStub
from benches.corpus import english_texts
from benches.machine import describe, processor_seconds, resident_bytes

ROWS = 10_000
WORDS = 16
QUERY_WORDS = 6
# Turns per conversation.
SESSION = 20
SEED = 20_250_112
BANK = "bench"
# Enough for a median that stands still, few enough for a minute in all.
CALLS = 3_000
BLOCK = 100
CALLERS = 16
BATCH = 64
# Unary calls and batches take turns, for the speed of a shared machine changes within seconds.
TURNS = 7
WRITES = 10_000
SERVICE = "/astrocyte.v1.MemoryService"
ECHO = "/bench.Echo/Call"

# The echo: its reply size comes with the command line, so that nothing is looked at per call. What the product sets of
# the garbage collector holds for both.
ECHO_SERVER = """
import asyncio, sys, grpc
from astrocyte.server import _settle
async def main():
    reply = bytes(int(sys.argv[1]))
    async def call(request, context):
        return reply
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(call)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", {"Call": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    _settle()
    print(f"Listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()
asyncio.run(main())
"""


@dataclass(frozen=True)
class Process:
    """A server of its own."""

    pid: int
    address: str


@contextmanager
def running(*arguments: str, ahead: int = 0) -> Iterator[Process]:
    """A Python process that prints its address when it listens.

    ``ahead``, from -20 to 19: what the system takes for how nice its session is to others, where it lets us say so.
    """
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=bool(ahead)) as child:
        try:
            if ahead:
                with suppress(OSError):
                    Path(f"/proc/{child.pid}/autogroup").write_text(str(ahead), encoding="ascii")
            assert child.stdout is not None
            yield Process(child.pid, child.stdout.readline().split()[-1])
        finally:
            child.terminate()


async def fill(address: str, texts: list[str]) -> float:
    """Retain all texts through one stream; returns memories per second, each acknowledged as durable."""
    async with grpc.aio.insecure_channel(address) as channel:

        async def requests() -> AsyncIterator[pb.StreamRetainRequest]:
            for number, text in enumerate(texts):
                item = pb.RetainItem(content=text, session_id=f"s{number // SESSION}", speaker="Ines")
                yield pb.StreamRetainRequest(sequence=number, bank_id=BANK, item=item)

        started = time.perf_counter()
        stored = 0
        async for response in MemoryServiceStub(channel).StreamRetain(requests()):
            assert response.WhichOneof("outcome") == "result", response.error
            stored += response.result.stored
        elapsed = time.perf_counter() - started
    assert stored == len(texts), f"{len(texts) - stored} were taken for duplicates"
    return stored / elapsed


def unary(
    servers: dict[str, tuple[Process, str, Callable[[int], bytes]]], calls: int
) -> dict[str, tuple[float, float, float]]:
    """Median and p95 milliseconds, and server milliseconds of processor time per call, asked in alternating blocks."""
    channels = {name: grpc.insecure_channel(process.address) for name, (process, _, _) in servers.items()}
    times: dict[str, list[float]] = {name: [] for name in servers}
    burnt = dict.fromkeys(servers, 0.0)
    for first in range(-BLOCK, calls, BLOCK):
        for name, (process, path, request) in servers.items():
            call: Any = channels[name].unary_unary(path)
            before = processor_seconds(process.pid)
            for index in range(first, first + BLOCK):
                started = time.perf_counter()
                call(request(index))
                times[name].append(time.perf_counter() - started)
            if first >= 0:
                burnt[name] += processor_seconds(process.pid) - before
    for channel in channels.values():
        channel.close()
    result = {}
    for name, values in times.items():
        kept = sorted(values[BLOCK:])
        result[name] = (statistics.median(kept) * 1e3, kept[int(len(kept) * 0.95)] * 1e3, burnt[name] / calls * 1e3)
    return result


def reply_sizes(address: str, requests: list[bytes]) -> list[int]:
    """Bytes of the answers to recalls."""
    with grpc.insecure_channel(address) as channel:
        recall: Any = channel.unary_unary(f"{SERVICE}/Recall")
        return [len(recall(request)) for request in requests]


async def rate(address: str, path: str, requests: list[bytes], callers: int) -> float:
    """Calls per second of ``callers`` that each wait for their answer before they ask again."""
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(path)
        await call(requests[0])
        waiting = iter(requests)

        async def caller() -> None:
            for request in waiting:
                await call(request)

        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return len(requests) / (time.perf_counter() - started)


def recall_request(query: str) -> pb.RecallRequest:
    """As a caller sends it: a text, and everything else left to the server."""
    return pb.RecallRequest(bank_id=BANK, query=query)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    print(describe("grpcio", "protobuf", "apsw", rows=options.rows, words=WORDS, calls=options.calls, seed=SEED))
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), options.rows, options.calls)


def run(folder: Path, rows: int, calls: int) -> None:
    """Fill the product, size the echo, measure both."""
    texts = english_texts(rows + WRITES, words=WORDS, seed=SEED)
    queries = english_texts(calls + BLOCK, words=QUERY_WORDS, seed=SEED + 1, numbered=False)
    requests = [recall_request(query).SerializeToString() for query in queries]
    with running("-m", "astrocyte", "--data-dir", str(folder), "serve", "--port", "0") as product:
        durable = asyncio.run(fill(product.address, texts[:rows]))
        size = round(statistics.mean(reply_sizes(product.address, requests[:BLOCK])))
        with running("-c", ECHO_SERVER, str(size)) as echo:
            servers = {
                "echo": (echo, ECHO, lambda index: requests[index]),
                "Recall": (product, f"{SERVICE}/Recall", lambda index: requests[index]),
            }
            measured = unary(servers, calls)
        print_table(measured, size)
        asyncio.run(throughput(product.address, requests[:calls], queries[:calls]))
        print(f"StreamRetain, one stream, into the empty bank: {durable:,.0f} durable memories/s")
        again = asyncio.run(fill(product.address, texts[rows:]))
        print(f"StreamRetain, one stream, into {rows:,} memories: {again:,.0f} durable memories/s")
        print(f"resident memory of the server: {resident_bytes(product.pid) / 1e6:.0f} MB")


async def throughput(address: str, requests: list[bytes], queries: list[str]) -> None:
    """Unary calls of many callers, batches of one caller, and of two, whose waits between batches overlap; by turns."""
    batches = [
        pb.BatchRecallRequest(
            queries=[recall_request(query) for query in queries[first : first + BATCH]]
        ).SerializeToString()
        for first in range(0, len(queries) - BATCH + 1, BATCH)
    ]
    singles: list[float] = []
    batched: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(TURNS):
        singles.append(await rate(address, f"{SERVICE}/Recall", requests, CALLERS))
        for callers, found in batched.items():
            found.append(await rate(address, f"{SERVICE}/BatchRecall", batches, callers) * BATCH)
    print(f"medians of {TURNS} turns; Recall, {CALLERS} callers: {statistics.median(singles):,.0f} queries/s")
    for callers, found in batched.items():
        ratios = [each / single for each, single in zip(found, singles, strict=True)]
        name = "1 caller" if callers == 1 else f"{callers} callers"
        print(
            f"BatchRecall of {BATCH}, {name}: {statistics.median(found):,.0f} queries/s, "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) x unary"
        )


def print_table(measured: dict[str, tuple[float, float, float]], size: int) -> None:
    """Latency and processor time, and how many times the echo's."""
    table = Table(title=f"one caller, replies of {size:,} bytes", title_justify="left")
    for name in ("", "p50 ms", "x echo", "p95 ms", "server CPU ms", "x echo"):
        table.add_column(name, justify="right" if name else "left")
    base, _, base_burnt = measured["echo"]
    for name, (median, high, burnt) in measured.items():
        ratios = f"{median / base:.2f}", f"{burnt / base_burnt:.2f}"
        table.add_row(name, f"{median:.3f}", ratios[0], f"{high:.3f}", f"{burnt:.3f}", ratios[1])
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
