"""The operation that moves a bank: refusals, cancelling, restarts, and what fails or is erased on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    CancelOperation,
    DeleteBank,
    Forget,
    GetBank,
    GetOperation,
    ListAuditEvents,
    ListMemories,
    ListOperations,
    Recall,
    Retain,
    StartReindex,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.errors import (
    AstrocyteError,
    Conflict,
    DimensionMismatch,
    FailedPrecondition,
    NotFound,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import (
    Embedding,
    ForgetSelector,
    MemoryUpdate,
    OperationState,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.reindex.pipeline import Reindexer
from astrocyte.stores.records import Replace
from doubles.remote_embedders import vector
from samples.moving import (
    BANK,
    ME,
    OWN,
    SILENT,
    SMALL,
    TEXTS,
    TINY,
    answers,
    done,
    dropped,
    fill,
    filled,
    fresh_answers,
    lengths,
    moved,
    paused,
    rows,
    settings,
)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with filled() as opened:
        yield opened


async def test_a_refused_start_changes_nothing(app: App) -> None:
    refused: list[dict[str, Any]] = [
        {},
        {"embedding_model": SMALL, "rollback": True},
        {"embedding_model": "strange"},
        *({"embedding_model": SMALL, "min_overlap": value} for value in (1.5, -0.1, float("nan"))),
        *({"embedding_model": SMALL, "sample_size": value} for value in (-1, 1_001)),
    ]
    for fields in refused:
        with pytest.raises(ValidationError):
            await app.gate.call(ME, StartReindex(BANK, **fields))
    with pytest.raises(FailedPrecondition, match="already"):
        await app.gate.call(ME, StartReindex(BANK, embedding_model=OWN))
    with pytest.raises(FailedPrecondition, match="roll back"):
        await app.gate.call(ME, StartReindex(BANK, rollback=True))
    assert (await app.gate.call(ME, ListOperations())).operations == ()


async def test_one_operation_of_a_bank_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reindexer, "start", lambda _: None)
    other = App(settings())
    await fill(other)
    first = await other.gate.call(ME, StartReindex(BANK, embedding_model=SMALL, request_id="one"))
    with pytest.raises(FailedPrecondition, match=first.operation_id):
        await other.gate.call(ME, StartReindex(BANK, embedding_model=TINY))
    again = await other.gate.call(ME, StartReindex(BANK, embedding_model=SMALL, request_id="one"))
    assert again.operation_id == first.operation_id
    ended = await other.gate.call(ME, CancelOperation(BANK, first.operation_id))
    assert (ended.state, ended.done) == (OperationState.CANCELLED, True)
    assert (await other.gate.call(ME, WaitOperation(BANK, first.operation_id))).state is OperationState.CANCELLED
    page = await other.gate.call(ME, ListOperations(bank_id=BANK))
    assert [one.operation_id for one in page.operations] == [first.operation_id]
    with pytest.raises(NotFound):
        await other.gate.call(ME, GetOperation(BANK, "op-none"))
    await other.close()


async def test_a_cancelled_move_leaves_the_bank_and_drops_what_it_made(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await answers(app)
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    assert rows(app, "second_embeddings") == len(TEXTS)
    ended = await app.gate.call(ME, CancelOperation(BANK, started.operation_id))
    assert ended.state is OperationState.CANCELLED
    go_on.set()
    await dropped(app)
    assert rows(app, "second_embeddings") == 0
    assert await answers(app) == before
    assert (await app.gate.call(ME, GetBank(BANK))).embedding_model == OWN
    monkeypatch.undo()
    assert (await moved(app, SMALL)).state is OperationState.SUCCEEDED


async def test_former_vectors_are_dropped_when_their_time_is_up() -> None:
    now = [1_700_000_000_000]
    app = App(settings(reindex={"keep_hours": 1.0}), clock=lambda: now[0])
    await fill(app)
    operation = await moved(app)
    assert operation.outcome is not None
    assert operation.outcome.kept_until is not None
    assert rows(app, "embeddings") == rows(app, "second_embeddings") == len(TEXTS)
    now[0] += 3_600_000
    app.pipelines.reindexer.notify()
    await dropped(app)
    assert (rows(app, "embeddings"), rows(app, "second_embeddings")) == (0, len(TEXTS))
    with pytest.raises(FailedPrecondition, match="roll back"):
        await app.gate.call(ME, StartReindex(BANK, rollback=True))
    assert await answers(app) == await fresh_answers(SMALL)
    await app.close()


async def test_a_vector_of_the_former_model_is_refused_after_the_move(app: App) -> None:
    (vector,) = app.providers.spaces.default.embed_now(["a boat"])
    item = RetainItem("a boat", embedding=Embedding(OWN, 256, vector))
    assert (await app.gate.call(ME, Retain(BANK, item))).stored
    await moved(app)
    with pytest.raises(DimensionMismatch):
        await app.gate.call(ME, Retain(BANK, RetainItem("a ship", embedding=Embedding(OWN, 256, vector))))
    with pytest.raises(DimensionMismatch):
        await app.gate.call(ME, Recall(RecallQuery("a boat", BANK, embedding=Embedding(OWN, 256, vector))))


async def test_an_operation_goes_on_in_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = settings(vector_store="sqlite", data_dir=str(tmp_path), reindex={"sample": 0})
    app = App(own)
    await fill(app)
    before = await answers(app)
    inner = app.pipelines.reindexer._operations.put
    stopped = asyncio.Event()

    async def put(*args: Any, **fields: Any) -> None:
        await inner(*args, **fields)
        stopped.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(app.pipelines.reindexer._operations, "put", put)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await stopped.wait()
    await app.close()
    app = App(own)
    assert await answers(app) in (before, await fresh_answers(SMALL))
    assert (await done(app, started)).state is OperationState.SUCCEEDED
    assert await answers(app) == await fresh_answers(SMALL)
    await app.close()
    app = App(own)
    assert await answers(app) == await fresh_answers(SMALL)
    await app.close()


async def test_the_end_of_a_move_is_told_when_the_new_model_answers(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = app.pipelines.reindexer._operations.move
    committed, go_on = asyncio.Event(), asyncio.Event()

    async def move(*args: Any, **fields: Any) -> list[str]:
        found = await inner(*args, **fields)
        committed.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(app.pipelines.reindexer._operations, "move", move)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await committed.wait()
    waiting = asyncio.create_task(done(app, started))
    await asyncio.wait([waiting], timeout=0.2)
    assert not waiting.done()
    assert not (await app.gate.call(ME, GetOperation(BANK, started.operation_id))).done
    assert not any(one.done for one in (await app.gate.call(ME, ListOperations(BANK))).operations)
    go_on.set()
    assert (await waiting).state is OperationState.SUCCEEDED


async def test_an_embedder_that_is_gone_ends_the_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = settings(vector_store="sqlite", data_dir=str(tmp_path))
    monkeypatch.setattr(Reindexer, "start", lambda _: None)
    app = App(own)
    await fill(app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await app.close()
    monkeypatch.undo()
    app = App(settings(vector_store="sqlite", data_dir=str(tmp_path), embedders={}))
    operation = await done(app, started)
    assert operation.error is not None
    assert (operation.state, operation.error.reason) == (OperationState.FAILED, FailedPrecondition.reason)
    assert await answers(app) == await fresh_answers(OWN)
    await app.close()


async def test_an_erasure_takes_both_sets_of_vectors(app: App) -> None:
    await moved(app)
    ids = [memory.memory_id for memory in (await app.gate.call(ME, ListMemories(BANK))).memories]
    result = await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],)), compliance=True))
    assert result.receipt is not None
    assert result.receipt.counts["embeddings"] == 2
    assert rows(app, "embeddings") == rows(app, "second_embeddings") == len(TEXTS) - 1
    await app.gate.call(ME, DeleteBank(BANK))
    assert rows(app, "embeddings") == rows(app, "second_embeddings") == rows(app, "operations") == 0


async def test_a_deleted_bank_ends_its_operation(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = paused(monkeypatch, app)
    await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    await app.gate.call(ME, DeleteBank(BANK))
    go_on.set()
    await fill(app)
    monkeypatch.undo()
    assert (await moved(app)).state is OperationState.SUCCEEDED
    assert await answers(app) == await fresh_answers(SMALL)


async def test_a_write_that_was_prepared_before_the_move_has_vectors_of_the_new_model(app: App) -> None:
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    retain = app.gate._pipelines.retain
    alone = await retain.prepare(bank, [(RetainItem("The tent is in the attic."), "")])
    several = await retain.prepare(bank, [(RetainItem(f"Drawer {name} is empty."), "") for name in "abc"])
    await moved(app)
    dedup = app.settings.signal_quality.dedup
    for drafts in (alone, several):
        assert all(result.stored for result in await retain.store(bank, drafts, "local", dedup))
    assert lengths(app) == {4 * 128}
    found = await app.gate.call(ME, Recall(RecallQuery("where is the tent?", BANK, weights=SILENT)))
    assert found.hits[0].text == "The tent is in the attic."


async def test_the_store_refuses_vectors_of_the_model_before(app: App) -> None:
    before = app.storage.store.get_bank("default", BANK)
    (memory,) = (await app.gate.call(ME, ListMemories(BANK, page_size=1))).memories
    assert before is not None
    record = app.storage.store.version(before, memory.memory_id)
    assert record is not None
    await moved(app)
    with pytest.raises(Conflict, match="was reindexed"):
        await app.storage.store.commit(before, [Replace(record.memory)])
    assert lengths(app) == {4 * 128}


async def test_an_update_with_an_old_handle_goes_through(app: App) -> None:
    old = app.storage.store.get_bank("default", BANK)
    (memory,) = (await app.gate.call(ME, ListMemories(BANK, page_size=1))).memories
    assert old is not None
    await moved(app)
    update = MemoryUpdate(memory.memory_id, frozenset({"tags"}), tags=("late",))
    assert (await app.gate._pipelines.update.run(old, update, None)).tags == ("late",)
    assert lengths(app) == {4 * 128}


class Flaky:
    """An embedder that fails for a while; it stands for one far away."""

    model_id, dimensions, local = "flaky", 8, False

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        raise AssertionError("an embedder far away is never asked at once")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.asked += 1
        if self.asked <= self.failures:
            raise ProviderUnavailable("the endpoint is down")
        return [vector(text) for text in texts]

    async def close(self) -> None:
        return


@pytest.mark.parametrize(("failures", "state"), [(2, OperationState.SUCCEEDED), (99, OperationState.FAILED)])
async def test_an_embedder_that_fails_is_asked_again_and_not_for_ever(
    app: App, failures: int, state: OperationState
) -> None:
    before = await answers(app)
    flaky = Flaky(failures)
    app.providers.spaces.by_model["flaky"] = flaky
    operation = await moved(app, "flaky", sample_size=0)
    assert operation.state is state
    if state is OperationState.FAILED:
        assert flaky.asked == app.settings.reindex.attempts
        assert operation.error is not None
        assert operation.error.reason == ProviderUnavailable.reason
        assert await answers(app) == before
        await dropped(app)
        assert rows(app, "second_embeddings") == 0


async def test_no_write_fails_for_the_embedder_that_is_moved_to(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = Flaky(0)
    app.providers.spaces.by_model["flaky"] = flaky
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model="flaky", sample_size=0))
    await begun.wait()
    flaky.failures = flaky.asked + 1
    await fill(app, ["The tent is in the attic."])
    assert flaky.asked == flaky.failures
    go_on.set()
    assert (await done(app, started)).state is OperationState.SUCCEEDED
    assert lengths(app) == {4 * 8}


async def test_what_is_erased_on_the_way_has_no_vector_left(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    gone, hidden = (await app.gate.call(ME, ListMemories(BANK, page_size=2))).memories
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    record = app.storage.store.version(bank, gone.memory_id)
    assert record is not None
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(gone.memory_id,)), compliance=True))
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(hidden.memory_id,))))
    # A batch that was on its way when the memory went.
    late = [(record.row_key, [bytes(4 * 128)])]
    operations = app.pipelines.reindexer._operations
    work = operations.next()
    assert work is not None
    await operations.put(bank, SMALL, late, key=work.key)
    assert rows(app, "second_embeddings") == len(TEXTS) - 1
    go_on.set()
    assert (await done(app, started)).state is OperationState.SUCCEEDED
    assert rows(app, "embeddings") == rows(app, "second_embeddings") == len(TEXTS) - 1


async def test_a_kept_answer_of_the_former_model_is_not_given_after_the_move() -> None:
    app = App(settings(recall={"cache_bytes": 1 << 20}))
    await fill(app)
    before = await answers(app)
    assert await answers(app) == before
    await moved(app)
    assert await answers(app) == await fresh_answers(SMALL)
    await app.close()


@pytest.mark.parametrize(
    "sections", [{"vector_store": "reference"}, {"pipeline": {"multimodal": {"mode": "multimodal_embed"}}}]
)
async def test_vectors_that_would_not_move_stand_in_the_way(tmp_path: Path, sections: dict[str, Any]) -> None:
    app = App(settings(**{"vector_store": "in_memory", "data_dir": str(tmp_path), **sections}))
    await fill(app)
    with pytest.raises(FailedPrecondition):
        await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await app.close()


async def test_an_index_that_was_evicted_on_the_way_is_loaded_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = app.pipelines.reindexer._registry
    inner = app.pipelines.reindexer._operations.move

    async def move(key: int, *, checked: int, kept_until: int | None) -> list[str]:
        bank = app.storage.store.get_bank("default", BANK)
        assert bank is not None
        registry.drop(bank)
        return await inner(key, checked=checked, kept_until=kept_until)

    monkeypatch.setattr(app.pipelines.reindexer._operations, "move", move)
    assert (await moved(app)).state is OperationState.SUCCEEDED
    assert await answers(app) == await fresh_answers(SMALL)


async def test_the_trail_says_what_was_done(app: App) -> None:
    await moved(app)
    events = [event.event for event in (await app.gate.call(ME, ListAuditEvents(bank_id=BANK))).events]
    assert events == ["reindex_started", "reindexed"]


def test_two_embedders_of_one_model_are_refused() -> None:
    with pytest.raises(AstrocyteError, match="embedders"):
        App(settings(embedders={"same": {"provider": "static"}}))


async def test_a_store_of_documents_hears_of_no_memory_that_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(settings(document_store="reference", data_dir=str(tmp_path)))
    assert app.storage.external is not None
    gone: list[str] = []
    (follower,) = app.storage.external._followers.values()
    monkeypatch.setattr(follower._external, "delete", lambda ids, _: _noted(gone, ids))
    await fill(app)
    operation = await moved(app)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    assert operation.outcome is not None
    await app.storage.external.confirm(bank, operation.outcome.position)
    assert gone == []
    await app.close()


async def _noted(gone: list[str], ids: Sequence[str]) -> None:
    gone.extend(ids)
