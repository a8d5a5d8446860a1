"""The ledger of `ledger` over servers that share a PostgreSQL: one is killed or cut off, or all lose the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from astrocyte.api.requests import Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import RateLimited, Unavailable
from astrocyte.model import RecallQuery, RetainItem
from harness.servers import Servers
from ledger import Server
from ledger_book import ME
from ledger_several import SeveralRun

LATEST = 0.8
# A server that lost its lease of the background work ends by design; so long after the outage each one that will has.
ENDED_SECONDS = 25.0
# Seconds after which servers must answer again once the database does: on a quiet machine, and beside compilers, where
# the start of a server alone takes as long.
QUIET_RECOVERY_SECONDS, RECOVERY_SECONDS = 15.0, 60.0
# Where several servers end and are started again in it, beside compilers too.
RESTART_SECONDS = 300.0
PAUSE_SECONDS = 0.1
NUMBERS = (1, 2)


class Crew:
    """The servers in the place of the ledger's one. The address is that of any."""

    def __init__(self, run: ServersRun) -> None:
        self._run = run

    @property
    def address(self) -> str:
        return self._run.any_address()

    def kill(self) -> None:
        """Nothing: the test closes the servers itself."""


class ServersRun(SeveralRun):
    """Kills one of the servers in each cycle, in turn, and starts it again."""

    def __init__(self, folder: Path, servers: Servers, *, patient: bool = False) -> None:
        super().__init__(folder, seed=31, latest=LATEST, crossed=True, patient=patient)
        self.servers = servers
        self.restarted = 0
        self._turn = 0

    @property
    def addresses(self) -> list[str]:
        return list(self.servers.addresses.values())

    def any_address(self) -> str:
        """The address of the server that is verified."""
        return self._chosen.choice(self.addresses)

    def start(self) -> Server:
        self.restarted += len(self.servers.start())
        return cast("Server", Crew(self))

    async def strike(self) -> None:
        numbers = self.servers.numbers
        number = numbers[self._turn % len(numbers)]
        self._turn += 1
        await asyncio.to_thread(self.servers.kill, number)

    def _quick_check(self, server: Server) -> None:
        """Nothing: the database checks its own files."""


class RecoveringRun(ServersRun):
    """Its strikes end with `recover`; clients call throughout."""

    def __init__(self, folder: Path, servers: Servers, *, limit_seconds: float = RECOVERY_SECONDS) -> None:
        super().__init__(folder, servers, patient=True)
        self._limit_seconds = limit_seconds
        self.recovery_seconds: list[float] = []

    async def recover(self, numbers: Iterable[int] | None = None) -> None:
        """Return once these servers serve, or all, which must be soon."""
        back = time.monotonic()
        async with asyncio.timeout(self._limit_seconds):
            await asyncio.gather(*[self._served(number) for number in numbers or self.servers.numbers])
        self.recovery_seconds.append(time.monotonic() - back)

    async def outlive_leases(self) -> None:
        """Return once a server that lost its lease has ended, and serves again."""
        await asyncio.sleep(ENDED_SECONDS)
        await self.recover()

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
            except (RateLimited, Unavailable):
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return
            finally:
                await backend.close()

    def _start_ended(self) -> None:
        # Several threads wait for it, and count afterwards.
        started = len(self.servers.start())
        self.restarted += started


async def held(run: ServersRun, cycles: int) -> None:
    """Run so many cycles; nothing may be lost, repeated or come back."""
    try:
        report = await run.run(cycles)
    finally:
        run.servers.close()
    assert report.violations == [], report
    assert report.cycles == cycles
