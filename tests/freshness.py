"""Write in one process and read in another one at once: how often does the reader not know what was acknowledged?

    python tests/freshness.py workers --pairs 100000
    python tests/freshness.py servers --pairs 100000

Workers share a data directory, servers a PostgreSQL database. The exit code is 1 if a read missed a write.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from astrocyte.api import Backend
from astrocyte.api.requests import CreateBank, Forget, Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem
from external.postgres_process import PostgresProcess, postgres_folder
from harness.servers import Servers
from harness.workers import two_workers

ME = Caller("default")
CALLERS = 8
# A few, so that own commits and those of others alternate within one.
BANKS = ("bank-0", "bank-1", "bank-2")
# One memory of so many is forgotten, in the process that found it.
FORGOTTEN = 4
# Pairs between two lines of progress.
LINE = 1_000


@dataclass
class Counts:
    """Pairs of a write and a read so far, and how many of the reads missed the write."""

    pairs: int = 0
    misses: int = 0


async def count_misses(
    first: Backend,
    second: Backend,
    pairs: int,
    *,
    start: int = 0,
    progress: Callable[[Counts], None] = lambda _: None,
) -> Counts:
    """Retain in one process and recall in the other, and forget there and recall here; several callers at a time.

    Args:
        first: One process.
        second: The other one.
        pairs: A few more than these are made.
        start: Number of the first memory; those below are stored.
        progress: Called every `LINE` pairs.
    """
    for bank in BANKS:
        await first.call(ME, CreateBank(bank, request_id=f"create-{bank}"))
    numbers, counts = iter(range(start, start + pairs)), Counts()

    def counted(*, missed: bool) -> None:
        counts.pairs += 1
        counts.misses += missed
        if counts.pairs % LINE == 0:
            progress(counts)

    async def caller(seed: int) -> None:
        chosen = random.Random(seed)
        for number in numbers:
            if counts.pairs >= pairs:
                return
            writer, reader = chosen.sample((first, second), 2)
            bank, word = BANKS[number % len(BANKS)], f"zq{number}x"
            item = RetainItem(f"Parcel {word} stands in row {chosen.randrange(10_000)}")
            memory_id = (await writer.call(ME, Retain(bank, item))).memory_id or ""
            counted(missed=memory_id not in await _found(reader, bank, word))
            if number % FORGOTTEN == 0:
                await reader.call(ME, Forget(bank, ForgetSelector(memory_ids=(memory_id,))))
                counted(missed=memory_id in await _found(writer, bank, word))

    await asyncio.gather(*(caller(seed) for seed in range(CALLERS)))
    return counts


async def _found(backend: Backend, bank: str, word: str) -> set[str | None]:
    return {hit.memory_id for hit in (await backend.call(ME, Recall(RecallQuery(word, bank)))).hits}


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncIterator[tuple[RemoteBackend, RemoteBackend]]:
    """Clients of two servers on a database of their own."""
    with postgres_folder() as files:
        database = PostgresProcess(files)
        database.create()
        database.start()
        servers = Servers(folder, dict.fromkeys((1, 2), database.dsn))
        try:
            await asyncio.to_thread(servers.start)
            backends = [RemoteBackend(address) for address in servers.addresses.values()]
            yield backends[0], backends[1]
            for backend in backends:
                await backend.close()
        finally:
            servers.close()
            database.stop_immediately()


async def _run(kind: str, folder: Path, pairs: int) -> Counts:
    began = time.monotonic()

    def line(counts: Counts) -> None:
        seconds = time.monotonic() - began
        print(f"{counts.pairs:,} pairs, {counts.misses} misses, {seconds:,.0f} s", flush=True)  # noqa: T201

    if kind == "workers":
        async with two_workers(folder) as (first, second, _):
            counts = await count_misses(first, second, pairs, progress=line)
    else:
        async with two_servers(folder) as (first, second):
            counts = await count_misses(first, second, pairs, progress=line)
    line(counts)
    return counts


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Write in one process, read in another one, and count misses.")
    parser.add_argument("kind", choices=("workers", "servers"), help="what shares the memories")
    parser.add_argument("--pairs", "--cycles", type=int, default=100_000, help="writes and reads (default 100,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="astrocyte-freshness-") as folder:
        counts = asyncio.run(_run(options.kind, Path(folder), options.pairs))
    return 1 if counts.misses else 0


if __name__ == "__main__":
    sys.exit(main())
