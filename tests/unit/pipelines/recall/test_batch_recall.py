"""A batch of recalls answers as each of them alone, however it is cut into parts."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank as CoreBank
from astrocyte.core import Core, RecallQueue, RecallRequest, RecallResponse
from astrocyte.errors import StoreError
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.recall.batch import FIRST, PART
from transports import until

ME = Caller()
WORDS = ("tea", "jam", "rain", "garden", "noon", "green")
Requests = Sequence[tuple[CoreBank, RecallRequest]]
Taken = tuple[list[RecallResponse], list[float]] | None
PLACES = ("kitchen", "harbour", "library", "attic", "meadow", "market")


@pytest.fixture(params=[0.0, 1.0], ids=["plain", "with names"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[App]:
    weights = {"entity": request.param}
    made = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"weights": weights}}))
    for bank_id in ("a", "b"):
        pairs = itertools.product(WORDS, PLACES)
        items = [RetainItem(f"{word} in the {place}", session_id=f"{bank_id} {word}") for word, place in pairs]
        await made.gate.call(ME, BatchRetain(bank_id, items))
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
    alone = [shown(await app.gate.call(ME, Recall(query))) for query in queries]
    assert [shown(result) for result in await app.gate.call(ME, BatchRecall(queries))] == alone


@pytest.mark.parametrize("failing", [1, 2, 4])
async def test_a_search_that_fails_fails_the_batch_and_the_next_one_is_whole(
    app: App, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    queries = asked(64)
    before, searches = RecallQueue.take, itertools.count(1)

    def take(queue: RecallQueue, part: int) -> Taken:
        if next(searches) == failing:
            raise StoreError("the scratch file cannot be read")
        return before(queue, part)

    with monkeypatch.context() as patch:
        patch.setattr(RecallQueue, "take", take)
        with pytest.raises(StoreError):
            await app.gate.call(ME, BatchRecall(queries))
    assert len(await app.gate.call(ME, BatchRecall(queries))) == len(queries)


async def test_a_batch_is_asked_for_in_parts_and_few_are_spread_by_the_core(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[str, int]] = []
    for of, name in ((RecallQueue, "add"), (Core, "recall_many")):
        before = getattr(of, name)

        def noted(owner: object, requests: Requests, name: str = name, before: Callable[..., Any] = before) -> object:
            sizes.append((name, len(requests)))
            return before(owner, requests)

        monkeypatch.setattr(of, name, noted)
    await app.gate.call(ME, BatchRecall(asked(FIRST)))
    assert sizes == [("recall_many", FIRST)]
    sizes.clear()
    await app.gate.call(ME, BatchRecall(asked(FIRST + PART + 3)))
    assert sizes == [("add", FIRST), ("add", PART), ("add", 3)]


async def test_a_batch_that_nobody_waits_for_is_left(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = threading.Event(), 0
    before = RecallQueue.take

    def take(queue: RecallQueue, part: int) -> Taken:
        nonlocal begun
        begun += 1
        go.wait(10)
        return before(queue, part)

    monkeypatch.setattr(RecallQueue, "take", take)
    batch = asyncio.create_task(app.gate.call(ME, BatchRecall(asked(64))))
    await until(lambda: begun == 1)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    go.set()
    # Its thread ends with the part that it is at, and the next one is whole.
    assert len(await app.gate.call(ME, BatchRecall(asked(FIRST + 1)))) == FIRST + 1
    assert begun == 1 + 2


async def test_a_batch_that_is_left_before_its_thread_began_leaves_nothing(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as busy:
        go = threading.Event()
        busy.submit(go.wait, 10)
        run = asyncio.get_running_loop().run_in_executor
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Future[Any]] = []

        def queued(_: object, work: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
            waiting.append(run(busy, work, *given))
            return waiting[-1]

        stopped: list[RecallQueue] = []
        stop = RecallQueue.stop

        def noted(queue: RecallQueue) -> None:
            stop(queue)
            stopped.append(queue)

        with monkeypatch.context() as patch:
            patch.setattr(loop, "run_in_executor", queued)
            patch.setattr(RecallQueue, "stop", noted)
            batch = asyncio.create_task(app.gate.call(ME, BatchRecall(asked(64))))
            await until(lambda: bool(waiting))
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
        go.set()
        assert waiting[0].cancelled()
        assert [queue.add([]) for queue in stopped] == [None]
    assert len(await app.gate.call(ME, BatchRecall(asked(FIRST + 1)))) == FIRST + 1


async def test_waits_are_told_apart_from_work(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part waits for those before it, and neither its embedding nor its analysis nor its search takes longer."""
    before = RecallQueue.take

    def take(queue: RecallQueue, part: int) -> Taken:
        time.sleep(0.1)
        return before(queue, part)

    monkeypatch.setattr(RecallQueue, "take", take)
    results = await app.gate.call(ME, BatchRecall(asked(FIRST + 2 * PART)))
    timings = [result.trace.stage_timings_ms or {} for result in results if result.trace is not None]
    for number, stages in enumerate(timings):
        parts = 1 + -(-max(0, number + 1 - FIRST) // PART)
        assert stages["queue"] >= 100 * parts
        assert min(stages.values()) >= 0.0
        assert sum(stages.values()) - stages["queue"] < 100


async def test_the_first_part_is_asked_for_on_the_loop_where_that_is_quick(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, threads = RecallQueue.add, []

    def add(queue: RecallQueue, requests: Requests) -> int | None:
        threads.append(threading.get_ident())
        return before(queue, requests)

    monkeypatch.setattr(RecallQueue, "add", add)
    await app.gate.call(ME, BatchRecall(asked(FIRST + 1)))
    names = app.settings.recall.weights.entity > 0
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [not names, False]
    threads.clear()
    await app.gate.call(ME, BatchRecall([RecallQuery("tea in the garden " * 100, "a"), *asked(FIRST)]))
    assert here not in threads


async def test_no_stage_takes_less_than_nothing(app: App) -> None:
    for count in (1, FIRST, FIRST + PART):
        for result in await app.gate.call(ME, BatchRecall(asked(count))):
            assert result.trace is not None
            assert min((result.trace.stage_timings_ms or {}).values()) >= 0.0
