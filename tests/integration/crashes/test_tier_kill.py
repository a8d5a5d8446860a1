"""A server that dies while a bank moves to the disk tier, or is written or loaded there, has lost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from astrocyte.api.requests import BatchRetain, GetBankStats, Recall
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import BankIndexStats, Caller, RecallQuery, RetainItem
from failpoints import TIER_POINTS
from ledger import DiedAtStartError, Server

ME, BANK = Caller(), "b"
# Rows that lie in files together, and some more.
GROUP = 4_096
ROWS = GROUP + 104
BATCH = 256
WORDS = ("tea", "jam", "rain", "noon", "garden", "river", "lamp")
# Scans: all answers are equal to the bit.
VARIABLES = {
    "ASTROCYTE_INDEX__CHECKPOINT_ROWS": "1000",
    "ASTROCYTE_INDEX__GRAPH_ROWS": "1000",
    "ASTROCYTE_INDEX__BUILD_SHARE": "1",
    "ASTROCYTE_INDEX__DENSE": "scan",
    "ASTROCYTE_INDEX__TIER": "disk",
    "ASTROCYTE_SIGNAL_QUALITY__DEDUP__ENABLED": "false",
}
MEMORY = {**VARIABLES, "ASTROCYTE_INDEX__TIER": "memory"}
POINTS = (*TIER_POINTS, "checkpoint.publish", "checkpoint.replay")
PATIENCE = 60.0


def items(first: int, count: int) -> list[RetainItem]:
    numbers = range(first, first + count)
    return [RetainItem(f"note {number} on {WORDS[number % 7]} and {WORDS[number % 5]}") for number in numbers]


async def retained(server: Server, first: int, count: int) -> None:
    backend = RemoteBackend(server.address)
    try:
        for start in range(first, first + count, BATCH):
            await backend.call(ME, BatchRetain(BANK, items(start, min(BATCH, first + count - start))))
    finally:
        await backend.close()


async def answers(server: Server) -> list[list[tuple[str, float]]]:
    """Texts and scores of the hits of some queries."""
    backend = RemoteBackend(server.address)
    try:
        results = [await backend.call(ME, Recall(RecallQuery(f"{word}, note 71", BANK))) for word in WORDS]
        return [[(hit.text, hit.score) for hit in result.hits] for result in results]
    finally:
        await backend.close()


async def statistics(server: Server) -> tuple[int, BankIndexStats]:
    backend = RemoteBackend(server.address)
    try:
        await backend.call(ME, Recall(RecallQuery("tea", BANK)))
        stats = await backend.call(ME, GetBankStats(BANK))
    finally:
        await backend.close()
    assert stats.index is not None
    return stats.memory_count, stats.index


async def on_disk(server: Server) -> int:
    """The number of memories, once all that can be is in files."""
    deadline = time.monotonic() + PATIENCE
    while True:
        count, index = await statistics(server)
        if index.disk_rows >= GROUP:
            return count
        assert time.monotonic() < deadline, index
        await asyncio.sleep(0.1)


async def on_tantivy(server: Server) -> None:
    """Wait until tantivy has postings."""
    backend = RemoteBackend(server.address)
    deadline = time.monotonic() + PATIENCE
    try:
        while True:
            result = await backend.call(ME, Recall(RecallQuery("tea", BANK, include_trace=True)))
            assert result.trace is not None
            if "postings of tantivy" in (result.trace.plan or ""):
                return
            assert time.monotonic() < deadline, result.trace.plan
            await asyncio.sleep(0.1)
    finally:
        await backend.close()


def armed(folder: Path, point: str) -> Server | None:
    """A server that dies at this point; None where it did before it listened, since it loads the bank at its start."""
    try:
        return Server(folder, {**VARIABLES, "ASTROCYTE_FAILPOINT": f"{point}:1"})
    except DiedAtStartError:
        return None


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(600)
async def test_a_death_at_any_step_of_the_disk_tier_loses_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path, MEMORY)
    await retained(server, 0, ROWS)
    server.kill()
    count = ROWS
    for point in POINTS:
        dying = armed(tmp_path, point)
        if dying is not None:
            with contextlib.suppress(Unavailable):
                await answers(dying)
                while not dying.died(0.1):
                    # The next commits move rows, and make a checkpoint.
                    await retained(dying, count, BATCH)
                    count += BATCH
            assert dying.died(PATIENCE), point
            dying.kill()
        server = Server(tmp_path, VARIABLES)
        found, (stored, index) = await answers(server), await statistics(server)
        # A commit whose answer was cut off may be there or not.
        assert count <= stored <= count + BATCH, point
        assert index.tier == "disk"
        count = stored
        server.kill()
        server = Server(tmp_path, MEMORY)
        assert await answers(server) == found, point
        server.kill()
    server = Server(tmp_path, VARIABLES)
    assert await on_disk(server) == count
    await on_tantivy(server)
    found = await answers(server)
    # The checkpoint of a clean end has the indexes of tantivy. The next start dies at the copy of the first one.
    server.stop()
    dying = armed(tmp_path, "checkpoint.segment")
    if dying is not None:
        with contextlib.suppress(Unavailable):
            await answers(dying)
        assert dying.died(PATIENCE)
        dying.kill()
    server = Server(tmp_path, VARIABLES)
    assert await answers(server) == found
    assert await on_disk(server) == count
    await on_tantivy(server)
    server.kill()
