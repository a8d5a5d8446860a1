"""Consumers of polls: new items, changed items, failures, limits and crashes, over a service in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from astrocyte.api import Request
from astrocyte.api.requests import DeleteBank, Forget, GetMemory, History, ListMemories, StreamRetain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.sources.polls import PollSource
from astrocyte.errors import AstrocyteError, ConfigError, FailedPrecondition, LimitReached, Unavailable
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.polls import PollConsumer
from astrocyte.ingest.supervisor import Supervisor
from astrocyte.model import Caller, ForgetSelector, RecallQuery, SourceState
from astrocyte.providers.ingest.protocols import PollDriver, PollItem, PollPage

COLOURS = ("red", "blue", "green", "white", "black", "grey", "pink", "brown", "gold", "violet", "orange", "cyan")


def text(number: int) -> str:
    return f"Ship {number} is {COLOURS[number % len(COLOURS)]}."


class Shelf:
    """A service in memory: items in the order of their changes, and a cursor that counts them."""

    place = "shelf"

    def __init__(self, documents: Sequence[Mapping[str, Any]] = ()) -> None:
        self.changes: list[PollItem] = []
        self.failures: list[Exception] = []
        self.cursors: list[Mapping[str, Any]] = []
        self.refused = 0
        for number, document in enumerate(documents):
            self.put(str(number), document)

    def put(self, item_id: str, document: Mapping[str, Any]) -> None:
        self.changes.append(PollItem(item_id, f"v{len(self.changes)}", document))

    async def open(self) -> None:
        pass

    async def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        self.cursors.append(cursor)
        # The last one comes again, as with services whose `since` is inclusive.
        start = max(0, cursor.get("next", 0) - 1)
        for first in range(start, len(self.changes), limit):
            await asyncio.sleep(0)
            if self.failures:
                raise self.failures.pop(0)
            part = self.changes[first : first + limit]
            yield PollPage(part, {"next": first + len(part)}, self.refused)

    async def close(self) -> None:
        pass


class Failing:
    """A backend that fails as it is told, before or after it has stored."""

    def __init__(self, app: App, fail: Callable[[Request[Any]], Exception | None], *, after: bool = False) -> None:
        self.app, self.fail, self.after = app, fail, after
        self.seen: list[Request[Any]] = []

    async def call(self, caller: Caller, request: Request[Any]) -> Any:
        self.seen.append(request)
        failure = self.fail(request)
        if failure is not None and not self.after:
            raise failure
        results = await self.app.backend.call(caller, request)
        if failure is not None:
            raise failure
        return results

    stream = close = None


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def made(app: App, shelf: PollDriver, backend: Any = None, **values: Any) -> tuple[PollConsumer, SourceBoard, Clock]:
    source = PollSource.model_validate({"type": "poll", "driver": "shelf", "target_bank": "ships", **values})
    board, clock = SourceBoard({"ships": source}), Clock()
    store = app.storage.store.ingest
    consumer = PollConsumer("ships", source, shelf, backend or app.backend, store, board, app._completed, clock)
    return consumer, board, clock


async def poll(consumer: PollConsumer, board: SourceBoard, clock: Clock) -> list[Exception]:
    """Step until the poll is at its end; returns the failures on the way."""
    failures: list[Exception] = []
    clock.now += 1_000_000.0
    for _ in range(1_000):
        try:
            await consumer.step()
        except AstrocyteError as error:
            failures.append(error)
        except Exception as error:  # noqa: BLE001 - as the supervisor does
            failures.append(error)
            await consumer.close()
            await consumer.open()
        if board.listed()[0].state in {SourceState.WAITING, SourceState.RESTING} and consumer._pages is None:
            return failures
        assert board.listed()[0].state in {SourceState.RUNNING, SourceState.STOPPED} or failures
    raise AssertionError("the poll did not end")


async def contents(app: App, bank_id: str = "ships") -> list[str]:
    page = await app.gate.call(Caller(), ListMemories(bank_id, page_size=1_000))
    return [memory.content for memory in page.memories]


@pytest.fixture
async def app() -> Any:
    opened = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield opened
    await opened.close()


async def test_items_become_memories_once(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(10)])
    consumer, board, clock = made(app, shelf, batch_size=4)
    for _ in range(3):
        assert await poll(consumer, board, clock) == []
    assert await contents(app) == [text(number) for number in range(10)]
    shelf.put("10", {"content": text(10)})
    await poll(consumer, board, clock)
    assert await contents(app) == [text(number) for number in range(11)]
    info = board.listed()[0]
    # The last item came again in each of three polls.
    assert (info.stored, info.duplicates, info.refused, info.failed, info.healthy) == (11, 3, 0, 0, True)
    assert shelf.cursors == [{}, {"next": 10}, {"next": 10}, {"next": 10}]


async def test_an_item_that_changed_is_a_new_version_of_its_memory(app: App) -> None:
    shelf = Shelf([{"content": text(1), "tags": ["old"], "metadata": {"n": 1}}, {"content": text(2)}])
    consumer, board, clock = made(app, shelf, tags=["fleet"])
    await poll(consumer, board, clock)
    before = (await app.gate.call(Caller(), ListMemories("ships"))).memories[0]
    now = {"content": "Ship 1 was sold.", "tags": ["new"], "metadata": {"n": 2}, "source": "https://ships/1"}
    shelf.put("0", now)
    await poll(consumer, board, clock)
    after = await app.gate.call(Caller(), GetMemory("ships", before.memory_id))
    assert (after.content, after.tags, after.metadata, after.source) == (
        "Ship 1 was sold.",
        ("fleet", "new"),
        {"n": 2},
        "https://ships/1",
    )
    assert (before.version, after.version) == (1, 2)
    assert sorted(await contents(app)) == ["Ship 1 was sold.", text(2)]
    past = await app.gate.call(Caller(), History(RecallQuery("ship 1", bank_id="ships", as_of=before.updated_at)))
    assert past.hits[0].text == text(1)
    # Another process knows it as well.
    shelf.put("0", {"content": "Ship 1 was bought back."})
    again, board, clock = made(app, shelf)
    await poll(again, board, clock)
    assert sorted(await contents(app)) == ["Ship 1 was bought back.", text(2)]


async def test_a_new_version_has_what_its_extraction_profile_adds(app: App) -> None:
    await app.close()
    profile = {"tag_rules": [{"contains": "sold", "tags": ["sale"]}], "metadata_mapping": {"kind": "ship"}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "extraction_profiles": {"ship": profile}}))
    shelf = Shelf([{"content": text(1)}])
    consumer, board, clock = made(app, shelf, extraction_profile="ship")
    await poll(consumer, board, clock)
    shelf.put("0", {"content": "Ship 1 was sold."})
    await poll(consumer, board, clock)
    (memory,) = (await app.gate.call(Caller(), ListMemories("ships"))).memories
    assert (memory.tags, memory.metadata, memory.version) == (("sale",), {"kind": "ship"}, 2)
    await app.close()


async def test_a_changed_item_whose_memory_was_forgotten_is_stored_again_and_others_are_not(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(3)])
    consumer, board, clock = made(app, shelf)
    await poll(consumer, board, clock)
    memories = (await app.gate.call(Caller(), ListMemories("ships"))).memories
    selector = ForgetSelector(memory_ids=tuple(memory.memory_id for memory in memories[:2]))
    await app.gate.call(Caller(), Forget("ships", selector))
    shelf.put("0", {"content": "Ship 0 is back."})
    await poll(consumer, board, clock)
    assert sorted(await contents(app)) == sorted(["Ship 0 is back.", text(2)])


async def test_a_bank_that_was_deleted_gets_what_changes_later(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(3)])
    consumer, board, clock = made(app, shelf)
    await poll(consumer, board, clock)
    await app.gate.call(Caller(), DeleteBank("ships"))
    shelf.put("1", {"content": "Ship 1 is back."})
    assert await poll(consumer, board, clock) == []
    assert await contents(app) == ["Ship 1 is back."]


async def test_a_duplicate_of_another_memory_never_changes_that_one(app: App) -> None:
    shelf = Shelf([{"content": text(1)}, {"content": text(1)}])
    consumer, board, clock = made(app, shelf)
    await poll(consumer, board, clock)
    assert await contents(app) == [text(1)]
    shelf.put("1", {"content": text(5)})
    await poll(consumer, board, clock)
    assert await contents(app) == [text(1), text(5)]


async def test_wrong_items_are_refused_once_and_passed_over(app: App) -> None:
    shelf = Shelf([{"content": text(0)}, {"content": 5}, {"nothing": "here"}, {"content": text(1)}])
    shelf.refused = 2
    consumer, board, clock = made(app, shelf)
    await poll(consumer, board, clock)
    assert await contents(app) == [text(0), text(1)]
    assert (board.listed()[0].refused, board.listed()[0].stored, board.healthy) == (4, 2, True)
    shelf.refused = 0
    shelf.put("0", {"content": ""})
    await poll(consumer, board, clock)
    # The memory stays as it was, and follows the item again when that can be stored.
    assert await contents(app) == [text(0), text(1)]
    shelf.put("0", {"content": text(7)})
    await poll(consumer, board, clock)
    assert sorted(await contents(app)) == sorted([text(7), text(1)])
    assert board.listed()[0].refused == 5


async def test_a_limit_of_the_service_is_a_rest_and_no_failure(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(4)])
    shelf.failures = [LimitReached("wait", retry_after=90.0), LimitReached("wait", retry_after=1e9)]
    consumer, board, clock = made(app, shelf, batch_size=2)
    assert await poll(consumer, board, clock) == []
    assert (board.listed()[0].state, board.listed()[0].failed, board.healthy) == (SourceState.RESTING, 0, True)
    # It is asked after the time that it named, and no earlier.
    assert consumer._due == clock.now + 90.0
    waiting = asyncio.create_task(consumer.step())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await poll(consumer, board, clock)
    assert consumer._due == clock.now + 86_400.0
    await poll(consumer, board, clock)
    assert await contents(app) == [text(number) for number in range(4)]
    assert board.listed()[0].state is SourceState.WAITING


async def test_failures_of_the_service_repeat_no_page(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(6)])
    consumer, board, clock = made(app, shelf, batch_size=2)
    shelf.failures = [FailedPrecondition("status 401"), ConnectionResetError()]
    assert [type(error) for error in await poll(consumer, board, clock)] == [FailedPrecondition, ConnectionResetError]
    assert await contents(app) == [text(number) for number in range(6)]


async def test_a_limit_of_the_bank_keeps_the_page(app: App) -> None:
    failures = iter([None, LimitReached("later", retry_after=1.0), Unavailable("later"), *[None] * 100])
    backend = Failing(app, lambda _: next(failures))
    shelf = Shelf([{"content": text(number)} for number in range(6)])
    consumer, board, clock = made(app, shelf, backend, batch_size=2)
    assert [type(one) for one in await poll(consumer, board, clock)] == [LimitReached, Unavailable]
    assert await contents(app) == [text(number) for number in range(6)]
    # One poll: the page was kept, and not asked for again.
    assert shelf.cursors == [{}]


async def test_what_was_durable_before_a_crash_is_not_stored_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(4)])
    first, board, clock = made(app, shelf)
    store = app.storage.store.ingest
    with monkeypatch.context() as patch:
        patch.setattr(store, "advance_poll", killed)
        with pytest.raises(KilledError):
            await first.step()
    assert await contents(app) == [text(number) for number in range(4)]
    second, board, clock = made(app, shelf)
    await poll(second, board, clock)
    assert await contents(app) == [text(number) for number in range(4)]
    # What the second process got is the memories of the first one, which follow their items.
    shelf.put("2", {"content": "Ship 2 was sold."})
    with monkeypatch.context() as patch:
        patch.setattr(store, "advance_poll", killed)
        with pytest.raises(KilledError):
            await second_step(second, clock)
    third, board, clock = made(app, shelf)
    await poll(third, board, clock)
    page = await app.gate.call(Caller(), ListMemories("ships"))
    assert sorted(memory.content for memory in page.memories) == sorted([text(0), text(1), "Ship 2 was sold.", text(3)])
    assert max(memory.version for memory in page.memories) == 2


class KilledError(Exception):
    pass


async def killed(*_: object) -> None:
    raise KilledError


async def second_step(consumer: PollConsumer, clock: Clock) -> None:
    clock.now += 1_000_000.0
    await consumer.step()


async def test_an_item_that_fails_for_no_known_reason_is_refused_after_some_tries(app: App) -> None:
    def fail(request: Request[Any]) -> Exception | None:
        items = request.items if isinstance(request, StreamRetain) else []
        return RuntimeError() if any("Ship 4 " in item.content for item in items) else None

    shelf = Shelf([{"content": text(number)} for number in range(8)])
    consumer, board, clock = made(app, shelf, Failing(app, fail), max_tries=3)
    assert len(await poll(consumer, board, clock)) == 3
    assert sorted(await contents(app)) == sorted(text(number) for number in range(8) if number != 4)
    assert (board.listed()[0].refused, board.listed()[0].stored) == (1, 7)


async def test_an_update_that_fails_for_now_is_tried_again(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(3)])
    failures = iter([Unavailable("later"), Unavailable("later")])

    def fail(request: Request[Any]) -> Exception | None:
        return next(failures, None) if isinstance(request, UpdateMemory) else None

    backend = Failing(app, fail, after=True)
    consumer, board, clock = made(app, shelf, backend)
    await poll(consumer, board, clock)
    for number in range(3):
        shelf.put(str(number), {"content": f"Ship {number} was sold to {COLOURS[number]} owners."})
    assert len(await poll(consumer, board, clock)) == 2
    page = await app.gate.call(Caller(), ListMemories("ships"))
    assert [memory.version for memory in page.memories] == [2, 2, 2]
    assert all("was sold" in memory.content for memory in page.memories)


async def test_another_place_begins_anew(app: App) -> None:
    shelf = Shelf([{"content": text(0)}])
    consumer, board, clock = made(app, shelf)
    await poll(consumer, board, clock)
    other = Shelf([{"content": text(1)}])
    other.place = "other shelf"
    consumer, board, clock = made(app, other)
    await poll(consumer, board, clock)
    assert other.cursors == [{}]
    assert await contents(app) == [text(0), text(1)]


async def test_items_go_to_the_bank_of_their_principal(app: App) -> None:
    shelf = Shelf([{"content": text(0), "principal": "ann"}])
    source = {"target_bank": None, "target_bank_template": "fleet-{principal}"}
    consumer, board, clock = made(app, shelf, **source)
    await poll(consumer, board, clock)
    shelf.put("0", {"content": text(0), "principal": "bob"})
    await poll(consumer, board, clock)
    assert await contents(app, "fleet-ann") == await contents(app, "fleet-bob") == [text(0)]


async def test_the_supervisor_runs_it(app: App) -> None:
    shelf = Shelf([{"content": text(number)} for number in range(8)])
    shelf.failures = [LimitReached("wait", retry_after=0.01), ConnectionResetError()]
    consumer, board, _ = made(app, shelf, batch_size=3)
    consumer._clock = asyncio.get_running_loop().time
    supervisor = Supervisor({"ships": consumer}, board)
    supervisor.start()
    async with asyncio.timeout(30):
        while board.listed()[0].stored < 8:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    assert board.listed()[0].failed == 1
    await supervisor.stop()
    assert board.listed()[0].state is SourceState.STOPPED
    assert await contents(app) == [text(number) for number in range(8)]


def settings(**source: Any) -> Settings:
    return Settings.from_mapping({"vector_store": "in_memory", "sources": {"ships": {"target_bank": "b", **source}}})


def test_settings_say_what_is_wrong() -> None:
    found = settings(type="api_poll", driver="github", path="a/b", auth={"token": "t"}).sources["ships"]
    assert isinstance(found, PollSource)
    assert (found.type, found.interval_seconds) == ("poll", 300.0)
    for values, message in (
        ({"driver": "github", "path": "a/b", "interval_seconds": 59}, "at least 60"),
        ({"driver": "json", "options": {"url": "https://a"}}, "url is a key of the source"),
        ({"driver": "json", "auth": {"type": "basic", "username": "a:b", "password": "c"}}, "without a colon"),
        ({"driver": "json", "interval_seconds": 0.5}, "greater than or equal to 1|at least 1|≥ 1|>= 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            settings(type="poll", **values)


def test_a_driver_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"sources\.ships\.driver: there is no provider 'gitub'; did you mean 'github'"
    ):
        App(settings(type="poll", driver="gitub"))
