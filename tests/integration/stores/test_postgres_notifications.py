"""Servers on one PostgreSQL database wake each other when they commit, and ask nothing otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from astrocyte.api.requests import Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import RetainItem
from astrocyte.stores.postgres.engine import notifications
from astrocyte.stores.postgres.engine.notifications import CHANNEL, Notifications, payload
from doubles.stages import ME
from external import postgres

# Far more than a server looks by itself in these tests, and far less than one takes to wake.
NEVER_SECONDS = 60.0
SOON_SECONDS = 10.0


@pytest.fixture(autouse=True)
def _only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "LISTENING_SECONDS", NEVER_SECONDS)
    monkeypatch.setattr(notifications, "DEAF_SECONDS", NEVER_SECONDS)


@asynccontextmanager
async def two_servers() -> AsyncIterator[tuple[App, App]]:
    with postgres.schema() as schema:
        store = {"backend": "postgres", "dsn": postgres.address(), "schema_name": schema}
        apps = [App(Settings.from_mapping({"store": store})) for _ in range(2)]
        try:
            yield apps[0], apps[1]
        finally:
            for app in apps:
                await app.close()


async def retained(app: App) -> Any:
    return await app.backend.call(ME, Retain("b", RetainItem(f"It is {time.monotonic_ns()}.")))


async def wakes(app: App, seconds: float = SOON_SECONDS) -> bool:
    """True if a server is woken within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await app.storage.store.wait_for_others()
    except TimeoutError:
        return False
    return True


async def test_a_commit_wakes_the_other_server_and_not_its_own() -> None:
    async with two_servers() as (one, other):
        # The first time, because it begins to listen.
        assert await wakes(other)
        assert await wakes(one)
        await retained(one)
        assert await wakes(other)
        assert not await wakes(one, 0.5)


async def test_without_commits_nobody_wakes_and_a_commit_before_the_wait_is_not_missed() -> None:
    async with two_servers() as (one, other):
        assert await wakes(other)
        assert not await wakes(other, 0.5)
        await retained(one)
        await asyncio.sleep(0.5)
        assert await wakes(other, 0.3)


async def test_a_lost_connection_is_made_again_and_wakes_for_what_was_missed() -> None:
    async with two_servers() as (one, other):
        assert await wakes(other)
        assert await wakes(one)
        waiting = asyncio.create_task(wakes(other))
        with psycopg.connect(postgres.address(), autocommit=True) as connection:
            ended = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = %s", (f"LISTEN {CHANNEL}",)
            ).fetchone()
        assert ended is not None
        assert ended[0] >= 1
        assert await waiting
        await retained(one)
        assert await wakes(other)


async def test_servers_of_another_schema_are_not_heard() -> None:
    with postgres.schema() as schema:
        heard = Notifications(lambda: psycopg.connect(postgres.address(), autocommit=True), schema, 1)
        try:
            await heard.wait()
            with psycopg.connect(postgres.address(), autocommit=True) as connection:
                for text in (payload(f"{schema}_2", 2), payload(schema, 1), "", schema):
                    connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, text))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await heard.wait()
                connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload(schema, 2)))
            async with asyncio.timeout(SOON_SECONDS):
                await heard.wait()
        finally:
            heard.close()


async def test_a_store_that_closes_does_not_wait_for_its_listener() -> None:
    async with two_servers() as (one, _):
        assert await wakes(one)
        began = time.monotonic()
    assert time.monotonic() - began < SOON_SECONDS
