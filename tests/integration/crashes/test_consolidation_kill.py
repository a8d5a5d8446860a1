"""A server that dies at any step of a consolidation goes on, and ends up with what an uninterrupted run has."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import BatchRetain, ConsolidateBank, ListObservations, ListOperations, WaitOperation
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, OperationState, RetainItem
from failpoints import CONSOLIDATION_POINTS
from harness.serving import serving
from killing import kill_at_random
from ledger import Server

ME, BANK = Caller(), "family"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = ("tea", "chess", "pottery", "rain", "trains", "maps", "songs", "bread")
# In this order some statements agree, and some contradict earlier ones.
ITEMS = [
    RetainItem(f"I {verb} {thing}.", speaker=speaker, occurred_at=FIRST + timedelta(hours=number))
    for number, (verb, thing, speaker) in enumerate(
        (verb, thing, speaker)
        for verb in ("love", "enjoy", "don't like")
        for thing in THINGS
        for speaker in ("Ann", "Bo", "Cy")
    )
]
# Deaths of a run, two at each point; a process takes a step or two before each.
DEATHS = 4


async def outcome(
    backend: Backend, bank: str = BANK
) -> list[tuple[str, int, datetime | None, datetime | None, bool, float]]:
    """The observations, without the ids, which differ from run to run."""
    page = await backend.call(ME, ListObservations(bank, page_size=1_000))
    return sorted(
        (one.text, one.proof_count, one.valid_from, one.valid_until, bool(one.superseded_by), one.confidence)
        for one in page
    )


@pytest.mark.process
async def test_a_consolidation_survives_any_death(tmp_path: Path) -> None:
    async with serving() as served:
        await served.backend.call(ME, BatchRetain(BANK, ITEMS))
        started = await served.backend.call(ME, ConsolidateBank(BANK))
        await served.backend.call(ME, WaitOperation(BANK, started.operation_id))
        expected = await outcome(served.backend)
    assert len(expected) == 48
    server = Server(tmp_path, {})
    backend = RemoteBackend(server.address)
    await backend.call(ME, BatchRetain(BANK, ITEMS))
    await backend.close()
    server.kill()
    deaths = 0
    for number in range(DEATHS):
        point = CONSOLIDATION_POINTS[number % len(CONSOLIDATION_POINTS)]
        server = Server(tmp_path, {"ASTROCYTE_FAILPOINT": f"{point}:1"})
        backend = RemoteBackend(server.address)
        # The first one starts it; those after it go on by themselves, and begin anew when it is done.
        with contextlib.suppress(Unavailable):
            if not deaths or (await backend.call(ME, ListOperations(BANK))).operations[-1].done:
                await backend.call(ME, ConsolidateBank(BANK))
        assert await asyncio.to_thread(server.died, 30.0)
        deaths += 1
        await backend.close()
        server.kill()
    server = Server(tmp_path, {})
    backend = RemoteBackend(server.address)
    (*_, last) = (await backend.call(ME, ListOperations(BANK))).operations
    ended = await backend.call(ME, WaitOperation(BANK, last.operation_id))
    assert (ended.state, deaths) == (OperationState.SUCCEEDED, DEATHS)
    assert await outcome(backend) == expected
    await backend.close()
    server.kill()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(3_600)
async def test_a_consolidation_survives_kills_at_any_moment(tmp_path: Path) -> None:
    async def fill(backend: Backend, bank: str) -> None:
        await backend.call(ME, BatchRetain(bank, ITEMS))

    async def consolidated(backend: Backend, bank: str) -> None:
        listed = (await backend.call(ME, ListOperations(bank))).operations
        if not listed or listed[-1].done:
            operation = (await backend.call(ME, ConsolidateBank(bank))).operation_id
        else:
            operation = listed[-1].operation_id
        await backend.call(ME, WaitOperation(bank, operation))

    assert await kill_at_random(tmp_path, fill, consolidated, outcome, variables={}, seed=1)
