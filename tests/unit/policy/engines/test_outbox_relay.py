"""The outbox: an engine that was away ends up with what this server has, and with nothing that was forgotten."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from astrocyte.api.requests import (
    BatchRetain,
    CreateBank,
    DeleteBank,
    Forget,
    GetBankStats,
    ListEngines,
    ListMemories,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.errors import AccessDenied, MemoryNotFound, PiiRejected, ProviderUnavailable, RateLimited
from astrocyte.model import (
    Caller,
    EngineOutbox,
    ForgetSelector,
    MemoryUpdate,
    OutboxState,
    RecallQuery,
    RetainItem,
)
from astrocyte.policy.engines import outbox_relay
from astrocyte.policy.gate import Gate
from astrocyte.providers.hybrid import HybridEngineProvider
from doubles.remote_embedders import RemoteEmbedder, remote_app
from harness.engines import Shelf, hybrid_app

ANN = Caller(principal="user:ann")
# Long enough that nothing recovers by itself within a test.
NEVER = 3_600.0
ALL = ForgetSelector(scope="all")


def escalation(recovery: float = NEVER, failures: int = 1_000) -> dict[str, Any]:
    breaker = {"failure_threshold": failures, "recovery_timeout_seconds": recovery, "half_open_max_calls": 1}
    return {"escalation": {"circuit_breaker": breaker}}


@asynccontextmanager
async def copying(shelf: Shelf, values: dict[str, Any] | None = None, **options: Any) -> AsyncIterator[App]:
    app = hybrid_app(shelf, settings={**escalation(), **(values or {})}, retain_target="both", **options)
    try:
        yield app
    finally:
        await app.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for is done by tasks of the application
            await asyncio.sleep(0.002)


async def caught_up(app: App) -> None:
    """The engine is back: let it have all."""
    app.policies.outbox_relay.wake()
    await until(lambda: not app.storage.store.outbox.waiting_count("shelf"))


async def outbox(gate: Gate) -> EngineOutbox:
    (engine,) = await gate.call(ANN, ListEngines())
    assert engine.outbox is not None
    return engine.outbox


async def keep(gate: Gate, *texts: str) -> list[str]:
    return [(await gate.call(ANN, Retain("notes", RetainItem(text)))).memory_id or "" for text in texts]


def one(memory_id: str) -> ForgetSelector:
    return ForgetSelector(memory_ids=(memory_id,))


async def test_what_an_engine_missed_reaches_it_in_order_when_it_is_back() -> None:
    shelf = Shelf(failure=RuntimeError("secret"))
    async with copying(shelf) as app:
        first = await app.gate.call(ANN, Retain("notes", RetainItem("one")))
        assert first.warnings == ("engine: shelf does not hold it yet (RuntimeError)",)
        await keep(app.gate, "two", "three")
        assert (await app.gate.call(ANN, GetBankStats("notes"))).waiting_copies == 3
        (elsewhere,) = await app.gate.call(Caller("other", "user:root"), ListEngines())
        assert elsewhere.outbox is None
        told = await outbox(app.gate)
        assert (told.state, told.waiting, told.refused, told.since is not None) == (OutboxState.RESTING, 3, 0, True)
        shelf.failure = None
        with capture_logs() as logs:
            await caught_up(app)
        assert shelf.texts == ["one", "two", "three"]
        assert [line["amount"] for line in logs if line["event"] == "astrocyte.policy.outbox_drained"] == [3]
        assert await outbox(app.gate) == EngineOutbox(OutboxState.EMPTY, 0, 0, 100_000)
        assert (await app.gate.call(ANN, GetBankStats("notes"))).waiting_copies == 0


async def test_a_call_that_finds_the_engine_back_brings_what_waits_before_its_own() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        await keep(app.gate, "one", "two")
        shelf.failure = None
        assert (await app.gate.call(ANN, Retain("notes", RetainItem("three")))).warnings == ()
        assert shelf.texts == ["one", "two", "three"]


@pytest.mark.parametrize("compliance", [False, True])
async def test_what_is_forgotten_while_it_waits_is_never_sent(*, compliance: bool) -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        kept, gone = await keep(app.gate, "kept", "gone")
        with pytest.raises(ProviderUnavailable):
            await app.gate.call(ANN, Forget("notes", one(gone), compliance=compliance, request_id="go"))
        shelf.failure = None
        await caught_up(app)
        assert [item.origin for item in shelf.received if item.item.content == "kept"] == [kept]
        assert "gone" not in [item.item.content for item in shelf.received]
        assert (gone in shelf.erased) is compliance
        # The receipt is there for whoever asks again.
        done = await app.gate.call(ANN, Forget("notes", one(gone), compliance=compliance, request_id="go"))
        assert (done.deleted_count, done.receipt is not None) == (1, compliance)


async def test_what_an_engine_holds_and_could_not_forget_goes_when_it_is_back_though_nobody_asks_again() -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        kept, gone, erased = await keep(app.gate, "kept", "gone", "erased")
        shelf.failure = RuntimeError()
        for memory_id, compliance in ((gone, False), (erased, True)):
            with pytest.raises(ProviderUnavailable):
                await app.gate.call(ANN, Forget("notes", one(memory_id), compliance=compliance))
        shelf.failure = None
        await caught_up(app)
        assert (shelf.texts, shelf.erased) == (["kept"], [erased])
        assert kept != gone


async def test_more_than_an_answer_lists_is_forgotten_before_it_is_acknowledged() -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        for first in range(0, 1_100, 100):
            batch = [RetainItem(f"number {first + n}", tags=("t",)) for n in range(100)]
            await app.gate.call(ANN, BatchRetain("notes", batch))
        # There the label was lost, so that only ids tell which they are.
        for number, row in shelf.rows.items():
            shelf.rows[number] = type(row)(row.text, 0.0, memory_id=number)
        done = await app.gate.call(ANN, Forget("notes", ForgetSelector(tags=("t",))))
        assert (done.deleted_count, len(done.memory_ids), done.engines[0].deleted_count) == (1_100, 1_000, 1_100)
        assert (shelf.rows, app.storage.store.outbox.waiting_count("shelf")) == ({}, 0)


async def test_of_a_memory_that_changed_while_it_waited_the_engine_hears_the_last() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        first, _ = await keep(app.gate, "draft", "between")
        update = MemoryUpdate(first, frozenset({"content"}), content="final")
        await app.gate.call(ANN, UpdateMemory("notes", update))
        shelf.failure = None
        await caught_up(app)
        assert shelf.texts == ["between", "final"]
        shelf.failure = RuntimeError()
        await app.gate.call(ANN, UpdateMemory("notes", MemoryUpdate(first, frozenset({"content"}), content="amended")))
        shelf.failure = None
        await caught_up(app)
        assert shelf.texts == ["between", "amended"]


async def test_an_undelete_brings_the_copy_back_now_or_later() -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        (memory_id,) = await keep(app.gate, "tea")
        for failure in (None, RuntimeError()):
            await app.gate.call(ANN, Forget("notes", one(memory_id)))
            assert shelf.texts == []
            shelf.failure = failure
            await app.gate.call(ANN, UndeleteMemory("notes", memory_id))
            shelf.failure = None
            await caught_up(app)
            assert shelf.texts == ["tea"]


async def test_what_waited_for_a_provider_is_copied_when_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, shelf = RemoteEmbedder(), Shelf()
    app = remote_app(monkeypatch, embedder, **escalation(recovery=0.5, failures=1))
    app.providers.engines.attach(HybridEngineProvider(shelf, name="shelf", options={"retain_target": "both"}))
    try:
        await app.gate.call(ANN, CreateBank("notes"))
        embedder.down = True
        # The engine answers for both.
        assert (await app.gate.call(ANN, Recall(RecallQuery("tea", "notes")))).hits == ()
        caller = Caller(principal="agent:bot", on_behalf_of="user:ann")
        queued = await app.gate.call(caller, Retain("notes", RetainItem("tea")))
        assert queued.warnings == ("engine: shelf does not hold it yet; the memory waits in this server's queue",)
        far = await app.gate.call(Caller(principal="user:ann", hops=1), Retain("notes", RetainItem("from afar")))
        assert far.retention_action == "queued"
        embedder.down = False
        await until(lambda: shelf.texts == ["tea"])
        await until(lambda: not app.policies.escalation.retries.waiting)
        await caught_up(app)
        assert [(call.principal, call.hops) for name, call in shelf.calls if name == "retain"] == [("user:ann", 1)]
        assert shelf.texts == ["tea"]
    finally:
        await app.close()


async def test_what_waits_survives_the_process_and_is_stored_once(tmp_path: Path) -> None:
    shelf = Shelf(loses_answers=True)
    values = {"vector_store": "sqlite", "data_dir": str(tmp_path / "data")}
    async with copying(shelf, values) as app:
        await keep(app.gate, "one", "two")
        assert app.storage.store.outbox.waiting_count("shelf") == 2
    shelf.loses_answers = False
    async with copying(shelf, values) as app:
        app.start_purging()
        await caught_up(app)
    ids = [item.request_id for item in shelf.received]
    assert (shelf.texts, len(set(ids)), len(ids) > len(set(ids))) == (["one", "two"], 2, True)


async def test_what_an_engine_refuses_is_set_aside_until_it_changes() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        ids = await keep(app.gate, "one", "bad", "three")
        shelf.failure, shelf.refuses = None, {"bad": PiiRejected("no")}
        app.policies.outbox_relay.wake()
        await until(lambda: app.storage.store.outbox.waiting_count("shelf") == 1)
        assert shelf.texts == ["one", "three"]
        told = await outbox(app.gate)
        assert (told.state, told.waiting, told.refused) == (OutboxState.RESTING, 1, 1)
        # The same content again: what is known of it is told.
        again = await app.gate.call(ANN, Retain("notes", RetainItem("bad")))
        assert again.warnings == ("engine: shelf does not hold it yet (PII_REJECTED)",)
        offered = len(shelf.received)
        await keep(app.gate, "four")
        assert [item.item.content for item in shelf.received[offered:]] == ["four"]
        await app.gate.call(ANN, UpdateMemory("notes", MemoryUpdate(ids[1], frozenset({"content"}), content="good")))
        assert shelf.texts == ["one", "three", "four", "good"]
        assert (await outbox(app.gate)).state is OutboxState.EMPTY


async def test_what_was_refused_for_want_of_a_right_is_stored_once_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox_relay, "REFUSED_SECONDS", 0.02)
    shelf = Shelf(refuses={"tea": AccessDenied("user:ann", "notes", "retain")})
    async with copying(shelf) as app:
        result = await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        assert result.warnings == ("engine: shelf does not hold it yet (ACCESS_DENIED)",)
        await until(lambda: len(shelf.received) > 2)
        shelf.refuses = {}
        await until(lambda: shelf.texts == ["tea"])


async def test_an_outbox_is_bounded_and_forgetting_is_not() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf, outbox_limit=2) as app:
        first, second = await keep(app.gate, "one", "two")
        with pytest.raises(RateLimited) as refused:
            await app.gate.call(ANN, Retain("notes", RetainItem("three")))
        assert refused.value.metadata["kind"] == "engine_outbox"
        assert (await outbox(app.gate)).state is OutboxState.FULL
        # What waits already takes no more room, and what is there already neither.
        await app.gate.call(ANN, UpdateMemory("notes", MemoryUpdate(first, frozenset({"content"}), content="first")))
        assert (await app.gate.call(ANN, Retain("notes", RetainItem("two")))).memory_id == second
        with pytest.raises(ProviderUnavailable):
            await app.gate.call(ANN, Forget("notes", one(second)))
        with pytest.raises(RateLimited):
            await app.gate.call(ANN, Retain("notes", RetainItem("three")))
        shelf.failure = None
        await caught_up(app)
        await keep(app.gate, "three")
        assert shelf.texts == ["first", "three"]


async def test_a_call_that_has_come_far_enough_leaves_nothing_to_deliver() -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        result = await app.gate.call(Caller(principal="user:ann", hops=1), Retain("notes", RetainItem("tea")))
        assert result.warnings == ("engine: shelf does not hold it (hop_limit)",)
        assert (app.storage.store.outbox.waiting_count("shelf"), shelf.received) == (0, [])


async def test_a_copy_is_made_for_whom_the_call_was() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        bot = Caller(principal="agent:bot", on_behalf_of="user:ann")
        await app.gate.call(bot, Retain("notes", RetainItem("one")))
        await app.gate.call(Caller(), Retain("notes", RetainItem("two")))
        shelf.failure, shelf.calls = None, []
        await caught_up(app)
        assert [call.principal for name, call in shelf.calls if name == "retain"] == ["user:ann", ""]


async def test_a_caller_who_goes_takes_nothing_along() -> None:
    shelf = Shelf(hangs=True)
    async with copying(shelf) as app:
        going = asyncio.create_task(app.gate.call(ANN, Retain("notes", RetainItem("tea"))))
        await shelf.asked.wait()
        going.cancel()
        await shelf.left.wait()
        shelf.hangs = False
        await until(lambda: shelf.texts == ["tea"])


async def test_what_waits_goes_with_its_bank() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf) as app:
        await keep(app.gate, "one", "two")
        shelf.failure = None
        turn = app.policies.outbox_relay.turn(next(iter(app.providers.engines)), "notes")
        async with turn:
            deleting = asyncio.create_task(app.gate.call(ANN, DeleteBank("notes")))
            await asyncio.sleep(0)
        assert await deleting == 2
        await until(lambda: not app.storage.store.outbox.waiting_count("shelf"))
        await keep(app.gate, "three")
        assert shelf.texts == ["three"]


async def test_an_engine_that_fails_again_and_again_is_left_alone_and_then_gets_all() -> None:
    shelf = Shelf(failure=RuntimeError())
    async with copying(shelf, escalation(failures=2)) as app:
        await keep(app.gate, *(f"number {n}" for n in range(20)))
        assert Counter(name for name, _ in shelf.calls)["retain"] == 2
        shelf.failure = None
        (engine,) = app.providers.engines
        engine.breaker._clock = lambda: time.monotonic_ns() + round(NEVER * 1e9)
        app.policies.outbox_relay.wake()
        await until(lambda: not app.storage.store.outbox.waiting_count("shelf"))
        assert shelf.texts == [f"number {n}" for n in range(20)]


async def forgotten_while_it_travels(app: App, shelf: Shelf, *, seconds: float) -> list[str]:
    """The content of the engine after a copy was on its way, for so long at the most, when its memory was forgotten."""
    held, arrived = asyncio.Event(), asyncio.Event()
    store = shelf.retain

    async def slowly(*args: Any) -> Any:
        arrived.set()
        await held.wait()
        return await store(*args)

    shelf.retain = slowly  # type: ignore[method-assign, assignment]
    keeping = asyncio.create_task(app.gate.call(ANN, Retain("notes", RetainItem("tea"))))
    await arrived.wait()
    forgetting = asyncio.create_task(app.gate.call(ANN, Forget("notes", ALL, compliance=True)))
    await asyncio.wait([forgetting], timeout=seconds)
    held.set()
    await asyncio.gather(keeping, forgetting)
    await caught_up(app)
    return shelf.texts


async def test_a_copy_never_arrives_after_what_took_it_back() -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        assert await forgotten_while_it_travels(app, shelf, seconds=0.2) == []


async def test_without_turns_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_relay.OutboxRelay, "turn", lambda *_: asyncio.Lock())
    shelf = Shelf()
    async with copying(shelf) as app:
        assert await forgotten_while_it_travels(app, shelf, seconds=20) == ["tea"]


async def test_many_who_wait_for_an_engine_that_hangs_wait_for_it_once() -> None:
    shelf = Shelf(hangs=True)
    async with copying(shelf, write_timeout_seconds=1.0) as app:
        await app.gate.call(ANN, CreateBank("notes"))
        async with asyncio.timeout(15):
            results = await asyncio.gather(
                *(app.gate.call(ANN, Retain("notes", RetainItem(f"number {n}"))) for n in range(30))
            )
        assert all("does not hold it yet" in result.warnings[0] for result in results)
        shelf.hangs = False
        await caught_up(app)
        assert sorted(shelf.texts) == sorted(f"number {n}" for n in range(30))


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["retain", "retain", "update", "forget", "erase", "undelete", "down", "up", "lossy"]),
              st.integers(0, 30)),
    max_size=25,
)  # fmt: skip


@given(OPERATIONS)
@settings(max_examples=12, deadline=None)
async def test_whatever_happens_an_engine_ends_up_with_what_this_server_has(steps: list[tuple[str, int]]) -> None:
    shelf = Shelf()
    async with copying(shelf) as app:
        gate, ids = app.gate, list[str]()
        texts: dict[str, str] = {}
        erased = set[str]()
        for number, (step, choice) in enumerate(steps):
            shelf.received.clear()
            memory_id = ids[choice % len(ids)] if ids else ""
            text = f"text {number}"
            try:
                if step == "retain":
                    (memory_id,) = await keep(gate, text)
                    ids.append(memory_id)
                elif step == "update" and memory_id:
                    change = MemoryUpdate(memory_id, frozenset({"content"}), content=text)
                    await gate.call(ANN, UpdateMemory("notes", change))
                elif step in {"forget", "erase"} and memory_id:
                    await gate.call(ANN, Forget("notes", one(memory_id), compliance=step == "erase"))
                elif step == "undelete" and memory_id:
                    await gate.call(ANN, UndeleteMemory("notes", memory_id))
                elif step in {"down", "up", "lossy"}:
                    shelf.failure = RuntimeError() if step == "down" else None
                    shelf.loses_answers = step == "lossy"
            except (MemoryNotFound, ProviderUnavailable):
                # What is gone, or an engine that is away.
                pass
            # A copy that was on its way when an erasure began may still arrive before what takes it back.
            assert erased.isdisjoint(item.item.content for item in shelf.received)
            if step == "erase":
                erased.add(texts.get(memory_id, ""))
            if step in {"retain", "update"}:
                texts[memory_id] = text
        shelf.failure, shelf.loses_answers = None, False
        await caught_up(app)
        here = [memory.content for memory in (await gate.call(ANN, ListMemories("notes"))).memories] if ids else []
        assert sorted(shelf.texts) == sorted(here)
