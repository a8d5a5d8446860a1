"""The server under three times the load that it can carry: who is refused, how, and what becomes of the others.

    python -m benches.overload
    python -m benches.overload --mix         16 of 20 calls recall, 3 retain, 1 asks about the bank

One server, and its callers in another process, over a thousand connections. First a few that wait for their answers
show the peak; then calls come on a fixed plan, three times as often, whether they are answered or not. Health is asked
by a process that does nothing else. All share the machine, as servers and callers seldom do: so callers speak plain
HTTP/2, which costs them a tenth of a gRPC client, and where they may, the server goes before them and the probe before
both. One connection in seventeen decodes how its calls ended; on the others what is no answer counts as failed. It
fails when a call ends in anything but an answer or a refusal that says when to come again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import math
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rich.console import Console
from rich.table import Table

from astrocyte.v1 import admin_pb2, memory_pb2
from benches.corpus import english_texts
from benches.http2 import Connection, connect, header_block
from benches.machine import describe, processor_seconds, waiting_seconds
from benches.server import BANK, Process, fill, running

# As many as make an answer cost much more than a refusal does.
ROWS = 20_000
WORDS = 16
SEED = 20_250_112
CHANNELS = 1_000
# Enough to keep the server busy without a queue.
CALLERS = 32
SECONDS = 10.0
TIMES = 3.0
# Between two looks at health, and how long an answer may take.
PROBE_SECONDS = 0.1
DEADLINE_SECONDS = 5
# Seconds after the flood in which what was sent must have ended.
GRACE = DEADLINE_SECONDS + 2.0
# One connection in so many decodes how its calls ended; no multiple of how many calls the mix has in a row.
CLOSER = 17
# The server's share of the processors against its callers', by session.
AHEAD = -10
PATHS = {
    "recall": "/astrocyte.v1.MemoryService/Recall",
    "retain": "/astrocyte.v1.MemoryService/Retain",
    "bank": "/astrocyte.v1.AdminService/GetBank",
}
# Of so many calls in a row.
ONLY_RECALLS: Mapping[str, int] = {"recall": 20}
MIX: Mapping[str, int] = {"recall": 16, "retain": 3, "bank": 1}

# A kind of call and its request.
Request = tuple[str, bytes]


@dataclass
class Outcome:
    """Outcomes of the calls of one phase, by kind."""

    seconds: float = 0.0
    processor: float = 0.0
    sent: int = 0
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)

    def count(self, code: str) -> int:
        """Calls of all kinds with this outcome."""
        return sum(count for (_, name), count in self.codes.items() if name == code)

    @property
    def goodput(self) -> float:
        """Answers per second."""
        return self.count("OK") / self.seconds


@dataclass(frozen=True)
class Probe:
    """Duration of a health check, and its part in which the server's loop waited for a processor."""

    milliseconds: float
    waited: float


def traffic(shares: Mapping[str, int], texts: list[str]) -> Iterator[Request]:
    """Calls of one client, in sequence; no two retains have the same content."""
    turn = [kind for kind, count in shares.items() for _ in range(count)]
    random.Random(SEED).shuffle(turn)
    recalls = itertools.cycle(
        [memory_pb2.RecallRequest(query=text, bank_id=BANK).SerializeToString() for text in texts[:500]]
    )
    bank = admin_pb2.GetBankRequest(bank_id=BANK).SerializeToString()
    for number, kind in enumerate(itertools.cycle(turn)):
        if kind == "retain":
            content = f"{texts[number % len(texts)]} again, the {number}th"
            yield kind, memory_pb2.RetainRequest(bank_id=BANK, content=content).SerializeToString()
        else:
            yield kind, bank if kind == "bank" else next(recalls)


@dataclass(frozen=True)
class Callers:
    """Connections, and the headers of each kind of call."""

    connections: list[Connection]
    blocks: Mapping[str, bytes]

    def ask(self, number: int, request: Request, outcome: Outcome) -> asyncio.Future[None]:
        """Begin a call on one of the connections; the future is done when it has ended."""
        kind, payload = request
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(code: str, seconds: float) -> None:
            outcome.codes[kind, code] += 1
            if code == "OK":
                outcome.milliseconds.append(seconds * 1e3)
            if not ended.done():
                ended.set_result(None)

        self.connections[number % len(self.connections)].begin(self.blocks[kind], payload, done)
        return ended


@asynccontextmanager
async def callers(address: str) -> AsyncIterator[Callers]:
    """Everybody who calls, connected."""
    blocks = {kind: header_block(path, address, DEADLINE_SECONDS) for kind, path in PATHS.items()}
    connections = await connect(address, CHANNELS, closer=CLOSER)
    yield Callers(connections, blocks)
    for connection in connections:
        connection.close()


async def peak(server: Process, requests: Iterator[Request], seconds: float) -> Outcome:
    """Throughput of `CALLERS` that wait for their answers."""
    outcome = Outcome()
    async with callers(server.address) as made:
        await asyncio.gather(*(made.ask(number, next(requests), Outcome()) for number in range(CALLERS)))
        burnt, started = processor_seconds(server.pid), time.perf_counter()

        async def caller() -> None:
            while time.perf_counter() - started < seconds:
                outcome.sent += 1
                await made.ask(outcome.sent, next(requests), outcome)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        outcome.seconds = time.perf_counter() - started
        outcome.processor = processor_seconds(server.pid) - burnt
    return outcome


async def flood(server: Process, requests: Iterator[Request], per_second: float, seconds: float) -> Outcome:
    """Calls on a plan, whatever becomes of them."""
    outcome = Outcome()
    async with callers(server.address) as made:
        burnt, started = processor_seconds(server.pid), time.perf_counter()
        while (now := time.perf_counter() - started) < seconds:
            due = int(now * per_second)
            while outcome.sent < due:
                made.ask(outcome.sent, next(requests), outcome)
                outcome.sent += 1
            await asyncio.sleep(0.001)
        # Nobody tells of the last answer, which may never come.
        while any(one.unanswered for one in made.connections) and time.perf_counter() - started < seconds + GRACE:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        outcome.seconds = time.perf_counter() - started
        outcome.processor = processor_seconds(server.pid) - burnt
        outcome.codes["any", "no answer"] += sum(one.unanswered for one in made.connections)
    return outcome


def probe(server: Process, pipe: Pipe) -> None:
    """Ask for health until it is told to stop."""
    # Or its own turns at the processor would count as the server's.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    probes = []
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        stub.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True)
        pipe.send(None)
        while not pipe.poll(PROBE_SECONDS):
            waited, started = waiting_seconds(server.pid), time.perf_counter()
            try:
                stub.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_SECONDS)
            except grpc.RpcError:
                probes.append(Probe(math.inf, 0.0))
            else:
                took = time.perf_counter() - started
                waited = min(took, waiting_seconds(server.pid) - waited)
                probes.append(Probe(took * 1e3, waited * 1e3))
    pipe.send(probes)


def measure(
    server: Process, shares: Mapping[str, int], rows: int, seconds: float, times: float
) -> tuple[Outcome, Outcome, list[Probe]]:
    """The peak, the flood, and health during the flood."""
    texts = english_texts(rows, words=WORDS, seed=SEED)
    asyncio.run(fill(server.address, texts))
    requests = traffic(shares, texts)
    best = asyncio.run(peak(server, requests, seconds))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    prober = context.Process(target=probe, args=(server, theirs))
    prober.start()
    ours.recv()
    worst = asyncio.run(flood(server, requests, best.goodput * times, seconds))
    ours.send(None)
    health: list[Probe] = ours.recv()
    prober.join()
    return best, worst, health


def show(best: Outcome, worst: Outcome, health: list[Probe]) -> bool:
    """Print the figures; whether all was as promised."""
    both = best, worst
    table = Table("", "peak", "overload")
    table.add_row("sent a second", *(f"{one.sent / one.seconds:,.0f}" for one in both))
    table.add_row("answered a second", *(f"{one.goodput:,.0f}" for one in both))
    table.add_row("processors that the server had", *(f"{one.processor / one.seconds:.2f}" for one in both))
    for kind, code in sorted({*+best.codes, *+worst.codes}):
        table.add_row(f"{kind}: {code}", *(f"{one.codes[kind, code]:,}" for one in both))
    for share in (0.5, 0.99):
        values = (sorted(one.milliseconds)[int(share * (len(one.milliseconds) - 1))] for one in both)
        table.add_row(f"p{share * 100:.0f} of answers, ms", *(f"{value:.1f}" for value in values))
    answers = [one.milliseconds for one in health]
    own = [one.milliseconds - one.waited for one in health]
    table.add_row("health, median and most, ms", "", f"{statistics.median(answers):.1f}, {max(answers):.1f}")
    table.add_row("less waits of its loop for a processor", "", f"{statistics.median(own):.1f}, {max(own):.1f}")
    table.add_row("goodput, share of peak", "", f"{worst.goodput / best.goodput:.2f}")
    each = [one.count("OK") / one.processor for one in both]
    table.add_row("answers a second of its processor", *(f"{one:,.0f}" for one in each))
    if refused := worst.count("refused") + worst.count("failed"):
        # What answers cost is what they did at the peak.
        left = worst.processor - worst.count("OK") / each[0]
        table.add_row("cost of a refusal, by an answer's", "", f"{left / refused * each[0]:.2f}")
    Console().print(table)
    return {code for one in both for _, code in (+one.codes)} <= {"OK", "refused", "failed"}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="memories in the bank")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of each phase")
    parser.add_argument("--times", type=float, default=TIMES, help="load, in peaks")
    parser.add_argument("--mix", action="store_true", help="retains and calls about the bank among the recalls")
    options = parser.parse_args()
    shares = MIX if options.mix else ONLY_RECALLS
    Console().print(
        describe(
            "grpcio", rows=options.rows, channels=CHANNELS, times=options.times, seconds=options.seconds, calls=shares
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("-m", "astrocyte", "--data-dir", str(Path(folder) / "data"), "serve", "--port", "0")
        with running(*arguments, ahead=AHEAD) as server:
            fine = show(*measure(server, shares, options.rows, options.seconds, options.times))
    sys.exit(0 if fine else "a call ended in something else than an answer or a refusal that says when to come again")


if __name__ == "__main__":
    main()
