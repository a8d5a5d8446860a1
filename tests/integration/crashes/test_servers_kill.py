"""Servers on one PostgreSQL under the ledger of `test_kill`: they are killed in turn, or the database is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from astrocyte.client import RemoteBackend
from external.postgres_process import PostgresProcess, postgres_folder, synchronous_standby
from harness.servers import Servers
from ledger_servers import NUMBERS, QUIET_RECOVERY_SECONDS, RESTART_SECONDS, RecoveringRun, ServersRun, held

pytestmark = pytest.mark.process

KILLS = 4
MANY_KILLS = 200
OUTAGES = 4
MANY_OUTAGES = 60
# An outage of the database: the shortest and the longest of most, and one after which every lease has run out.
SHORTEST_OUTAGE, LONGEST_OUTAGE = 0.2, 2.0
LEASES_OUT = 12.0
# Memories that only the primary has.
LOST = 20
PAUSE_SECONDS = 0.1


@pytest.fixture
def database() -> Iterator[PostgresProcess]:
    with postgres_folder() as folder:
        process = PostgresProcess(folder)
        process.create()
        process.start()
        try:
            yield process
        finally:
            process.stop_immediately()


class OutagesRun(RecoveringRun):
    """Kills the database in each cycle, in either way, and starts it again; clients call throughout.

    Args:
        folder: Gets the logs of the servers.
        database: The one that is killed.
        dsn: Address that the servers use, if not that of ``database``.
        leases_out: Some of the outages are so long that every lease runs out.
    """

    def __init__(self, folder: Path, database: PostgresProcess, *, dsn: str = "", leases_out: bool = False) -> None:
        super().__init__(folder, Servers(folder, dict.fromkeys(NUMBERS, dsn or database.dsn)))
        self.database = database
        self._leases_out = leases_out

    async def strike(self) -> None:
        self._turn += 1
        end = self.database.kill if self._turn % 2 else self.database.stop_immediately
        await asyncio.to_thread(end)
        refused = self.report.unavailable
        long = self._leases_out and self._turn % OUTAGES == 0
        await asyncio.sleep(LEASES_OUT if long else self._chosen.uniform(SHORTEST_OUTAGE, LONGEST_OUTAGE))
        assert self.report.unavailable > refused
        await asyncio.to_thread(self.database.start)
        await self.recover()
        if long:
            await self.outlive_leases()


class FailoverRun(OutagesRun):
    """Kills the primary, and promotes its synchronous standby, once."""

    def __init__(self, folder: Path, database: PostgresProcess, standby: PostgresProcess) -> None:
        hosts = f"127.0.0.1:{database.port},127.0.0.1:{standby.port}"
        super().__init__(folder, database, dsn=f"postgresql://postgres@{hosts}/postgres")
        self._standby = standby

    async def strike(self) -> None:
        await self.lose()
        await asyncio.to_thread(self._standby.execute, "SELECT pg_promote()")
        await self.recover()

    async def lose(self) -> None:
        """End the primary."""
        await asyncio.to_thread(self.database.kill)


class LossyRun(FailoverRun):
    """Its standby receives nothing of what is acknowledged at the end."""

    def __init__(self, folder: Path, database: PostgresProcess, standby: PostgresProcess) -> None:
        super().__init__(folder, database, standby)
        self._limit_seconds = RESTART_SECONDS

    async def lose(self) -> None:
        asked = self._standby.execute
        for sql in ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"):
            await asyncio.to_thread(asked, sql)
        while await asyncio.to_thread(asked, "SELECT 1 FROM pg_stat_wal_receiver"):  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
        retained = self.report.acknowledged["retain"]
        while self.report.acknowledged["retain"] < retained + LOST:  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
        await super().lose()

    async def _repeat_some(self, backend: RemoteBackend) -> None:
        """Nothing: some would be about memories that are lost."""


async def _kills(folder: Path, database: PostgresProcess, kills: int) -> None:
    run = ServersRun(folder, Servers(folder, dict.fromkeys(NUMBERS, database.dsn)))
    await held(run, kills)
    assert run.restarted == 2 + kills + run.report.void
    assert run.report.unknown > kills, run.report


async def _outages(folder: Path, database: PostgresProcess, outages: int, *, leases_out: bool = False) -> list[float]:
    run = OutagesRun(folder, database, leases_out=leases_out)
    await held(run, outages)
    assert run.report.unavailable > outages, run.report
    return run.recovery_seconds


@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_when_a_server_is_killed(tmp_path: Path, database: PostgresProcess) -> None:
    await _kills(tmp_path, database, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
async def test_nothing_is_lost_when_servers_are_killed_very_often(tmp_path: Path, database: PostgresProcess) -> None:
    await _kills(tmp_path, database, MANY_KILLS)


@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_when_the_database_is_killed(
    tmp_path: Path, database: PostgresProcess
) -> None:
    await _outages(tmp_path, database, OUTAGES)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
async def test_nothing_is_lost_when_the_database_is_killed_very_often(
    tmp_path: Path, database: PostgresProcess
) -> None:
    recovery_seconds = await _outages(tmp_path, database, MANY_OUTAGES, leases_out=True)
    assert max(recovery_seconds) < QUIET_RECOVERY_SECONDS


@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_when_a_standby_takes_over(
    tmp_path: Path, database: PostgresProcess
) -> None:
    with synchronous_standby(database) as standby:
        run = FailoverRun(tmp_path, database, standby)
        try:
            await run.cycle(await asyncio.to_thread(run.start))
        finally:
            run.servers.close()
        assert run.report.violations == [], run.report
        assert run.report.acknowledged["retain"] > 0
        assert run.report.unavailable > 0
        assert standby.execute("SELECT pg_is_in_recovery()") == [(False,)]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_what_a_standby_lacks_is_lost_and_servers_start_again(tmp_path: Path, database: PostgresProcess) -> None:
    standby = PostgresProcess(database.folder.parent, "standby")
    standby.copy_of(database)
    standby.start()
    run = LossyRun(tmp_path, database, standby)
    try:
        await run.cycle(await asyncio.to_thread(run.start))
    finally:
        run.servers.close()
        standby.stop_immediately()
    assert any(violation.startswith("lost:") for violation in run.report.violations), run.report
    # They had heard of commits that are gone: what others commit in their places would be in no index.
    assert run.restarted == 2 * len(NUMBERS)
