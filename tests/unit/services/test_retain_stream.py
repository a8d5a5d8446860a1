from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import StreamRetain
from astrocyte.errors import AstrocyteError, BankNotFound, Unavailable, ValidationError
from astrocyte.model import Caller, RetainResult
from astrocyte.services.draining import Draining
from astrocyte.services.retain_stream import BATCH_ITEMS, IN_FLIGHT_ITEMS, retain_stream
from astrocyte.v1 import memory_pb2

Request = memory_pb2.StreamRetainRequest


class Recorder:
    """A gate that notes what it is given and answers with the content as the memory id."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str], list[str | None]]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def call(self, _: Caller, request: StreamRetain) -> list[RetainResult | AstrocyteError]:
        await self.open.wait()
        self.calls.append((request.bank_id, [item.content for item in request.items], list(request.request_ids)))
        if request.bank_id == "missing":
            raise BankNotFound(request.bank_id)
        return [
            RetainResult(stored=True, memory_id=item.content)
            if item.content
            else ValidationError("is empty", field="x")
            for item in request.items
        ]


def requests(*sent: Request, then: AstrocyteError | asyncio.Event | None = None) -> AsyncIterator[Request]:
    async def iterate() -> AsyncIterator[Request]:
        for request in sent:
            yield request
        if isinstance(then, AstrocyteError):
            raise then
        if then is not None:
            await then.wait()

    return iterate()


def item(sequence: int, content: str = "text", bank_id: str = "", **more: Any) -> Request:
    return Request(sequence=sequence, bank_id=bank_id, item=memory_pb2.RetainItem(content=content), **more)


def stream(gate: Recorder, sent: AsyncIterator[Request], draining: Draining | None = None) -> AsyncIterator[Any]:
    return retain_stream(cast(Backend, gate), Caller(), sent, draining or Draining())


async def test_answers_come_in_order_with_their_numbers() -> None:
    gate = Recorder()
    sent = requests(*(item(100 - i, f"text {i}", "bank") for i in range(200)))
    answers = [answer async for answer in stream(gate, sent)]
    assert [(answer.sequence, answer.result.memory_id) for answer in answers] == [
        (100 - i, f"text {i}") for i in range(200)
    ]
    assert max(len(contents) for _, contents, _ in gate.calls) <= BATCH_ITEMS
    assert len(gate.calls) <= 6


async def test_a_bank_holds_until_another_is_named() -> None:
    gate = Recorder()
    sent = requests(item(1, "a", "one"), item(2, "b"), item(3, "c", "two"), item(4, "d", "one", request_id="key"))
    answers = [answer async for answer in stream(gate, sent)]
    assert [answer.sequence for answer in answers] == [1, 2, 3, 4]
    stored = [
        (bank_id, content, request_id)
        for bank_id, contents, request_ids in gate.calls
        for content, request_id in zip(contents, request_ids, strict=True)
    ]
    assert sorted(stored) == [("one", "a", None), ("one", "b", None), ("one", "d", "key"), ("two", "c", None)]


async def test_an_item_that_fails_leaves_the_others_alone() -> None:
    bad = item(4, "x")
    bad.item.occurred_at.nanos = -1
    sent = requests(item(0, "x"), item(1, "x", "bank"), item(2, ""), Request(sequence=3), bad, item(5, "y", "missing"))
    answers = [answer async for answer in stream(Recorder(), sent)]
    assert [answer.error.code for answer in answers] == [3, 0, 3, 3, 3, 5]
    assert [answer.error.message for answer in answers if answer.HasField("error")] == [
        "bank_id: is empty; the first item of a stream must name a bank",
        "x: is empty",
        "item: is missing",
        "item.occurred_at: nanos must be from 0 to 999,999,999, got -1",
        "bank 'missing' does not exist; create it with CreateBank, or retain into it",
    ]


async def test_what_ends_the_reading_comes_after_the_answers_that_are_due() -> None:
    responses = stream(Recorder(), requests(item(1, "a", "bank"), then=ValidationError("broken", field="request")))
    assert (await anext(responses)).sequence == 1
    with pytest.raises(ValidationError, match="broken"):
        await anext(responses)


async def test_draining_answers_what_was_read_and_ends() -> None:
    draining = Draining()
    responses = stream(Recorder(), requests(item(1, "a", "bank"), then=asyncio.Event()), draining)
    assert (await anext(responses)).sequence == 1
    draining.begin()
    with pytest.raises(Unavailable, match="the server is stopping"):
        await anext(responses)


async def test_a_stream_that_nobody_answers_is_not_read_on() -> None:
    gate = Recorder()
    gate.open.clear()
    read = 0

    async def sent() -> AsyncIterator[Request]:
        nonlocal read
        while True:
            read += 1
            yield item(read, "text", "bank")

    responses = stream(gate, sent())
    first = asyncio.ensure_future(anext(responses))
    for _ in range(1_000):
        await asyncio.sleep(0)
    # One is in the reader's hand, waiting for room.
    assert read <= IN_FLIGHT_ITEMS + 1
    gate.open.set()
    assert (await first).sequence == 1
    await cast(Any, responses).aclose()


async def test_draining_answers_what_found_the_queue_full() -> None:
    gate, draining = Recorder(), Draining()
    gate.open.clear()
    read = 0

    async def sent() -> AsyncIterator[Request]:
        nonlocal read
        while True:
            read += 1
            yield item(read, "text", "bank")

    responses = stream(gate, sent(), draining)
    first = asyncio.ensure_future(anext(responses))
    for _ in range(1_000):
        await asyncio.sleep(0)
    draining.begin()
    gate.open.set()
    answers = [await first] + [await anext(responses) for _ in range(read - 1)]
    assert [answer.sequence for answer in answers] == list(range(1, read + 1))
    with pytest.raises(Unavailable):
        await anext(responses)


async def test_a_caller_that_goes_away_ends_the_reader() -> None:
    gate = Recorder()
    gate.open.clear()
    responses = stream(gate, requests(item(1, "a", "bank"), then=asyncio.Event()))
    waiting = asyncio.ensure_future(anext(responses))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert asyncio.all_tasks() == {asyncio.current_task()}
