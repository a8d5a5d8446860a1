"""Applications on one PostgreSQL database: every call works, and what one acknowledged, the other knows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateBank,
    DeleteBank,
    Forget,
    GetBank,
    GetMemory,
    ListAuditEvents,
    PlaceHold,
    Recall,
    Reflect,
    ReleaseHold,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import (
    BankNotFound,
    ConfigError,
    LegalHoldActive,
    MemoryNotFound,
    Unavailable,
)
from astrocyte.model import ContentType, ForgetSelector, MemoryUpdate, RecallQuery, ReflectQuery, RetainItem
from astrocyte.server import server_of
from astrocyte.stores.postgres.engine.sharing import PostgresSharing
from astrocyte.stores.sharing import Told
from doubles.stages import ME
from external import postgres

PAIRS = 300
MANY_PAIRS = 5_000
CALLERS = 8


def settings_of(schema: str, **sections: Any) -> Settings:
    own = {"backend": "postgres", "dsn": postgres.address(), "schema_name": schema}
    return Settings.from_mapping({"store": own, "server": {"port": 0}, **sections})


@asynccontextmanager
async def servers(count: int, **sections: Any) -> AsyncIterator[list[App]]:
    """Applications that share a database, as servers on several machines do."""
    with postgres.schema() as schema:
        apps: list[App] = []
        try:
            for _ in range(count):
                apps.append(App(settings_of(schema, **sections)))
                apps[-1].start_purging()
            yield apps
        finally:
            for app in apps:
                await app.close()


async def stored(app: App, content: str, bank: str = "b", **given: Any) -> str:
    result = await app.backend.call(ME, Retain(bank, RetainItem(content), **given))
    assert result.memory_id
    return result.memory_id


async def found(app: App, query: str, bank: str = "b") -> set[str]:
    result = await app.backend.call(ME, Recall(RecallQuery(query, bank, max_results=10)))
    return {hit.memory_id or "" for hit in result.hits}


async def test_a_memory_lives_through_its_calls() -> None:
    async with servers(1) as (app,):
        call = app.backend.call
        await call(ME, CreateBank("b"))
        first = await stored(app, "The red bicycle stands in the cellar")
        await stored(app, "The blue car stands in the street")
        assert first in await found(app, "bicycle")
        assert (await call(ME, Reflect(ReflectQuery("Where is the bicycle?", "b")))).answer
        await call(
            ME, UpdateMemory("b", MemoryUpdate(first, frozenset({"content"}), "The red bicycle stands in the yard"))
        )
        memory = await call(ME, GetMemory("b", first))
        assert (memory.version, memory.content) == (2, "The red bicycle stands in the yard")
        await call(ME, Forget("b", ForgetSelector(memory_ids=(first,))))
        assert first not in await found(app, "bicycle")
        await call(ME, UndeleteMemory("b", first))
        assert first in await found(app, "bicycle")
        hold = await call(ME, PlaceHold("b", reason="a case"))
        with pytest.raises(LegalHoldActive):
            await call(ME, Forget("b", ForgetSelector(memory_ids=(first,)), compliance=True))
        await call(ME, ReleaseHold("b", hold.hold_id))
        erased = await call(ME, Forget("b", ForgetSelector(memory_ids=(first,)), compliance=True))
        assert erased.receipt is not None
        assert erased.receipt.counts["memories"] == 1
        with pytest.raises(MemoryNotFound):
            await call(ME, GetMemory("b", first))
        assert (await call(ME, ListAuditEvents("b"))).events
        await call(ME, DeleteBank("b"))
        with pytest.raises(BankNotFound):
            await call(ME, GetBank("b"))


@pytest.mark.parametrize("kind", ContentType)
async def test_a_memory_of_each_kind_of_content_is_stored(kind: ContentType) -> None:
    async with servers(1) as (app,):
        item = RetainItem("The ferry leaves at noon", content_type=kind)
        memory_id = (await app.backend.call(ME, Retain("b", item))).memory_id
        assert await found(app, "ferry") == {memory_id}


async def test_a_memory_that_comes_over_the_wire_is_stored_and_found() -> None:
    async with servers(1) as (app,):
        server = server_of(app)
        backend = RemoteBackend(await server.start())
        try:
            memory_id = (await backend.call(ME, Retain("b", RetainItem("The ferry leaves at noon")))).memory_id
            recalled = await backend.call(ME, Recall(RecallQuery("ferry", "b")))
            assert [hit.memory_id for hit in recalled.hits] == [memory_id]
        finally:
            await backend.close()
            await server.stop(0)


@pytest.mark.timeout(240)
async def test_a_recall_sees_every_write_that_another_server_acknowledged() -> None:
    await _pairs(PAIRS)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_recall_sees_every_write_of_very_many() -> None:
    await _pairs(MANY_PAIRS)


async def _pairs(count: int) -> None:
    async with servers(2) as apps:
        for number in range(3):
            await apps[0].backend.call(ME, CreateBank(f"bank-{number}"))
        numbers, misses = iter(range(count)), 0

        async def caller(seed: int) -> None:
            nonlocal misses
            chosen = random.Random(seed)
            for number in numbers:
                writer, reader = chosen.sample(apps, 2)
                bank = f"bank-{number % 3}"
                memory_id = await stored(writer, f"Parcel zq{number}x stands in row {chosen.randrange(10_000)}", bank)
                misses += memory_id not in await found(reader, f"zq{number}x", bank)

        await asyncio.gather(*(caller(seed) for seed in range(CALLERS)))
        assert misses == 0


async def test_an_erasure_leaves_every_server_before_it_is_acknowledged() -> None:
    async with servers(2) as (first, second):
        await first.backend.call(ME, CreateBank("b"))
        memory_id = await stored(first, "The password is swordfish")
        assert memory_id in await found(second, "swordfish")
        place = second.storage.store.heard
        await first.backend.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
        # Nobody called the second server since: it heard of it, and said so, by itself.
        assert second.storage.store.heard > place
        assert first.storage.store.leases is not None
        assert first.storage.store.leases.deaf(second.storage.store.heard) == []
        assert memory_id not in await found(second, "swordfish")


async def test_a_database_that_comes_back_is_used_again() -> None:
    with postgres.database() as (dsn, allow):
        app = App(Settings.from_mapping({"store": {"backend": "postgres", "dsn": dsn}}))
        try:
            app.start_purging()
            await app.backend.call(ME, CreateBank("b"))
            before = await stored(app, "The ferry leaves at noon")
            allow(False)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await found(app, "ferry")
                with pytest.raises(Unavailable):
                    await stored(app, "Nobody stores this sentence")
            allow(True)
            after = ""
            async with asyncio.timeout(15):
                while not after:
                    try:
                        after = await stored(app, "The bus leaves at one")
                    except Unavailable:
                        await asyncio.sleep(0.2)
            assert await found(app, "leaves") == {before, after}
            assert app.healthy
        finally:
            await app.close()


async def test_a_commit_of_unknown_outcome_is_heard_by_its_own_server() -> None:
    """The database commits, and the answer is lost: what it says of the bank is known here all the same."""
    async with servers(1) as (app,):
        await app.backend.call(ME, CreateBank("b"))
        await stored(app, "The first sentence about kestrels")
        assert len(await found(app, "kestrels")) == 1
        sharing = app.storage.store._sharing
        assert isinstance(sharing, PostgresSharing)
        heard: list[Told] = []
        place = sharing.heard
        app.storage.store.follow(heard.append)
        await stored(app, "Another sentence about kestrels")
        app.storage.store.refresh()
        assert (heard, sharing.heard > place) == ([], True)
        sharing.doubt()
        app.storage.store.refresh()
        assert [told.topic.value for told in heard].count("changes") == 1
        assert len(await found(app, "kestrels")) == 2


async def test_what_servers_would_disagree_about_is_refused() -> None:
    for sections, word in (
        ({"homeostasis": {"quotas": {"retain_per_day": 5}}}, "daily quotas"),
        ({"tiered_retrieval": {"enabled": True}}, "newest memories"),
        ({"read_only": True}, "read"),
    ):
        with pytest.raises(ConfigError, match=word):
            App(settings_of("unused", **sections))
    with pytest.raises(ConfigError, match="address"):
        App(Settings.from_mapping({"store": {"backend": "postgres"}}))
