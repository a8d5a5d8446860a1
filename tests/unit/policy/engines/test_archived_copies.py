"""Archived memories and engines: a copy that an engine keeps for too long is not shown, and none is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.api.requests import Forget, Recall, Retain, RunLifecycle, UndeleteMemory, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, OperationState, RecallQuery, RetainItem
from astrocyte.policy.engines import outbox_relay, result_screening
from astrocyte.providers.hybrid import HybridEngineProvider
from harness.engines import Shelf
from samples.archiving import export, load

ME, BANK = Caller(), "notes"
TEXT = "The coffee is in the kitchen."
DAY_MS = 86_400_000
BEGIN = 1_750_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(shelf: Shelf, clock: Clock, **options: Any) -> AsyncIterator[App]:
    breaker = {"failure_threshold": 1_000, "recovery_timeout_seconds": 3_600, "half_open_max_calls": 1}
    values = {
        "vector_store": "in_memory",
        "lifecycle": {"archive_after_days": 10},
        "escalation": {"circuit_breaker": breaker},
    }
    app = App(Settings.from_mapping(values), clock=clock)
    app.providers.engines.attach(
        HybridEngineProvider(shelf, name="shelf", options={"retain_target": "both", **options})
    )
    try:
        yield app
    finally:
        await app.close()


async def archived(app: App, clock: Clock) -> str:
    """The id of a memory that was archived."""
    kept = (await app.gate.call(ME, Retain(BANK, RetainItem(TEXT)))).memory_id or ""
    clock.now += 11 * DAY_MS
    started = await app.gate.call(ME, RunLifecycle(BANK))
    done = await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=60.0))
    assert done.state is OperationState.SUCCEEDED
    assert done.lifecycle is not None
    assert done.lifecycle.unused == 1
    return kept


async def told(app: App) -> None:
    """Wait until the engine was told all."""
    app.policies.outbox_relay.wake()
    async with asyncio.timeout(20):
        while app.storage.store.outbox.waiting_count("shelf"):  # noqa: ASYNC110 - done by tasks of the application
            await asyncio.sleep(0.002)


async def hits(app: App, **options: Any) -> list[tuple[str | None, str | None]]:
    found = await app.gate.call(ME, Recall(RecallQuery("where is the coffee?", BANK, **options)))
    return [(hit.memory_id, hit.engine) for hit in found.hits]


async def test_an_engine_forgets_an_archived_memory_and_gets_it_back_when_it_is_restored() -> None:
    shelf, clock = Shelf(), Clock()
    async with opened(shelf, clock) as app:
        kept = await archived(app, clock)
        await told(app)
        assert shelf.texts == []
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        await told(app)
        assert shelf.texts == [TEXT]
        assert kept in {memory_id for memory_id, _ in await hits(app)}


@pytest.mark.parametrize("weight", [0.0, 1.0])
async def test_an_engine_that_was_away_brings_no_archived_memory_back(weight: float) -> None:
    shelf, clock = Shelf(), Clock()
    async with opened(shelf, clock, pipeline_recall_weight=weight) as app:
        shelf.put("Tea is in the cupboard.")
        kept = await archived(app, clock)
        # As an engine that did not hear of it.
        await app.storage.store.outbox.forgotten("shelf", await _bank(app), 1 << 40)
        assert not app.storage.store.outbox.waiting_count("shelf")
        if TEXT not in shelf.texts:
            shelf.origins[shelf.put(TEXT)] = kept
        assert kept not in {memory_id for memory_id, _ in await hits(app)}
        assert kept in {memory_id for memory_id, _ in await hits(app, include_archived=True)}
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        assert kept in {memory_id for memory_id, _ in await hits(app)}


async def test_without_the_screening_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_screening, "is_seen", lambda *_: True)
    shelf, clock = Shelf(), Clock()
    async with opened(shelf, clock, pipeline_recall_weight=0.0) as app:
        kept = await archived(app, clock)
        await told(app)
        shelf.origins[shelf.put(TEXT)] = kept
        assert await hits(app) == [(kept, "shelf")]


async def test_a_memory_that_is_archived_again_by_an_undelete_is_not_sent() -> None:
    shelf, clock = Shelf(), Clock()
    async with opened(shelf, clock) as app:
        kept = await archived(app, clock)
        await told(app)
        await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(kept,))))
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        await told(app)
        assert shelf.texts == []
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        await told(app)
        assert shelf.texts == [TEXT]


async def test_an_import_sends_no_archived_memory() -> None:
    source, clock = Shelf(), Clock()
    async with opened(source, clock) as app:
        kept = await archived(app, clock)
        await app.gate.call(ME, Retain(BANK, RetainItem("Tea is in the cupboard.")))
        archive = await export(app.gate, BANK)
    shelf = Shelf()
    async with opened(shelf, Clock()) as app:
        assert (await load(app.gate, archive, BANK)).imported == 2
        await told(app)
        assert shelf.texts == ["Tea is in the cupboard."]
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        await told(app)
        assert sorted(shelf.texts) == ["Tea is in the cupboard.", TEXT]


async def _bank(app: App) -> Any:
    return app.storage.store.get_bank("default", BANK)


async def test_without_the_check_of_the_relay_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_relay, "is_copied", lambda memory: memory is not None)
    shelf, clock = Shelf(), Clock()
    async with opened(shelf, clock) as app:
        kept = await archived(app, clock)
        await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(kept,))))
        await app.gate.call(ME, UndeleteMemory(BANK, kept))
        await told(app)
        assert shelf.texts == [TEXT]
