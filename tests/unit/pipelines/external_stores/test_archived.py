"""Archived memories and external stores: recalls of now do not find them, whatever a store proposes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetBank, Recall, Retain, RunLifecycle, UndeleteMemory, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, OperationState, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.external_stores.items import name_of
from astrocyte.providers.storage import StoreFilters, StoreHit, in_memory
from astrocyte.providers.storage.in_memory import InMemoryDocumentStore, InMemoryVectorStore
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT
from astrocyte.wiring import providers as wired_providers
from external import opensearch_server
from external.postgres import address

ME, BANK = Caller(), "notes"
OLD, NEW = "A lantern stands beside the green kettle.", "A lantern hangs in the hall."
QUESTION = "green kettle lantern"
DAY_MS = 86_400_000
# The index leaves the order to the stores: what they do not propose has no arm.
STORES_ALONE = {"recall": {"weights": {"semantic": 0, "keyword": 0}, "feedback": 0}}
SLOW = {"outside_stores": {"recall_seconds": 60, "write_seconds": 60, "erase_seconds": 60}}


class Clock:
    def __init__(self) -> None:
        self.now = 1_750_000_000_000

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(folder: Path, clock: Clock, **stores: Any) -> AsyncIterator[App]:
    values = {"data_dir": str(folder), "lifecycle": {"archive_after_days": 10}, **STORES_ALONE, **SLOW, **stores}
    app = App(Settings.from_mapping(values), clock=clock)
    app.start_purging()
    try:
        yield app
    finally:
        await app.gate.close()


async def retained(app: App, text: str) -> str:
    return (await app.gate.call(ME, Retain(BANK, RetainItem(text)))).memory_id or ""


async def settled(app: App) -> None:
    bank = await app.gate.call(ME, GetBank(BANK))
    assert app.storage.external is not None
    await app.storage.external.confirm(bank, bank.position)


async def archived(app: App, clock: Clock) -> tuple[str, str]:
    """The ids of a memory that was archived, and of one that was not."""
    old = await retained(app, OLD)
    clock.now += 11 * DAY_MS
    new = await retained(app, NEW)
    await settled(app)
    started = await app.gate.call(ME, RunLifecycle(BANK))
    done = await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=60.0))
    assert done.state is OperationState.SUCCEEDED
    assert done.lifecycle is not None
    assert done.lifecycle.unused == 1
    return old, new


async def recalled(app: App, **options: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(QUESTION, BANK, include_trace=True, **options)))


def proposed(result: RecallResult, arm: str) -> set[str | None]:
    """The hits that an arm proposed."""
    assert result.trace is not None
    assert result.trace.degraded == ""
    return {hit.memory_id for hit in result.hits if arm in {one.arm for one in hit.arms}}


def qdrant(_: Path) -> dict[str, Any]:
    return {"vector_store": "qdrant", "vector_store_config": {"url": ":memory:"}}


def vectors_in_postgres(folder: Path) -> dict[str, Any]:
    options = {"dsn": address(), "schema_name": f"archived_vectors_{folder.name}"}
    return {"vector_store": "postgres", "vector_store_config": options}


def documents_in_postgres(folder: Path) -> dict[str, Any]:
    options = {"dsn": address(), "schema_name": f"archived_documents_{folder.name}"}
    return {"document_store": "postgres", "document_store_config": options}


def opensearch(_: Path) -> dict[str, Any]:
    return {"document_store": "opensearch", "document_store_config": opensearch_server.options("archived")}


@pytest.mark.timeout(600)
@pytest.mark.process
@pytest.mark.parametrize("stores", [qdrant, vectors_in_postgres, documents_in_postgres, opensearch])
async def test_an_archived_memory_leaves_the_recalls_of_an_adapter_and_comes_back(
    tmp_path: Path, stores: Callable[[Path], dict[str, Any]]
) -> None:
    clock, chosen = Clock(), stores(tmp_path)
    arm = "vector_store" if "vector_store" in chosen else "document_store"
    async with asyncio.timeout(300), opened(tmp_path / "data", clock, **chosen) as app:
        old, new = await archived(app, clock)
        await settled(app)
        assert proposed(await recalled(app), arm) == {new}
        assert old not in {hit.memory_id for hit in (await recalled(app)).hits}
        assert proposed(await recalled(app, include_archived=True), arm) == {old, new}
        await app.gate.call(ME, UndeleteMemory(BANK, old))
        await settled(app)
        assert proposed(await recalled(app), arm) == {old, new}


class Lying(InMemoryVectorStore):
    """A store that proposes memories whether they are archived or not."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def search_similar(self, *_: Any, **__: Any) -> list[StoreHit]:
        return [StoreHit(f"{place}", memory_id, 1.0) for place, memory_id in enumerate(self.told)]


@pytest.mark.parametrize("banks", [(), (BANK, "more")])
async def test_a_store_that_proposes_an_archived_memory_does_not_bring_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banks: tuple[str, ...]
) -> None:
    store, clock = Lying(), Clock()
    monkeypatch.setattr(wired_providers, "create_vector_store", lambda *_: store)
    async with opened(tmp_path, clock, vector_store="reference") as app:
        old, new = await archived(app, clock)
        await app.gate.call(ME, Retain("more", RetainItem("A lantern elsewhere.")))
        store.told = [old, new]

        async def found(**options: Any) -> set[str | None]:
            query = RecallQuery(QUESTION, "" if banks else BANK, banks=banks, **options)
            return {hit.memory_id for hit in (await app.gate.call(ME, Recall(query))).hits}

        assert old not in await found()
        assert new in await found()
        assert old in await found(include_archived=True)
        await app.gate.call(ME, UndeleteMemory(BANK, old))
        assert {old, new} <= await found()


async def test_a_store_that_was_away_during_the_archiving_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock, documents = InMemoryVectorStore(), Clock(), InMemoryDocumentStore()
    monkeypatch.setattr(wired_providers, "create_vector_store", lambda *_: store)
    monkeypatch.setattr(wired_providers, "create_document_store", lambda *_: documents)
    chosen = {"vector_store": "reference", "document_store": "reference"}
    async with opened(tmp_path, clock, **chosen) as app:
        old, new = await archived(app, clock)
        await settled(app)
    # As stores that were put back to an earlier state, and a process that begins again.
    store, documents = in_memory.create_vector_store({}), in_memory.create_document_store({})
    async with opened(tmp_path, clock, **chosen) as app:
        await settled(app)
        name = name_of(app.storage.store.following.installation, await app.gate.call(ME, GetBank(BANK)))

        async def kept(as_of: int | None) -> set[str]:
            hits = await documents.search_fulltext("lantern", name, 10, StoreFilters(as_of=as_of))
            return {hit.memory_id for hit in hits}

        assert await kept(None) == {new}
        assert await kept(ARCHIVE_INSTANT) == {old, new}
        await app.gate.call(ME, UndeleteMemory(BANK, old))
        await settled(app)
        assert await kept(None) == {old, new}
        # The archived copy is a part of the history at no instant.
        assert await kept(ARCHIVE_INSTANT) == {old, new}
        assert len(await store.list_vectors(name, limit=100)) == 4
