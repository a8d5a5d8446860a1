from __future__ import annotations

import asyncio

import pytest

from astrocyte.errors import RateLimited
from astrocyte.services.admission import RETRY_SECONDS, Admission


async def test_as_many_run_as_the_limit_and_as_many_wait() -> None:
    admission = Admission("read", 2)
    assert admission.try_enter()
    assert admission.try_enter()
    assert not admission.try_enter()
    waiting = [asyncio.create_task(admission.enter()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited, match="no room for more read calls") as caught:
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
