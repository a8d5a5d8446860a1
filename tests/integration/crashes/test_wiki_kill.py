"""A server that dies at any step of a compilation leaves whole pages, and the next compilation makes the others."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import BatchRetain, CompileBank, ListPages
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, RetainItem
from failpoints import WIKI_POINTS
from harness.serving import serving
from killing import kill_at_random
from ledger import Server

ME, BANK = Caller(), "engineering"
TOPICS = 80
ITEMS = [
    RetainItem(f"the report on service {topic} says that part {number} works.", tags=(f"service-{topic}",))
    for topic in range(TOPICS)
    for number in range(3)
]
# Deaths of a run. One at a written step leaves a step's worth of pages more than the one before.
DEATHS = 5


async def outcome(backend: Backend, bank: str = BANK) -> list[tuple[str, str, int]]:
    """The pages, without the ids of memories, which differ from run to run."""
    page = await backend.call(ME, ListPages(bank, page_size=1_000))
    return sorted((one.page_id, one.content, len(one.sources)) for one in page)


@pytest.mark.process
async def test_a_compilation_survives_any_death(tmp_path: Path) -> None:
    async with serving() as served:
        await served.backend.call(ME, BatchRetain(BANK, ITEMS))
        await served.backend.call(ME, CompileBank(BANK))
        expected = await outcome(served.backend)
    assert len(expected) == TOPICS
    server = Server(tmp_path, {})
    backend = RemoteBackend(server.address)
    await backend.call(ME, BatchRetain(BANK, ITEMS))
    await backend.close()
    server.kill()
    for number in range(DEATHS):
        point = WIKI_POINTS[number % len(WIKI_POINTS)]
        server = Server(tmp_path, {"ASTROCYTE_FAILPOINT": f"{point}:1"})
        backend = RemoteBackend(server.address)
        call = asyncio.ensure_future(backend.call(ME, CompileBank(BANK)))
        assert await asyncio.to_thread(server.died, 30.0)
        # It would ask a server that is gone again and again.
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, Unavailable):
            await call
        await backend.close()
        server.kill()
    server = Server(tmp_path, {})
    backend = RemoteBackend(server.address)
    # Whole pages only: each of those that are there is one of an uninterrupted run.
    there = await outcome(backend)
    assert set(there) <= set(expected)
    assert 0 < len(there) < TOPICS
    done = await backend.call(ME, CompileBank(BANK))
    assert (done.pages_created, done.pages_unchanged) == (TOPICS - len(there), len(there))
    assert await outcome(backend) == expected
    await backend.close()
    server.kill()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(3_600)
async def test_a_compilation_survives_kills_at_any_moment(tmp_path: Path) -> None:
    async def fill(backend: Backend, bank: str) -> None:
        await backend.call(ME, BatchRetain(bank, ITEMS))

    async def compiled(backend: Backend, bank: str) -> None:
        await backend.call(ME, CompileBank(bank))

    assert await kill_at_random(tmp_path, fill, compiled, outcome, variables={}, seed=2)
