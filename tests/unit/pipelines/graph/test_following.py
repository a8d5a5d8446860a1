"""The follower derives what is committed, whoever writes meanwhile, and goes on after a failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetEntity, GetGraphStats, ListEntities, RebuildGraph
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError
from astrocyte.pipelines.graph import derivation, following
from astrocyte.pipelines.graph.derivation import derive
from astrocyte.stores.graph.entity_graph import DerivedVersion, SourceVersion
from samples.entity_graphs import BANK, ME, say, settled


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path), "entity_graph": {"read_wait_seconds": 20}}))
    yield app
    await app.close()


async def test_steady_writes_do_not_keep_a_reader(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await say(app, f"Bob Miller wrote note {number}.")

    writer = asyncio.create_task(write())
    try:
        for _ in range(3):
            start = time.monotonic()
            await app.gate.call(ME, GetEntity(BANK, "person:alice-smith"))
            assert time.monotonic() - start < 15
    finally:
        stop.set()
        await writer


async def test_a_failed_write_is_made_up_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await settled(app)
    put = app.storage.store.graph.put
    failures: list[Exception] = [RuntimeError("once"), StoreError("twice")]

    async def failing(*args: Any, **named: Any) -> None:
        if failures:
            raise failures.pop()
        await put(*args, **named)

    monkeypatch.setattr(following, "REST_SECONDS", 0.01)
    monkeypatch.setattr(app.storage.store.graph, "put", failing)
    await say(app, "Bob Miller lives in Paris.")
    assert (await app.gate.call(ME, GetEntity(BANK, "person:bob-miller"))).mention_count == 1
    assert failures == []


async def test_a_text_that_the_rules_fail_on_stops_no_other(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(source: SourceVersion) -> DerivedVersion:
        if "Alice" in source.content:
            raise RuntimeError(source.content)
        return derive(source)

    with monkeypatch.context() as patch:
        patch.setattr(derivation, "derive", failing)
        await say(app, "Alice Smith works at Acme Corp.")
        await say(app, "Bob Miller lives in Paris.")
        stats = await app.gate.call(ME, ListEntities(BANK))
        assert [one.id for one in stats.entities] == ["person:bob-miller", "place:paris"]
    await app.gate.call(ME, RebuildGraph(BANK))
    assert (await app.gate.call(ME, GetEntity(BANK, "person:alice-smith"))).mention_count == 1


async def test_a_reader_is_not_kept_longer_than_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(*_: Any, **__: Any) -> None:
        raise StoreError("always")

    settings = {"data_dir": str(tmp_path), "entity_graph": {"read_wait_seconds": 0.05}}
    app = App(Settings.from_mapping(settings))
    monkeypatch.setattr(app.storage.store.graph, "put", stuck)
    await say(app, "Alice Smith works at Acme Corp.")
    assert (await app.gate.call(ME, ListEntities(BANK))).entities == ()
    assert (await app.gate.call(ME, GetGraphStats(BANK))).pending_memories == 1
    await app.close()
