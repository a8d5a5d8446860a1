"""Consolidation by rules: proofs, contradictions in any order of arrival, and what changes of sources do."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from astrocyte.api.requests import (
    CancelOperation,
    ConsolidateBank,
    Forget,
    GetOperation,
    InvalidateObservations,
    ListAuditEvents,
    ListObservations,
    ListOperations,
    PlaceHold,
    Recall,
    Retain,
    StartReindex,
    UndeleteMemory,
    UpdateMemory,
    UpdateObservation,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import FailedPrecondition
from astrocyte.model import (
    Caller,
    Consolidation,
    ForgetSelector,
    MemoryUpdate,
    Observation,
    Operation,
    OperationState,
    RecallQuery,
    RetainItem,
)
from astrocyte.pipelines.knowledge.consolidation import plan
from astrocyte.stores.knowledge.consolidation import ConsolidationWork, Reached

ME, BANK = Caller(), "family"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


def opened(apps: list[App], **observations: Any) -> App:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "observations": observations}))
    apps.append(app)
    return app


async def kept(app: App, text: str, days: int = 0, *tags: str) -> str:
    item = RetainItem(text, speaker="Mara", occurred_at=NOW - timedelta(days=days), tags=tags)
    return (await app.gate.call(ME, Retain(BANK, item))).memory_id or ""


async def consolidated(app: App) -> Consolidation:
    started = await app.gate.call(ME, ConsolidateBank(BANK))
    ended = await app.gate.call(ME, WaitOperation(BANK, started.operation_id))
    assert (ended.state, ended.error) == (OperationState.SUCCEEDED, None)
    assert ended.reindex is None
    assert ended.consolidation is not None
    return ended.consolidation


async def observed(app: App) -> dict[str, Observation]:
    return {one.text: one for one in await app.gate.call(ME, ListObservations(BANK))}


async def test_agreement_adds_proof_and_a_second_run_changes_nothing(apps: list[App]) -> None:
    app = opened(apps)
    sources = {await kept(app, "I love pottery.", days) for days in (3, 2)}
    await kept(app, "The train was late.")
    done = await consolidated(app)
    assert (done.created, done.updated, done.seen, done.total) == (1, 0, 3, 3)
    (found,) = (await observed(app)).values()
    assert (found.text, set(found.source_ids), found.proof_count) == ("Mara loves pottery.", sources, 2)
    assert (found.valid_from, found.valid_until, found.created_by) == (NOW - timedelta(days=3), None, "astrocyte")
    again = await consolidated(app)
    assert (again.created, again.updated, again.superseded, again.deleted) == (0, 0, 0, 0)
    assert (await observed(app))["Mara loves pottery."].revision == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_contradictions_are_ordered_by_date_in_any_order_of_arrival(apps: list[App], order: list[int]) -> None:
    app = opened(apps)
    texts = [("I live in Brno.", 30), ("I live in Oslo.", 20), ("I live in Rome.", 10)]
    for number in order:
        await kept(app, *texts[number])
        await consolidated(app)
    found = await observed(app)
    brno, oslo, rome = (found[f"Mara lives in {city}."] for city in ("Brno", "Oslo", "Rome"))
    assert (brno.valid_until, brno.superseded_by) == (NOW - timedelta(days=20), rome.observation_id)
    assert (oslo.valid_until, oslo.superseded_by) == (NOW - timedelta(days=10), rome.observation_id)
    assert (rome.valid_until, rome.superseded_by) == (None, "")


async def test_what_differs_in_a_negation_is_two_observations(apps: list[App]) -> None:
    app = opened(apps)
    for text in ("I eat meat.", "I eat no meat.", "I drink tea before lunch.", "I drink tea after lunch."):
        await kept(app, text)
    await consolidated(app)
    assert {text: one.proof_count for text, one in (await observed(app)).items()} == {
        "Mara eats meat.": 1, "Mara eats no meat.": 1, "Mara drinks tea before lunch.": 1,
        "Mara drinks tea after lunch.": 1,
    }  # fmt: skip


async def test_an_employer_is_not_superseded_by_a_time_of_day(apps: list[App]) -> None:
    app = opened(apps)
    for days, text in enumerate(("I work at night.", "I live in a flat.", "I work for Acme.", "I live in Brno.")):
        await kept(app, text, days)
    await consolidated(app)
    assert {one.superseded_by for one in (await observed(app)).values()} == {""}


async def forgotten(app: App, memory_id: str) -> None:
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory_id,))))


async def erased(app: App, memory_id: str) -> None:
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory_id,)), compliance=True))


async def invalidated(app: App, memory_id: str) -> None:
    await app.gate.call(ME, InvalidateObservations(BANK, [memory_id]))


async def updated(app: App, memory_id: str) -> None:
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(memory_id, frozenset({"content"}), "I like chess.")))


Removal = Callable[[App, str], Awaitable[None]]


@pytest.mark.parametrize("gone", [forgotten, erased, invalidated, updated])
@pytest.mark.parametrize("again", [False, True], ids=["at once", "consolidated"])
async def test_what_was_superseded_holds_again_without_its_superseder(
    apps: list[App], gone: Removal, again: bool
) -> None:
    app = opened(apps)
    await kept(app, "I live in Brno.", 30)
    oslo, rome = await kept(app, "I live in Oslo.", 20), await kept(app, "I live in Rome.", 10)
    await consolidated(app)
    query = RecallQuery("where does Mara live?", BANK)
    await gone(app, rome)
    # An observation of an updated source says what it said until the bank is consolidated.
    if again or gone is updated:
        await consolidated(app)
    found = await observed(app)
    assert "Mara lives in Rome." not in found or gone is invalidated
    if gone is not invalidated:
        brno, last = found["Mara lives in Brno."], found["Mara lives in Oslo."]
        assert (brno.superseded_by, brno.valid_until) == (last.observation_id, NOW - timedelta(days=20))
        assert (last.superseded_by, last.valid_until) == ("", None)
        await gone(app, oslo)
        if again or gone is updated:
            await consolidated(app)
        (brno,) = [one for text, one in (await observed(app)).items() if "Brno" in text]
        assert (brno.superseded_by, brno.valid_until) == ("", None)
        hits = (await app.gate.call(ME, Recall(query))).hits
        assert "Mara lives in Brno." in [hit.text for hit in hits if hit.memory_layer == "observation"]


async def test_a_superseder_that_comes_back_supersedes_again(apps: list[App]) -> None:
    app = opened(apps)
    await kept(app, "I live in Brno.", 30)
    oslo = await kept(app, "I live in Oslo.", 20)
    await consolidated(app)
    before = await observed(app)
    await forgotten(app, oslo)
    assert (await observed(app))["Mara lives in Brno."].superseded_by == ""
    await app.gate.call(ME, UndeleteMemory(BANK, oslo))
    assert await observed(app) == before
    # One that somebody rewrote says something else.
    await app.gate.call(ME, UpdateObservation(BANK, before["Mara lives in Oslo."].observation_id, "Mara likes Oslo."))
    assert (await observed(app))["Mara lives in Brno."].valid_until is None


async def test_a_forgotten_source_takes_its_observation_and_the_rest_is_built_again(apps: list[App]) -> None:
    app = opened(apps)
    one, two = await kept(app, "I love pottery.", 2), await kept(app, "I enjoy pottery.", 1)
    await consolidated(app)
    assert [found.proof_count for found in (await observed(app)).values()] == [2]
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(one,))))
    assert await observed(app) == {}
    done = await consolidated(app)
    assert (done.deleted, done.created) == (1, 1)
    # It is told in the words of a source that is there.
    assert {text: found.source_ids for text, found in (await observed(app)).items()} == {"Mara enjoys pottery.": (two,)}
    await app.gate.call(ME, UndeleteMemory(BANK, one))
    await consolidated(app)
    assert [set(found.source_ids) for found in (await observed(app)).values()] == [{one, two}]


async def test_a_changed_source_is_read_again(apps: list[App]) -> None:
    app = opened(apps)
    one, two = await kept(app, "I love pottery.", 2), await kept(app, "I enjoy pottery.", 1)
    await consolidated(app)
    (before,) = (await observed(app)).values()
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"content"}), "I love chess.")))
    await consolidated(app)
    after = await observed(app)
    assert after["Mara loves chess."].source_ids == (one,)
    rebuilt = after["Mara enjoys pottery."]
    assert (rebuilt.observation_id, rebuilt.source_ids) == (before.observation_id, (two,))
    assert not any(found.is_stale for found in after.values())
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(two, frozenset({"content"}), "Nothing.")))
    done = await consolidated(app)
    assert done.deleted == 1
    assert set(await observed(app)) == {"Mara loves chess."}


async def test_holds_and_rewritten_observations_are_left_as_they_are(apps: list[App]) -> None:
    app = opened(apps)
    one = await kept(app, "I love pottery.", 2)
    await consolidated(app)
    (found,) = (await observed(app)).values()
    await app.gate.call(ME, PlaceHold(BANK, reason="a case", memory_ids=[one]))
    await kept(app, "I enjoy pottery.", 1)
    await consolidated(app)
    assert (await observed(app))[found.text] == found
    other = opened(apps)
    await kept(other, "I love pottery.", 2)
    await consolidated(other)
    (mine,) = (await observed(other)).values()
    await other.gate.call(ME, UpdateObservation(BANK, mine.observation_id, "Pottery is her life."))
    await kept(other, "I enjoy pottery.", 1)
    await consolidated(other)
    assert (await observed(other))["Pottery is her life."].proof_count == 1


async def test_the_limit_of_a_bank_holds(apps: list[App]) -> None:
    app = opened(apps, max_per_bank=2)
    for thing in ("tea", "coffee", "chess"):
        await kept(app, f"I like {thing}.")
    with structlog.testing.capture_logs() as logs:
        done = await consolidated(app)
    assert (done.created, done.left_out) == (2, 1)
    (told,) = [one for one in logs if one["event"] == "observations_left_out"]
    assert (told["count"], told["limit"], told["log_level"]) == (1, 2, "warning")


async def test_retains_are_consolidated_where_that_is_on(apps: list[App]) -> None:
    on, off = opened(apps, consolidation={"enabled": True}), opened(apps)
    for app in (on, off):
        await kept(app, "I love pottery.")
    for _ in range(1_000):
        if await observed(on):
            break
        await asyncio.sleep(0.01)
    assert set(await observed(on)) == {"Mara loves pottery."}
    assert await observed(off) == {}
    forgotten = Forget(BANK, ForgetSelector(scope="all"))
    await on.gate.call(ME, forgotten)
    assert await observed(on) == {}


async def test_operations_are_repeatable_exclusive_audited_and_can_be_cancelled(apps: list[App]) -> None:
    app = opened(apps, consolidation={"memories_per_minute": 1})
    for number in range(80):
        await kept(app, f"I like thing {number}.")
    request = ConsolidateBank(BANK, "r1")
    foreseen = await app.gate.call(ME, ConsolidateBank(BANK, "r1", validate_only=True))
    assert (foreseen.operation_id, foreseen.state) == ("", OperationState.PENDING)
    assert foreseen.consolidation == Consolidation(total=80)
    assert (await app.gate.call(ME, ListOperations(BANK))).operations == ()
    started = await app.gate.call(ME, request)
    assert started.consolidation == foreseen.consolidation
    assert (await app.gate.call(ME, request)).operation_id == started.operation_id
    for wrong in (ConsolidateBank(BANK), ConsolidateBank(BANK, validate_only=True), StartReindex(BANK, rollback=True)):
        with pytest.raises(FailedPrecondition, match="still running"):
            await app.gate.call(ME, wrong)
    async with asyncio.timeout(10):
        operation: Operation = started
        while operation.consolidation is not None and not operation.consolidation.seen:
            await asyncio.sleep(0.01)
            operation = await app.gate.call(ME, GetOperation(BANK, started.operation_id))
    assert operation.state is OperationState.RUNNING
    ended = await app.gate.call(ME, CancelOperation(BANK, started.operation_id))
    assert ended.state is OperationState.CANCELLED
    events = [event.event for event in (await app.gate.call(ME, ListAuditEvents(BANK))).events]
    assert events == ["consolidation_started", "consolidation_cancelled"]


async def test_each_scope_has_its_own_observations(apps: list[App]) -> None:
    app = opened(apps, consolidation={"scopes": ["bank", "tag:billing", "tag:auth"]})
    billing, auth, both, none = [
        await kept(app, text, 0, *tags)
        for text, tags in (
            ("I love pottery.", ("billing",)),
            ("I enjoy pottery.", ("auth", "other")),
            ("I adore pottery.", ("auth", "billing")),
            ("I like pottery.", ()),
        )
    ]
    await consolidated(app)

    async def found() -> dict[str, set[str]]:
        return {one.scope: set(one.source_ids) for one in await app.gate.call(ME, ListObservations(BANK))}

    everything = {billing, auth, both, none}
    assert await found() == {"bank": everything, "tag:billing": {billing, both}, "tag:auth": {auth, both}}
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(both, frozenset({"tags"}), tags=("billing",))))
    assert "tag:auth" not in await found()
    await consolidated(app)
    assert await found() == {"bank": everything, "tag:billing": {billing, both}, "tag:auth": {auth}}


async def test_contradictions_stay_within_their_scope(apps: list[App]) -> None:
    app = opened(apps, consolidation={"scopes": ["tag:*"]})
    await kept(app, "I live in Brno.", 9, "home")
    await kept(app, "I live in Oslo.", 1, "work")
    await kept(app, "I live in Rome.", 0)
    await consolidated(app)
    assert {(one.scope, one.superseded_by) for one in (await observed(app)).values()} == {
        ("tag:home", ""), ("tag:work", "")
    }  # fmt: skip


async def test_entities_are_scopes(apps: list[App]) -> None:
    settings = {
        "vector_store": "in_memory",
        "pipeline": {"entity_extraction": {"mode": "rules"}},
        "observations": {"consolidation": {"scopes": ["entity:person:Alice-Smith"]}},
    }
    app = App(Settings.from_mapping(settings))
    apps.append(app)
    named = await kept(app, "Alice Smith lives in Brno.")
    await kept(app, "Bob Miller lives in Oslo.")
    await consolidated(app)
    (one,) = (await observed(app)).values()
    assert (one.scope, one.source_ids) == ("entity:alice smith", (named,))


async def test_an_observation_that_comes_back_is_there_once(apps: list[App]) -> None:
    app = opened(apps)
    one, two = await kept(app, "I love pottery.", 2), await kept(app, "I enjoy pottery.", 1)
    await consolidated(app)
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(one,))))
    # A step that sees the new memory, but neither the forget before it nor the undelete behind it.
    store, bank = app.storage.store, app.storage.store.get_bank(ME.tenant, BANK)
    assert bank is not None
    three = await kept(app, "I adore pottery.", 0)
    actions = plan(store.consolidation, bank, [three], 10, lambda _: ("bank",))
    await store.consolidation.step(ConsolidationWork(bank, 2, 4, 0), actions, Reached(4))
    await app.gate.call(ME, UndeleteMemory(BANK, one))
    await consolidated(app)
    assert [set(found.source_ids) for found in await app.gate.call(ME, ListObservations(BANK))] == [{one, two, three}]
