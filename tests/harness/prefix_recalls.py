"""Recalls with prefixes of a bank, by a server that nobody else calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from astrocyte.api.requests import (
    GetBank,
    Recall,
    Retain,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import (
    Caller,
    RecallQuery,
    RecallResult,
    RetainItem,
)
from astrocyte.pipelines.index.bank_index import BankIndex

ME = Caller()
KILN, KILNS, KILO, DOOR = "The kiln is hot.", "Two kilns, old ones.", "A kilo of clay.", "The blue door."
KEYWORDS_ALONE = {"semantic": 0.0, "keyword": 1.0, "temporal": 0.0}


class Clock:
    """A clock that tests set, in milliseconds since the epoch."""

    now = 1_750_000_000_000

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def opened(clock: Clock | None = None, **settings: Any) -> AsyncIterator[App]:
    kept = {} if "data_dir" in settings else {"vector_store": "in_memory"}
    values = {**kept, "signal_quality": {"dedup": {"enabled": False}}, **settings}
    app = App(Settings.from_mapping(values), clock=clock or Clock())
    try:
        yield app
    finally:
        await app.close()


async def asked(app: App, text: str, bank: str = "b", **fields: Any) -> RecallResult:
    fields = {"expand_prefixes": True, "weights": KEYWORDS_ALONE, **fields}
    result: RecallResult = await app.gate.call(ME, Recall(RecallQuery(text, bank, **fields)))
    return result


async def found(app: App, text: str, bank: str = "b", **fields: Any) -> set[str]:
    return {hit.text for hit in (await asked(app, text, bank, **fields)).hits}


async def retained(app: App, *texts: str, bank: str = "b", **fields: Any) -> list[str]:
    return [(await app.gate.call(ME, Retain(bank, RetainItem(text, **fields)))).memory_id or "" for text in texts]


async def index_of(app: App, bank: str = "b") -> BankIndex:
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank(bank)))
    assert index is not None
    return index


def words(index: BankIndex, prefix: str) -> list[str] | None:
    """The words that the process keeps of a bank, those that no current memory holds included."""
    expanded = index.core.expand(prefix, 1_000, past=True)
    return None if expanded is None else expanded[0]
