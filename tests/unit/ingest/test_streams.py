"""Consumers of streams: order, failures, dead letters, over a stream in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from astrocyte.api import Request
from astrocyte.api.requests import ListMemories, StreamRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.sources.kinds import StreamSource
from astrocyte.errors import AstrocyteError, LimitReached, Unavailable
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.streams import StreamConsumer
from astrocyte.ingest.supervisor import LONGEST_REST_SECONDS, Supervisor, rest_after
from astrocyte.model import Caller, SourceState
from astrocyte.providers.ingest.protocols import StreamDriver, StreamMessage

STREAM: dict[str, Any] = {"type": "stream", "driver": "redis", "url": "redis://localhost", "topic": "t"}
COLOURS = ("red", "blue", "green", "white", "black", "grey", "pink", "brown", "gold", "violet", "orange", "cyan")


class Tape:
    """A stream in memory: what is not acknowledged is delivered again after `open`."""

    def __init__(self, documents: Sequence[dict[str, Any] | None]) -> None:
        self.entries = [StreamMessage(str(number), document) for number, document in enumerate(documents)]
        self.acknowledged: list[str] = []
        self.aside: list[tuple[str, str]] = []
        self.next = 0

    async def open(self) -> None:
        self.next = 0

    async def read(self, limit: int, wait_seconds: float) -> list[StreamMessage]:
        await asyncio.sleep(0)
        left = [entry for entry in self.entries[self.next :] if entry.position not in self.acknowledged][:limit]
        self.next = int(left[-1].position) + 1 if left else self.next
        return left

    async def acknowledge(self, messages: Sequence[StreamMessage]) -> None:
        self.acknowledged += [message.position for message in messages]

    async def set_aside(self, message: StreamMessage, reason: str) -> None:
        self.aside.append((message.position, reason))
        self.acknowledged.append(message.position)

    async def lag(self) -> int | None:
        return len(self.entries) - len(self.acknowledged)

    async def close(self) -> None:
        pass


class Failing:
    """A backend that fails as it is told, before or after it has stored."""

    def __init__(self, app: App, fail: Callable[[StreamRetain], Exception | None]) -> None:
        self.app, self.fail, self.after = app, fail, False
        self.seen: list[int] = []

    async def call(self, caller: Caller, request: Request[Any]) -> Any:
        assert isinstance(request, StreamRetain)
        self.seen.append(len(request.items))
        failure = self.fail(request)
        if failure is not None and not self.after:
            raise failure
        results = await self.app.backend.call(caller, request)
        if failure is not None:
            raise failure
        return results

    stream = close = None


def text(number: int) -> str:
    return f"Ship {number} is {COLOURS[number % len(COLOURS)]}."


def made(tape: StreamDriver, backend: Any, **values: Any) -> tuple[StreamConsumer, SourceBoard]:
    values = {**STREAM, "target_bank": "ships", **values}
    if "target_bank_template" in values:
        del values["target_bank"]
    source = StreamSource.model_validate(values)
    board = SourceBoard({"ships": source})
    return StreamConsumer("ships", source, tape, backend, board), board


async def drained(consumer: StreamConsumer, tape: Tape, rounds: int = 1_000) -> list[Exception]:
    """Step until everything is acknowledged; returns the failures on the way."""
    failures: list[Exception] = []
    await consumer.open()
    for _ in range(rounds):
        if len(set(tape.acknowledged)) == len(tape.entries):
            return failures
        try:
            await consumer.step()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            failures.append(error)
            if not isinstance(error, AstrocyteError):
                await consumer.open()
    raise AssertionError("the stream was not drained")


async def contents(app: App, bank_id: str = "ships") -> list[str]:
    page = await app.gate.call(Caller(), ListMemories(bank_id, page_size=1_000))
    return [memory.content for memory in page.memories]


@pytest.fixture
async def app() -> Any:
    opened = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield opened
    await opened.close()


async def test_messages_become_memories_in_order_and_wrong_ones_dead_letters(app: App) -> None:
    documents: list[dict[str, Any] | None] = [{"content": text(number)} for number in range(10)]
    documents[3] = None
    documents[5] = {"content": 5}
    tape = Tape(documents)
    consumer, board = made(tape, app.backend, batch_size=4)
    assert await drained(consumer, tape) == []
    assert await contents(app) == [text(number) for number in range(10) if number not in {3, 5}]
    assert tape.aside == [("3", "INVALID_ARGUMENT"), ("5", "INVALID_ARGUMENT")]
    (info,) = board.listed()
    assert (info.stored, info.refused, info.failed, info.healthy) == (8, 2, 0, True)


async def test_a_limit_in_the_middle_of_a_batch_keeps_the_order_of_each_bank() -> None:
    limits = {"homeostasis": {"rate_limits": {"retain_per_minute": 120}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **limits}))
    app.policies.limits._buckets._clock = ticking()
    tape = Tape([{"content": text(number), "principal": f"p{number % 2}"} for number in range(400)])
    consumer, _ = made(tape, app.backend, target_bank_template="fleet-{principal}", batch_size=300)
    failures = await drained(consumer, tape)
    assert failures
    assert {type(one) for one in failures} == {LimitReached}
    for bank in range(2):
        assert await contents(app, f"fleet-p{bank}") == [text(number) for number in range(bank, 400, 2)]
    await app.close()


def ticking() -> Callable[[], int]:
    """A clock that advances whenever it is read, so that a limit refuses one item and would admit the next."""
    now = 0

    def read() -> int:
        nonlocal now
        now += 60_000_000
        return now

    return read


async def test_what_was_stored_before_a_failure_is_not_stored_again(app: App) -> None:
    failures = iter([Unavailable("later"), RuntimeError(), *[None] * 1_000])
    backend = Failing(app, lambda _: next(failures))
    backend.after = True
    tape = Tape([{"content": text(number)} for number in range(8)])
    consumer, board = made(tape, backend)
    assert [type(one) for one in await drained(consumer, tape)] == [Unavailable, RuntimeError]
    assert await contents(app) == [text(number) for number in range(8)]
    assert not tape.aside
    assert board.listed()[0].stored == 8


async def test_a_message_that_fails_for_no_known_reason_is_a_dead_letter_after_some_tries(app: App) -> None:
    def fail(request: StreamRetain) -> Exception | None:
        return RuntimeError() if any("Ship 4 " in item.content for item in request.items) else None

    backend = Failing(app, fail)
    tape = Tape([{"content": text(number)} for number in range(8)])
    consumer, _ = made(tape, backend, max_tries=3)
    failures = await drained(consumer, tape)
    assert await contents(app) == [text(number) for number in range(8) if number != 4]
    assert tape.aside == [("4", "INTERNAL")]
    assert len(failures) == 3
    # Once together, then one by one.
    assert backend.seen[0] == 8
    assert set(backend.seen[1:]) == {1}


async def test_a_state_of_the_server_makes_no_dead_letter(app: App) -> None:
    failures = iter([*[Unavailable("stopping")] * 50, *[None] * 1_000])
    tape = Tape([{"content": text(number)} for number in range(8)])
    consumer, _ = made(tape, Failing(app, lambda _: next(failures)), max_tries=2)
    assert len(await drained(consumer, tape)) == 50
    assert await contents(app) == [text(number) for number in range(8)]
    assert not tape.aside


async def test_a_wrong_bank_is_the_fault_of_its_messages(app: App) -> None:
    principals = ["ann", "a b", "bob"]
    tape = Tape([{"content": text(number), "principal": name} for number, name in enumerate(principals)])
    consumer, _ = made(tape, app.backend, target_bank_template="user-{principal}")
    assert await drained(consumer, tape) == []
    assert tape.aside == [("1", "INVALID_ARGUMENT")]


async def test_the_supervisor_rests_and_begins_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astrocyte.ingest.supervisor.FIRST_REST_SECONDS", 0.001)
    tape = Tape([{"content": text(number)} for number in range(8)])
    broken = iter([True, True, False])
    opened = tape.open

    async def open_() -> None:
        if next(broken, False):
            raise ConnectionError
        await opened()

    monkeypatch.setattr(tape, "open", open_)
    consumer, board = made(tape, app.backend)
    supervisor = Supervisor({"ships": consumer}, board)
    supervisor.start()
    async with asyncio.timeout(30):
        while len(tape.acknowledged) < 8:  # noqa: ASYNC110 - the tape tells nobody
            await asyncio.sleep(0.01)
    assert board.listed()[0].failed == 2
    assert board.healthy
    await supervisor.stop()
    assert board.listed()[0].state is SourceState.STOPPED


def test_rests_grow_and_a_limit_says_how_long() -> None:
    rests = [rest_after(failures, ConnectionError()) for failures in range(1, 100)]
    assert rests[0] <= 0.5
    assert max(rests) <= LONGEST_REST_SECONDS
    assert min(rests[10:]) >= LONGEST_REST_SECONDS * 0.75
    assert rest_after(9, LimitReached("x", retry_after=1.5)) == 1.5


class Placed(Tape):
    """A stream that has to hear of its consumer."""

    kept = 0

    async def keep_place(self) -> None:
        self.kept += 1


async def test_a_consumer_whose_messages_wait_keeps_its_place() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    tape = Placed([{"content": text(number)} for number in range(3)])
    failures: list[Exception | None] = [Unavailable("down"), Unavailable("down"), None]
    backend = Failing(app, lambda _: failures.pop(0))
    source = StreamSource.model_validate({**STREAM, "target_bank": "ships"})
    board = SourceBoard({"ships": source})
    consumer = StreamConsumer("ships", source, tape, backend, board)  # type: ignore[arg-type]
    await consumer.open()
    for kept in (0, 1):
        with pytest.raises(Unavailable):
            await consumer.step()
        assert tape.kept == kept
    await consumer.step()
    assert (tape.kept, tape.acknowledged) == (2, ["0", "1", "2"])
    # With nothing kept, the next step reads.
    await consumer.step()
    assert tape.kept == 2
    await app.close()
