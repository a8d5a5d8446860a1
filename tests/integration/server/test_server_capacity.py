"""Many calls on one channel with the default settings: calls wait for each other, and streams too many are told so."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from astrocyte import server
from astrocyte.v1 import admin_pb2, memory_pb2
from harness.serving import Served, detail, reason, serving

RETAIN = memory_pb2.RetainRequest(bank_id="family", content="Mara cannot eat sesame.")
RECALL = memory_pb2.RecallRequest(bank_id="family", query="Mara")
CALLS, STREAMS = 1_000, 256


async def outcome(call: Any) -> grpc.aio.AioRpcError | None:
    """The error of a stream at its first message; None where it is open."""
    try:
        await asyncio.wait_for(call.read(), 20)
    except grpc.aio.AioRpcError as error:
        return error
    return None


async def burst(served: Served, *, only_recalls: bool = False) -> list[Any]:
    """The answers to many calls at once on one channel, kind by kind."""
    await served.memory.Retain(RETAIN)
    answers = []
    for method, request in (
        (served.memory.Recall, RECALL),
        (served.memory.Retain, RETAIN),
        (served.admin.GetServerInfo, admin_pb2.GetServerInfoRequest()),
    )[: 1 if only_recalls else 3]:
        calls = [method(request, timeout=60) for _ in range(CALLS)]
        answers += await asyncio.gather(*calls, return_exceptions=True)
    return answers


async def test_a_burst_on_one_channel_is_answered() -> None:
    async with serving() as served:
        assert not [answer for answer in await burst(served) if isinstance(answer, BaseException)]


async def test_without_turns_of_a_connection_a_burst_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(server, "CONNECTION_CALLS", 10_000)
    async with serving() as served:
        refused = [one for one in await burst(served, only_recalls=True) if isinstance(one, grpc.aio.AioRpcError)]
    assert {error.code() for error in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}


async def watched(served: Served) -> tuple[list[Any], list[grpc.aio.AioRpcError]]:
    """Watches of one channel that are open, and the failures of the others."""
    request = memory_pb2.WatchRequest(bank_id="family", after_position=0)
    watches = [served.memory.Watch(request) for _ in range(2 * STREAMS)]
    outcomes = await asyncio.gather(*map(outcome, watches))
    opened = [watch for watch, failure in zip(watches, outcomes, strict=True) if failure is None]
    return opened, [failure for failure in outcomes if failure is not None]


async def test_streams_beyond_the_limit_are_refused_at_once_and_take_no_place_of_others() -> None:
    async with serving() as served:
        await served.memory.Retain(RETAIN)
        opened, failures = await asyncio.wait_for(watched(served), 20)
        assert (len(opened), len(failures)) == (STREAMS, STREAMS)
        for failure in failures:
            assert (failure.code(), reason(failure)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
            assert detail(failure, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds() >= 500
        # Writers, and whoever waits for an operation, have places of their own.
        item = memory_pb2.StreamRetainRequest(bank_id="family", item=memory_pb2.RetainItem(content="Tom bakes bread."))
        answers = [answer async for answer in served.memory.StreamRetain(iter([item]), timeout=20)]
        assert answers[0].HasField("result")
        assert (await served.memory.Recall(RECALL, timeout=20)).hits
        for watch in opened:
            watch.cancel()
