"""A bank that moves to another embedding model answers throughout, by one of the two, and by the new one at last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from astrocyte.api.requests import (
    Forget,
    GetBank,
    GetOperation,
    Recall,
    Retain,
    StartReindex,
    UndeleteMemory,
    UpdateMemory,
    Watch,
)
from astrocyte.app import App
from astrocyte.errors import FailedPrecondition
from astrocyte.model import (
    ChangeKind,
    ForgetSelector,
    MemoryUpdate,
    Operation,
    OperationState,
    RecallQuery,
    Reindex,
    ReindexPhase,
    RetainItem,
)
from samples.moving import (
    BANK,
    ME,
    OWN,
    QUESTIONS,
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
    shown,
)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with filled() as opened:
        yield opened


def plan_of(operation: Operation) -> Reindex:
    assert operation.reindex is not None
    return operation.reindex


async def test_a_bank_that_moved_answers_as_one_that_always_had_the_model(app: App) -> None:
    before = await answers(app)
    operation = await moved(app)
    assert operation.state is OperationState.SUCCEEDED
    assert plan_of(operation).phase is ReindexPhase.MOVED
    assert (plan_of(operation).embedded, plan_of(operation).total) == (len(TEXTS), len(TEXTS))
    bank = await app.gate.call(ME, GetBank(BANK))
    assert (bank.embedding_model, bank.dimensions) == (SMALL, 128)
    assert operation.outcome is not None
    assert operation.outcome.position == bank.position == len(TEXTS) + 1
    after = await answers(app)
    assert after == await fresh_answers(SMALL)
    assert after != before


async def test_the_move_is_a_change_with_a_position_of_its_own(app: App) -> None:
    await moved(app)
    stream = app.gate.stream(ME, Watch(BANK, after_position=len(TEXTS)))
    change = await anext(aiter(stream))
    assert (change.kind, change.memory_id, change.position) == (ChangeKind.REINDEXED, "", len(TEXTS) + 1)
    result = await app.gate.call(ME, Recall(RecallQuery(QUESTIONS[0], BANK, min_position=change.position)))
    assert shown(result) == (await fresh_answers(SMALL))[0]


async def test_what_is_written_and_forgotten_meanwhile_is_in_the_next_index(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await fill(app, ["The tent is in the attic.", "The attic has a new lamp."])
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    late = await app.gate.call(ME, Retain(BANK, RetainItem("The canoe has a leak near the bow.")))
    assert late.memory_id is not None
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(late.memory_id, frozenset({"tags"}), tags=("boats",))))
    await app.gate.call(
        ME, UpdateMemory(BANK, MemoryUpdate(ids[1], frozenset({"content"}), content="The attic is dry."))
    )
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],))))
    go_on.set()
    assert (await done(app, started)).state is OperationState.SUCCEEDED
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    for versions in app.storage.store.iter_versions(bank):
        assert all(len(version.memory.vector or b"") == 4 * 128 for version in versions)
    found = shown(await app.gate.call(ME, Recall(RecallQuery("is there a leak in the canoe?", BANK, weights=SILENT))))
    assert found[0][0] == "The canoe has a leak near the bow."
    texts = [
        text
        for text, _ in shown(
            await app.gate.call(ME, Recall(RecallQuery("what is in the attic?", BANK, weights=SILENT)))
        )
    ]
    assert "The attic is dry." in texts
    assert "The tent is in the attic." not in texts
    assert "The attic has a new lamp." not in texts


async def test_every_answer_is_of_one_of_the_two_models_and_none_goes_back(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text} It was number {number}." for number in range(12) for text in TEXTS]
    await fill(app, texts)
    before = await answers(app)
    after = await fresh_answers(SMALL, [*TEXTS, *texts])
    assert all(old != new for old, new in zip(before, after, strict=True))
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    assert await answers(app) == before
    go_on.set()
    seen: list[bool] = []
    while not (await app.gate.call(ME, GetOperation(BANK, started.operation_id))).done:
        for place, found in enumerate(await answers(app)):
            assert found in (before[place], after[place])
            seen.append(found == after[place])
        # A recall of a small bank gives nobody else a turn.
        await asyncio.sleep(0)
    assert await answers(app) == after
    assert seen == sorted(seen)


async def test_a_rollback_needs_no_vectors_but_those_of_what_came_since(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await answers(app)
    await moved(app)
    embedder = app.providers.spaces.default
    asked: list[str] = []

    def counted(texts: Sequence[str]) -> list[bytes]:
        asked.extend(texts)
        return inner(texts)

    inner = embedder.embed_now
    monkeypatch.setattr(embedder, "embed_now", counted)
    operation = await moved(app, None, sample_size=0)
    assert (operation.state, plan_of(operation).rollback) == (OperationState.SUCCEEDED, True)
    assert asked == []
    assert await answers(app) == before
    await moved(app, None, sample_size=0)
    await fill(app, ["The tent is in the attic."])
    asked.clear()
    await moved(app, None, sample_size=0)
    assert asked == ["The tent is in the attic."]
    assert await answers(app) == await fresh_answers(OWN, [*TEXTS, "The tent is in the attic."])


async def test_a_bank_may_move_on_to_a_third_model(app: App) -> None:
    await moved(app, SMALL)
    assert (await moved(app, TINY)).state is OperationState.SUCCEEDED
    assert await answers(app) == await fresh_answers(TINY)
    assert plan_of(await moved(app, None)).to_model == SMALL
    assert await answers(app) == await fresh_answers(SMALL)


async def test_a_forgotten_memory_that_comes_back_has_vectors_of_the_new_model(app: App) -> None:
    (memory_id,) = await fill(app, ["The tent is in the attic."])
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory_id,))))
    await moved(app, SMALL)
    await app.gate.call(ME, UndeleteMemory(BANK, memory_id))
    assert await answers(app) == await fresh_answers(SMALL, [*TEXTS, "The tent is in the attic."])
    found = await app.gate.call(ME, Recall(RecallQuery("where is the tent?", BANK, weights=SILENT)))
    assert found.hits[0].text == "The tent is in the attic."


async def test_no_vector_of_a_third_model_is_taken_for_one_of_the_banks(app: App) -> None:
    one, other = await fill(app, ["The tent is in the attic.", "The attic has a new lamp."])
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(one, other))))
    await moved(app, SMALL)
    await moved(app, TINY)
    # Those of the first model are left where those of the third are now.
    assert rows(app, "embeddings") == len(TEXTS) + 2
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    await app.storage.store.undelete(bank, one)
    assert lengths(app) == {0, 4 * 64}
    await app.gate.call(ME, UndeleteMemory(BANK, other))
    record = app.storage.store.version(bank, other)
    assert record is not None
    assert len(record.memory.vector or b"") == 4 * 64


async def test_a_move_is_refused_while_a_memory_lacks_vectors(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = paused(monkeypatch, app)
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    await begun.wait()
    app.providers.spaces.aim(await app.gate.call(ME, GetBank(BANK)), None)
    (late,) = await fill(app, ["The tent is in the attic."])
    operations = app.pipelines.reindexer._operations
    work = operations.next()
    assert work is not None
    assert await operations.move(work.key, checked=len(TEXTS), kept_until=None) == [late]
    assert (await app.gate.call(ME, GetBank(BANK))).embedding_model == OWN
    go_on.set()
    assert (await done(app, started)).state is OperationState.SUCCEEDED
    assert lengths(app) == {4 * 128}


async def test_the_comparison_is_told(app: App) -> None:
    compared = plan_of(await moved(app, SMALL, sample_size=6)).comparison
    assert compared is not None
    assert compared.queries == 6
    assert 0.0 < compared.semantic_overlap <= 1.0
    assert 0.0 < compared.overlap <= 1.0
    assert 0.0 <= compared.same_first <= 1.0
    assert plan_of(await moved(app, TINY, sample_size=0)).comparison is None


async def test_too_little_overlap_leaves_the_bank_as_it_is(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await answers(app)
    monkeypatch.setattr("astrocyte.pipelines.reindex.overlap.overlap", lambda *_: 0.4)
    operation = await moved(app, SMALL, min_overlap=0.5)
    assert (operation.state, operation.outcome) == (OperationState.FAILED, None)
    assert operation.error is not None
    assert operation.error.reason == FailedPrecondition.reason
    assert "0.400" in operation.error.message
    assert await answers(app) == before
    await dropped(app)
    assert rows(app, "second_embeddings") == 0
    assert (await moved(app, SMALL, min_overlap=0.4)).state is OperationState.SUCCEEDED
