"""When calls are taken in, on a loop whose time is simulated; what that does to a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from astrocyte.model import RecallResult
from astrocyte.services.admission import Admission
from astrocyte.services.pressure import (
    BUSY_SECONDS,
    CHECK_SECONDS,
    CROWDED_MOST,
    FIRST_CHECK_SECONDS,
    IDLE_SHARE,
    LEAST_WAITING,
    QUIET_SECONDS,
    TAKING_IN_SECONDS,
    WAIT_SECONDS,
    Pressure,
    ServingLoop,
)
from astrocyte.services.status import PUSHBACK_KEY
from astrocyte.v1 import memory_pb2
from serving import Served, detail, serving, trailer

RECALL = memory_pb2.RecallRequest(bank_id="family", query="Mara")


class SimulatedLoop:
    """A clock and timers. ``idle`` is the share of its time in which it waits, in stretches of ``stretch`` seconds.

    Calls come from gRPC so many a second, while they are taken in and while they are not.
    """

    def __init__(self, admission: Admission) -> None:
        self.now, self.idle, self.stretch = 100.0, 1.0, 1.0
        self.idle_seconds = self.quiet_at = 0.0
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        self.admission = admission
        self.coming_in, self.coming = 1_000.0, 100.0
        self.arrived = 0.0

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, work: Callable[..., None], *args: Any) -> Any:
        timer = (self.now + seconds, work, args)
        self.timers.append(timer)

        class Handle:
            def cancel(_) -> None:  # noqa: N805
                self.timers.remove(timer)

        return Handle()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.timers and min(self.timers)[0] <= end:
            self.timers.sort(key=lambda timer: timer[0])
            at, work, args = self.timers.pop(0)
            self._pass(at)
            work(*args)
        self._pass(end)

    def until_held(self, *, held: bool = True) -> None:
        while self.admission.held is not held:
            self.run(0.001)

    def _pass(self, until: float) -> None:
        self.idle_seconds += self.idle * (until - self.now)
        self.arrived += (until - self.now) * (self.coming_in if self.admission.held else self.coming)
        if self.idle and min(self.stretch, self.idle * (until - self.now)) >= QUIET_SECONDS * 0.99:
            self.quiet_at = until
        self.now = until


def pressed(limit: int = 2) -> tuple[SimulatedLoop, Admission]:
    admission = Admission("read", limit)
    loop = SimulatedLoop(admission)
    Pressure(cast("ServingLoop", loop), [admission], lambda: int(loop.arrived)).start()
    return loop, admission


def test_a_loop_with_time_to_spare_takes_nobody_in() -> None:
    loop, admission = pressed()
    for share in (1.0, 0.5, IDLE_SHARE + 0.01):
        loop.idle, loop.stretch = share, 0.0
        for _ in range(1_000):
            loop.run(0.001)
            assert not admission.held


def test_taking_in_ends_when_nothing_comes() -> None:
    loop, admission = pressed()
    loop.idle = 0.0
    loop.run(BUSY_SECONDS + FIRST_CHECK_SECONDS / 2)
    assert admission.held
    loop.run(TAKING_IN_SECONDS / 2)
    assert admission.held
    loop.idle = 1.0
    loop.run(2 * CHECK_SECONDS)
    assert not admission.held


def test_a_lone_caller_waits_no_longer_than_it_takes_to_tell_that_it_is_alone() -> None:
    loop, admission = pressed()
    loop.idle = 0.0
    loop.until_held()
    # It waits, and nothing else comes.
    loop.idle, loop.coming_in = 1.0, 0.0
    loop.run(FIRST_CHECK_SECONDS)
    assert QUIET_SECONDS < FIRST_CHECK_SECONDS < CHECK_SECONDS
    assert not admission.held


def test_taking_in_ends_when_no_more_comes_than_usual() -> None:
    loop, admission = pressed()
    loop.idle = 0.0
    loop.until_held()
    loop.run(TAKING_IN_SECONDS / 2)
    assert admission.held
    # gRPC has no more than what comes.
    loop.coming_in = loop.coming
    loop.run(2 * CHECK_SECONDS)
    assert not admission.held


def test_half_of_the_time_is_for_answers() -> None:
    loop, admission = pressed()
    loop.idle = 0.0
    held = 0
    for _ in range(10_000):
        loop.run(0.001)
        held += admission.held
    most = TAKING_IN_SECONDS + CHECK_SECONDS
    assert 0.45 < held / 10_000 <= most / (most + BUSY_SECONDS) + 0.001 < 0.52


def test_where_calls_come_for_as_long_as_they_can_few_may_wait() -> None:
    loop, admission = pressed(1_000)

    def taken_in() -> int:
        """How many may wait after calls were taken in once more."""
        loop.until_held()
        loop.until_held(held=False)
        return admission._most_waiting

    loop.idle = 0.0
    assert taken_in() == 2_000
    admission._entered += 400
    # 400 in the time between two: a quarter of a second's.
    assert taken_in() == int(400 / BUSY_SECONDS * WAIT_SECONDS)
    assert taken_in() == LEAST_WAITING
    # Half of those that may run wait for something else.
    admission._running += 501
    assert taken_in() == 2_000
    admission._running -= 501
    assert taken_in() == LEAST_WAITING
    # Few came for a time.
    loop.coming_in = loop.coming
    assert [taken_in() for _ in range(CROWDED_MOST)][-1] == 2_000
    loop.coming_in = 1_000
    taken_in()
    assert taken_in() == LEAST_WAITING
    loop.idle, loop.stretch = 1.0, 1.0
    loop.run(2 * BUSY_SECONDS)
    assert admission._most_waiting == 2_000


async def test_who_was_held_is_let_in_one_by_one_and_in_order() -> None:
    admission = Admission("read", 3)
    admission.hold()
    turns: list[int] = []
    order: list[int] = []

    async def call(number: int) -> None:
        await admission.enter()
        order.append(number)
        turns.append(turn)
        admission.leave()

    turn = 0
    calls = [asyncio.create_task(call(number)) for number in range(6)]
    await asyncio.sleep(0)
    # None runs, so that the places of those that may are for waiting too.
    assert (admission.running, admission.waiting, admission.full) == (0, 6, True)
    assert not admission.try_enter()
    admission.release()
    while not all(one.done() for one in calls):
        turn += 1
        await asyncio.sleep(0)
    assert order == [0, 1, 2, 3, 4, 5]
    assert len(set(turns)) == 6
    assert admission.try_enter()


async def test_a_held_place_is_for_who_waits_longest() -> None:
    admission = Admission("read", 1)
    admission.hold()
    first = asyncio.create_task(admission.enter())
    await asyncio.sleep(0)
    admission.release()
    # It came later, and before the turn in which the first is let in.
    assert not admission.try_enter()
    await first
    assert admission.running == 1


def slow(monkeypatch: pytest.MonkeyPatch, served: Served, seconds: float) -> None:
    """Make a recall keep the loop busy, as a search does."""

    async def recall(*_: Any) -> RecallResult:
        time.sleep(seconds)  # noqa: ASYNC251 - it is what this is about
        return RecallResult((), 0, truncated=False)

    monkeypatch.setattr(served.app.gate, "recall", recall)


async def flood(served: Served, calls: int) -> list[grpc.aio.AioRpcError]:
    """The failures of so many calls at once."""
    answers = await asyncio.gather(
        *(served.memory.Recall(RECALL, timeout=60) for _ in range(calls)), return_exceptions=True
    )
    return [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]


@pytest.mark.parametrize("notices", [True, False])
def test_a_loop_that_is_never_idle_refuses_those_for_whom_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch, *, notices: bool
) -> None:
    async def run() -> list[grpc.aio.AioRpcError]:
        async with serving(server={"read_concurrency": 4}) as served:
            slow(monkeypatch, served, 0.005)
            return await flood(served, 300)

    factory = ServingLoop if notices else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        failures = runner.run(run())
    # On another loop nearly all of them wait where nobody sees them.
    assert (len(failures) > 100) is notices
    for error in failures:
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        delay = detail(error, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds()
        assert 500 <= delay <= 1_000
        assert trailer(error, PUSHBACK_KEY) == str(delay)
        assert trailer(error, "x-request-id")
    # Some are answered all the same.
    assert len(failures) < 300


async def test_a_probe_does_not_wait_for_the_calls_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        slow(monkeypatch, served, 0.005)
        calls = [asyncio.ensure_future(served.memory.Recall(RECALL, timeout=60)) for _ in range(300)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        health = health_pb2_grpc.HealthStub(served.channel)
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING
        assert sum(call.done() for call in calls) < 150
        await asyncio.gather(*calls)
