"""A server that dies while segments of usearch and tantivy are written or restored has the old or the new ones."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from astrocyte.api.requests import BatchRetain, Recall
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS
from failpoints import POINTS
from harness.serving import serving
from ledger import Server

ME, BANK = Caller(), "b"
ROWS = 200
WORDS = ("tea", "jam", "rain", "noon", "garden", "river", "lamp")
VARIABLES = {
    "ASTROCYTE_INDEX__CHECKPOINT_ROWS": "1",
    "ASTROCYTE_INDEX__GRAPH_ROWS": "100",
    "ASTROCYTE_INDEX__SCAN_ROWS": "1",
    "ASTROCYTE_INDEX__SAMPLING": "0",
    "ASTROCYTE_INDEX__BUILD_SHARE": "1",
    "ASTROCYTE_INDEX__DENSE": "usearch",
    "ASTROCYTE_INDEX__LEXICAL": "tantivy",
    "ASTROCYTE_SIGNAL_QUALITY__DEDUP__ENABLED": "false",
}
# The same settings for a server in this process, which starts sooner.
INDEX = {
    "checkpoint_rows": 1,
    "graph_rows": 100,
    "scan_rows": 1,
    "sampling": 0,
    "build_share": 1.0,
    "dense": "usearch",
    "lexical": "tantivy",
}
SCANNED = {**INDEX, "dense": "scan", "lexical": "postings"}
QUERIES = [RecallQuery(f"{one} and {other}", BANK, include_trace=True) for one, other in itertools.pairwise(WORDS)]
# Seconds until segments are built: the background waits for the end of an import.
PATIENCE = 30.0


async def answers(address: str, *, by_libraries: bool = True) -> list[set[str]]:
    """The hits of all queries; once both libraries search, if they are to."""
    backend = RemoteBackend(address)
    deadline = time.monotonic() + PATIENCE
    try:
        while True:
            results = [await backend.call(ME, Recall(query)) for query in QUERIES]
            plans = [result.trace.plan or "" for result in results if result.trace is not None]
            ready = [plan.startswith("graph of usearch") and "postings of tantivy" in plan for plan in plans]
            if all(ready) or not by_libraries:
                return [{hit.text for hit in result.hits} for result in results]
            assert time.monotonic() < deadline, plans
            await asyncio.sleep(0.05)
    finally:
        await backend.close()


async def retained(server: Server, texts: list[str]) -> None:
    backend = RemoteBackend(server.address)
    try:
        await backend.call(ME, BatchRetain(BANK, [RetainItem(text) for text in texts]))
    finally:
        await backend.close()


def segments(folder: Path) -> set[str]:
    """The segments in the checkpoints of a server."""
    paths = (folder / "data" / CHECKPOINTS).glob("*/g*/*")
    return {path.name for path in paths if path.name.startswith(("graph", "postings"))}


async def with_segments(folder: Path) -> None:
    """A data directory whose checkpoint has segments of both libraries."""
    server = Server(folder, VARIABLES)
    await retained(server, [f"note {number} on {WORDS[number % 7]} and {WORDS[number % 5]}" for number in range(ROWS)])
    await answers(server.address)
    deadline = time.monotonic() + PATIENCE
    while segments(folder) != {"graph0", "postings0"}:
        # The next commit makes a checkpoint.
        await retained(server, ["zebra"])
        await asyncio.sleep(0.2)
        assert time.monotonic() < deadline
    server.kill()


async def killed_at(folder: Path, point: str) -> bool:
    """True if a server that loads the bank, and writes a checkpoint as it grows, died at the point."""
    try:
        server = Server(folder, {**VARIABLES, "ASTROCYTE_FAILPOINT": f"{point}:1"})
    except RuntimeError:
        # It loaded the bank at its start.
        return True
    with contextlib.suppress(Unavailable):
        await answers(server.address)
        for number in range(10):
            await retained(server, [f"zebra {number} {one}" for one in range(ROWS // 5)])
    died = await asyncio.to_thread(server.died, PATIENCE)
    server.kill()
    return died


async def answers_of(folder: Path, index: Mapping[str, object]) -> list[set[str]]:
    """The hits of a server that takes the directory over, with these settings of its index."""
    dedup = {"dedup": {"enabled": False}}
    data_dir = str(folder / "data")
    async with serving(vector_store="sqlite", data_dir=data_dir, index=index, signal_quality=dedup) as served:
        return await answers(served.address, by_libraries=index["dense"] == "usearch")


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_a_death_at_any_step_leaves_segments_that_find_what_scans_find(tmp_path: Path) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    await with_segments(folder)
    for point in POINTS:
        if not point.startswith("checkpoint."):
            continue
        copy = tmp_path / point
        shutil.copytree(folder, copy)
        assert await killed_at(copy, point), point
        found = await answers_of(copy, INDEX)
        expected = await answers_of(copy, SCANNED)
        met = sum(len(one & other) for one, other in zip(found, expected, strict=True))
        assert met >= 0.95 * sum(map(len, expected)), point
        shutil.rmtree(copy)
