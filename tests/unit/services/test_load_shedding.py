"""A crowd: who is refused and by whom, and that health waits for none of it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from astrocyte import server as serving_module
from astrocyte.api.requests import Recall
from astrocyte.core import GrpcServer
from astrocyte.model import RecallResult
from astrocyte.services.status import PUSHBACK_KEY
from astrocyte.services.transport import Transport
from astrocyte.v1 import memory_pb2
from harness.serving import Served, detail, serving, trailer

RECALL = memory_pb2.RecallRequest(bank_id="family", query="Mara")
CALLS = 300


def slow(monkeypatch: pytest.MonkeyPatch, served: Served, seconds: float) -> None:
    """Make a recall keep the loop busy, as a search does."""

    async def recall(*_: Any) -> RecallResult:
        time.sleep(seconds)  # noqa: ASYNC251 - it is what this is about
        return RecallResult((), 0, truncated=False)

    monkeypatch.setitem(served.app.gate._handlers, Recall, recall)


def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The calls that the loop hears of."""
    numbers: list[int] = []
    begin = Transport._begin

    def counted(self: Transport, number: int, call: Any) -> None:
        numbers.append(number)
        begin(self, number, call)

    monkeypatch.setattr(Transport, "_begin", counted)
    return numbers


@pytest.mark.parametrize("guarded", [True, False])
async def test_calls_beyond_the_bounds_are_refused_before_the_loop_hears_of_them(
    monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    if not guarded:
        monkeypatch.setattr(serving_module, "GrpcServer", _without_kinds)
    heard = begun(monkeypatch)
    async with serving(server={"read_concurrency": 4}) as served:
        slow(monkeypatch, served, 0.005)
        answers = await asyncio.gather(
            *(served.memory.Recall(RECALL, timeout=60) for _ in range(CALLS)), return_exceptions=True
        )
    failures = [answer for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
    assert 100 < len(failures) < CALLS
    assert (len(heard) == CALLS - len(failures)) is guarded
    for error in failures:
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        delay = detail(error, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds()
        assert 500 <= delay <= 1_000
        assert trailer(error, PUSHBACK_KEY) == str(delay)
        assert trailer(error, "x-request-id")


def _without_kinds(**options: Any) -> GrpcServer:
    return GrpcServer(**{**options, "kinds": [], "max_others": 10_000})


async def test_a_probe_does_not_wait_for_the_calls_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        slow(monkeypatch, served, 0.005)
        calls = [asyncio.ensure_future(served.memory.Recall(RECALL, timeout=60)) for _ in range(CALLS)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        health = health_pb2_grpc.HealthStub(served.channel)
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING
        assert sum(call.done() for call in calls) < CALLS / 2
        await asyncio.gather(*calls)
