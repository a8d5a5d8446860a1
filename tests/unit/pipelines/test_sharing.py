"""Two applications on one data directory, in one process: each knows what the other acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import CreateBank, Explain, Forget, GetBankStats, Neighbors, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import Unavailable
from astrocyte.model import Caller, ExplainQuery, ExplainStage, ForgetSelector, RecallQuery, RetainItem
from astrocyte.pipelines import sharing
from astrocyte.pipelines.retain.drafts import identity_hash
from astrocyte.providers.bounded import BoundedModel
from astrocyte.stores.records import Insert
from astrocyte.wiring.storage import prepare_directory
from doubles.graph_models import ALLERGY, Model, until, waiting
from samples.memories import memory

ME = Caller("default")
Pair = tuple[App, App]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    settings = Settings.from_mapping({"data_dir": str(tmp_path / "data"), "store": {"ballast_bytes": 0}})
    lock = prepare_directory(settings)
    apps = App(settings, worker=1), App(settings, worker=2)
    await apps[0].gate.call(ME, CreateBank("b"))
    for app in apps:
        await found(app, "anything")
    yield apps
    for app in apps:
        await app.gate.close()
    lock.release()


async def stored(app: App, content: str) -> str:
    result = await app.gate.call(ME, Retain("b", RetainItem(content)))
    assert result.memory_id
    return result.memory_id


async def found(app: App, query: str) -> set[str | None]:
    result = await app.gate.call(ME, Recall(RecallQuery(query, "b")))
    return {hit.memory_id for hit in result.hits}


def position(app: App) -> int:
    bank = app.storage.store.get_bank("default", "b")
    assert bank is not None
    index = app.storage.registry.peek(bank)
    return 0 if index is None else index.core.position


async def test_a_recall_begins_with_what_the_other_process_acknowledged(pair: Pair) -> None:
    for number in range(30):
        here, there = pair[number % 2], pair[1 - number % 2]
        memory_id = await stored(here, f"Parcel zq{number}x stands in the hall")
        assert memory_id in await found(there, f"zq{number}x")


async def test_own_commits_are_applied_behind_those_of_the_other_process(pair: Pair) -> None:
    here, there = pair
    numbers = iter(range(1, 100))

    async def commit(app: App) -> int:
        # By the store: a retain would look for duplicates, and so bring the index up to date before.
        number = next(numbers)
        bank = app.storage.store.get_bank("default", "b")
        assert bank is not None
        content = f"Crate q{number}x of the ship"
        new = memory(number, content, content_hash=identity_hash(content, None, None, None), vector=None)
        await app.storage.store.commit(bank, [Insert(new)])
        return number

    for _ in range(10):
        before = position(here)
        committed = [await commit(there), await commit(there), await commit(here)]
        assert position(here) == before
        for number in committed:
            assert f"mem_{number:032x}" in await found(here, f"q{number}x")
        assert position(here) == committed[-1]


async def test_statistics_are_those_after_the_commits_of_the_other_process(pair: Pair) -> None:
    for number in range(6):
        here, there = pair[number % 2], pair[1 - number % 2]
        await stored(here, f"Lamp {number} of the harbour")
        stats = await there.gate.call(ME, GetBankStats("b"))
        assert (stats.position, stats.indexed_position, stats.memory_count) == (number + 1,) * 3
        assert stats.index is not None
        assert stats.index.rows == number + 1


async def test_statistics_load_no_index(pair: Pair) -> None:
    here, there = pair
    bank = there.storage.store.get_bank("default", "b")
    assert bank is not None
    there.storage.registry.drop(bank)
    await stored(here, "A lamp of the harbour")
    stats = await there.gate.call(ME, GetBankStats("b"))
    assert (stats.position, stats.indexed_position, stats.index) == (1, -1, None)


async def test_explanations_know_what_the_other_process_acknowledged(pair: Pair) -> None:
    for number in range(6):
        here, there = pair[number % 2], pair[1 - number % 2]
        memory_id = await stored(here, f"Chart kv{number}x of the harbour")
        result = await there.gate.call(ME, Explain(ExplainQuery(RecallQuery(f"kv{number}x", "b"), (memory_id,))))
        assert [(one.memory_id, one.stage) for one in result.explanations] == [(memory_id, ExplainStage.RETURNED)]
        assert result.position == number + 1


async def test_a_recall_over_several_banks_knows_the_commits_of_the_other_process(pair: Pair) -> None:
    await pair[0].gate.call(ME, CreateBank("c"))

    async def found_in_both(app: App, query: str) -> set[str | None]:
        result = await app.gate.call(ME, Recall(RecallQuery(query, banks=("b", "c"))))
        return {hit.memory_id for hit in result.hits}

    for app in pair:
        await found_in_both(app, "anything")
    for number in range(8):
        here, there = pair[number % 2], pair[1 - number % 2]
        result = await here.gate.call(ME, Retain("bc"[number // 2 % 2], RetainItem(f"Rope wj{number}x of the ship")))
        assert result.memory_id in await found_in_both(there, f"wj{number}x")
        selector = ForgetSelector(memory_ids=(result.memory_id or "",))
        await there.gate.call(ME, Forget("bc"[number // 2 % 2], selector))
        assert result.memory_id not in await found_in_both(here, f"wj{number}x")


async def test_the_process_with_the_lease_lets_the_model_read_what_the_other_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [Model(), Model()]
    made = iter(models)
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(next(made)))
    extraction = {"graph_extraction": {"mode": "llm"}, "llm_provider": "mock", "entity_resolution": {"enabled": False}}
    settings = Settings.from_mapping({"data_dir": str(tmp_path), "store": {"ballast_bytes": 0}, **extraction})
    lock = prepare_directory(settings)
    holder, other = apps = App(settings, worker=1), App(settings, worker=2)
    await holder.gate.call(ME, CreateBank("b"))
    holder.start_purging()
    await until(lambda: holder.follower is not None and holder.follower.fence is not None)
    other.start_purging()
    await other.gate.call(ME, GetBankStats("b"))
    await stored(other, ALLERGY.format(1))
    assert await other.pipelines.graph.follower.caught_up(30.0)
    await until(lambda: not waiting(other) and len(models[0].asked) == 1)
    assert await other.pipelines.graph.follower.caught_up(30.0)
    read = await other.gate.call(ME, Neighbors("b", ["person:alice-smith"], link_types=["reacts_to"]))
    assert [one.via.evidence for one in read.entities if one.via is not None] == [ALLERGY.format(1)]
    assert models[1].asked == []
    for app in apps:
        await app.gate.close()
    lock.release()


async def test_many_writers_in_two_processes_leave_two_equal_indexes(pair: Pair) -> None:
    async def writer(number: int) -> None:
        app = pair[number % 2]
        for count in range(12):
            memory_id = await stored(app, f"Note {number} of day {count} by the clerk")
            if count % 4 == 3:
                await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
            await found(pair[(number + count) % 2], "note of the clerk")

    await asyncio.gather(*(writer(number) for number in range(6)))
    queries = [f"note {number} of day {count}" for number in range(6) for count in range(12)]
    for query in queries:
        assert await found(pair[0], query) == await found(pair[1], query), query
    assert position(pair[0]) == position(pair[1])


async def test_one_process_does_the_background_work(pair: Pair) -> None:
    for app in pair:
        app.start_purging()
    for _ in range(200):
        await asyncio.sleep(0.01)
        if any(app.follower is not None and app.follower.fence for app in pair):
            break
    await asyncio.sleep(0.1)
    assert sum(app._purging is not None for app in pair) == 1
    assert [app.storage.checkpoints.writes for app in pair if app._purging] == [True]  # type: ignore[union-attr]


async def test_an_erasure_waits_until_the_other_process_keeps_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = pair
    for app in pair:
        app.start_purging()
    memory_id = await stored(here, "The code of the safe is seven")
    await found(there, "the code")
    await asyncio.sleep(0.3)
    let_go: list[int] = []

    async def slowly(bank_key: int) -> None:
        await asyncio.sleep(0.3)
        let_go.append(bank_key)

    assert there.follower is not None
    monkeypatch.setattr(there.follower, "_let_go", slowly)
    await here.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
    assert len(let_go) >= 1


async def test_an_erasure_takes_the_rows_out_of_the_other_index(pair: Pair) -> None:
    here, there = pair
    for app in pair:
        app.start_purging()
    memory_id = await stored(here, "The code of the safe is seven")
    await found(there, "the code")
    await asyncio.sleep(0.3)
    await here.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
    # Nobody called the other process since.
    bank = there.storage.store.get_bank("default", "b")
    assert bank is not None
    assert position(there) == bank.position
    index = there.storage.registry.peek(bank)
    assert index is not None
    assert index.core.keys_of([bytes.fromhex(memory_id.removeprefix("mem_"))]) == []


async def test_an_erasure_tells_that_a_process_has_not_confirmed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = pair
    monkeypatch.setattr(sharing, "LONGEST_CONFIRM_SECONDS", 0.3)
    for app in pair:
        app.start_purging()
    memory_id = await stored(here, "The code of the safe is seven")
    await asyncio.sleep(0.2)

    async def never(_: int) -> None:
        await asyncio.Event().wait()

    assert there.follower is not None
    monkeypatch.setattr(there.follower, "_let_go", never)
    with pytest.raises(Unavailable, match="worker 2"):
        await here.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))


async def test_a_database_that_is_away_does_not_fill_the_log(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    there = pair[1]
    assert there.follower is not None
    refresh, failures = there.storage.store.refresh, iter(range(5))

    def failing() -> None:
        if next(failures, None) is not None:
            raise Unavailable("the database is away")
        refresh()

    monkeypatch.setattr(there.storage.store, "refresh", failing)
    with capture_logs() as logged:
        there.follower.start()
        await until(lambda: any(line["event"] == "following_resumed" for line in logged))
        await there.follower.stop()
    told = [(line["event"], line["log_level"], line["failures"]) for line in logged if "following" in line["event"]]
    assert told == [("following_failed", "warning", 1), ("following_resumed", "info", 5)]
