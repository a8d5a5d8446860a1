"""A synchronous standby that confirms nothing: no write is acknowledged that a failover would lose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from astrocyte.errors import Unavailable
from astrocyte.stores.postgres import PostgresStore, open_postgres_store
from astrocyte.stores.postgres.engine import connections
from memories import insert, listed, make_bank, memory, memory_id
from postgres_process import PostgresProcess, postgres_folder, synchronous_standby

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

CONNECT_SECONDS = 1.0
BUSY_SECONDS = 0.3
# Shorter than the limit of silence, which ends the wait of a commit.
WRITE_SECONDS = 0.5
PAUSE_SECONDS = 0.05
PATIENCE = 60.0
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'astrocyte'"


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


@pytest.fixture
def standby(database: PostgresProcess) -> Iterator[PostgresProcess]:
    with synchronous_standby(database) as process:
        try:
            yield process
        finally:
            process.resume()


@pytest.fixture
def store(
    database: PostgresProcess, standby: PostgresProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresStore]:
    opened = open_postgres_store(database.dsn, connect_seconds=CONNECT_SECONDS, busy_seconds=BUSY_SECONDS)
    monkeypatch.setattr(connections, "WRITE_LIMIT_SECONDS", WRITE_SECONDS)
    opened.close()
    opened = open_postgres_store(database.dsn, connect_seconds=CONNECT_SECONDS, busy_seconds=BUSY_SECONDS)
    yield opened
    standby.resume()
    opened.close()


async def test_a_commit_that_no_standby_confirms_is_not_acknowledged(
    standby: PostgresProcess, store: PostgresStore
) -> None:
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    standby.pause()
    began = time.monotonic()
    with pytest.raises(Unavailable, match="whether this write was stored is not known"):
        await insert(store, bank, memory(2))
    assert WRITE_SECONDS + CONNECT_SECONDS <= time.monotonic() - began < PATIENCE
    assert listed(store, bank) == [memory_id(1)]
    standby.resume()
    async with asyncio.timeout(PATIENCE):
        # It was committed, and is seen once it is confirmed.
        while sorted(listed(store, bank)) != [memory_id(1), memory_id(2)]:  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
    store.refresh()


async def test_a_wait_for_a_standby_that_is_cancelled_is_no_acknowledgement(
    database: PostgresProcess, standby: PostgresProcess, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = await make_bank(store)
    standby.pause()
    monkeypatch.setattr(store._connections.writer, "_silence_seconds", PATIENCE)
    writing = asyncio.create_task(insert(store, bank, memory(1)))
    async with asyncio.timeout(PATIENCE):
        while not (waiting := database.execute(WAITING)):  # noqa: ASYNC110 - polled
            await asyncio.sleep(PAUSE_SECONDS)
    database.execute(f"SELECT pg_cancel_backend({waiting[0][0]})")
    with pytest.raises(Unavailable, match=r"no standby confirmed the commit.*not known"):
        await writing
    # The primary alone has it; the connection serves on.
    assert listed(store, bank) == [memory_id(1)]
    standby.resume()
    await insert(store, bank, memory(2))
