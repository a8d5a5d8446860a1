"""External stores of an application under test: references that outlive it, and that may fail at any call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetBank, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Caller, RetainItem
from astrocyte.pipelines.external_stores import sync
from astrocyte.pipelines.external_stores.items import documents_of, links_of, name_of, vectors_of
from astrocyte.pipelines.graph.named_entities import named_entities
from astrocyte.providers.storage.in_memory import InMemoryDocumentStore, InMemoryGraphStore, InMemoryVectorStore
from astrocyte.wiring import providers as wired_providers

ANA = Caller("default", "user:ana")
BREAKER = {"failure_threshold": 3, "recovery_timeout_seconds": 0.02, "half_open_max_calls": 1}
SEED = 4


class Faults:
    """Faults of a store."""

    def __init__(self) -> None:
        self.down = False
        self.hung = False
        self.chance = 0.0
        self.random = random.Random(SEED)
        self.calls: list[str] = []

    async def meet(self, name: str) -> None:
        self.calls.append(name)
        if self.hung:
            await asyncio.Event().wait()
        if self.down or self.random.random() < self.chance:
            raise ConnectionError("secret content")


class Faulty:
    """A store that may fail before a call has an effect, or after it had."""

    def __init__(self, store: object, faults: Faults) -> None:
        self._store = store
        self.faults = faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            if name == "close":
                return None
            await self.faults.meet(name)
            result = await method(*arguments, **named)
            await self.faults.meet(f"{name}, done")
            return result

        return call


class Outside:
    """The stores of a test, which outlive the application."""

    def __init__(self) -> None:
        self.vectors = InMemoryVectorStore()
        self.documents = InMemoryDocumentStore()
        self.graph = InMemoryGraphStore()
        self.faults = Faults()

    @asynccontextmanager
    async def running(self, folder: Path, **settings: Any) -> AsyncIterator[App]:
        values = {
            "data_dir": str(folder),
            "vector_store": "reference",
            "document_store": "reference",
            "graph_store": "reference",
            "pipeline": {"entity_extraction": {"mode": "metadata"}},
            "escalation": {"circuit_breaker": BREAKER},
            **settings,
        }
        app = App(Settings.from_mapping(values))
        app.start_purging()
        try:
            yield app
        finally:
            await app.gate.close()

    async def equal_the_truth(self, app: App) -> None:
        """Everything that the truth shows is in the stores, and nothing else."""
        followed = app.storage.store.following
        for bank in followed.banks(after=0, limit=100):
            await settled(app, bank)
            name = name_of(followed.installation, bank)
            versions = [version for batch in app.storage.store.iter_versions(bank) for version in batch]
            listed = await self.vectors.list_vectors(name, limit=10_000)
            assert {item.id: item for item in listed} == {item.id: item for item in vectors_of(versions, name)}
            texts = {item.id: item for item in documents_of(versions, name)}
            assert self.documents._banks.get(name, {}) == texts
            assert self.graph._banks.get(name, {}) == {
                item.id: item for item in links_of(versions, name, named_entities)
            }
            assert await self.graph.position(name) == bank.position
            assert await self.vectors.position(name) == await self.documents.position(name) == bank.position


async def settled(app: App, bank: Bank) -> None:
    current = app.storage.store.get_bank(bank.tenant, bank.bank_id)
    assert current is not None
    assert app.storage.external is not None
    await app.storage.external.confirm(current, current.position)


def wired(monkeypatch: pytest.MonkeyPatch) -> Outside:
    """External stores that applications get from now on, whatever they name."""
    made = Outside()
    for kind, store in (("vector", made.vectors), ("document", made.documents), ("graph", made.graph)):
        own = {"vector": "sqlite", "document": "none", "graph": "none"}[kind]

        def create(name: str, _: object, store: object = store, own: str = own) -> Faulty | None:
            return None if name == own else Faulty(store, made.faults)

        monkeypatch.setattr(wired_providers, f"create_{kind}_store", create)
    monkeypatch.setattr(sync, "REST_SECONDS", 0.01)
    return made


async def retain(app: App, text: str, bank: str = "notes", **fields: Any) -> str:
    result = await app.gate.call(ANA, Retain(bank, RetainItem(text, **fields)))
    assert result.memory_id is not None
    return result.memory_id


async def bank_of(app: App, bank_id: str = "notes") -> Bank:
    return await app.gate.call(ANA, GetBank(bank_id))
