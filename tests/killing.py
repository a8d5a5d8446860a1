"""Kill a server at random moments of a job until it was killed often enough, and compare what the job leaves.

The slow sibling of the tests that kill at named points: nobody chose these moments.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from astrocyte.api import Backend
from astrocyte.client import RemoteBackend
from ledger import Server

# Kills of one job. There are three jobs, so that all have 200.
KILLS = 67
# Attempts at a bank before it counts as one that never ends.
MOST_ATTEMPTS = 1_000

# Fills a bank; does the job, or goes on with it, and waits for its end; tells what the bank has then.
Fill = Callable[[Backend, str], Awaitable[None]]
Work = Callable[[Backend, str], Awaitable[None]]
Outcome = Callable[[Backend, str], Awaitable[Any]]


async def kill_at_random(
    folder: Path, fill: Fill, work: Work, outcome: Outcome, *, variables: Mapping[str, str], seed: int
) -> int:
    """Do the job in bank after bank until there were `KILLS`; returns the number of banks.

    In the first bank nothing is killed; each other one must end as that one did.
    """
    rng = random.Random(seed)
    expected, seconds = await _uninterrupted(folder, fill, work, outcome, variables)
    kills, banks = 0, 0
    while kills < KILLS:
        bank = f"bank-{banks}"
        async with _serving(folder, variables) as backend:
            await fill(backend, bank)
        for _ in range(MOST_ATTEMPTS):
            if kills == KILLS or not await _killed(folder, variables, work, bank, rng.uniform(0, seconds)):
                break
            kills += 1
        async with _serving(folder, variables) as backend:
            await work(backend, bank)
            assert await outcome(backend, bank) == expected, bank
        banks += 1
    return banks


async def _uninterrupted(
    folder: Path, fill: Fill, work: Work, outcome: Outcome, variables: Mapping[str, str]
) -> tuple[Any, float]:
    async with _serving(folder, variables) as backend:
        await fill(backend, "uninterrupted")
        started = time.perf_counter()
        await work(backend, "uninterrupted")
        seconds = time.perf_counter() - started
        return await outcome(backend, "uninterrupted"), seconds


@asynccontextmanager
async def _serving(folder: Path, variables: Mapping[str, str]) -> AsyncIterator[Backend]:
    server = Server(folder, variables)
    backend = RemoteBackend(server.address)
    try:
        yield backend
    finally:
        await backend.close()
        server.kill()


async def _killed(folder: Path, variables: Mapping[str, str], work: Work, bank: str, seconds: float) -> bool:
    """Kill a server that does the job for so long; False if the job ended before."""
    server = Server(folder, variables)
    backend = RemoteBackend(server.address)
    job = asyncio.ensure_future(work(backend, bank))
    ended, _ = await asyncio.wait([job], timeout=seconds)
    server.kill()
    # It would ask a server that is gone again and again.
    job.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await job
    await backend.close()
    return not ended
