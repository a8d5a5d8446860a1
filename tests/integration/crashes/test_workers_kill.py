"""SIGKILL of random workers under the ledger of `test_kill`, while the other worker goes on."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import cast

import pytest

from astrocyte.client import RemoteBackend
from ledger import EARLIEST, PATIENCE, Client, Run, Server
from workers import Workers

pytestmark = pytest.mark.process

KILLS = 8
MANY_KILLS = 500
LATEST = 0.8
# What the other worker goes on for after the kill, and what its last calls take to end.
SECONDS_AFTER = 0.2
SECONDS_TO_END = 0.5


class Crew:
    """Two workers in the place of the ledger's server. The address is that of either."""

    def __init__(self, folder: Path, chosen: random.Random) -> None:
        self.workers = Workers(folder)
        self.data_dir = self.workers.data_dir
        self._chosen = chosen
        for number in (1, 2):
            self.workers.spawn(number)

    @property
    def address(self) -> str:
        return self._chosen.choice(list(self.workers.addresses.values()))

    def kill(self) -> None:
        """Nothing: a test that fails closes the workers itself."""


class WorkerRun(Run):
    """Kills one of two workers in each cycle, and starts it again."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed=seed, latest=LATEST)
        self.crew = Crew(folder, self._chosen)
        self._dead = 0

    def start(self) -> Server:
        if self._dead:
            self.crew.workers.spawn(self._dead)
            self._dead = 0
        return cast("Server", self.crew)

    async def load_and_kill(self, server: Server) -> tuple[float, int]:
        del server
        workers = self.crew.workers
        backends = {number: RemoteBackend(address) for number, address in workers.addresses.items()}
        before = self._book.acknowledged
        self._book.answered.clear()
        tasks = []
        for place in range(self._clients):
            chosen = random.Random(self._chosen.getrandbits(64))
            client = Client(backends[1 + place % 2], self._book, chosen, self.report)
            tasks.append(asyncio.create_task(client.run()))
        async with asyncio.timeout(PATIENCE):
            await self._book.answered.wait()
        first = time.monotonic()
        await asyncio.sleep(self._chosen.uniform(EARLIEST, self._latest))
        seconds, calls = time.monotonic() - first, self._book.acknowledged - before
        self._dead = self._chosen.choice((1, 2))
        await workers.kill(self._dead)
        await asyncio.sleep(SECONDS_AFTER)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(SECONDS_TO_END)
        for backend in backends.values():
            await backend.close()
        self.report.unknown += len(self._book.unknown)
        return seconds, calls


async def _run(folder: Path, kills: int) -> None:
    run = WorkerRun(folder, seed=31)
    try:
        report = await run.run(kills)
    finally:
        await run.crew.workers.close()
    assert report.violations == [], report
    assert report.cycles == kills
    assert report.unknown > kills, report


@pytest.mark.timeout(240)
async def test_nothing_acknowledged_is_lost_when_a_worker_is_killed(tmp_path: Path) -> None:
    await _run(tmp_path, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
async def test_nothing_acknowledged_is_lost_when_workers_are_killed_very_often(tmp_path: Path) -> None:
    await _run(tmp_path, MANY_KILLS)
