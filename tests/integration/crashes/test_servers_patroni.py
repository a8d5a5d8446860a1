"""The loss of a primary under Patroni, with the configuration of deploy/: its synchronous standby takes over."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TypeVar

import pytest

from astrocyte.api.requests import Request
from astrocyte.client import RemoteBackend
from astrocyte.errors import RateLimited, Unavailable
from astrocyte.model import Caller
from external.patroni_cluster import PATRONI, Cluster, patroni_cluster, wait_until
from harness.servers import Servers
from ledger_servers import NUMBERS, PAUSE_SECONDS, RESTART_SECONDS, RecoveringRun

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(1_800), PATRONI]

R = TypeVar("R")

FAILOVERS = 2
CLIENTS = 6


class PatientBackend(RemoteBackend):
    """Repeats a call that was refused, unchanged, for so long.

    The former primary joins as a standby while the ledger is verified: commits wait for it, and those of other servers
    are refused meanwhile. Writes have request ids, so that each has one effect.
    """

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(address)
        self._seconds = seconds
        self.longest = 0.0

    async def call(self, caller: Caller, request: Request[R]) -> R:
        began = time.monotonic()
        while True:
            try:
                return await super().call(caller, request)
            except (RateLimited, Unavailable):
                self.longest = max(self.longest, time.monotonic() - began)
                if self.longest > self._seconds:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)


class PatroniRun(RecoveringRun):
    """Kills Patroni and PostgreSQL of the primary in each cycle; both start again once the other one is promoted."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        super().__init__(folder, Servers(folder, dict.fromkeys(NUMBERS, cluster.dsn)), limit_seconds=RESTART_SECONDS)
        # What is refused meanwhile is asked again afterwards, one call after the other.
        self._clients = CLIENTS
        self._cluster = cluster
        self._verifying: list[PatientBackend] = []
        self.promotion_seconds: list[float] = []
        self.standby_seconds: list[float] = []

    @property
    def refused_seconds(self) -> float:
        """The longest time for which a call was refused while the ledger was verified."""
        return max((backend.longest for backend in self._verifying), default=0.0)

    def connect(self, address: str) -> RemoteBackend:
        self._verifying.append(PatientBackend(address, RESTART_SECONDS))
        return self._verifying[-1]

    async def strike(self) -> None:
        lost, standby = sorted(self._cluster.nodes, key=lambda node: not node.promoted)
        refused, began = self.report.unavailable, time.monotonic()
        await asyncio.to_thread(lost.kill)
        await asyncio.to_thread(wait_until, lambda: standby.promoted, standby)
        self.promotion_seconds.append(time.monotonic() - began)
        await self.recover()
        assert self.report.unavailable > refused
        await self.outlive_leases()
        lost.start()
        began = time.monotonic()
        await asyncio.to_thread(self._cluster.wait_for_standby, standby)
        self.standby_seconds.append(time.monotonic() - began)


async def test_nothing_acknowledged_is_lost_when_patroni_promotes_the_standby(tmp_path: Path) -> None:
    with patroni_cluster() as cluster:
        run = PatroniRun(tmp_path, cluster)
        try:
            server = await asyncio.to_thread(run.start)
            for _ in range(FAILOVERS):
                server = await run.cycle(server)
        finally:
            run.servers.close()
    print(  # noqa: T201
        f"{run.report}; {run.report.unavailable} refused; promoted after {run.promotion_seconds} s, answers "
        f"{run.recovery_seconds} s later, standby after {run.standby_seconds} s, refused {run.refused_seconds:.1f} s"
    )
    assert run.report.violations == [], run.report
    assert len(run.promotion_seconds) == FAILOVERS
    assert run.report.acknowledged["forget"] > 0
