"""An application whose bank a language model consolidates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from astrocyte.api.requests import (
    ConsolidateBank,
    ListObservations,
    Retain,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.model import (
    Caller,
    Consolidation,
    Observation,
    OperationState,
    RetainItem,
)

ME, BANK = Caller(), "family"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Opened = Callable[..., App]


async def kept(app: App, text: str, days: int = 0, *tags: str, bank: str = BANK) -> str:
    item = RetainItem(text, speaker="Mara", occurred_at=NOW - timedelta(days=days), tags=tags)
    return (await app.gate.call(ME, Retain(bank, item))).memory_id or ""


async def consolidated(app: App, bank: str = BANK) -> Consolidation:
    started = await app.gate.call(ME, ConsolidateBank(bank))
    ended = await app.gate.call(ME, WaitOperation(bank, started.operation_id, timeout=60.0))
    assert (ended.state, ended.error) == (OperationState.SUCCEEDED, None)
    assert ended.consolidation is not None
    return ended.consolidation


async def observed(app: App, bank: str = BANK) -> dict[str, Observation]:
    return {one.text: one for one in await app.gate.call(ME, ListObservations(bank))}


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


async def until_observed(app: App, count: int, bank: str = BANK) -> None:
    async with asyncio.timeout(30):
        while len(await observed(app, bank)) < count:  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


def spent(app: App) -> list[tuple[int, int]]:
    """Calls and tokens of each bank."""
    sql = "SELECT calls, tokens FROM model_budgets WHERE use = 'consolidation' ORDER BY bank_key"
    return app.storage.store._connections.query(sql)
