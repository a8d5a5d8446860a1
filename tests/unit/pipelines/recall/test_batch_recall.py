"""A batch of recalls answers as each of them alone."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from astrocyte.api.requests import BatchRecall, BatchRetain, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Answer, Core, RecallRequest
from astrocyte.core import Bank as CoreBank
from astrocyte.errors import StoreError
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.search.core_request import Planner
from astrocyte.pipelines.search.plan import Plan
from harness.transports import until

ME = Caller()
WORDS = ("tea", "jam", "rain", "garden", "noon", "green")
Requests = Sequence[tuple[CoreBank, RecallRequest]]
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


async def test_a_search_that_fails_fails_the_batch_and_the_next_one_is_whole(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = asked(64)

    def recall_many(core: Core, requests: Requests) -> list[Answer]:
        raise StoreError("the scratch file cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(Core, "recall_many", recall_many)
        with pytest.raises(StoreError):
            await app.gate.call(ME, BatchRecall(queries))
    assert len(await app.gate.call(ME, BatchRecall(queries))) == len(queries)


async def test_a_batch_is_one_call_of_the_core(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    before = Core.recall_many

    def recall_many(core: Core, requests: Requests) -> list[Answer]:
        sizes.append(len(requests))
        return before(core, requests)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    for count in (1, 64):
        await app.gate.call(ME, BatchRecall(asked(count)))
    assert sizes == [1, 64]


async def test_a_batch_that_nobody_waits_for_holds_nobody_up(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = threading.Event(), threading.Event()
    before = Core.recall_many

    def recall_many(core: Core, requests: Requests) -> list[Answer]:
        begun.set()
        go.wait(10)
        return before(core, requests)

    with monkeypatch.context() as patch:
        patch.setattr(Core, "recall_many", recall_many)
        batch = asyncio.create_task(app.gate.call(ME, BatchRecall(asked(64))))
        await until(begun.is_set)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
    go.set()
    assert len(await app.gate.call(ME, BatchRecall(asked(5)))) == 5


async def test_a_batch_that_is_left_before_its_thread_began_leaves_nothing(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    before = Core.recall_many

    def recall_many(core: Core, requests: Requests) -> list[Answer]:
        searches.append(len(requests))
        return before(core, requests)

    monkeypatch.setattr(Core, "recall_many", recall_many)
    with ThreadPoolExecutor(1) as busy:
        go = threading.Event()
        busy.submit(go.wait, 10)
        run = asyncio.get_running_loop().run_in_executor
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Future[Any]] = []

        def queued(executor: Executor, work: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
            if getattr(work, "__name__", "") != "run":
                # Not of a recall, which takes the variables of its context along: what the server does now and then.
                return run(executor, work, *given)
            waiting.append(run(busy, work, *given))
            return waiting[-1]

        with monkeypatch.context() as patch:
            patch.setattr(loop, "run_in_executor", queued)
            batch = asyncio.create_task(app.gate.call(ME, BatchRecall(asked(64))))
            await until(lambda: bool(waiting))
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
        go.set()
        assert waiting[0].cancelled()
    assert searches == []
    assert len(await app.gate.call(ME, BatchRecall(asked(5)))) == 5


async def test_waits_are_told_apart_from_work(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan waits while others are analysed, and neither its analysis nor its search takes longer for that."""
    before = Planner.request

    def request(planner: Planner, plan: Plan) -> RecallRequest:
        time.sleep(0.02)
        return before(planner, plan)

    monkeypatch.setattr(Planner, "request", request)
    results = await app.gate.call(ME, BatchRecall(asked(10)))
    timings = [result.trace.stage_timings_ms or {} for result in results if result.trace is not None]
    for stages in timings:
        # All others are analysed before it or after it.
        assert stages["queue"] >= 20 * (len(results) - 1)
        assert min(stages.values()) >= 0.0
        assert sum(stages.values()) - stages["queue"] < 100


async def test_no_stage_takes_less_than_nothing(app: App) -> None:
    for count in (1, 4, 12):
        for result in await app.gate.call(ME, BatchRecall(asked(count))):
            assert result.trace is not None
            assert min((result.trace.stage_timings_ms or {}).values()) >= 0.0
