"""The transport beside grpc.aio: an echo served by each, latency and processor time of the server per call.

    python -m benches.transport

Both are processes of their own, driven by one client of grpc.aio that sends and receives bytes, turn by turn in one
run. Processor time is that of the server process, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

import grpc
from rich.console import Console
from rich.table import Table

from benches.machine import describe, processor_seconds
from benches.server import running

PATH = "/bench.Echo/Call"
# Of a question, and of the answer to a recall.
REQUEST_BYTES, ANSWER_BYTES = 64, 4_096
CALLERS = (1, 16)
CALLS = 2_000
# The speed of a shared machine changes within seconds.
TURNS = 7

GRPC_AIO = """
import asyncio, grpc
from benches.transport import ANSWER_BYTES
async def main():
    reply = bytes(ANSWER_BYTES)
    async def call(request, context):
        return reply
    server = grpc.aio.server()
    handlers = {"Call": grpc.unary_unary_rpc_method_handler(call)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()
asyncio.run(main())
"""
OURS = """
import asyncio, grpc
from astrocyte.core import GrpcServer
from astrocyte.services.transport import Transport
from benches.transport import ANSWER_BYTES, PATH
async def main():
    reply = bytes(ANSWER_BYTES)
    async def call(request, context):
        return reply
    async def identify(context):
        return ""
    handlers = {"Call": grpc.unary_unary_rpc_method_handler(call)}
    native = GrpcServer(methods={PATH: (True, 0)}, kinds=[(512, 256, False, [])], deadline_exceeded=(4, "", []),
        id_prefix="", max_message_bytes=1 << 20, max_others=256, max_connection_age=3600.0, keepalive=60.0,
        keepalive_timeout=20.0)
    handler = grpc.method_handlers_generic_handler("bench.Echo", handlers)
    transport = Transport([handler], None, identify, native, 4 << 20)
    port = transport.bind("127.0.0.1:0")
    transport.start()
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def turn(address: str, pid: int, callers: int, calls: int) -> tuple[list[float], float, float]:
    """Seconds of each call, and seconds and processor seconds of all together."""
    latencies: list[float] = []

    async def caller(call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]) -> None:
        for _ in range(calls // callers):
            begun = time.perf_counter()
            await call(bytes(REQUEST_BYTES))
            latencies.append(time.perf_counter() - begun)

    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(PATH)
        await call(b"")
        begun, burnt = time.perf_counter(), processor_seconds(pid)
        await asyncio.gather(*(caller(call) for _ in range(callers)))
        return latencies, time.perf_counter() - begun, processor_seconds(pid) - burnt


async def measure(servers: dict[str, tuple[str, int]], calls: int, turns: int) -> Table:
    """A row for each server and number of callers: medians over the turns."""
    table = Table(*("callers", "server", "p50 ms", "calls/s", "server CPU ms per call"), box=None)
    for callers in CALLERS:
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in servers}
        for _ in range(turns):
            for name, (address, pid) in servers.items():
                latencies, seconds, burnt = await turn(address, pid, callers, calls)
                count = len(latencies)
                found[name].append((statistics.median(latencies) * 1e3, count / seconds, burnt / count * 1e3))
        for name, rows in found.items():
            p50, rate, burnt = (statistics.median(column) for column in zip(*rows, strict=True))
            table.add_row(str(callers), name, f"{p50:.3f}", f"{rate:,.0f}", f"{burnt:.3f}")
    return table


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--turns", type=int, default=TURNS)
    options = parser.parse_args()
    console = Console(width=120)
    console.print(describe("grpcio", calls=options.calls, turns=options.turns), highlight=False)
    with running("-c", GRPC_AIO) as theirs, running("-c", OURS) as ours:
        servers = {name: (one.address, one.pid) for name, one in (("grpc.aio", theirs), ("astrocyte", ours))}
        console.print(asyncio.run(measure(servers, options.calls, options.turns)))


if __name__ == "__main__":
    main()
