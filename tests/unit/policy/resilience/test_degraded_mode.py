"""Degraded answers, the retry queue, and recovery, through the gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from structlog.testing import capture_logs

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    DeleteBank,
    Forget,
    GetMemory,
    History,
    Recall,
    Retain,
    StreamRetain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.errors import (
    CircuitOpen,
    DimensionMismatch,
    ProviderUnavailable,
    RateLimited,
    RequestIdReused,
    StoreError,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    Embedding,
    ForgetSelector,
    HistoryResult,
    MemoryHit,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.gate import Gate
from astrocyte.policy.resilience import retry_queue
from astrocyte.stores.sqlite.tables.retry_queue import decode_item, encode_item
from doubles.remote_embedders import DIMENSIONS, RemoteEmbedder, remote_app, vector
from oracles.byte_scans import files_with
from samples.strategies import items

ME = Caller()
QUERY = RecallQuery("tea", "b")
# Long enough that nothing recovers by itself within a test, or so short that it does at once.
NEVER, AT_ONCE = 3_600.0, 0.01


def escalation(mode: str = "empty_recall", recovery: float = NEVER, **more: Any) -> dict[str, Any]:
    breaker = {"failure_threshold": 2, "recovery_timeout_seconds": recovery, "half_open_max_calls": 1}
    return {"escalation": {"degraded_mode": mode, "circuit_breaker": breaker, **more}}


@pytest.fixture
def embedder() -> RemoteEmbedder:
    return RemoteEmbedder()


Build = Callable[..., App]


@pytest.fixture
async def build(embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Build]:
    built: list[App] = []

    def make(**settings: Any) -> App:
        built.append(remote_app(monkeypatch, embedder, **settings))
        return built[-1]

    yield make
    for app in built:
        await app.close()


async def open_circuit(gate: Gate, embedder: RemoteEmbedder) -> None:
    embedder.down = True
    for _ in range(2):
        with pytest.raises(ProviderUnavailable) as caught:
            await gate.call(ME, Recall(QUERY))
        assert not isinstance(caught.value, CircuitOpen)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for is done by tasks of the application
            await asyncio.sleep(0.005)


def contents(gate: Gate, bank: str = "b") -> list[str]:
    """The bank's memories in order of arrival."""
    stored = gate._memories._store.get_bank("default", bank)
    assert stored is not None
    rows, _ = gate._memories._store.list_memories(
        stored, tags=(), session_id=None, at_position=stored.position, after=0, limit=10_000
    )
    return [memory.content for _, memory in rows]


async def test_empty_recall_answers_with_nothing_and_says_so(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation()).gate
    await gate.call(ME, Retain("b", RetainItem("tea")))
    assert (await gate.call(ME, Recall(QUERY))).hits
    await open_circuit(gate, embedder)
    calls = embedder.calls
    # Even who asks for no trace must be able to tell this from a bank that knows nothing.
    results: list[RecallResult | HistoryResult] = [
        await gate.call(ME, Recall(replace(QUERY, include_trace=False))),
        *await gate.call(ME, BatchRecall([QUERY, QUERY])),
        await gate.call(ME, History(replace(QUERY, as_of=datetime(2030, 1, 1, tzinfo=UTC)))),
    ]
    for result in results:
        assert (result.hits, result.total_available) == ((), 0)
        assert result.trace is not None
        assert result.trace.degraded == "empty_recall"
        assert None not in [getattr(result.trace, name) for name in result.trace.__slots__]
    assert embedder.calls == calls
    # What needs no provider goes on.
    own = Embedding("remote/8", DIMENSIONS, vector("tea"))
    single, asking = await gate.call(ME, BatchRecall([replace(QUERY, embedding=own), QUERY]))
    assert single.hits
    assert single.trace is not None
    assert single.trace.degraded == ""
    assert not asking.hits


async def test_a_text_without_a_direction_is_answered_by_words_in_a_batch_too(
    build: Build, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def embed(texts: Sequence[str]) -> list[bytes]:
        return [bytes(4 * DIMENSIONS) if text == QUERY.query else vector(text) for text in texts]

    gate = build(**escalation()).gate
    await gate.call(ME, Retain("b", RetainItem("tea")))
    monkeypatch.setattr(embedder, "embed", embed)
    single = await gate.call(ME, Recall(QUERY))
    assert single.trace is not None
    assert single.trace.strategies_used == ("keyword",)
    for result in await gate.call(ME, BatchRecall([QUERY] * 9)):
        assert result.hits == single.hits


async def test_error_fails_closed(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation("error")).gate
    await gate.call(ME, Retain("b", RetainItem("tea")))
    await open_circuit(gate, embedder)
    with pytest.raises(CircuitOpen, match="left alone") as caught:
        await gate.call(ME, Recall(QUERY))
    assert 0 < caught.value.retry_after <= NEVER
    with pytest.raises(CircuitOpen):
        await gate.call(ME, BatchRecall([QUERY]))
    with pytest.raises(CircuitOpen):
        await gate.call(ME, Retain("b", RetainItem("jam")))
    assert contents(gate) == ["tea"]


async def test_cache_gives_the_last_answer_to_the_same_question(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation("cache")).gate
    kept = await gate.call(ME, Retain("b", RetainItem("tea at noon")))
    gone = await gate.call(ME, Retain("b", RetainItem("green tea")))
    good = await gate.call(ME, Recall(QUERY))
    (batched,) = await gate.call(ME, BatchRecall([replace(QUERY, max_results=3)]))
    assert len(good.hits) == len(batched.hits) == 2
    await open_circuit(gate, embedder)
    stale = await gate.call(ME, Recall(QUERY))
    assert stale.hits == good.hits
    assert stale.trace is not None
    assert (stale.trace.degraded, stale.trace.cache_hit) == ("cache", True)
    assert (await gate.call(ME, Recall(replace(QUERY, max_results=3)))).hits == batched.hits
    for other in (replace(QUERY, query="jam"), replace(QUERY, max_results=4), replace(QUERY, tags=("t",))):
        with pytest.raises(CircuitOpen):
            await gate.call(ME, Recall(other))
    with pytest.raises(CircuitOpen):
        await gate.call(ME, Retain("b", RetainItem("jam")))
    # What was forgotten since then is in no answer.
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(gone.memory_id or "",))))
    assert [hit.memory_id for hit in (await gate.call(ME, Recall(QUERY))).hits] == [kept.memory_id]
    await gate.call(ME, DeleteBank("b"))
    await gate.call(ME, CreateBank("b"))
    with pytest.raises(CircuitOpen):
        await gate.call(ME, Recall(QUERY))


async def test_the_cache_shows_no_text_of_before_an_update_and_keeps_the_callers_own(
    build: Build, embedder: RemoteEmbedder
) -> None:
    gate = build(**escalation("cache")).gate
    kept = await gate.call(ME, Retain("b", RetainItem("tea for 4111 1111 1111 1111", source="a")))
    own = replace(QUERY, external_context=(MemoryHit("tea of another system", 1.0),))
    assert len((await gate.call(ME, Recall(own))).hits) == 2
    update = MemoryUpdate(kept.memory_id or "", frozenset({"source"}), source="b")
    await gate.call(ME, UpdateMemory("b", update))
    await open_circuit(gate, embedder)
    assert [hit.text for hit in (await gate.call(ME, Recall(own))).hits] == ["tea of another system"]


async def test_the_cache_holds_nothing_of_a_bank_after_an_erasure(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation("cache")).gate
    kept = await gate.call(ME, Retain("b", RetainItem("tea")))
    await gate.call(ME, Retain("other", RetainItem("tea")))
    await gate.call(ME, Recall(QUERY))
    await gate.call(ME, Recall(replace(QUERY, bank_id="other")))
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(kept.memory_id or "",)), compliance=True))
    answers = gate._policies.escalation._answers
    assert [hit.bank_id for result in answers.values() for hit in result.hits] == ["other"]


@pytest.mark.parametrize("batch", [False, True])
async def test_an_answer_that_was_begun_before_an_erasure_is_not_kept_after_it(
    build: Build, monkeypatch: pytest.MonkeyPatch, *, batch: bool
) -> None:
    gate = build(**escalation("cache")).gate
    kept = await gate.call(ME, Retain("b", RetainItem("tea")))
    recall = gate._pipelines.recall
    method = "run_many" if batch else "run"
    found, erased = asyncio.Event(), asyncio.Event()
    work: Any = getattr(recall, method)

    async def slow(*args: Any) -> Any:
        answer = await work(*args)
        found.set()
        await erased.wait()
        return answer

    monkeypatch.setattr(recall, method, slow)
    asked: Any = gate.call(ME, BatchRecall([QUERY])) if batch else gate.call(ME, Recall(QUERY))
    asking = asyncio.create_task(asked)
    await found.wait()
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(kept.memory_id or "",)), compliance=True))
    erased.set()
    await asking
    assert not gate._policies.escalation._answers


async def test_the_cache_holds_nothing_that_was_purged_or_of_a_bank_that_is_gone(build: Build) -> None:
    app = build(**escalation("cache"), forget={"purge_after_days": 0})
    gate = app.gate
    kept = await gate.call(ME, Retain("b", RetainItem("tea")))
    await gate.call(ME, Recall(QUERY))
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(kept.memory_id or "",))))
    answers = gate._policies.escalation._answers
    # Until it is purged it can come back.
    assert len(answers) == 1
    await app.storage.store.purge(2**60)
    assert not answers
    await gate.call(ME, Retain("b", RetainItem("tea")))
    await gate.call(ME, Recall(QUERY))
    assert len(answers) == 1
    await gate.call(ME, DeleteBank("b"))
    assert not answers


async def test_the_cache_is_bounded(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation("cache", cache_entries=2)).gate
    await gate.call(ME, Retain("b", RetainItem("tea")))
    for word in ("one", "two", "one", "three"):
        await gate.call(ME, Recall(replace(QUERY, query=word)))
    await open_circuit(gate, embedder)
    for word in ("one", "three"):
        await gate.call(ME, Recall(replace(QUERY, query=word)))
    with pytest.raises(CircuitOpen):
        await gate.call(ME, Recall(replace(QUERY, query="two")))


async def test_banks_have_modes_of_their_own(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation(), banks={"strict": {"escalation": {"degraded_mode": "error"}}}).gate
    for bank in ("b", "strict"):
        await gate.call(ME, Retain(bank, RetainItem("tea")))
    await open_circuit(gate, embedder)
    assert not (await gate.call(ME, Recall(QUERY))).hits
    with pytest.raises(CircuitOpen):
        await gate.call(ME, Recall(replace(QUERY, bank_id="strict")))


async def test_retains_wait_and_are_stored_in_order(build: Build, embedder: RemoteEmbedder) -> None:
    app = build(**escalation(recovery=0.2))
    gate = app.gate
    await gate.call(ME, Retain("b", RetainItem("first")))
    await open_circuit(gate, embedder)
    names = [f"waiting {n:02}" for n in range(20)]
    queued = [await gate.call(ME, Retain("b", RetainItem(name, tags=("t",)))) for name in names[:10]]
    queued += await gate.call(ME, BatchRetain("b", [RetainItem(name) for name in names[10:15]]))
    many = await gate.call(ME, StreamRetain("b", [RetainItem(name) for name in names[15:]]))
    queued += [result for result in many if isinstance(result, RetainResult)]
    assert [result.retention_action for result in queued] == ["queued"] * 20
    assert {(result.stored, result.position, result.memory_layer) for result in queued} == {(False, 0, "semantic")}
    assert contents(gate) == ["first"]
    # A bank that does not exist is made for what waits for it.
    assert (await gate.call(ME, Retain("new", RetainItem("hello")))).retention_action == "queued"
    with pytest.raises(ValidationError):
        await gate.call(ME, Retain("b", RetainItem("")))
    with capture_logs() as logs:
        embedder.down = False
        await until(lambda: len(contents(gate)) == 21 and len(contents(gate, "new")) == 1)
    assert contents(gate) == ["first", *names]
    events = [entry["event"].removeprefix("astrocyte.policy.") for entry in logs]
    assert events.index("circuit_closed") < events.index("queue_drained")
    for result, name in zip(queued, names, strict=True):
        assert (await gate.call(ME, GetMemory("b", result.memory_id or ""))).content == name
    await until(lambda: not app.policies.escalation.retries.waiting)
    assert (await gate.call(ME, Retain("b", RetainItem("last")))).retention_action == "created"
    assert (await gate.call(ME, Recall(QUERY))).hits


async def test_what_comes_while_something_waits_waits_behind(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation()).gate
    await gate.call(ME, Retain("b", RetainItem("first")))
    await gate.call(ME, Retain("free", RetainItem("first")))
    await open_circuit(gate, embedder)
    await gate.call(ME, Retain("b", RetainItem("second")))
    own = Embedding("remote/8", DIMENSIONS, vector("third"))
    # It needs no provider, but it came later.
    assert (await gate.call(ME, Retain("b", RetainItem("third", embedding=own)))).retention_action == "queued"
    assert (await gate.call(ME, Retain("free", RetainItem("third", embedding=own)))).retention_action == "created"


async def test_a_request_id_is_answered_as_the_first_time(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation(recovery=0.2)).gate
    await gate.call(ME, CreateBank("b"))
    await open_circuit(gate, embedder)
    first = await gate.call(ME, Retain("b", RetainItem("tea"), request_id="one"))
    again = await asyncio.gather(*(gate.call(ME, Retain("b", RetainItem("tea"), request_id="one")) for _ in range(3)))
    twice = await asyncio.gather(*(gate.call(ME, Retain("b", RetainItem("jam"), request_id="two")) for _ in range(3)))
    assert again == [first] * 3
    assert len({result.memory_id for result in twice}) == 1
    (streamed,) = await gate.call(ME, StreamRetain("b", [RetainItem("tea")], request_ids=["one"]))
    assert streamed == first
    with pytest.raises(RequestIdReused):
        await gate.call(ME, Retain("b", RetainItem("milk"), request_id="one"))
    embedder.down = False
    await until(lambda: len(contents(gate)) == 2)
    assert await gate.call(ME, Retain("b", RetainItem("tea"), request_id="one")) == first
    assert contents(gate) == ["tea", "jam"]


async def test_a_full_queue_refuses_and_drops_nothing(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation(recovery=0.2, queue_limit=3)).gate
    await gate.call(ME, CreateBank("b"))
    await open_circuit(gate, embedder)
    await gate.call(ME, Retain("b", RetainItem("one")))
    with pytest.raises(RateLimited, match="limit is 3"):
        await gate.call(ME, BatchRetain("b", [RetainItem("two"), RetainItem("three"), RetainItem("four")]))
    await gate.call(ME, BatchRetain("b", [RetainItem("two"), RetainItem("three")]))
    with pytest.raises(RateLimited):
        await gate.call(ME, Retain("other", RetainItem("five")))
    embedder.down = False
    await until(lambda: len(contents(gate)) == 3)
    assert contents(gate) == ["one", "two", "three"]


@pytest.mark.parametrize("compliance", [False, True])
async def test_what_is_forgotten_while_it_waits_is_never_stored(
    build: Build, embedder: RemoteEmbedder, tmp_path: Path, *, compliance: bool
) -> None:
    settings = {**escalation(recovery=0.3), "vector_store": "sqlite", "data_dir": str(tmp_path)}
    gate = build(**settings).gate
    await gate.call(ME, Retain("b", RetainItem("stored: canary-stored", tags=("t",))))
    await open_circuit(gate, embedder)
    old = datetime(2001, 1, 1, tzinfo=UTC)
    by_id = await gate.call(ME, Retain("b", RetainItem("canary-by-id")))
    await gate.call(ME, Retain("b", RetainItem("canary-by-tag", tags=("t", "u"))))
    await gate.call(ME, Retain("b", RetainItem("canary-by-date", occurred_at=old)))
    await gate.call(ME, BatchRetain("b", [RetainItem("kept", tags=("u",)), RetainItem("canary-in-batch", tags=("t",))]))
    await gate.call(ME, Retain("gone", RetainItem("canary-of-bank")))
    selectors = [
        (ForgetSelector(memory_ids=(by_id.memory_id or "",)), 1),
        (ForgetSelector(tags=("t",)), 3),
        (ForgetSelector(before_date=datetime(2002, 1, 1, tzinfo=UTC)), 1),
        (ForgetSelector(tags=("nothing",)), 0),
    ]
    for selector, count in selectors:
        seen = await gate.call(ME, Forget("b", selector, compliance=compliance, dry_run=True))
        done = await gate.call(ME, Forget("b", selector, compliance=compliance))
        assert seen.deleted_count == done.deleted_count == count == len(done.memory_ids)
    await gate.call(ME, DeleteBank("gone"))
    if compliance:
        assert files_with(tmp_path, "canary") == []
    embedder.down = False
    await until(lambda: contents(gate) == ["kept"])
    await gate.call(ME, Retain("b", RetainItem("after")))
    await until(lambda: contents(gate) == ["kept", "after"])


async def test_what_is_forgotten_while_it_is_embedded_is_never_stored(build: Build, embedder: RemoteEmbedder) -> None:
    settings = escalation(recovery=AT_ONCE)
    settings["escalation"]["circuit_breaker"]["call_timeout_seconds"] = 0.2
    gate = build(**settings).gate
    await gate.call(ME, CreateBank("b"))
    await open_circuit(gate, embedder)
    with capture_logs():
        await gate.call(ME, Retain("b", RetainItem("tea")))
        await gate.call(ME, Retain("b", RetainItem("jam", tags=("t",))))
        calls = embedder.calls
        embedder.hung = True
        await until(lambda: embedder.calls > calls)
        await gate.call(ME, Forget("b", ForgetSelector(tags=("t",))))
        embedder.hung = embedder.down = False
        # The call that hangs is cut, and the next trial finds one of the two.
        await until(lambda: contents(gate) == ["tea"])


async def test_what_waits_survives_a_restart(build: Build, embedder: RemoteEmbedder, tmp_path: Path) -> None:
    settings = {**escalation(), "vector_store": "sqlite", "data_dir": str(tmp_path)}
    first = build(**settings)
    await first.gate.call(ME, CreateBank("b"))
    await open_circuit(first.gate, embedder)
    for n in range(5):
        await first.gate.call(ME, Retain("b", RetainItem(f"note {n}")))
    await first.close()
    embedder.down = False
    second = build(**settings)
    # The first use starts what empties the queue; what comes then waits behind.
    after = await second.gate.call(ME, Retain("b", RetainItem("after")))
    await until(lambda: len(contents(second.gate)) == 6)
    assert contents(second.gate) == [*(f"note {n}" for n in range(5)), "after"]
    assert after.retention_action == "queued"


async def test_what_can_never_be_stored_stops_nothing_else(
    build: Build, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build(**escalation(recovery=AT_ONCE))
    gate = app.gate
    await gate.call(ME, CreateBank("b"))
    await open_circuit(gate, embedder)
    prepare = app.policies.escalation.retries._pipeline.prepare

    async def picky(bank: Any, items: Any) -> Any:
        if any(item.content == "bad" for item, _ in items):
            raise DimensionMismatch("another model", field="embedding")
        return await prepare(bank, items)

    with capture_logs() as logs:
        for content in ("one", "bad", "two"):
            await gate.call(ME, Retain("b", RetainItem(content)))
        monkeypatch.setattr(app.policies.escalation.retries._pipeline, "prepare", picky)
        embedder.down = False
        await until(lambda: contents(gate) == ["one", "two"])
        await until(lambda: not app.policies.escalation.retries.waiting)
    assert any(entry["event"].endswith("retry_stuck") for entry in logs)
    assert (await gate.call(ME, Retain("b", RetainItem("three")))).retention_action == "created"
    (bank,) = gate._memories._store.queued_banks()  # type: ignore[attr-defined]
    assert bank.bank_id == "b"


@pytest.mark.parametrize("failure", [StoreError("the database failed"), TypeError("unexpected")])
async def test_the_failure_of_a_bank_does_not_keep_others_waiting(
    build: Build, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    app = build(**escalation(recovery=0.2))
    gate, retries = app.gate, app.policies.escalation.retries
    await gate.call(ME, CreateBank("b"))
    await open_circuit(gate, embedder)
    prepare = retries._pipeline.prepare

    async def failing(bank: Any, items: Any) -> Any:
        if bank.bank_id == "b":
            raise failure
        return await prepare(bank, items)

    # The bank that fails comes first.
    for bank_id in ("b", "other"):
        assert (await gate.call(ME, Retain(bank_id, RetainItem("tea")))).retention_action == "queued"
    monkeypatch.setattr(retries._pipeline, "prepare", failing)
    monkeypatch.setattr(retry_queue, "REST_SECONDS", AT_ONCE)
    embedder.down = False
    await until(lambda: contents(gate, "other") == ["tea"])
    await until(lambda: len(retries.waiting) == 1)
    assert contents(gate) == []
    monkeypatch.setattr(retries._pipeline, "prepare", prepare)
    await until(lambda: contents(gate) == ["tea"])


async def test_an_update_is_refused(build: Build, embedder: RemoteEmbedder) -> None:
    gate = build(**escalation()).gate
    stored = await gate.call(ME, Retain("b", RetainItem("tea")))
    await open_circuit(gate, embedder)
    update = MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content="jam")
    with pytest.raises(CircuitOpen):
        await gate.call(ME, UpdateMemory("b", update))
    assert contents(gate) == ["tea"]


async def test_a_hung_provider_is_cut_and_opens_the_circuit(build: Build, embedder: RemoteEmbedder) -> None:
    settings = escalation()
    settings["escalation"]["circuit_breaker"]["call_timeout_seconds"] = 0.01
    gate = build(**settings).gate
    await gate.call(ME, CreateBank("b"))
    embedder.hung = True
    for _ in range(2):
        with pytest.raises(ProviderUnavailable, match=r"did not answer in 0\.01 s"):
            await gate.call(ME, Recall(QUERY))
    assert (await gate.call(ME, Recall(QUERY))).trace.degraded == "empty_recall"  # type: ignore[union-attr]


@given(items)
def test_an_item_comes_out_as_it_went_in(item: RetainItem) -> None:
    assert decode_item(encode_item(item)) == item
