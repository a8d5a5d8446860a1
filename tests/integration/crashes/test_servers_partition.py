"""The host of one of three servers is cut off from the database: the server refuses, is never stale, and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from astrocyte.api.requests import CreateBank, Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import RateLimited, Unavailable
from astrocyte.model import RecallQuery, RetainItem
from external.network_namespaces import DATABASE, DATABASE_SUBNET, NAMESPACES, Host, separate_hosts
from external.postgres_process import PostgresProcess, postgres_folder
from guards import chosen, switched_off
from harness.servers import Servers
from ledger import Place
from ledger_book import ME
from ledger_servers import QUIET_RECOVERY_SECONDS, RESTART_SECONDS, RecoveringRun

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(1_200), NAMESPACES]

# The first server that starts does the background work.
WITH_LEASE, WITHOUT_LEASE = 1, 3
NUMBERS = (1, 2, 3)
CLIENTS = 6
CUT_SECONDS, SHORT_CUT_SECONDS = 30.0, 8.0
# The longest limit of docs/scaling.md, of a write that had begun, and what a call waits for others.
CALL_SECONDS = 50.0
# Clients go on for so long once the server is back.
AFTER_SECONDS = 5.0
PAUSE_SECONDS = 0.05


@pytest.fixture
def hosts() -> Iterator[Sequence[Host]]:
    with separate_hosts(len(NUMBERS)) as made:
        yield made


@pytest.fixture
def database(hosts: Sequence[Host]) -> Iterator[PostgresProcess]:
    assert hosts
    with postgres_folder() as folder:
        process = PostgresProcess(folder)
        process.create()
        process.listen_at(DATABASE, DATABASE_SUBNET)
        process.start()
        try:
            yield process
        finally:
            process.stop_immediately()


def servers_on(
    hosts: Sequence[Host], database: PostgresProcess, folder: Path, variables: dict[str, str] | None = None
) -> Servers:
    """A server on each host."""
    dsn = database.dsn.replace("127.0.0.1", DATABASE)
    places = {number: Place(host.namespace, host.address) for number, host in zip(NUMBERS, hosts, strict=True)}
    return Servers(folder, dict.fromkeys(NUMBERS, dsn), variables, places)


class PartitionRun(RecoveringRun):
    """Cuts a server off from the database, and asks it meanwhile; clients of all servers call throughout.

    Args:
        folder: Gets the logs of the servers.
        servers: All of them.
        number: Of the one that is cut off.
        cut: Cuts it off.
        join: Ends the cut.
        seconds: Length of the cut.
    """

    def __init__(
        self,
        folder: Path,
        servers: Servers,
        number: int,
        cut: Callable[[], None],
        join: Callable[[], None],
        seconds: float = CUT_SECONDS,
    ) -> None:
        super().__init__(folder, servers, limit_seconds=RESTART_SECONDS)
        # What is refused meanwhile is asked again afterwards, one call after the other.
        self._clients = CLIENTS
        self._number, self._cut, self._join, self._seconds = number, cut, join, seconds
        self.refused = 0
        self.longest = 0.0
        # From the cut until another server took a write, whose turn the lost one may have had.
        self.others_seconds = 0.0
        # From the end of the cut until the server that ran throughout answered a recall and a retain.
        self.answer_seconds: dict[str, float] = {}

    def any_address(self) -> str:
        """That of the server that was cut off: it must know everything."""
        return self.servers.addresses[self._number]

    async def strike(self) -> None:
        backends = {number: RemoteBackend(address) for number, address in self.servers.addresses.items()}
        other = next(backend for number, backend in backends.items() if number != self._number)
        cut = backends[self._number]
        # The one that is cut off knows it empty, and could say so without a row of the database.
        await cut.call(ME, CreateBank("cut"))
        assert not (await cut.call(ME, Recall(RecallQuery("written", "cut")))).hits
        acknowledged = self.report.acknowledged["retain"]
        await asyncio.to_thread(self._cut)
        self.others_seconds = await _answered(other, "retain")
        end = time.monotonic() + self._seconds
        await asyncio.gather(*[self._ask(cut, end, kind) for kind in ("retain", "recall", "recall")])
        # The other servers went on.
        assert self.report.acknowledged["retain"] > acknowledged
        if not self._book.violations:
            await asyncio.to_thread(self._join)
            await self._return(cut)
        for backend in backends.values():
            await backend.close()

    async def _ask(self, backend: RemoteBackend, end: float, kind: str) -> None:
        """Call the server that is cut off until the end; no call that began after the cut may be answered."""
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                answer: object = await backend.call(ME, _request(kind))
            except Unavailable:
                self.refused += 1
            else:
                self._book.violations.append(f"a server that is cut off answered a {kind}: {answer}")
            self.longest = max(self.longest, time.monotonic() - began)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _return(self, backend: RemoteBackend) -> None:
        if self._number == WITH_LEASE:
            # It ends, since another one took its work.
            await self.recover()
            await self.outlive_leases()
        else:
            async with asyncio.timeout(RESTART_SECONDS):
                kinds = ("recall", "retain")
                self.answer_seconds = dict(
                    zip(kinds, await asyncio.gather(*[_answered(backend, kind) for kind in kinds]), strict=True)
                )
        await asyncio.sleep(AFTER_SECONDS)


def _request(kind: str) -> Retain | Recall:
    if kind == "retain":
        return Retain("cut", RetainItem(f"This was written at {time.monotonic()}."))
    return Recall(RecallQuery("written", "cut"))


async def _answered(backend: RemoteBackend, kind: str) -> float:
    """Seconds until a call is answered; refusals are repeated."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(RateLimited, Unavailable):
            await backend.call(ME, _request(kind))
            return time.monotonic() - began
        await asyncio.sleep(PAUSE_SECONDS)


async def _cut_off(run: PartitionRun) -> None:
    try:
        await run.cycle(await asyncio.to_thread(run.start))
    finally:
        run.servers.close()
    print(  # noqa: T201
        f"{run.report}; {run.report.unavailable} refused; cut off: {run.refused} refused, {run.longest:.1f} s at most; "
        f"others wrote after {run.others_seconds:.1f} s; back after {run.answer_seconds} {run.recovery_seconds} s"
    )


@pytest.mark.parametrize("number", [WITHOUT_LEASE, WITH_LEASE], ids=["without-lease", "with-lease"])
@pytest.mark.parametrize("kind", ["silence", "refuse"])
async def test_a_server_that_is_cut_off_is_never_stale_and_comes_back(
    number: int, kind: str, tmp_path: Path, hosts: Sequence[Host], database: PostgresProcess
) -> None:
    host = hosts[number - 1]
    run = PartitionRun(tmp_path, servers_on(hosts, database, tmp_path), number, getattr(host, kind), host.join)
    await _cut_off(run)
    assert run.report.violations == [], run.report
    assert run.refused > 0
    assert run.longest < CALL_SECONDS
    if number == WITH_LEASE:
        assert run.restarted == len(NUMBERS) + 1
    else:
        assert run.restarted == len(NUMBERS)
        assert max(run.answer_seconds.values()) < QUIET_RECOVERY_SECONDS


async def test_a_server_that_would_answer_from_memory_is_found(
    tmp_path: Path, hosts: Sequence[Host], database: PostgresProcess
) -> None:
    package = tmp_path / "python"
    switched_off(chosen(["postgres-answers-when-cut-off"])[0], package)
    servers = servers_on(hosts, database, tmp_path, {"PYTHONPATH": str(package)})
    host = hosts[WITHOUT_LEASE - 1]
    run = PartitionRun(tmp_path, servers, WITHOUT_LEASE, host.silence, host.join, SHORT_CUT_SECONDS)
    servers.start()
    try:
        await run.load_and_kill(run.start())
    finally:
        servers.close()
    assert any("is cut off answered a recall" in violation for violation in run._book.violations)
