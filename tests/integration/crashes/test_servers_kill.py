"""Servers on one PostgreSQL under the ledger of `test_kill`: they are killed in turn, or the database is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from astrocyte.api.requests import Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import RecallQuery, RetainItem
from external.postgres_process import PostgresProcess, postgres_folder
from harness.servers import Servers
from ledger import Server
from ledger_book import ME
from ledger_several import SeveralRun

pytestmark = pytest.mark.process

KILLS = 4
MANY_KILLS = 200
OUTAGES = 4
MANY_OUTAGES = 60
LATEST = 0.8
# An outage of the database: the shortest and the longest of most, and one after which every lease has run out.
SHORTEST_OUTAGE, LONGEST_OUTAGE = 0.2, 2.0
LEASES_OUT = 12.0
# A server that lost its lease of the background work ends by design; so long after the outage each one that will has.
ENDED_SECONDS = 25.0
# Seconds after which servers must answer again once the database does: on a quiet machine, and beside compilers, where
# the start of a server alone takes as long.
QUIET_RECOVERY_SECONDS, RECOVERY_SECONDS = 15.0, 60.0
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


class Crew:
    """Two servers in the place of the ledger's one. The address is that of either."""

    def __init__(self, run: ServersRun) -> None:
        self._run = run

    @property
    def address(self) -> str:
        return self._run.any_address()

    def kill(self) -> None:
        """Nothing: the test closes the servers itself."""


class ServersRun(SeveralRun):
    """Kills one of two servers in each cycle, in turn, and starts it again."""

    def __init__(self, folder: Path, database: PostgresProcess, *, dsn: str = "", patient: bool = False) -> None:
        super().__init__(folder, seed=31, latest=LATEST, crossed=True, patient=patient)
        self.database = database
        self.servers = Servers(folder, dict.fromkeys((1, 2), dsn or database.dsn))
        self.restarted = 0
        self._turn = 0

    @property
    def addresses(self) -> list[str]:
        return list(self.servers.addresses.values())

    def any_address(self) -> str:
        return self._chosen.choice(self.addresses)

    def start(self) -> Server:
        self.restarted += len(self.servers.start())
        return cast("Server", Crew(self))

    async def strike(self) -> None:
        self._turn = 1 + self._turn % 2
        await asyncio.to_thread(self.servers.kill, self._turn)

    def _quick_check(self, server: Server) -> None:
        """Nothing: the database checks its own files."""


class OutagesRun(ServersRun):
    """Kills the database in each cycle, in either way, and starts it again; clients call throughout.

    Args:
        folder: Gets the logs of the servers.
        database: The one that is killed.
        dsn: Address that the servers use, if not that of ``database``.
        leases_out: Some of the outages are so long that every lease runs out.
    """

    def __init__(self, folder: Path, database: PostgresProcess, *, dsn: str = "", leases_out: bool = False) -> None:
        super().__init__(folder, database, dsn=dsn, patient=True)
        self._leases_out = leases_out
        self.recovery_seconds: list[float] = []

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
            await asyncio.sleep(ENDED_SECONDS)
            await self.recover()

    async def recover(self) -> None:
        """Return once both servers serve, which must be soon."""
        back = time.monotonic()
        async with asyncio.timeout(RECOVERY_SECONDS):
            await asyncio.gather(*[self._served(number) for number in (1, 2)])
        self.recovery_seconds.append(time.monotonic() - back)

    async def _served(self, number: int) -> None:
        """Return once a server stores and finds; start it again where it ended."""
        while True:
            await asyncio.to_thread(self._start_ended)
            address = self.servers.addresses.get(number)
            if address is None:
                # The other task starts it again.
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            backend = RemoteBackend(address)
            try:
                await backend.call(ME, Retain("served", RetainItem(f"Server {number} was there at {time.time()}.")))
                await backend.call(ME, Recall(RecallQuery("server", "served")))
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return
            finally:
                await backend.close()

    def _start_ended(self) -> None:
        self.restarted += len(self.servers.start())


class FailoverRun(OutagesRun):
    """Kills the primary, and promotes its synchronous standby, once."""

    def __init__(self, folder: Path, database: PostgresProcess, standby: PostgresProcess) -> None:
        hosts = f"127.0.0.1:{database.port},127.0.0.1:{standby.port}"
        super().__init__(folder, database, dsn=f"postgresql://postgres@{hosts}/postgres")
        self._standby = standby

    async def strike(self) -> None:
        await asyncio.to_thread(self.database.kill)
        await asyncio.to_thread(self._standby.execute, "SELECT pg_promote()")
        await self.recover()


async def _run(run: ServersRun, cycles: int) -> None:
    try:
        report = await run.run(cycles)
    finally:
        run.servers.close()
    assert report.violations == [], report
    assert report.cycles == cycles


async def _kills(folder: Path, database: PostgresProcess, kills: int) -> None:
    run = ServersRun(folder, database)
    await _run(run, kills)
    assert run.restarted == 2 + kills + run.report.void
    assert run.report.unknown > kills, run.report


async def _outages(folder: Path, database: PostgresProcess, outages: int, *, leases_out: bool = False) -> list[float]:
    run = OutagesRun(folder, database, leases_out=leases_out)
    await _run(run, outages)
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
    standby = PostgresProcess(database.folder.parent, "standby")
    standby.copy_of(database)
    standby.start()
    try:
        database.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        database.execute("SELECT pg_reload_conf()")
        while database.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
        run = FailoverRun(tmp_path, database, standby)
        try:
            await run.cycle(await asyncio.to_thread(run.start))
        finally:
            run.servers.close()
        assert run.report.violations == [], run.report
        assert run.report.acknowledged["retain"] > 0
        assert run.report.unavailable > 0
        assert standby.execute("SELECT pg_is_in_recovery()") == [(False,)]
    finally:
        standby.stop_immediately()
