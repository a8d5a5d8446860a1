"""A server that dies at any step of a lifecycle goes on, and ends up with what an uninterrupted run has."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import BatchRetain, ListMemories, ListOperations, Recall, RunLifecycle, WaitOperation
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, OperationState, RecallQuery, RetainItem
from failpoints import LIFECYCLE_POINTS
from harness.serving import serving
from killing import kill_at_random
from ledger import Server

ME, BANK = Caller(), "family"
# More than two steps; every third memory is exempt.
ITEMS = [
    RetainItem(f"Note {number} is about topic {number % 7}.", tags=("pinned",) if number % 3 == 0 else ())
    for number in range(300)
]
# Of each of these one is left, and of the pinned ones both.
TWINS = [
    RetainItem(f"The lamp of room {number // 2} is broken{' again' * (number % 2)}.", tags=("twin", f"tag-{number}"))
    for number in range(100)
]
PINNED = [
    RetainItem(f"The door of room {number // 2} is open{' again' * (number % 2)}.", tags=("pinned",))
    for number in range(20)
]
# Every memory is old enough at once but for the twins, which are merged.
RULES = {
    "archive_after_days": 1e-9,
    "exempt_tags": ["pinned"],
    "tags": {"twin": {"archive_after_days": None}},
}
VARIABLES = {
    "ASTROCYTE_SIGNAL_QUALITY__DEDUP__ENABLED": "false",
    "ASTROCYTE_LIFECYCLE__ARCHIVE_AFTER_DAYS": str(RULES["archive_after_days"]),
    "ASTROCYTE_LIFECYCLE__EXEMPT_TAGS": json.dumps(RULES["exempt_tags"]),
    "ASTROCYTE_LIFECYCLE__TAGS": json.dumps(RULES["tags"]),
}
# Two at each point.
DEATHS = 4


async def retained(backend: Backend, bank: str = BANK) -> None:
    items = ITEMS + TWINS + PINNED
    for start in range(0, len(items), 100):
        await backend.call(ME, BatchRetain(bank, items[start : start + 100]))


async def outcome(backend: Backend, bank: str = BANK) -> tuple[list[str], list[str], int]:
    """The contents of current and of archived memories, and how many of the current ones a recall finds."""
    lists = [await backend.call(ME, ListMemories(bank, page_size=1_000, archived=one)) for one in (False, True)]
    current, archived = ([memory.content for memory in page.memories] for page in lists)
    hits = (await backend.call(ME, Recall(RecallQuery("note topic", bank, max_results=200)))).hits
    assert {hit.text for hit in hits} <= set(current)
    return sorted(current), sorted(archived), len(hits)


@pytest.mark.process
async def test_a_lifecycle_survives_any_death(tmp_path: Path) -> None:
    async with serving(lifecycle=RULES, signal_quality={"dedup": {"enabled": False}}) as served:
        await retained(served.backend)
        started = await served.backend.call(ME, RunLifecycle(BANK, merge_duplicates=True, similarity_threshold=0.7))
        await served.backend.call(ME, WaitOperation(BANK, started.operation_id))
        expected = await outcome(served.backend)
    assert [len(expected[0]), len(expected[1])] == [170, 250]
    server = Server(tmp_path, VARIABLES)
    backend = RemoteBackend(server.address)
    await retained(backend)
    await backend.close()
    server.kill()
    for number in range(DEATHS):
        point = LIFECYCLE_POINTS[number % len(LIFECYCLE_POINTS)]
        server = Server(tmp_path, {**VARIABLES, "ASTROCYTE_FAILPOINT": f"{point}:1"})
        backend = RemoteBackend(server.address)
        # The first one starts it; those after it go on by themselves, and begin anew when it is done.
        with contextlib.suppress(Unavailable):
            listed = (await backend.call(ME, ListOperations(BANK))).operations
            if not listed or listed[-1].done:
                await backend.call(ME, RunLifecycle(BANK, merge_duplicates=True, similarity_threshold=0.7))
        assert await asyncio.to_thread(server.died, 30.0)
        await backend.close()
        server.kill()
    server = Server(tmp_path, VARIABLES)
    backend = RemoteBackend(server.address)
    (*_, last) = (await backend.call(ME, ListOperations(BANK))).operations
    ended = await backend.call(ME, WaitOperation(BANK, last.operation_id))
    assert ended.state is OperationState.SUCCEEDED
    assert await outcome(backend) == expected
    await backend.close()
    server.kill()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(3_600)
async def test_a_lifecycle_survives_kills_at_any_moment(tmp_path: Path) -> None:
    async def archived(backend: Backend, bank: str) -> None:
        listed = (await backend.call(ME, ListOperations(bank))).operations
        if not listed or listed[-1].done:
            started = RunLifecycle(bank, merge_duplicates=True, similarity_threshold=0.7)
            operation = (await backend.call(ME, started)).operation_id
        else:
            operation = listed[-1].operation_id
        await backend.call(ME, WaitOperation(bank, operation))

    assert await kill_at_random(tmp_path, retained, archived, outcome, variables=VARIABLES, seed=3)
