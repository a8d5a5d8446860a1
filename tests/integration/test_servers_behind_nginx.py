"""Three servers on one PostgreSQL behind nginx: a bank stays at one, any answers, the loss of one costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from astrocyte.api.requests import Forget, GetMemory, ListMemories, Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem
from external.ports import free_port
from external.postgres_process import PostgresProcess, postgres_folder
from external.proxies import NGINX, configured, started, stopped
from harness.servers import Servers

pytestmark = [pytest.mark.process, pytest.mark.timeout(300), NGINX]

ME = Caller()
NUMBERS = (1, 2, 3)
BANKS = [f"bank-{number}" for number in range(24)]
# Of the writers before a server is killed, and after that.
BEFORE_SECONDS, AFTER_SECONDS = 2.0, 8.0
PAUSE_SECONDS = 0.05
# Seconds in which another server must answer for a bank whose server was killed.
TAKEN_OVER_SECONDS = 60.0


@dataclass
class Crew:
    """The servers, the proxy before them, and its log."""

    servers: Servers
    backend: RemoteBackend
    log: Path

    def places(self) -> dict[str, set[str]]:
        """Addresses of the servers that got calls, by bank."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for line in self.log.read_text().splitlines():
            bank, _, address = line.partition(" ")
            found[bank].add(address)
        return {bank: found[bank] for bank in found if bank in BANKS}


@asynccontextmanager
async def crew(folder: Path) -> AsyncIterator[Crew]:
    """Three servers on a database of their own behind the configuration of deploy/."""
    with postgres_folder() as files:
        database = PostgresProcess(files)
        database.create()
        database.start()
        servers = Servers(folder, dict.fromkeys(NUMBERS, database.dsn))
        try:
            await asyncio.to_thread(servers.start)
            port, log = free_port(), folder / "access.log"
            replaced = {
                "listen 50051": f"listen 127.0.0.1:{port}",
                "access_log off;": f"log_format place '$http_x_astrocyte_bank $upstream_addr'; access_log {log} place;",
                **{f"astrocyte-{number}.internal:50051": address for number, address in servers.addresses.items()},
            }
            process = await started(configured("nginx-postgres.conf", folder, replaced), port)
            backend = RemoteBackend(f"localhost:{port}", tls=folder / "ca.pem", timeout=30)
            try:
                yield Crew(servers, backend, log)
            finally:
                await backend.close()
                await stopped(process)
        finally:
            servers.close()
            database.stop_immediately()


@asynccontextmanager
async def direct(servers: Servers) -> AsyncIterator[dict[int, RemoteBackend]]:
    """Clients of the servers that run, by their numbers."""
    backends = {number: RemoteBackend(address) for number, address in servers.addresses.items()}
    try:
        yield backends
    finally:
        for backend in backends.values():
            await backend.close()


async def found(backend: RemoteBackend, bank: str) -> set[str | None]:
    """Ids of what a recall finds."""
    result = await backend.call(ME, Recall(RecallQuery("coffee", bank, max_results=50)))
    return {hit.memory_id for hit in result.hits}


async def test_a_bank_stays_at_its_server_and_all_servers_know_it(tmp_path: Path) -> None:
    async with crew(tmp_path) as behind, direct(behind.servers) as backends:
        for bank in BANKS:
            await behind.backend.call(ME, Retain(bank, RetainItem(f"The coffee of {bank}.")))
            assert len(await found(behind.backend, bank)) == 1
        places = behind.places()
        assert set(places) == set(BANKS)
        assert all(len(addresses) == 1 for addresses in places.values()), places
        assert set.union(*places.values()) == set(behind.servers.addresses.values())
        # What one acknowledged, each other one and the proxy know at once.
        for bank, (writer, reader, forgetter) in zip(BANKS, itertools.cycle(itertools.permutations(NUMBERS))):
            ids = {*await found(backends[reader], bank)}
            assert len(ids) == 1
            item = RetainItem(f"The coffee of {bank} is from server {writer}.")
            ids.add((await backends[writer].call(ME, Retain(bank, item))).memory_id)
            for backend in (backends[reader], behind.backend):
                assert await found(backend, bank) == ids
            gone = ids.pop()
            await backends[forgetter].call(ME, Forget(bank, ForgetSelector(memory_ids=(gone or "",))))
            for backend in (behind.backend, backends[writer], backends[reader]):
                assert await found(backend, bank) == ids


@dataclass
class Writer:
    """Retains in one bank without a pause; repeats what was not answered with the same request id."""

    backend: RemoteBackend
    bank: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    refused: int = 0

    async def run(self) -> None:
        """Write until cancelled."""
        for number in itertools.count():
            content = f"The coffee of {self.bank} was served to guest {number}."
            while content not in self.acknowledged:
                try:
                    request = Retain(self.bank, RetainItem(content), request_id=f"{self.bank}/{number}")
                    self.acknowledged[content] = (await self.backend.call(ME, request)).memory_id or ""
                except Unavailable:
                    self.refused += 1
                await asyncio.sleep(PAUSE_SECONDS)


async def test_the_loss_of_a_server_costs_no_acknowledged_write(tmp_path: Path) -> None:
    async with crew(tmp_path) as behind:
        writers = [Writer(behind.backend, bank) for bank in BANKS]
        tasks = [asyncio.create_task(writer.run()) for writer in writers]
        try:
            await asyncio.sleep(BEFORE_SECONDS)
            lost = behind.servers.addresses[1]
            moved = [bank for bank, addresses in behind.places().items() if addresses == {lost}]
            assert moved
            await asyncio.to_thread(behind.servers.kill, 1)
            before = {writer.bank: len(writer.acknowledged) for writer in writers}
            await asyncio.sleep(AFTER_SECONDS)
            async with asyncio.timeout(TAKEN_OVER_SECONDS):
                # Banks of the lost server are written to at another one, without a change of the configuration.
                while any(len(one.acknowledged) <= before[one.bank] + 1 for one in writers):  # noqa: ASYNC110 - polled
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        async with direct(behind.servers) as backends:
            assert set(backends) == {2, 3}
            for writer in writers:
                listed = (await behind.backend.call(ME, ListMemories(writer.bank, page_size=1_000))).memories
                contents = [memory.content for memory in listed]
                # A request that was repeated has one effect.
                assert len(contents) == len(set(contents))
                assert set(writer.acknowledged) <= set(contents)
                last = next(reversed(writer.acknowledged))
                for backend in backends.values():
                    memory = await backend.call(ME, GetMemory(writer.bank, writer.acknowledged[last]))
                    assert memory.content == last
        kept = {bank: places for bank, places in behind.places().items() if bank not in moved}
        assert all(len(addresses) == 1 for addresses in kept.values()), kept
