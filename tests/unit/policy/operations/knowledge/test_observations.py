"""Observations: their evidence, their scopes, their revisions, and that they go with their sources."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from astrocyte.api.requests import (
    CreateObservation,
    DeleteBank,
    DeleteObservation,
    Forget,
    GetObservation,
    InvalidateObservations,
    ListObservationRevisions,
    ListObservations,
    PlaceHold,
    Recall,
    Retain,
    UndeleteMemory,
    UpdateMemory,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    Conflict,
    FailedPrecondition,
    LegalHoldActive,
    MemoryNotFound,
    NotFound,
    RequestIdReused,
    ValidationError,
)
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem, RevisionCause, Trend

ME, BANK = Caller(), "family"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(
        Settings.from_mapping({"vector_store": "in_memory", "observations": {"max_per_bank": 30}}),
        clock=lambda: int(NOW.timestamp() * 1_000),
    )
    yield app
    await app.close()


async def kept(app: App, text: str, *tags: str, days: int | None = None) -> str:
    occurred = None if days is None else NOW - timedelta(days=days)
    result = await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=tags, occurred_at=occurred)))
    assert result.memory_id is not None
    return result.memory_id


async def forget(app: App, *memory_ids: str, compliance: bool = False) -> None:
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=memory_ids), compliance=compliance))


async def test_evidence_counts_distinct_sources_and_makes_the_trend(app: App) -> None:
    old, new = await kept(app, "Mara left out the nuts.", days=200), await kept(app, "No nuts for Mara.", days=2)
    made = await app.gate.call(ME, CreateObservation(BANK, "Mara avoids nuts.", [new, old, new]))
    assert (made.proof_count, made.trend, made.confidence, made.revision) == (2, Trend.STRENGTHENING, 0.9, 1)
    assert {one.memory_id: one.observed_at for one in made.evidence} == {
        old: NOW - timedelta(days=200),
        new: NOW - timedelta(days=2),
    }
    assert await app.gate.call(ME, GetObservation(BANK, made.observation_id)) == made
    assert await app.gate.call(ME, GetObservation("", made.observation_id)) == made
    fresh = await app.gate.call(ME, CreateObservation(BANK, "No nuts.", [new], confidence=0.5))
    assert (fresh.trend, fresh.confidence) == (Trend.NEW, 0.5)


async def test_lists_filter_by_scope_trend_and_text_and_page(app: App) -> None:
    tagged, plain = await kept(app, "Paid in May.", "billing", days=1), await kept(app, "Tea at eight.", days=400)
    for number in range(5):
        await app.gate.call(ME, CreateObservation(BANK, f"Pays on time {number}.", [tagged], "tag:billing"))
        await app.gate.call(ME, CreateObservation(BANK, f"Drinks TEA {number}.", [plain]))
    scoped = await app.gate.call(ME, ListObservations(BANK, scope="tag:billing"))
    assert [one.text for one in scoped] == [f"Pays on time {number}." for number in range(5)]
    stale = await app.gate.call(ME, ListObservations(BANK, trend=Trend.STALE))
    assert {one.scope for one in stale} == {"bank"}
    assert len(await app.gate.call(ME, ListObservations(BANK, text="tea 3"))) == 1
    texts: list[str] = []
    token = ""
    while True:
        page = await app.gate.call(ME, ListObservations(BANK, trend=Trend.STALE, page_size=2, page_token=token))
        texts += [one.text for one in page]
        token = page.next_page_token
        if not token:
            break
    assert texts == [f"Drinks TEA {number}." for number in range(5)]
    first = await app.gate.call(ME, ListObservations(BANK, page_size=2))
    with pytest.raises(ValidationError, match="another list"):
        await app.gate.call(ME, ListObservations(BANK, scope="bank", page_size=2, page_token=first.next_page_token))


async def test_a_scope_takes_no_source_from_outside(app: App) -> None:
    inside, outside = await kept(app, "Paid in May.", "billing"), await kept(app, "Login failed.", "auth")
    with pytest.raises(FailedPrecondition, match="outside of the scope"):
        await app.gate.call(ME, CreateObservation(BANK, "Pays.", [inside, outside], "tag:billing"))
    made = await app.gate.call(ME, CreateObservation(BANK, "Pays.", [inside], "tag:billing"))
    with pytest.raises(FailedPrecondition, match="outside of the scope"):
        await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, evidence=[outside]))
    # A source that loses the tag leaves the scope, and takes along what rests on it.
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(inside, frozenset({"tags"}), tags=("auth",))))
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetObservation(BANK, made.observation_id))
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(inside, frozenset({"tags"}), tags=("billing",))))
    assert (await app.gate.call(ME, GetObservation(BANK, made.observation_id))).is_stale


async def test_an_observation_is_gone_while_a_source_is_forgotten(app: App) -> None:
    one, two = await kept(app, "Mara left out the nuts."), await kept(app, "No nuts for Mara.")
    made = await app.gate.call(ME, CreateObservation(BANK, "Mara avoids nuts.", [one, two]))
    await forget(app, one)
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetObservation(BANK, made.observation_id))
    assert len(await app.gate.call(ME, ListObservations(BANK))) == 0
    hits = (await app.gate.call(ME, Recall(RecallQuery("what does Mara avoid?", BANK)))).hits
    assert [hit.memory_layer for hit in hits] == ["semantic"]
    await app.gate.call(ME, UndeleteMemory(BANK, one))
    assert await app.gate.call(ME, GetObservation(BANK, made.observation_id)) == made
    await forget(app, one, compliance=True)
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetObservation(BANK, made.observation_id))
    assert app.storage.store._connections.query("SELECT count(*) FROM knowledge_items") == [(0,)]


async def test_an_erased_source_takes_earlier_revisions_and_leaves_the_current_one(app: App) -> None:
    one, two = await kept(app, "Mara left out the nuts."), await kept(app, "No nuts for Mara.")
    made = await app.gate.call(ME, CreateObservation(BANK, "First words.", [one]))
    later = await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, "Second words.", [two]))
    assert (later.revision, later.source_ids) == (2, (two,))
    await forget(app, one, compliance=True)
    revisions = await app.gate.call(ME, ListObservationRevisions(BANK, made.observation_id))
    assert [(entry.revision, entry.text) for entry in revisions] == [(2, "Second words.")]
    assert app.storage.store._connections.query("SELECT revision FROM knowledge_revisions") == [(2,)]


async def test_updates_keep_what_is_not_given_and_have_a_history(app: App) -> None:
    one = await kept(app, "No nuts for Mara.")
    made = await app.gate.call(ME, CreateObservation(BANK, "Mara avoids nuts.", [one], confidence=0.7))
    changed = await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, confidence=0.8, etag=made.etag))
    assert (changed.text, changed.confidence, changed.revision) == ("Mara avoids nuts.", 0.8, 2)
    with pytest.raises(Conflict):
        await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, "x", etag=made.etag))
    dry = await app.gate.call(ME, UpdateObservation(BANK, made.observation_id, "x", validate_only=True))
    assert dry == changed
    again = UpdateObservation(BANK, made.observation_id, "Mara eats no nuts.", request_id="r1")
    third = await app.gate.call(ME, again)
    assert await app.gate.call(ME, again) == third
    with pytest.raises(RequestIdReused):
        await app.gate.call(ME, replace(again, text="other"))
    page = await app.gate.call(ME, ListObservationRevisions(BANK, made.observation_id, page_size=2))
    rest = await app.gate.call(
        ME, ListObservationRevisions(BANK, made.observation_id, page_size=2, page_token=page.next_page_token)
    )
    assert [(entry.revision, entry.cause) for entry in (*page, *rest)] == [
        (3, RevisionCause.UPDATED),
        (2, RevisionCause.UPDATED),
        (1, RevisionCause.CREATED),
    ]


async def test_a_changed_source_makes_an_observation_stale(app: App) -> None:
    one = await kept(app, "No nuts for Mara.")
    made = await app.gate.call(ME, CreateObservation(BANK, "Mara avoids nuts.", [one]))
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"content"}), "Mara eats nuts again.")))
    found = await app.gate.call(ME, GetObservation(BANK, made.observation_id))
    assert found.is_stale
    assert [entry.is_changed for entry in found.evidence] == [True]


async def test_invalidation_deletes_what_rests_on_any_of_the_memories(app: App) -> None:
    one, two, three = [await kept(app, f"Fact {number} of Mara.") for number in range(3)]
    for evidence in ([one, two], [two, three], [three]):
        await app.gate.call(ME, CreateObservation(BANK, "Something.", evidence))
    request = InvalidateObservations(BANK, [one, two], request_id="r1")
    assert await app.gate.call(ME, request) == 2
    assert await app.gate.call(ME, request) == 2
    assert [one.source_ids for one in await app.gate.call(ME, ListObservations(BANK))] == [(three,)]
    with pytest.raises(ValidationError):
        await app.gate.call(ME, InvalidateObservations(BANK, []))


async def test_holds_cover_what_rests_on_held_memories(app: App) -> None:
    one, two = await kept(app, "No nuts for Mara."), await kept(app, "Tea at eight.")
    held = await app.gate.call(ME, CreateObservation(BANK, "Mara avoids nuts.", [one]))
    free = await app.gate.call(ME, CreateObservation(BANK, "Tea.", [two]))
    await app.gate.call(ME, PlaceHold(BANK, reason="a case", memory_ids=[one]))
    for request in (
        DeleteObservation(BANK, held.observation_id),
        UpdateObservation(BANK, held.observation_id, "x"),
        InvalidateObservations(BANK, [one]),
    ):
        with pytest.raises(LegalHoldActive):
            await app.gate.call(ME, request)
    assert await app.gate.call(ME, DeleteObservation(BANK, free.observation_id)) is True
    assert await app.gate.call(ME, DeleteObservation(BANK, free.observation_id)) is False


async def test_bad_input_changes_nothing(app: App) -> None:
    one = await kept(app, "No nuts for Mara.")
    wrong: list[tuple[object, str]] = [
        (CreateObservation(BANK, "", [one]), "text"),
        (CreateObservation(BANK, "x", []), "evidence"),
        (CreateObservation(BANK, "x", [one], "family"), "scope"),
        (CreateObservation(BANK, "x", [one], confidence=1.5), "confidence"),
        (CreateObservation(BANK, "x", [one], valid_from=datetime(2026, 1, 1)), "valid_from"),  # noqa: DTZ001 - no zone
        (CreateObservation(BANK, "x", [one], valid_from=NOW, valid_until=NOW - timedelta(1)), "valid_until"),
        (UpdateObservation(BANK, "obs-1"), "text"),
        (GetObservation("", "obs-1"), "bank_id"),
    ]
    for request, field in wrong:
        with pytest.raises(ValidationError) as refusal:
            await app.gate.call(ME, request)  # type: ignore[arg-type]  # of several kinds
        assert refusal.value.field == field
    with pytest.raises(MemoryNotFound):
        await app.gate.call(ME, CreateObservation(BANK, "x", [one, "mem_" + "0" * 32]))
    assert (await app.gate.call(ME, CreateObservation(BANK, "x", [one], validate_only=True))).proof_count == 1
    assert len(await app.gate.call(ME, ListObservations(BANK))) == 0


async def test_a_bank_has_no_more_than_its_limit_and_loses_all_with_itself(app: App) -> None:
    one = await kept(app, "No nuts for Mara.")
    for number in range(30):
        await app.gate.call(ME, CreateObservation(BANK, f"Statement {number}.", [one]))
    with pytest.raises(FailedPrecondition, match="30 observations, which is the limit"):
        await app.gate.call(ME, CreateObservation(BANK, "Another.", [one]))
    await app.gate.call(ME, DeleteBank(BANK))
    for table in ("knowledge_items", "knowledge_revisions", "knowledge_sources"):
        assert app.storage.store._connections.query(f"SELECT 1 FROM {table}") == []  # noqa: S608 - names of ours
