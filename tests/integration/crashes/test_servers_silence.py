"""A database that stops with its connections open: calls fail within the limits, and work goes on when it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import RecallQuery, RetainItem
from astrocyte.stores.postgres import PostgresStore, open_postgres_store
from astrocyte.stores.postgres.engine import connections
from external.postgres_process import PostgresProcess, postgres_folder
from harness.servers import Servers
from ledger_book import ME
from samples.memories import current, insert, listed, make_bank, memory, memory_id

pytestmark = pytest.mark.process

CONNECT_SECONDS = 1.0
BUSY_SECONDS = 0.3
WRITE_SECONDS = 0.5
# The limit of a question (`CONNECT_SECONDS`), and of an attempt to connect after it, which libpq takes for two seconds
# at least; calls wait for those of each other and of the server's own.
CALL_SECONDS = 10.0
SILENT_SECONDS = 8.0
PAUSE_SECONDS = 0.2
RECOVERY_SECONDS = 60.0


@pytest.fixture
def database() -> Iterator[PostgresProcess]:
    with postgres_folder() as folder:
        process = PostgresProcess(folder)
        process.create()
        process.start()
        try:
            yield process
        finally:
            process.resume()
            process.stop_immediately()


@pytest.fixture
def store(database: PostgresProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    monkeypatch.setattr(connections, "WRITE_LIMIT_SECONDS", WRITE_SECONDS)
    monkeypatch.setattr(connections, "READ_LIMIT_SECONDS", WRITE_SECONDS)
    opened = open_postgres_store(database.dsn, connect_seconds=CONNECT_SECONDS, busy_seconds=BUSY_SECONDS)
    yield opened
    database.resume()
    opened.close()


async def _again(store: PostgresStore, bank: Any, number: int) -> None:
    """Store a memory as soon as the database can be reached."""
    async with asyncio.timeout(RECOVERY_SECONDS):
        while True:
            try:
                await insert(store, bank, memory(number))
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return


@pytest.mark.timeout(120)
async def test_questions_reads_and_writes_end(database: PostgresProcess, store: PostgresStore) -> None:
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    assert listed(store, bank) == [memory_id(1)]
    database.pause()
    began = time.monotonic()
    # Before the question has failed: no connection is tried for a while after it.
    with pytest.raises(Unavailable, match="it does not answer"):
        listed(store, bank)
    with pytest.raises(Unavailable, match="it does not answer") as refused:
        await insert(store, bank, memory(2))
    assert "not known" not in str(refused.value)
    with pytest.raises(Unavailable):
        store.refresh()
    with pytest.raises(Unavailable):
        store.refresh()
    assert time.monotonic() - began < CALL_SECONDS
    database.resume()
    await _again(store, bank, 3)
    store.refresh()
    assert sorted(listed(store, bank)) == [memory_id(1), memory_id(3)]
    assert current(store, bank).position == 2
    assert store.healthy


async def test_a_commit_that_is_not_answered_is_in_doubt(
    database: PostgresProcess, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = await make_bank(store)
    store.refresh()
    told: list[int] = []
    store.follow(lambda one: told.append(one.bank))
    write = store._servers.write

    def write_and_pause(connection: Any, batches: Any, tells: Sequence[Any]) -> None:
        write(connection, batches, tells)
        database.pause()

    with monkeypatch.context() as patch:
        patch.setattr(store._servers, "write", write_and_pause)
        with pytest.raises(Unavailable, match="whether this write was stored is not known"):
            await insert(store, bank, memory(1))
    database.resume()
    await _again(store, bank, 2)
    # Its own writes are heard as those of others: one of them may be in no index.
    store.refresh()
    assert bank.key in told
    # Everything that was sent is carried out by a session that goes on.
    assert sorted(listed(store, bank)) == [memory_id(1), memory_id(2)]
    assert current(store, bank).position == 2


async def _called(backend: RemoteBackend, number: int) -> tuple[bool, float]:
    """True if a retain and a recall were answered, and the seconds of the longer one."""
    longest, answered = 0.0, True
    for request in (Retain("b", RetainItem(f"Kestrel {number}")), Recall(RecallQuery("kestrels", "b"))):
        began = time.monotonic()
        try:
            await backend.call(ME, request)
        except Unavailable:
            answered = False
        longest = max(longest, time.monotonic() - began)
    return answered, longest


@pytest.mark.timeout(300)
async def test_a_server_refuses_calls_while_its_database_hangs(database: PostgresProcess, tmp_path: Path) -> None:
    servers = Servers(tmp_path, {1: database.dsn}, {"ASTROCYTE_STORE__CONNECT_SECONDS": str(CONNECT_SECONDS)})
    await asyncio.to_thread(servers.start)
    backend = RemoteBackend(servers.addresses[1])
    try:
        assert (await _called(backend, 0))[0]
        database.pause()
        end, number = time.monotonic() + SILENT_SECONDS, 0
        while time.monotonic() < end:
            number += 1
            answered, seconds = await _called(backend, number)
            assert not answered
            assert seconds < CALL_SECONDS
        database.resume()
        async with asyncio.timeout(RECOVERY_SECONDS):
            answered = False
            while not answered:
                await asyncio.sleep(PAUSE_SECONDS)
                answered, _ = await _called(backend, number := number + 1)
    finally:
        await backend.close()
        servers.close()
