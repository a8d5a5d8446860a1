from __future__ import annotations

import asyncio

import pytest

from astrocyte.errors import Unavailable
from astrocyte.services.draining import Draining


async def test_what_waits_is_interrupted() -> None:
    draining = Draining()

    async def wait() -> None:
        with draining.interrupting():
            await asyncio.sleep(60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    draining.begin()
    with pytest.raises(Unavailable, match="the server is stopping"):
        await waiting


async def test_what_comes_later_is_refused() -> None:
    draining = Draining()
    draining.check()
    draining.begin()
    with pytest.raises(Unavailable):
        draining.check()
    with pytest.raises(Unavailable), draining.interrupting():
        pytest.fail("entered")


async def test_what_has_left_is_left_alone() -> None:
    draining = Draining()

    async def work() -> str:
        with draining.interrupting():
            await asyncio.sleep(0)
        draining.begin()
        await asyncio.sleep(0)
        return "done"

    assert await asyncio.create_task(work()) == "done"


async def test_another_cancellation_passes_through() -> None:
    draining = Draining()

    async def wait() -> None:
        with draining.interrupting():
            await asyncio.sleep(60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    draining.begin()
    with pytest.raises(asyncio.CancelledError):
        await waiting
