"""Three servers behind nginx, and the host of one vanishes: the others serve its banks, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from astrocyte.api.requests import Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import DeadlineExceeded, Unavailable
from astrocyte.model import RetainItem
from external.network_namespaces import DATABASE, DATABASE_SUBNET, NAMESPACES, Host, separate_hosts
from external.ports import free_port
from external.postgres_process import PostgresProcess, postgres_folder
from external.proxies import NGINX, configured, started, stopped
from harness.servers import Servers
from ledger import Place
from ledger_book import ME, rows_of

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900), NAMESPACES, NGINX]

NUMBERS = (1, 2, 3)
LOST = 3
BANKS = [f"bank-{number}" for number in range(12)]
BEFORE_SECONDS, LOST_SECONDS, AFTER_SECONDS = 5.0, 30.0, 5.0
# A call that nginx had sent to the lost host fails by it, and the next one after the timeout of a connection of nginx.
DEADLINE_SECONDS = 5.0
# From the last acknowledgement before the loss to the first one after it, beside compilers.
MOVED_SECONDS = 20.0
PAUSE_SECONDS = 0.05


@dataclass
class Writer:
    """Retains in one bank without a pause; repeats what was not answered with the same request id."""

    backend: RemoteBackend
    bank: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    # The longest time without an acknowledgement.
    longest: float = 0.0

    async def run(self, end: asyncio.Event) -> None:
        """Write until the end."""
        for number in itertools.count():
            content = f"The coffee of {self.bank} was served to guest {number}."
            request = Retain(self.bank, RetainItem(content), request_id=f"{self.bank}/{number}")
            began = time.monotonic()
            while content not in self.acknowledged:
                if end.is_set():
                    return
                try:
                    self.acknowledged[content] = (await self.backend.call(ME, request)).memory_id or ""
                except (DeadlineExceeded, Unavailable):
                    self.refused += 1
                await asyncio.sleep(PAUSE_SECONDS)
            self.longest = max(self.longest, time.monotonic() - began)


@dataclass
class Crew:
    """The servers on hosts of their own, and a client of nginx before them."""

    hosts: dict[int, Host]
    servers: Servers
    backend: RemoteBackend
    log: Path

    def banks_at(self, number: int) -> set[str]:
        """Banks whose calls went to a server."""
        lines = self.log.read_text().split("\n")
        return {line.split()[0] for line in lines if line.endswith(f" {self.servers.addresses[number]}")}


@asynccontextmanager
async def crew(folder: Path) -> AsyncIterator[Crew]:
    """Three servers on a database of their own behind the configuration of deploy/."""
    with separate_hosts(len(NUMBERS)) as hosts, postgres_folder() as files:
        database = PostgresProcess(files)
        database.create()
        database.listen_at(DATABASE, DATABASE_SUBNET)
        database.start()
        dsn = database.dsn.replace("127.0.0.1", DATABASE)
        places = {number: Place(host.namespace, host.address) for number, host in zip(NUMBERS, hosts, strict=True)}
        servers = Servers(folder, dict.fromkeys(NUMBERS, dsn), places=places)
        try:
            await asyncio.to_thread(servers.start)
            port, log = free_port(), folder / "access.log"
            replaced = {
                "listen 50051": f"listen 127.0.0.1:{port}",
                "access_log off;": f"log_format place '$http_x_astrocyte_bank $upstream_addr'; access_log {log} place;",
                **{f"astrocyte-{number}.internal:50051": address for number, address in servers.addresses.items()},
            }
            process = await started(configured("nginx-postgres.conf", folder, replaced), port)
            backend = RemoteBackend(f"localhost:{port}", tls=folder / "ca.pem", timeout=DEADLINE_SECONDS)
            try:
                yield Crew(dict(zip(NUMBERS, hosts, strict=True)), servers, backend, log)
            finally:
                await backend.close()
                await stopped(process)
        finally:
            servers.close()
            database.stop_immediately()


async def test_banks_of_a_host_that_vanished_are_served_by_the_others(tmp_path: Path) -> None:
    async with crew(tmp_path) as behind:
        writers = [Writer(behind.backend, bank) for bank in BANKS]
        end = asyncio.Event()
        tasks = [asyncio.create_task(writer.run(end)) for writer in writers]
        await asyncio.sleep(BEFORE_SECONDS)
        moved = behind.banks_at(LOST)
        assert moved
        before = {writer.bank: len(writer.acknowledged) for writer in writers}
        for writer in writers:
            writer.longest = 0.0
        behind.hosts[LOST].hide()
        await asyncio.sleep(LOST_SECONDS)
        written = {writer.bank: len(writer.acknowledged) for writer in writers}
        behind.hosts[LOST].join()
        await asyncio.sleep(AFTER_SECONDS)
        end.set()
        await asyncio.gather(*tasks)
        print(sorted((one.bank in moved, round(one.longest, 1), one.refused) for one in writers))  # noqa: T201
        for writer in writers:
            assert written[writer.bank] > before[writer.bank]
            assert writer.longest < MOVED_SECONDS
            assert writer.bank in moved or not writer.refused
        # The loss was one.
        assert any(writer.refused for writer in writers if writer.bank in moved)
        for address in behind.servers.addresses.values():
            backend = RemoteBackend(address)
            for writer in writers:
                contents = [memory.content for memory in await rows_of(backend, writer.bank)]
                # A request that was repeated has one effect.
                assert len(contents) == len(set(contents))
                assert set(writer.acknowledged) <= set(contents)
            await backend.close()
