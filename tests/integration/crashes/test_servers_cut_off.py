"""A server that is cut off from its PostgreSQL answers nothing from memory, and serves again when the way is open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from astrocyte.api.requests import CreateBank, Forget, Recall, Retain
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import Unavailable
from astrocyte.model import ForgetSelector, RecallQuery, RetainItem
from external.postgres_process import PostgresProcess, postgres_folder
from external.tcp_forwarder import Forwarder
from harness.servers import Servers
from ledger_book import ME

pytestmark = pytest.mark.process

# The whole time that the server is cut off; asked so often meanwhile; and after which it must serve again.
CUT_SECONDS = 10.0
PAUSE_SECONDS = 0.3
RECOVERY_SECONDS = 60.0
# A caller's deadline, after which no answer is no stale one.
PATIENCE = 1.0


@asynccontextmanager
async def cut_off_able(folder: Path) -> AsyncIterator[tuple[App, RemoteBackend, Forwarder]]:
    """A server beside the database, a client of one that reaches it through a port, and that port."""
    with postgres_folder() as files:
        database = PostgresProcess(files)
        database.create()
        database.start()
        forwarder = Forwarder(database.dsn)
        await forwarder.up()
        servers = Servers(folder, {1: f"{forwarder.uri}/postgres?user=postgres&sslmode=disable"})
        app = App(Settings.from_mapping({"store": {"backend": "postgres", "dsn": database.dsn}}))
        try:
            # A server that loses the background work to another one ends.
            await _with_the_lease(app)
            await asyncio.to_thread(servers.start)
            backend = RemoteBackend(servers.addresses[1])
            yield app, backend, forwarder
            await backend.close()
        finally:
            servers.close()
            await forwarder.down()
            await app.close()
            database.stop_immediately()


async def _with_the_lease(app: App) -> None:
    """Return when an application does the background work of all servers."""
    assert app.follower is not None
    app.start_purging()
    async with asyncio.timeout(RECOVERY_SECONDS):
        while app.follower.fence is None:  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)


async def stored(app: App, bank: str, content: str) -> str:
    return (await app.backend.call(ME, Retain(bank, RetainItem(content)))).memory_id or ""


async def recalled(backend: RemoteBackend, bank: str) -> set[str | None] | None:
    """Ids that the server finds; None if it refuses, or says nothing."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await backend.call(ME, Recall(RecallQuery("kestrels", bank, max_results=100)))
    except (Unavailable, TimeoutError):
        return None
    return {hit.memory_id for hit in found.hits}


async def _first_answer(backend: RemoteBackend, bank: str) -> set[str | None]:
    """Ids that the server finds as soon as it answers."""
    async with asyncio.timeout(RECOVERY_SECONDS):
        while (found := await recalled(backend, bank)) is None:  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
    return found


async def _cut(app: App, backend: RemoteBackend, cut: Callable[[], object], join: Callable[[], object]) -> None:
    """Write beside a server that is cut off: it tells nothing meanwhile, and everything afterwards."""
    gone = await stored(app, "birds", "The oldest kestrels nest in the tower")
    alive: set[str | None] = {await stored(app, "birds", "The young kestrels nest in the barn")}
    await app.backend.call(ME, CreateBank("empty"))
    assert await recalled(backend, "birds") == {gone, *alive}
    assert await recalled(backend, "empty") == set()

    cut()
    await app.backend.call(ME, Forget("birds", ForgetSelector(memory_ids=(gone,))))
    in_empty = {await stored(app, "empty", "Kestrels came")}
    end, answers = time.monotonic() + CUT_SECONDS, 0
    while time.monotonic() < end:
        alive.add(await stored(app, "birds", f"Kestrels were counted at {time.monotonic_ns()}"))
        # It knew this bank empty, and could say so without a row of the database.
        for bank in ("birds", "empty"):
            assert await recalled(backend, bank) is None
            answers += 1
        await asyncio.sleep(PAUSE_SECONDS)
    assert answers > 4

    join()
    assert await _first_answer(backend, "birds") == alive
    # Other connections of the server may still have to be found lost.
    assert await _first_answer(backend, "empty") == in_empty


@pytest.mark.timeout(600)
async def test_a_server_that_is_cut_off_answers_nothing_and_comes_back(tmp_path: Path) -> None:
    async with cut_off_able(tmp_path) as (app, backend, forwarder):
        await _cut(app, backend, forwarder.cut, forwarder.join)


@pytest.mark.timeout(600)
async def test_a_server_whose_database_falls_silent_answers_nothing_and_comes_back(tmp_path: Path) -> None:
    async with cut_off_able(tmp_path) as (app, backend, forwarder):
        await _cut(app, backend, forwarder.hold, forwarder.flow)
