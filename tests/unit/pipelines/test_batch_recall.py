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
from astrocyte.pipelines.early import heard_early
from astrocyte.pipelines.recall import PART
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
        time.sleep(0.1)
        return before(core, requests, spread=spread)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    results = await app.gate.recall_batch(ME, asked(64))
    timings = [result.trace.stage_timings_ms or {} for result in results if result.trace is not None]
    rounds = -(-(64 // PART) // app.settings.index.threads)
    assert timings[-1]["queue"] >= 100 * (rounds - 1) > timings[0]["queue"]
    for stages in timings:
        assert stages["embed"] + stages["analyse"] < 100 <= stages["core"] + stages["feedback"]


async def test_who_wants_answers_early_hears_each_where_it_is_made(app: App) -> None:
    heard: list[tuple[RecallResult, int]] = []
    tasks: list[asyncio.Task[Any]] = []
    go = asyncio.Event()

    async def begun_meanwhile() -> None:
        await go.wait()
        await app.gate.recall_batch(ME, asked(8))

    with heard_early(lambda result: heard.append((result, threading.get_ident()))):
        results = await app.gate.recall_batch(ME, asked(24))
        tasks.append(asyncio.create_task(begun_meanwhile()))
    assert {id(result) for result, _ in heard} == set(map(id, results))
    assert len(heard) == 24
    assert threading.get_ident() not in {thread for _, thread in heard}
    # Nobody listens any more, not even to what was begun while somebody did.
    await app.gate.recall_batch(ME, asked(8))
    go.set()
    await tasks[0]
    assert len(heard) == 24
