"""Archiving, expiry and deletion of memories by age: what leaves recall, what stays readable, and what comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateObservation,
    Forget,
    GetBankStats,
    GetMemory,
    GetObservation,
    History,
    ListAuditEvents,
    ListMemories,
    ListOperations,
    PlaceHold,
    Recall,
    ReleaseHold,
    Retain,
    RunLifecycle,
    UndeleteMemory,
    UpdateMemory,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import FailedPrecondition, MemoryNotFound, ValidationError
from astrocyte.model import (
    ArchiveReason,
    Caller,
    ForgetSelector,
    LifecycleRun,
    MemoryState,
    MemoryUpdate,
    OperationState,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT
from astrocyte.stores.sqlite.engine.transaction import Transaction
from oracles.byte_scans import files_with
from samples.archiving import export, load

CALLER = Caller()
BANK = "family"
START = datetime(2026, 1, 1, tzinfo=UTC)
OBOE, CAT = "Mara plays the oboe in an orchestra.", "The cat only eats the expensive food."


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = round(START.timestamp() * 1_000)

    def __call__(self) -> int:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += round(days * DAY_MS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def opened(clock: Clock, data_dir: Path | None = None, **lifecycle: Any) -> AsyncIterator[Any]:
    store = {"vector_store": "in_memory"} if data_dir is None else {"data_dir": str(data_dir)}
    app = App(Settings.from_mapping({**store, "lifecycle": lifecycle}), clock=clock)

    async def call(request: Any) -> Any:
        return await app.backend.call(CALLER, request)

    call.app = app  # type: ignore[attr-defined]
    try:
        yield call
    finally:
        await app.close()


async def ran(call: Any, *, dry_run: bool = False) -> LifecycleRun:
    started = await call(RunLifecycle(BANK, dry_run))
    done = await call(WaitOperation(BANK, started.operation_id, timeout=60.0))
    assert done.state is OperationState.SUCCEEDED
    run: LifecycleRun = done.lifecycle
    return run


async def retained(call: Any, *texts: str, **fields: Any) -> list[str]:
    return [(await call(Retain(BANK, RetainItem(text, **fields)))).memory_id for text in texts]


async def found(call: Any, text: str, **fields: Any) -> set[str]:
    return {hit.memory_id for hit in (await call(Recall(RecallQuery(text, BANK, **fields)))).hits}


async def test_a_forget_counts_what_was_archived(clock: Clock) -> None:
    async with opened(clock, archive_after_days=30) as call:
        await retained(call, OBOE, CAT)
        clock.pass_days(31)
        assert (await ran(call)).unused == 2
        (late,) = await retained(call, "Mara sings.")
        everything = ForgetSelector(scope="all")
        preview = await call(Forget(BANK, everything, dry_run=True))
        assert (preview.deleted_count, preview.archived_count) == (3, 2)
        done = await call(Forget(BANK, ForgetSelector(memory_ids=(late,)), request_id="r1"))
        assert (done.deleted_count, done.archived_count) == (1, 0)
        request = Forget(BANK, everything, request_id="r2")
        done = await call(request)
        assert (done.deleted_count, done.archived_count) == (2, 2)
        assert await call(request) == done
        erased = await call(Forget(BANK, everything, compliance=True, request_id="r3"))
        assert (erased.deleted_count, erased.archived_count) == (3, 2)
        assert erased.receipt.counts["archived"] == 2


async def test_unused_memories_leave_recall_and_stay_readable(clock: Clock) -> None:
    async with opened(clock, archive_after_days=30) as call:
        oboe, cat = await retained(call, OBOE, CAT)
        clock.pass_days(29)
        assert await found(call, "oboe", max_results=1) == {oboe}
        clock.pass_days(2)
        expected = LifecycleRun(dry_run=True, seen=2, total=2, unused=1, memory_ids=(cat,))
        assert await ran(call, dry_run=True) == expected
        assert (await call(GetMemory(BANK, cat))).state is MemoryState.ACTIVE
        assert (await ran(call)).memory_ids == (cat,)
        assert await found(call, "cat food oboe") == {oboe}
        assert await found(call, "cat food oboe", include_archived=True) == {oboe, cat}
        memory = await call(GetMemory(BANK, cat))
        assert (memory.state, memory.archive_reason, memory.content) == (
            MemoryState.ARCHIVED,
            ArchiveReason.UNUSED,
            CAT,
        )
        assert memory.archived_at == memory.updated_at == START + timedelta(days=31)
        assert [one.memory_id for one in (await call(ListMemories(BANK))).memories] == [oboe]
        page = await call(ListMemories(BANK, archived=True))
        assert ([one.memory_id for one in page.memories], page.total_size) == ([cat], 1)
        stats = await call(GetBankStats(BANK))
        assert (stats.memory_count, stats.archived_count) == (1, 1)
        with pytest.raises(MemoryNotFound):
            await call(UpdateMemory(BANK, MemoryUpdate(cat, frozenset({"content"}), content="Other.")))
        assert (await ran(call)).memory_ids == ()


async def test_history_shows_an_archived_memory_before_its_end_alone(clock: Clock) -> None:
    async with opened(clock, archive_after_days=30) as call:
        (cat,) = await retained(call, CAT)
        before = START + timedelta(days=31)
        clock.pass_days(40)
        await ran(call)
        clock.pass_days(1)

        async def at(instant: datetime) -> set[str]:
            result = await call(History(RecallQuery("cat", BANK, as_of=instant)))
            return {hit.memory_id for hit in result.hits}

        assert await at(before) == {cat}
        assert await at(START + timedelta(days=40, hours=1)) == set()
        clock.pass_days(1)
        await call(UndeleteMemory(BANK, cat))
        clock.pass_days(1)
        assert await at(before) == {cat}
        assert await at(START + timedelta(days=41)) == set()
        assert await at(START + timedelta(days=42, hours=1)) == {cat}
        with pytest.raises(ValidationError, match="include_archived"):
            await found(call, "cat", as_of=before, include_archived=True)


async def test_an_archived_memory_comes_back(clock: Clock) -> None:
    async with opened(clock, expire_after_days=10) as call:
        (cat,) = await retained(call, CAT, tags=("pet",))
        clock.pass_days(11)
        assert (await ran(call)).expired == 1
        restored = await call(UndeleteMemory(BANK, cat))
        assert (restored.state, restored.content, restored.tags) == (MemoryState.ACTIVE, CAT, ("pet",))
        assert restored.archive_reason is None
        assert await found(call, "cat", tags=("pet",)) == {cat}
        assert (await call(ListMemories(BANK, archived=True))).total_size == 0
        events = [one.event for one in (await call(ListAuditEvents())).events]
        assert [str(one) for one in events] == [
            "lifecycle_started",
            "memories_archived",
            "lifecycle_completed",
            "memories_restored",
        ]
        updated = await call(UpdateMemory(BANK, MemoryUpdate(cat, frozenset({"content"}), content="The dog eats.")))
        assert updated.content == "The dog eats."
        # Its age is that of the memory.
        assert (await ran(call)).expired == 1


async def test_deletion_takes_archived_memories_too_and_can_be_undone(clock: Clock) -> None:
    async with opened(clock, archive_after_days=10, delete_after_days=20) as call:
        (cat,) = await retained(call, CAT)
        clock.pass_days(11)
        assert (await ran(call)).unused == 1
        clock.pass_days(10)
        assert (await ran(call)).deleted == 1
        with pytest.raises(MemoryNotFound):
            await call(GetMemory(BANK, cat))
        assert await found(call, "cat", include_archived=True) == set()
        # What was archived before it was forgotten is archived again, and then current.
        assert (await call(UndeleteMemory(BANK, cat))).state is MemoryState.ARCHIVED
        assert (await call(UndeleteMemory(BANK, cat))).state is MemoryState.ACTIVE
        assert await found(call, "cat") == {cat}


async def test_tags_and_fact_types_have_ages_of_their_own(clock: Clock) -> None:
    rules: dict[str, Any] = {
        "archive_after_days": 10,
        "exempt_tags": ["pinned"],
        "tags": {"brief": {"archive_after_days": 1}, "long": {"archive_after_days": None}},
        "fact_types": {"experience": {"archive_after_days": 5}},
    }
    async with opened(clock, **rules) as call:
        await retained(call, "Pinned: the door code of the house.", tags=("pinned", "brief"))
        (brief,) = await retained(
            call, "The parking space today is number four.", tags=("brief",), fact_type="experience"
        )
        await retained(call, "The insurance contract is in the blue folder.", tags=("long",))
        (trip,) = await retained(call, "Lisbon is the capital of Portugal.", fact_type="experience")
        (plain,) = await retained(call, CAT)
        for days, expected in ((2, {brief}), (4, {trip}), (5, {plain}), (1_000, set())):
            clock.pass_days(days)
            assert set((await ran(call)).memory_ids) == expected


async def test_held_memories_are_left_alone(clock: Clock) -> None:
    async with opened(clock, archive_after_days=10, delete_after_days=20) as call:
        held, tagged, free = [
            (await retained(call, text, tags=tags))[0] for text, tags in ((OBOE, ()), (CAT, ("case",)), ("Free.", ()))
        ]
        await call(PlaceHold(BANK, "case", memory_ids=[held]))
        await call(PlaceHold(BANK, "case", tags=["case"]))
        clock.pass_days(30)
        run = await ran(call)
        assert (run.deleted, run.held, run.memory_ids) == (1, 2, (free,))
        assert await found(call, "oboe cat") == {held, tagged}


async def test_what_rests_on_an_archived_memory_stays(clock: Clock) -> None:
    async with opened(clock, archive_after_days=10) as call:
        (cat,) = await retained(call, CAT)
        made = await call(CreateObservation(BANK, "The cat is choosy.", [cat]))
        clock.pass_days(11)
        await ran(call)
        for _ in range(2):
            observation = await call(GetObservation(BANK, made.observation_id))
            assert (observation.proof_count, observation.is_stale) == (1, False)
            await call(UndeleteMemory(BANK, cat))


async def test_erasure_leaves_no_byte_of_an_archived_memory(clock: Clock, tmp_path: Path) -> None:
    secret = "zanzibarmarmalade"
    async with opened(clock, tmp_path, archive_after_days=10) as call:
        (memory_id,) = await retained(call, f"The password of the safe is {secret} and nothing else.", tags=(secret,))
        await retained(call, CAT)
        clock.pass_days(11)
        await ran(call)
        assert files_with(tmp_path, secret)
        selector = ForgetSelector(memory_ids=(memory_id,))
        result = await call(Forget(BANK, selector, compliance=True, reason="request"))
        assert result.deleted_count == 1
        assert not files_with(tmp_path, secret)
        assert await found(call, "cat", include_archived=True) != set()
    assert not files_with(tmp_path, secret)


async def test_the_index_of_a_new_process_is_the_same(clock: Clock, tmp_path: Path) -> None:
    async with opened(clock, tmp_path, archive_after_days=10) as call:
        oboe, cat = await retained(call, OBOE, CAT)
        clock.pass_days(9)
        await found(call, "oboe", max_results=1)
        # The recall is noted when the server stops.
    clock.pass_days(2)
    async with opened(clock, tmp_path, archive_after_days=10) as call:
        assert (await ran(call)).memory_ids == (cat,)
    async with opened(clock, tmp_path) as call:
        assert await found(call, "oboe cat") == {oboe}
        assert await found(call, "oboe cat", include_archived=True) == {oboe, cat}
        await call(UndeleteMemory(BANK, cat))
    async with opened(clock, tmp_path) as call:
        assert await found(call, "oboe cat") == {oboe, cat}


async def test_a_schedule_starts_a_run_and_a_missed_one_is_made_up_for(clock: Clock, tmp_path: Path) -> None:
    async with opened(clock, tmp_path, archive_after_days=1, schedule="0 3 * * *") as call:
        (cat,) = await retained(call, CAT)
        call.app.pipelines.lifecycle.notify()
        assert (await call(ListOperations(BANK))).operations == ()
    clock.pass_days(3)
    async with opened(clock, tmp_path, archive_after_days=1, schedule="0 3 * * *") as call:
        # The first use starts the background tasks.
        await call(GetBankStats(BANK))
        (started,) = await until(call, 1)
        assert started.created_by == "astrocyte"
        done = await call(WaitOperation(BANK, started.operation_id, timeout=60.0))
        assert done.lifecycle.memory_ids == (cat,)
        clock.pass_days(1)
        call.app.pipelines.lifecycle.notify()
        assert len(await until(call, 2)) == 2


async def until(call: Any, count: int) -> Any:
    async with asyncio.timeout(30):
        while len(found := (await call(ListOperations(BANK))).operations) < count:  # noqa: ASYNC110 - nothing tells of an operation that starts
            await asyncio.sleep(0.01)
    return found


async def test_one_operation_of_a_bank_runs_at_a_time_and_requests_are_repeated(clock: Clock) -> None:
    async with opened(clock, archive_after_days=1) as call:
        await retained(call, CAT)
        started = await call(RunLifecycle(BANK, request_id="one"))
        await call(WaitOperation(BANK, started.operation_id, timeout=60.0))
        again = await call(RunLifecycle(BANK, request_id="one"))
        assert again.operation_id == started.operation_id
        store = call.app.storage.store
        bank = store.get_bank("default", BANK)
        await store.consolidation.start(bank, "op-open", by="me")
        with pytest.raises(FailedPrecondition, match="op-open"):
            await call(RunLifecycle(BANK))


def test_the_instant_of_archives_is_a_date() -> None:
    assert datetime.fromtimestamp(ARCHIVE_INSTANT / 1_000, UTC) == datetime(9999, 1, 1, tzinfo=UTC)


async def test_an_export_has_archived_memories_and_an_import_archives_them_again(clock: Clock) -> None:
    async with opened(clock, archive_after_days=10) as call:
        (cat,) = await retained(call, CAT)
        clock.pass_days(11)
        await ran(call)
        backend = call.app.backend
        for versions in (True, False):
            copy = f"copy-{versions}".lower()
            await load(backend, await export(backend, BANK, omit_versions=not versions), copy)
            memory = await call(GetMemory(copy, cat))
            assert (memory.state, memory.archive_reason) == (MemoryState.ARCHIVED, ArchiveReason.UNUSED)
            assert memory.archived_at == START + timedelta(days=11)
            result = await call(Recall(RecallQuery("cat", copy)))
            assert result.hits == ()
            assert (await call(UndeleteMemory(copy, cat))).content == CAT


LOST = "INSERT INTO graph_entities (bank_key, entity_id, entity_type) SELECT bank_key, ?, 'PERSON' FROM banks"


@pytest.mark.parametrize("merge", [False, True])
async def test_a_run_deletes_entities_that_nothing_names(clock: Clock, *, merge: bool) -> None:
    async with opened(clock, archive_after_days=30, merge_duplicates=merge) as call:
        await retained(call, "Mara Silva plays the oboe.")
        assert await call.app.pipelines.graph.follower.caught_up(30.0)
        named = entities(call)
        assert named

        def damage(transaction: Transaction) -> None:
            for name in ("person:lost", "person:gone"):
                transaction.connection.execute(LOST, (name,))

        await call.app.storage.store._writer.submit(damage)
        for dry_run, left in ((True, 2), (False, 0)):
            started = await call(RunLifecycle(BANK, dry_run, merge_duplicates=merge))
            done = await call(WaitOperation(BANK, started.operation_id, timeout=60.0))
            assert done.lifecycle.entities == 2
            assert len(entities(call)) == len(named) + left
        assert (await ran(call)).entities == 0
        assert entities(call) == named
        events = (await call(ListAuditEvents(BANK, page_size=50))).events
        ended = [one.details for one in events if one.event == "lifecycle_completed"]
        assert sorted(one["entities"] for one in ended) == ["0", "2", "2"]


async def test_a_run_in_a_bank_under_a_hold_deletes_no_entity(clock: Clock) -> None:
    async with opened(clock, archive_after_days=30) as call:
        await retained(call, "Mara Silva plays the oboe.")
        await call.app.storage.store._writer.submit(
            lambda transaction: transaction.connection.execute(LOST, ("person:lost",))
        )
        hold = await call(PlaceHold(BANK, reason="a case"))
        assert (await ran(call)).entities == 0
        await call(ReleaseHold(BANK, hold.hold_id))
        assert (await ran(call)).entities == 1


def entities(call: Any) -> set[str]:
    """Ids of all entities of the store, seen or not."""
    return {row[0] for row in call.app.storage.store._connections.query("SELECT entity_id FROM graph_entities")}
