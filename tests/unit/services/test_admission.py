from __future__ import annotations

import asyncio
import itertools

import pytest

from astrocyte.errors import RateLimited
from astrocyte.services import admission as module
from astrocyte.services.admission import RETRY_SECONDS, Admission


@pytest.fixture(autouse=True)
def _turns_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy a turn may pass between two lines."""
    monkeypatch.setattr(module, "TURN_SECONDS", 60.0)


async def test_as_many_run_as_the_limit_and_as_many_wait() -> None:
    admission = Admission("read", 2)
    assert admission.try_enter()
    assert admission.try_enter()
    assert not admission.try_enter()
    waiting = [asyncio.create_task(admission.enter()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited, match="limit of concurrent read calls is reached") as caught:
        await admission.enter()
    assert RETRY_SECONDS <= caught.value.retry_after <= 2 * RETRY_SECONDS
    assert not any(task.done() for task in waiting)
    admission.leave()
    admission.leave()
    await asyncio.gather(*waiting)
    assert not admission.try_enter()
    admission.leave()
    assert admission.try_enter()


async def test_who_waits_longest_is_next() -> None:
    admission = Admission("read", 3)
    for _ in range(3):
        await admission.enter()
    order: list[int] = []

    async def wait(name: int) -> None:
        await admission.enter()
        order.append(name)

    tasks = [asyncio.create_task(wait(name)) for name in range(3)]
    await asyncio.sleep(0)
    for _ in range(3):
        admission.leave()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2]


async def test_who_gives_up_leaves_the_queue() -> None:
    admission = Admission("read", 1)
    await admission.enter()
    first, second = (asyncio.create_task(admission.enter()) for _ in range(2))
    await asyncio.sleep(0)
    assert first.cancel()
    with pytest.raises(RateLimited):
        await second
    third = asyncio.create_task(admission.enter())
    await asyncio.sleep(0)
    admission.leave()
    await third
    assert first.cancelled()
    admission.leave()
    assert admission.try_enter()


@pytest.mark.parametrize("handed_over", [True, False])
async def test_a_place_is_not_lost_when_its_taker_gives_up(handed_over: bool) -> None:
    admission = Admission("read", 1)
    await admission.enter()
    taker = asyncio.create_task(admission.enter())
    await asyncio.sleep(0)
    if handed_over:
        admission.leave()
        taker.cancel()
    else:
        taker.cancel()
        admission.leave()
    with pytest.raises(asyncio.CancelledError):
        await taker
    assert admission.try_enter()
    assert not admission.try_enter()


@pytest.mark.parametrize("long", [True, False])
async def test_calls_beyond_a_turns_time_begin_in_turns_of_their_own(
    monkeypatch: pytest.MonkeyPatch, *, long: bool
) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS", 60.0 if long else 0.0)
    admission = Admission("read", 10)
    turns: list[int] = []
    turn = 0

    async def call() -> None:
        if not admission.try_enter():
            await admission.enter()
        turns.append(turn)
        admission.leave()

    calls = [asyncio.create_task(call()) for _ in range(5)]
    while not all(one.done() for one in calls):
        turn += 1
        await asyncio.sleep(0)
    assert len(turns) == 5
    # There are places for all: it is the time of the turn that they wait for.
    assert len(set(turns)) == (1 if long else 5)


@pytest.mark.parametrize("long", [True, False])
async def test_a_long_call_leaves_turns_to_others(monkeypatch: pytest.MonkeyPatch, *, long: bool) -> None:
    monkeypatch.setattr(module, "LONG_SECONDS", -1.0 if long else 60.0)
    admission = Admission("read", 10)
    turns: list[int] = []
    turn = 0

    async def call() -> None:
        await admission.enter()
        turns.append(turn)
        admission.leave()

    for _ in range(admission.limit):
        await admission.enter()
    calls = [asyncio.create_task(call()) for _ in range(4)]
    await asyncio.sleep(0)
    admission.leave()
    while not all(one.done() for one in calls):
        turn += 1
        await asyncio.sleep(0)
    apart = [later - earlier for earlier, later in itertools.pairwise(turns)]
    assert len(apart) == 3
    assert min(apart) > module.SPARE_TURNS - 1 if long else max(apart) <= 1
