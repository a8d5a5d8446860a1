"""A batch of recalls answers as each of them alone, however it is cut into parts, by one thread or by some."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Core, RecallRequest, RecallResponse
from astrocyte.errors import StoreError
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.recall import PART
from astrocyte.pipelines.shaping import FoundHits, leave_in_bytes
from transports import until

ME = Caller()
WORDS = ("tea", "jam", "rain", "garden", "noon", "green")
PLACES = ("kitchen", "harbour", "library", "attic", "meadow", "market")


@pytest.fixture(params=[1, 2, 5])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[App]:
    made = App(Settings.from_mapping({"vector_store": "in_memory", "index": {"threads": request.param}}))
    for bank_id in ("a", "b"):
        pairs = itertools.product(WORDS, PLACES)
        items = [RetainItem(f"{word} in the {place}", session_id=f"{bank_id} {word}") for word, place in pairs]
        await made.gate.retain_batch(ME, bank_id, items)
    yield made
    await made.close()


def asked(count: int) -> list[RecallQuery]:
    return [
        RecallQuery(f"{WORDS[n % 6]} {PLACES[n * n % 6]} {n}", "ab"[n % 3 == 0], max_results=1 + n % 4)
        for n in range(count)
    ]


def shown(result: RecallResult) -> tuple[Any, ...]:
    return tuple(result.hits), result.total_available, result.truncated, result.confidence


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 9, 24, 25, 64])
async def test_each_answer_is_that_of_the_single_call(app: App, count: int) -> None:
    queries = asked(count)
    alone = [shown(await app.gate.recall(ME, query)) for query in queries]
    assert [shown(result) for result in await app.gate.recall_batch(ME, queries)] == alone


@pytest.mark.parametrize("failing", [1, 2, 4])
async def test_a_search_that_fails_fails_the_batch_and_the_next_one_is_whole(
    app: App, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    queries = asked(64)
    before, searches = Core.recall_many, itertools.count(1)

    def recall_many(
        core: Core, requests: Sequence[tuple[CoreBank, RecallRequest]], *, spread: bool
    ) -> list[RecallResponse]:
        if next(searches) >= failing:
            raise StoreError("the scratch file cannot be read")
        return before(core, requests, spread=spread)

    with monkeypatch.context() as patch:
        patch.setattr(Core, "recall_many", recall_many)
        with pytest.raises(StoreError):
            await app.gate.recall_batch(ME, queries)
    assert len(await app.gate.recall_batch(ME, queries)) == len(queries)


async def test_no_thread_is_left_without_a_part(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = app.settings.index.threads
    before, sizes = Core.recall_many, []

    def recall_many(
        core: Core, requests: Sequence[tuple[CoreBank, RecallRequest]], *, spread: bool
    ) -> list[RecallResponse]:
        sizes.append((len(requests), spread))
        return before(core, requests, spread=spread)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    await app.gate.recall_batch(ME, asked(10))
    expected = {1: [(8, False), (2, False)], 2: [(5, False)] * 2, 5: [(2, False)] * 5}
    assert sorted(sizes, reverse=True) == expected[threads]
    sizes.clear()
    await app.gate.recall_batch(ME, asked(1))
    assert sizes == [(1, True)]


async def test_a_batch_that_nobody_waits_for_takes_no_further_part(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = app.settings.index.threads
    go, begun = threading.Event(), 0
    before = Core.recall_many

    def recall_many(
        core: Core, requests: Sequence[tuple[CoreBank, RecallRequest]], *, spread: bool
    ) -> list[RecallResponse]:
        nonlocal begun
        begun += 1
        go.wait(10)
        return before(core, requests, spread=spread)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    batch = asyncio.create_task(app.gate.recall_batch(ME, asked(64)))
    await until(lambda: begun == threads)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    go.set()
    # What was begun ends, and the next one has the threads.
    await app.gate.recall_batch(ME, asked(1))
    assert begun == threads + 1


async def test_the_wait_for_a_thread_is_told_apart_from_work(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last part waits for those before it, and neither its embedding nor its analysis takes longer for that."""
    before = Core.recall_many

    def recall_many(
        core: Core, requests: Sequence[tuple[CoreBank, RecallRequest]], *, spread: bool
    ) -> list[RecallResponse]:
        time.sleep(0.05)
        return before(core, requests, spread=spread)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    results = await app.gate.recall_batch(ME, asked(64))
    timings = [result.trace.stage_timings_ms or {} for result in results if result.trace is not None]
    rounds = -(-(64 // PART) // app.settings.index.threads)
    assert timings[-1]["queue"] >= 50 * (rounds - 1) > timings[0]["queue"]
    for stages in timings:
        assert stages["embed"] + stages["analyse"] < 50
        assert stages["core"] + stages["feedback"] >= 50


async def test_answers_that_leave_by_the_wire_are_written_where_they_are_made(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    before = FoundHits.write

    def write(hits: FoundHits) -> None:
        written.append(threading.get_ident())
        before(hits)

    monkeypatch.setattr(FoundHits, "write", write)
    looked_at = await app.gate.recall_batch(ME, asked(24))
    assert not written

    async def served() -> list[RecallResult]:
        leave_in_bytes()
        return await app.gate.recall_batch(ME, asked(24))

    results = await asyncio.create_task(served())
    assert len(written) == 24
    assert threading.get_ident() not in written
    for result, other in zip(results, looked_at, strict=True):
        assert isinstance(result.hits, FoundHits)
        assert isinstance(other.hits, FoundHits)
        assert result.hits.encoded() == other.hits.encoded()
