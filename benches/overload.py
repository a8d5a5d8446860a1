"""The server under three times the load that it can carry: who is refused, how, and what becomes of the others.

    python -m benches.overload

One server, and clients in processes of their own, over a thousand channels. First a few callers that wait for their
answers show the peak; then calls come on a fixed plan, three times as often, whether they are answered or not. Health
is asked by a process that does nothing else. Everything shares the machine, so the clients slow the server down too:
compare the figures of one run with each other. It fails when a call ends in anything but an answer or a refusal that
says when to come again.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console
from rich.table import Table

from astrocyte.v1 import memory_pb2 as pb
from benches.corpus import english_texts
from benches.machine import describe, processor_seconds
from benches.server import BANK, SERVICE, Process, fill, running

ROWS = 2_000
WORDS = 16
SEED = 20_250_112
CHANNELS = 1_000
# Enough to keep the server busy without a queue.
CALLERS = 32
SECONDS = 10.0
TIMES = 3.0
# Between two looks at health, and how long an answer may take.
PROBE_SECONDS = 0.1
DEADLINE_SECONDS = 5.0
DETAILS = "grpc-status-details-bin"


@dataclass
class Outcome:
    """What became of the calls of one phase."""

    seconds: float = 0.0
    processor: float = 0.0
    sent: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        """Answers per second."""
        return self.codes["OK"] / self.seconds


def outcome_of(error: grpc.aio.AioRpcError) -> str:
    """The code, and whether a refusal says when to come again in both of its ways."""
    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return error.code().name
    trailers = dict(error.trailing_metadata() or ())
    retry = error_details_pb2.RetryInfo()
    details = Status.FromString(trailers.get(DETAILS, b"")).details
    told = any(packed.Unpack(retry) for packed in details if packed.Is(retry.DESCRIPTOR))
    return "refused" if told and "grpc-retry-pushback-ms" in trailers else "refused without a time"


async def ask(call: Any, request: bytes, outcome: Outcome) -> None:  # noqa: ANN401 - grpc's own types are not generic
    """One call."""
    started = time.perf_counter()
    try:
        await call(request, timeout=DEADLINE_SECONDS)
    except grpc.aio.AioRpcError as error:
        outcome.codes[outcome_of(error)] += 1
    else:
        outcome.codes["OK"] += 1
        outcome.milliseconds.append((time.perf_counter() - started) * 1e3)


@asynccontextmanager
async def channels(address: str) -> AsyncIterator[list[Any]]:
    """A call over each of the channels."""
    # Channels of one process share a connection unless they are told not to.
    opened = [
        grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(CHANNELS)
    ]
    for first in range(0, CHANNELS, CALLERS):
        await asyncio.gather(*(channel.channel_ready() for channel in opened[first : first + CALLERS]))
    yield [channel.unary_unary(f"{SERVICE}/Recall") for channel in opened]
    await asyncio.gather(*(channel.close() for channel in opened))


async def peak(server: Process, requests: list[bytes], seconds: float) -> Outcome:
    """What `CALLERS` that wait for their answers get through."""
    outcome = Outcome()
    async with channels(server.address) as calls:
        await asyncio.gather(*(ask(call, requests[0], Outcome()) for call in calls[:CALLERS]))
        burnt, started = processor_seconds(server.pid), time.perf_counter()

        async def caller() -> None:
            while time.perf_counter() - started < seconds:
                number = outcome.sent
                outcome.sent += 1
                await ask(calls[number % CHANNELS], requests[number % len(requests)], outcome)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        outcome.seconds = time.perf_counter() - started
        outcome.processor = processor_seconds(server.pid) - burnt
    return outcome


async def flood(server: Process, requests: list[bytes], per_second: float, seconds: float) -> Outcome:
    """Calls on a plan, whatever becomes of them."""
    outcome = Outcome()
    async with channels(server.address) as calls:
        running_calls: set[asyncio.Task[None]] = set()
        burnt, started = processor_seconds(server.pid), time.perf_counter()
        while (now := time.perf_counter() - started) < seconds:
            due = int(now * per_second)
            while outcome.sent < due:
                request = requests[outcome.sent % len(requests)]
                task = asyncio.create_task(ask(calls[outcome.sent % CHANNELS], request, outcome))
                running_calls.add(task)
                task.add_done_callback(running_calls.discard)
                outcome.sent += 1
            await asyncio.sleep(0.001)
        await asyncio.gather(*running_calls)
        outcome.seconds = time.perf_counter() - started
        outcome.processor = processor_seconds(server.pid) - burnt
    return outcome


def probe(address: str, pipe: Connection) -> None:
    """Milliseconds of health checks, until it is told to stop."""
    times = []
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while not pipe.poll(PROBE_SECONDS):
            started = time.perf_counter()
            try:
                stub.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_SECONDS)
            except grpc.RpcError:
                times.append(math.inf)
            else:
                times.append((time.perf_counter() - started) * 1e3)
    pipe.send(times)


def measure(server: Process, rows: int, seconds: float, times: float) -> tuple[Outcome, Outcome, list[float]]:
    """The peak, the flood, and health during the flood."""
    texts = english_texts(rows, words=WORDS, seed=SEED)
    asyncio.run(fill(server.address, texts))
    requests = [pb.RecallRequest(query=text, bank_id=BANK).SerializeToString() for text in texts[:500]]
    best = asyncio.run(peak(server, requests, seconds))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    prober = context.Process(target=probe, args=(server.address, theirs))
    prober.start()
    worst = asyncio.run(flood(server, requests, best.goodput * times, seconds))
    ours.send(None)
    health: list[float] = ours.recv()
    prober.join()
    return best, worst, health


def show(best: Outcome, worst: Outcome, health: list[float]) -> bool:
    """Print the figures; whether all was as promised."""
    table = Table("", "peak", "overload")
    table.add_row("sent a second", *(f"{one.sent / one.seconds:,.0f}" for one in (best, worst)))
    table.add_row("answered a second", *(f"{one.goodput:,.0f}" for one in (best, worst)))
    table.add_row("processors that the server had", *(f"{one.processor / one.seconds:.2f}" for one in (best, worst)))
    for name in sorted({*best.codes, *worst.codes} - {"OK"}):
        table.add_row(name, *(f"{one.codes[name]:,}" for one in (best, worst)))
    for share in (0.5, 0.99):
        values = (sorted(one.milliseconds)[int(share * (len(one.milliseconds) - 1))] for one in (best, worst))
        table.add_row(f"p{share * 100:.0f} of answers, ms", *(f"{value:.1f}" for value in values))
    table.add_row("health, median and most, ms", "", f"{statistics.median(health):.1f}, {max(health):.1f}")
    table.add_row("goodput, share of peak", "", f"{worst.goodput / best.goodput:.2f}")
    each = [one.codes["OK"] / one.processor for one in (best, worst)]
    table.add_row("answers a second of its processor", *(f"{one:,.0f}" for one in each))
    Console().print(table)
    return set(worst.codes) | set(best.codes) <= {"OK", "refused"}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="memories in the bank")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of each phase")
    parser.add_argument("--times", type=float, default=TIMES, help="load, in peaks")
    options = parser.parse_args()
    Console().print(
        describe("grpcio", rows=options.rows, channels=CHANNELS, times=options.times, seconds=options.seconds)
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("-m", "astrocyte", "--data-dir", str(Path(folder) / "data"), "serve", "--port", "0")
        with running(*arguments) as server:
            fine = show(*measure(server, options.rows, options.seconds, options.times))
    sys.exit(0 if fine else "a call ended in something else than an answer or a refusal that says when to come again")


if __name__ == "__main__":
    main()
