"""A bank that moves to another embedding model: texts, questions, and what tests of it do again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Recall, StartReindex, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, Operation, RecallQuery, RecallResult, RetainItem
from astrocyte.stores.sqlite.store import SqliteStore

ME = Caller()
BANK = "family"
OWN = "static-minilm-256-v1"
SMALL, TINY = f"{OWN}-128", f"{OWN}-64"
# By meaning alone.
SILENT = {"keyword": 0.0, "temporal": 0.0}
EMBEDDERS = {
    "small": {"provider": "static", "options": {"dimensions": 128}},
    "tiny": {"provider": "static", "options": {"dimensions": 64}},
}
TEXTS = [
    "Mara is allergic to sesame, not to nuts.",
    "The cat only eats the expensive food.",
    "Freya marries Anders on the 21st of June.",
    "The boiler was repaired and makes no more noise.",
    "Grandmother plays the cello on Thursdays.",
    "The keys of the boat are in the blue drawer.",
    "Anders found a lump of amber on the beach.",
    "The school play is about a lost whale.",
    "Mara bakes bread without sesame every Sunday.",
    "The neighbours lend us their ladder in spring.",
    "Freya's violin needs new strings before the concert.",
    "We never park behind the bakery on market days.",
]
QUESTIONS = ["what can Mara not eat?", "who plays an instrument?", "where is the key?", "when is the wedding?"]


def settings(**sections: Any) -> Settings:
    reindex = {"share": 1.0, "retry_seconds": 0.001, "sample": 4, **sections.pop("reindex", {})}
    return Settings.from_mapping({"vector_store": "in_memory", "embedders": EMBEDDERS, **sections, "reindex": reindex})


@asynccontextmanager
async def filled() -> AsyncIterator[App]:
    """An application whose bank has all texts."""
    opened = App(settings())
    await fill(opened)
    yield opened
    await opened.close()


async def fill(app: App, texts: Sequence[str] = TEXTS) -> list[str]:
    results = await app.gate.call(ME, BatchRetain(BANK, [RetainItem(text) for text in texts]))
    return [str(result.memory_id) for result in results]


async def moved(app: App, model: str | None = SMALL, **fields: Any) -> Operation:
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=model, rollback=model is None, **fields))
    return await done(app, started)


def paused(patch: pytest.MonkeyPatch, app: App) -> tuple[asyncio.Event, asyncio.Event]:
    """Stops a move when all memories have their vectors; events that are set when it stands, and to let it go on."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    inner = app.pipelines.reindexer._move

    async def held(*args: Any) -> None:
        begun.set()
        await go_on.wait()
        await inner(*args)

    patch.setattr(app.pipelines.reindexer, "_move", held)
    return begun, go_on


async def done(app: App, started: Operation) -> Operation:
    return await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=30))


def shown(result: RecallResult) -> list[tuple[str, float]]:
    return [(hit.text, round(hit.score, 5)) for hit in result.hits]


async def answers(app: App, **fields: Any) -> list[list[tuple[str, float]]]:
    return [shown(await app.gate.call(ME, Recall(RecallQuery(question, BANK, **fields)))) for question in QUESTIONS]


async def fresh_answers(model: str, texts: Sequence[str] = TEXTS) -> list[list[tuple[str, float]]]:
    """The answer of a bank that had the model from the beginning."""
    other = App(settings())
    await other.gate.call(ME, CreateBank(BANK, embedding_model=model))
    await fill(other, texts)
    found = await answers(other)
    await other.close()
    return found


async def dropped(app: App) -> None:
    """Wait until the bank has one set of vectors again."""
    with app.pipelines.reindexer.subscribed() as changed:
        while rows(app, "spare_sets"):
            await asyncio.wait_for(changed.wait(), 30)
            changed.clear()


def rows(app: App, table: str) -> int:
    store = app.storage.store
    assert isinstance(store, SqliteStore)
    ((count,),) = store._connections.query(f"SELECT count(*) FROM {table}")  # noqa: S608 - names of ours
    return int(count)


def lengths(app: App) -> set[int]:
    """Sizes of all vectors that the bank has now."""
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    versions = [version for part in app.storage.store.iter_versions(bank) for version in part]
    return {len(version.memory.vector or b"") for version in versions}
