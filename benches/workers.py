"""Two workers and one on the same data: recalls and retains in a second, memory of each worker.

    python -m benches.workers --rows 10000 --callers 16

Servers run one after the other, in alternating turns, and get the same calls. The load comes from Python processes,
each with channels of its own: they take processor time from the servers, more than a client in another language would,
so the ratio is a lower bound where the machine has no cores for them. Their number is in the header. Memory is the
proportional set size after the recalls: pages that processes share count in parts.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
from rich.console import Console
from rich.table import Table

from astrocyte.v1 import memory_pb2, memory_pb2_grpc
from benches.machine import describe

BANK = "bench"
BATCH = 100
# Answers before those that count: the banks are loaded and the paths of the code are warm then.
WARM_SECONDS = 2.0
START_SECONDS = 120
SUBJECTS = ("harbour", "library", "station", "garden", "theatre", "museum", "bakery", "workshop")


def _content(number: int) -> str:
    return f"Note {number} about the {SUBJECTS[number % len(SUBJECTS)]} and shelf {number * 7919 % 9973}"


class _Server:
    """``astrocyte serve`` with so many workers."""

    def __init__(self, data_dir: Path, workers: int) -> None:
        command = [sys.executable, "-m", "astrocyte", "--data-dir", str(data_dir), "serve", "--port", "0"]
        command += ["--workers", str(workers)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        stdout = self._process.stdout
        self.address = stdout.readline().split()[-1] if stdout is not None else ""

    def memory(self) -> list[float]:
        """MB of each worker; of the only process without workers."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or [str(pid)]
        return sorted(_pss(child) for child in children)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(START_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _pss(pid: str) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1_024
    return 0.0


async def _fill(address: str, rows: int) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        for start in range(0, rows, BATCH):
            items = [
                memory_pb2.RetainItem(content=_content(number)) for number in range(start, min(start + BATCH, rows))
            ]
            await stub.BatchRetain(memory_pb2.BatchRetainRequest(bank_id=BANK, items=items))


async def _call(address: str, kind: str, callers: int, seconds: float, seed: int) -> tuple[int, list[float]]:
    """Return the number of calls, and the seconds of each."""
    spent: list[float] = []
    # Subchannels that are not shared: each channel is a connection, and may reach another worker.
    options = [("grpc.use_local_subchannel_pool", 1)]

    async def caller(number: int) -> None:
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            stub = memory_pb2_grpc.MemoryServiceStub(channel)
            begin = time.monotonic() + WARM_SECONDS
            count = 0
            while (now := time.monotonic()) < begin + seconds:
                count += 1
                place = seed * 1_000_003 + number * 10_007 + count
                if kind == "recall":
                    query = f"{SUBJECTS[place % len(SUBJECTS)]} shelf {place * 7919 % 9973}"
                    await stub.Recall(memory_pb2.RecallRequest(bank_id=BANK, query=query))
                else:
                    await stub.Retain(memory_pb2.RetainRequest(bank_id=BANK, content=f"New {place} {_content(place)}"))
                if now >= begin:
                    spent.append(time.monotonic() - now)

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return len(spent), spent


def _load(given: tuple[str, str, int, float, int]) -> tuple[int, list[float]]:
    return asyncio.run(_call(*given))


def _measure(address: str, kind: str, options: argparse.Namespace, turn: int) -> tuple[float, float]:
    """Calls in a second, and the 99th percentile in milliseconds."""
    each = options.callers // options.clients
    jobs = [(address, kind, each, options.seconds, turn * 100 + number) for number in range(options.clients)]
    with multiprocessing.get_context("spawn").Pool(options.clients) as pool:
        results = pool.map(_load, jobs)
    spent = sorted(one for _, times in results for one in times)
    return sum(count for count, _ in results) / options.seconds, spent[int(len(spent) * 0.99)] * 1e3


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--clients", type=int, default=2, help="processes that make the calls (default 2)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    console = Console()
    console.print(describe("grpcio", **vars(options)), highlight=False)
    rates: dict[tuple[int, str], list[tuple[float, float]]] = {}
    memory: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="astrocyte-workers-") as folder:
        data_dir = Path(folder) / "data"
        server = _Server(data_dir, 1)
        asyncio.run(_fill(server.address, options.rows))
        server.stop()
        for turn in range(options.turns):
            for workers in (1, options.workers):
                server = _Server(data_dir, workers)
                for kind in ("recall", "retain"):
                    rates.setdefault((workers, kind), []).append(_measure(server.address, kind, options, turn))
                    if kind == "recall":
                        memory[workers] = server.memory()
                server.stop()
    table = Table("calls", "workers", "calls/s", "ratio", "p99 ms")
    for kind in ("recall", "retain"):
        base = statistics.median(rate for rate, _ in rates[1, kind])
        for workers in (1, options.workers):
            rate = statistics.median(rate for rate, _ in rates[workers, kind])
            late = statistics.median(late for _, late in rates[workers, kind])
            table.add_row(kind, str(workers), f"{rate:,.0f}", f"{rate / base:.2f}", f"{late:.1f}")
    console.print(table)
    for workers, sizes in memory.items():
        console.print(f"{workers} workers: {', '.join(f'{size:.0f} MB' for size in sizes)}")


if __name__ == "__main__":
    main()
