"""SIGKILL of random workers under the ledger of `test_kill`, while the other worker goes on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from harness.workers import Workers
from ledger import Server
from ledger_several import SeveralRun

pytestmark = pytest.mark.process

KILLS = 4
MANY_KILLS = 500
LATEST = 0.8


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


class WorkerRun(SeveralRun):
    """Kills one of two workers in each cycle, and starts it again."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed=seed, latest=LATEST)
        self.crew = Crew(folder, self._chosen)
        self._dead = 0

    @property
    def addresses(self) -> list[str]:
        return list(self.crew.workers.addresses.values())

    def start(self) -> Server:
        if self._dead:
            self.crew.workers.spawn(self._dead)
            self._dead = 0
        return cast("Server", self.crew)

    async def strike(self) -> None:
        self._dead = self._chosen.choice((1, 2))
        await self.crew.workers.kill(self._dead)


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
