"""A legal hold wins over everything that would take a memory away, from the next call on and over restarts."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    DeleteBank,
    Forget,
    GetBankStats,
    ListAuditEvents,
    ListHolds,
    ListMemories,
    PlaceHold,
    Recall,
    ReleaseHold,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    BankNotFound,
    LegalHoldActive,
    MemoryNotFound,
    NotFound,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    DedupAction,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
)
from astrocyte.policy.gate import Gate

# Without a time zone.
NAIVE = datetime(2027, 1, 1, tzinfo=UTC).replace(tzinfo=None)
ME = Caller()
ALL = ForgetSelector(scope="all")


async def held(work: Awaitable[object], *hold_ids: str) -> None:
    with pytest.raises(LegalHoldActive) as refusal:
        await work
    assert refusal.value.hold_ids == hold_ids


async def kept(gate: Gate, content: str, *tags: str) -> str:
    result = await gate.call(ME, Retain("family", RetainItem(content, tags=tags)))
    assert result.memory_id
    return result.memory_id


async def contents(gate: Gate) -> list[str]:
    return sorted(memory.content for memory in (await gate.call(ME, ListMemories("family"))).memories)


async def test_a_hold_on_a_bank_refuses_every_way_to_lose_a_memory(gate: Gate) -> None:
    one = await kept(gate, "Mara is allergic to sesame.")
    await gate.call(ME, PlaceHold("family", reason="case", hold_id="case-1"))
    by_id = ForgetSelector(memory_ids=(one,))
    for selector in (by_id, ALL):
        for compliance in (False, True):
            for dry_run in (False, True):
                await held(gate.call(ME, Forget("family", selector, compliance=compliance, dry_run=dry_run)), "case-1")
    change = MemoryUpdate(one, frozenset({"content"}), content="Mara likes sesame.")
    await held(gate.call(ME, UpdateMemory("family", change)), "case-1")
    await held(gate.call(ME, DeleteBank("family")), "case-1")
    assert await contents(gate) == ["Mara is allergic to sesame."]
    (hit,) = (await gate.call(ME, Recall(RecallQuery("sesame", "family")))).hits
    assert hit.memory_id == one

    released = await gate.call(ME, ReleaseHold("family", "case-1"))
    assert released.released_by == "local"
    assert (await gate.call(ME, Forget("family", by_id))).deleted_count == 1


async def test_what_is_not_held_can_go_and_one_held_memory_keeps_the_whole_call(gate: Gate) -> None:
    one, two = await kept(gate, "Mara plays the oboe."), await kept(gate, "Ivo paints boats.")
    await gate.call(ME, PlaceHold("family", reason="case", hold_id="case-1", memory_ids=[one]))
    await held(gate.call(ME, Forget("family", ForgetSelector(memory_ids=(one, two)))), "case-1")
    assert len(await contents(gate)) == 2
    assert (await gate.call(ME, Forget("family", ForgetSelector(memory_ids=(two,))))).deleted_count == 1
    # Labels may change: the version that is held stays as it was.
    await gate.call(ME, UpdateMemory("family", MemoryUpdate(one, frozenset({"tags"}), tags=("music",))))
    await held(gate.call(ME, DeleteBank("family")), "case-1")


async def test_a_tag_holds_what_had_it_has_it_or_will(gate: Gate) -> None:
    had = await kept(gate, "Invoice 1 is open.", "invoice")
    await gate.call(ME, UpdateMemory("family", MemoryUpdate(had, frozenset({"tags"}), tags=())))
    await gate.call(ME, PlaceHold("family", reason="audit", hold_id="tax", tags=["invoice"]))
    later = await kept(gate, "Invoice 2 was paid.", "invoice")
    other = await kept(gate, "Ivo paints boats.")
    for memory_id in (had, later):
        await held(gate.call(ME, Forget("family", ForgetSelector(memory_ids=(memory_id,)))), "tax")
    assert (await gate.call(ME, Forget("family", ForgetSelector(memory_ids=(other,))))).deleted_count == 1


async def test_all_holds_that_cover_are_named(gate: Gate) -> None:
    one = await kept(gate, "Invoice 1 is open.", "invoice")
    await gate.call(ME, PlaceHold("family", reason="a", hold_id="first", memory_ids=[one]))
    await gate.call(ME, PlaceHold("family", reason="b", hold_id="second", tags=["invoice"]))
    await gate.call(ME, PlaceHold("family", reason="c", hold_id="third", tags=["other"]))
    await held(gate.call(ME, Forget("family", ALL)), "first", "second")
    await gate.call(ME, ReleaseHold("family", "first"))
    await held(gate.call(ME, Forget("family", ALL)), "second")


async def test_a_near_duplicate_does_not_replace_a_held_memory(gate: Gate) -> None:
    old = "Mara is allergic to sesame and carries two pens in her bag."
    one = await kept(gate, old)
    await gate.call(ME, PlaceHold("family", reason="case", hold_id="case-1", memory_ids=[one]))
    new = RetainItem(f"{old} always", dedup_action=DedupAction.UPDATE, dedup_threshold=0.5)
    await held(gate.call(ME, Retain("family", new)), "case-1")
    assert await contents(gate) == [old]
    await gate.call(ME, ReleaseHold("family", "case-1"))
    assert (await gate.call(ME, Retain("family", new))).memory_id == one


async def test_purge_leaves_what_is_held_until_it_is_released() -> None:
    now = [1_700_000_000_000]
    app = App(Settings.from_mapping({"vector_store": "in_memory"}), clock=lambda: now[0])
    gate = app.gate
    one, two = await kept(gate, "Mara plays the oboe."), await kept(gate, "Ivo paints boats.")
    await gate.call(ME, Forget("family", ALL))
    await gate.call(ME, PlaceHold("family", reason="case", hold_id="case-1", memory_ids=[one]))
    now[0] += 40 * 86_400_000
    assert await app.storage.store.purge(now[0]) == 1
    stats = await gate.call(ME, GetBankStats("family"))
    assert stats.forgotten_count == 1
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, UndeleteMemory("family", two))
    await gate.call(ME, ReleaseHold("family", "case-1"))
    assert await app.storage.store.purge(now[0]) == 1
    await app.close()


async def test_holds_survive_a_restart(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"data_dir": str(tmp_path)})
    app = App(settings)
    await kept(app.gate, "Mara plays the oboe.")
    placed = await app.gate.call(ME, PlaceHold("family", reason="case", hold_id="case-1"))
    await app.close()
    app = App(settings)
    assert (await app.gate.call(ME, ListHolds())).holds == (placed,)
    await held(app.gate.call(ME, Forget("family", ALL)), "case-1")
    await app.close()


async def test_no_interleaving_of_holding_and_forgetting_loses_what_was_held(gate: Gate) -> None:
    for number in range(20):
        one = await kept(gate, f"Fact number {number} of the case.")
        place = gate.call(ME, PlaceHold("family", reason="case", hold_id=f"case-{number}", memory_ids=[one]))
        forget = gate.call(ME, Forget("family", ForgetSelector(memory_ids=(one,))))
        both = (place, forget) if number % 2 else (forget, place)
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, LegalHoldActive)]
        found = [memory.memory_id for memory in (await gate.call(ME, ListMemories("family"))).memories]
        # Held first: it is there. Forgotten first: it is held as a forgotten one, and can come back.
        assert (one in found) == bool(refused)
        await held(
            gate.call(ME, Forget("family", ForgetSelector(memory_ids=(one,)), compliance=True)), f"case-{number}"
        )


async def test_placing_and_releasing_are_checked_listed_and_happen_once(gate: Gate) -> None:
    one = await kept(gate, "Mara plays the oboe.")
    first = await gate.call(ME, PlaceHold("family", reason="case", memory_ids=[one, one], request_id="r1"))
    assert first == await gate.call(ME, PlaceHold("family", reason="case", memory_ids=[one, one], request_id="r1"))
    assert first.memory_ids == (one,)
    with pytest.raises(AlreadyExists):
        await gate.call(ME, PlaceHold("family", reason="again", hold_id=first.hold_id))
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, PlaceHold("family", reason="case", memory_ids=["mem_missing"]))
    with pytest.raises(BankNotFound):
        await gate.call(ME, PlaceHold("nowhere", reason="case"))
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"reason": ""}, "reason"),
        ({"reason": "x", "hold_id": "a,b"}, "hold_id"),
        ({"reason": "x", "expires_at": NAIVE}, "expires_at"),
    ]
    for wrong, field in wrongs:
        with pytest.raises(ValidationError) as refusal:
            await gate.call(ME, PlaceHold("family", **wrong))
        assert refusal.value.field == field
    with pytest.raises(NotFound):
        await gate.call(ME, ReleaseHold("family", "case-9"))
    ended = await gate.call(ME, ReleaseHold("family", first.hold_id, request_id="r2"))
    assert ended == await gate.call(ME, ReleaseHold("family", first.hold_id))
    assert (await gate.call(ME, ListHolds())).holds == ()
    await gate.call(ME, PlaceHold("family", reason="second", hold_id="b"))
    page = await gate.call(ME, ListHolds(bank_id="family", include_released=True, page_size=1))
    rest = await gate.call(
        ME, ListHolds(bank_id="family", include_released=True, page_size=1, page_token=page.next_page_token)
    )
    assert [hold.hold_id for hold in (*page.holds, *rest.holds)] == [first.hold_id, "b"]
    assert rest.next_page_token == ""


async def test_holding_needs_admin() -> None:
    grants = [{"bank_id": "*", "principal": "user:bob", "permissions": ["read", "write", "forget"]}]
    control = {"enabled": True, "default_policy": "deny"}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "access_control": control, "access_grants": grants}))
    bob = Caller(principal="user:bob")
    await app.gate.call(bob, Retain("family", RetainItem("Mara plays the oboe.")))
    for work in (
        app.gate.call(bob, PlaceHold("family", reason="case")),
        app.gate.call(bob, ReleaseHold("family", "case-1")),
        app.gate.call(bob, ListHolds()),
        app.gate.call(bob, ListAuditEvents(bank_id="family")),
    ):
        with pytest.raises(AccessDenied):
            await work
    await app.close()
