"""The trail: a row for each act or no act, and no change to a row, or to their order, that a check does not see."""

import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    CreateApiKey,
    DeleteBank,
    Forget,
    GetBank,
    Grant,
    ListApiKeys,
    ListAuditEvents,
    ListGrants,
    ListHolds,
    ListMemories,
    PlaceHold,
    ReleaseHold,
    Retain,
    Revoke,
    RevokeApiKey,
    UndeleteMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError
from astrocyte.model import AuditEvent, AuditPage, Caller, ForgetSelector, RetainItem, event_hash
from astrocyte.policy.gate import Gate
from astrocyte.policy.governance.audit_verification import verify
from astrocyte.policy.observability.middleware import MiddlewareBackend, Proceed, ProceedStream

ME = Caller()
ROOT = Caller(principal="user:root")
ALL = ForgetSelector(scope="all")
CONTROL = {
    "access_control": {"enabled": True, "default_policy": "deny"},
    "access_grants": [{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}],
}


async def filled(gate: Gate, caller: Caller = ME) -> list[str]:
    """Do everything that leaves a row; returns what the rows say, in order."""
    one = (await gate.call(caller, Retain("family", RetainItem("Mara plays the oboe.")))).memory_id or ""
    await gate.call(caller, Forget("family", ForgetSelector(memory_ids=(one,))))
    await gate.call(caller, UndeleteMemory("family", one))
    await gate.call(caller, PlaceHold("family", reason="case", hold_id="case-1"))
    await gate.call(caller, ReleaseHold("family", "case-1"))
    await gate.call(caller, Forget("family", ALL, compliance=True))
    await gate.call(caller, DeleteBank("family"))
    return ["forget", "undelete", "hold_placed", "hold_released", "erase_begun", "erase_completed", "bank_deleted"]


async def test_every_act_leaves_one_row_and_the_trail_is_whole(gate: Gate) -> None:
    assert (await verify(gate, ME)).rows == 0
    expected = await filled(gate)
    page = await gate.call(ME, ListAuditEvents())
    assert [event.event for event in page.events] == expected
    assert {event.actor for event in page.events} == {"local"}
    assert len({event.bank_key for event in page.events}) == 1
    found = await verify(gate, ME)
    assert found.intact
    assert (found.rows, found.head_hash) == (page.head_sequence, page.head_hash) == (7, page.events[-1].hash)


async def test_a_row_says_nothing_that_anybody_wrote_but_the_reason_of_a_forget(gate: Gate) -> None:
    await gate.call(ME, Retain("canarybank", RetainItem("canarytext", tags=("canarytag",))))
    await gate.call(ME, PlaceHold("canarybank", reason="canaryreason", hold_id="canaryhold", tags=["canarytag"]))
    await gate.call(ME, ReleaseHold("canarybank", "canaryhold"))
    await gate.call(ME, Forget("canarybank", ALL, reason="Case 4711", compliance=True))
    await gate.call(ME, DeleteBank("canarybank"))
    assert "canary" not in repr(await gate.call(ME, ListAuditEvents()))


@pytest.mark.parametrize("compliance", [False, True])
async def test_the_reason_of_a_forget_can_be_read_in_the_trail(gate: Gate, compliance: bool) -> None:
    kept = await gate.call(ME, Retain("b", RetainItem("Mara likes tea.")))
    selector = ForgetSelector(memory_ids=(str(kept.memory_id),))
    await gate.call(ME, Forget("b", selector, reason="Case 4711", compliance=compliance))
    events = (await gate.call(ME, ListAuditEvents(bank_id="b"))).events
    assert next(event.details.get("reason") for event in events) == "Case 4711"
    # None was given.
    await gate.call(ME, Forget("b", selector, compliance=compliance))
    assert "reason" not in (await gate.call(ME, ListAuditEvents(bank_id="b"))).events[-1].details


async def test_grants_and_keys_are_rows_and_a_repeated_request_is_none() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **CONTROL}))
    gate = app.gate
    for _ in range(2):
        await gate.call(ROOT, Grant("family", "user:bob", ["read"], request_id="r1"))
    await gate.call(ROOT, Revoke("family", "user:bob"))
    # Nothing was there to take.
    await gate.call(ROOT, Revoke("family", "user:bob"))
    made, _ = await gate.call(ROOT, CreateApiKey("assistant", "agent:a", request_id="r2"))
    await gate.call(ROOT, CreateApiKey("assistant", "agent:a", request_id="r2"))
    for _ in range(2):
        await gate.call(ROOT, RevokeApiKey(made.key_id))
    events = (await gate.call(ROOT, ListAuditEvents())).events
    assert [event.event for event in events] == ["grant_changed", "grant_changed", "key_created", "key_revoked"]
    assert {event.actor for event in events} == {"user:root"}
    assert events[2].details == {"key_id": made.key_id}
    assert (await verify(gate, ROOT)).intact
    await app.close()


async def test_a_bank_and_a_tenant_have_trails_of_their_own(gate: Gate) -> None:
    other = Caller(tenant="other")
    for caller, bank in ((ME, "one"), (ME, "two"), (other, "one")):
        await gate.call(caller, Retain(bank, RetainItem("Mara plays the oboe.")))
        await gate.call(caller, Forget(bank, ALL))
    assert [event.sequence for event in (await gate.call(ME, ListAuditEvents(bank_id="two"))).events] == [2]
    assert [event.tenant for event in (await gate.call(other, ListAuditEvents())).events] == ["other"]
    first = await gate.call(ME, ListAuditEvents(page_size=1))
    second = await gate.call(ME, ListAuditEvents(page_size=1, page_token=first.next_page_token))
    assert [event.sequence for event in (*first.events, *second.events)] == [1, 2]
    assert second.next_page_token == ""


def on_disk(path: Path, sql: str, *bindings: object) -> list[Any]:
    connection = apsw.Connection(str(path / "astrocyte.db"))
    # The maintenance of the store may be writing.
    connection.set_busy_timeout(10_000)
    rows = connection.execute(sql, bindings).fetchall()
    connection.close()
    return rows


TAMPERINGS: dict[str, tuple[list[str], int]] = {
    "a changed actor": (["UPDATE audit_events SET actor = 'nobody' WHERE sequence = 3"], 3),
    "a changed time": (["UPDATE audit_events SET occurred_at = occurred_at + 1 WHERE sequence = 2"], 2),
    "a time out of range": (["UPDATE audit_events SET occurred_at = 9223372036854775807 WHERE sequence = 2"], 2),
    "changed details": (["""UPDATE audit_events SET details = '{"count": "0"}' WHERE sequence = 1"""], 1),
    "unreadable details": (["UPDATE audit_events SET details = 'x' WHERE sequence = 4"], 4),
    "a changed hash": (["UPDATE audit_events SET hash = zeroblob(32) WHERE sequence = 5"], 5),
    "a deleted row": (["DELETE FROM audit_events WHERE sequence = 4"], 4),
    "a deleted first row": (["DELETE FROM audit_events WHERE sequence = 1"], 1),
    "two rows in each other's place": (
        [
            "UPDATE audit_events SET sequence = -1 WHERE sequence = 2",
            "UPDATE audit_events SET sequence = 2 WHERE sequence = 3",
            "UPDATE audit_events SET sequence = 3 WHERE sequence = -1",
        ],
        2,
    ),
    "an inserted row": (
        [
            "UPDATE audit_events SET sequence = -sequence - 1 WHERE sequence > 3",
            "UPDATE audit_events SET sequence = -sequence WHERE sequence < 0",
            (
                "INSERT INTO audit_events SELECT tenant, 4, event, occurred_at, actor, bank_key, details, hash"
                " FROM audit_events WHERE sequence = 3"
            ),
            "UPDATE audit_heads SET sequence = sequence + 1",
        ],
        4,
    ),
    "a row after the end": (
        [
            (
                "INSERT INTO audit_events SELECT tenant, 8, event, occurred_at, actor, bank_key, details, hash"
                " FROM audit_events WHERE sequence = 7"
            )
        ],
        8,
    ),
    "an end that was cut off": (["DELETE FROM audit_events WHERE sequence > 5"], 6),
    "everything gone": (["DELETE FROM audit_events"], 1),
    "another end noted": (["UPDATE audit_heads SET hash = zeroblob(32)"], 7),
}


@pytest.mark.parametrize("name", TAMPERINGS)
async def test_the_first_row_that_was_tampered_with_is_named(name: str, tmp_path: Path) -> None:
    statements, broken_at = TAMPERINGS[name]
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await filled(app.gate)
    for statement in statements:
        on_disk(tmp_path, statement)
    found = await verify(app.gate, ME)
    assert not found.intact
    assert found.broken_at == broken_at
    assert found.problem
    await app.close()


async def test_a_careful_cut_shows_only_against_a_note(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await filled(app.gate)
    noted = await verify(app.gate, ME)
    on_disk(tmp_path, "DELETE FROM audit_events WHERE sequence > 5")
    on_disk(
        tmp_path,
        "UPDATE audit_heads SET sequence = 5, hash = (SELECT hash FROM audit_events WHERE sequence = 5)",
    )
    assert (await verify(app.gate, ME)).intact
    assert (await verify(app.gate, ME, noted=(noted.rows, noted.head_hash))).broken_at == 6
    # And so does a trail that was written anew from some row on.
    await app.gate.call(ME, Retain("family", RetainItem("Ivo paints boats.")))
    for _ in range(2):
        await app.gate.call(ME, Forget("family", ALL))
    assert (await verify(app.gate, ME)).intact
    assert (await verify(app.gate, ME, noted=(noted.rows, noted.head_hash))).broken_at == 7
    await app.close()


async def test_a_trail_longer_than_a_page_is_checked_to_its_end() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "limits": {"page_size": 3}}))
    await filled(app.gate)
    assert (await verify(app.gate, ME)).rows == 7
    await app.close()


@pytest.fixture
async def blocked(tmp_path: Path) -> AsyncIterator[tuple[App, str]]:
    """A gate whose trail takes no more rows."""
    app = App(Settings.from_mapping({"data_dir": str(tmp_path), **CONTROL}))
    await app.gate.call(ROOT, Retain("family", RetainItem("Mara plays the oboe.")))
    two = await app.gate.call(ROOT, Retain("family", RetainItem("Ivo paints boats.")))
    await app.gate.call(ROOT, Forget("family", ForgetSelector(memory_ids=(two.memory_id or "",))))
    await app.gate.call(ROOT, PlaceHold("family", reason="later", hold_id="old", tags=["none"]))
    on_disk(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON audit_events BEGIN SELECT raise(ABORT, 'full'); END")
    yield app, two.memory_id or ""
    await app.close()


ACTS: dict[str, Callable[[Gate, str], Any]] = {
    "forget": lambda gate, _: gate.call(ROOT, Forget("family", ALL)),
    "erase": lambda gate, _: gate.call(ROOT, Forget("family", ALL, compliance=True)),
    "undelete": lambda gate, forgotten: gate.call(ROOT, UndeleteMemory("family", forgotten)),
    "place": lambda gate, _: gate.call(ROOT, PlaceHold("family", reason="case")),
    "release": lambda gate, _: gate.call(ROOT, ReleaseHold("family", "old")),
    "grant": lambda gate, _: gate.call(ROOT, Grant("family", "user:bob", ["read"])),
    "key": lambda gate, _: gate.call(ROOT, CreateApiKey("assistant", "agent:a")),
}


@pytest.mark.parametrize("name", ACTS)
async def test_without_a_row_there_is_no_act(name: str, blocked: tuple[App, str]) -> None:
    app, forgotten = blocked
    gate = app.gate
    with pytest.raises(StoreError):
        await ACTS[name](gate, forgotten)
    assert [memory.content for memory in (await gate.call(ROOT, ListMemories("family"))).memories] == [
        "Mara plays the oboe."
    ]
    assert [hold.hold_id for hold in (await gate.call(ROOT, ListHolds())).holds] == ["old"]
    assert await gate.call(ROOT, ListApiKeys()) == []
    assert all(grant.granted_by == "" for grant in (await gate.call(ROOT, ListGrants())).grants)
    assert (await verify(gate, ROOT)).rows == 2


async def test_without_a_row_a_bank_stays(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await app.gate.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    on_disk(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON audit_events BEGIN SELECT raise(ABORT, 'full'); END")
    with pytest.raises(StoreError):
        await app.gate.call(ME, DeleteBank("family"))
    assert (await app.gate.call(ME, GetBank("family"))).bank_id == "family"
    await app.close()


async def test_a_purge_leaves_a_row_of_each_bank_or_does_not_happen(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path), "forget": {"purge_after_days": 0}}))
    for bank in ("family", "work"):
        await app.gate.call(ME, Retain(bank, RetainItem(f"Mara plays the oboe in {bank}.")))
        await app.gate.call(ME, Retain(bank, RetainItem(f"Ivo paints boats for {bank}.")))
        await app.gate.call(ME, Forget(bank, ALL))
    later = app.storage.clock() + 1
    on_disk(tmp_path, "CREATE TRIGGER full BEFORE INSERT ON audit_events BEGIN SELECT raise(ABORT, 'full'); END")
    with pytest.raises(StoreError):
        await app.storage.store.purge(later)
    assert on_disk(tmp_path, "SELECT count(*) FROM memories") == [(4,)]
    on_disk(tmp_path, "DROP TRIGGER full")
    assert await app.storage.store.purge(later) == 4
    assert await app.storage.store.purge(later) == 0
    events = (await app.gate.call(ME, ListAuditEvents())).events
    assert [(event.event, event.actor, event.details) for event in events[2:]] == [
        ("purged", "astrocyte", {"count": "2"})
    ] * 2
    assert len({event.bank_key for event in events[2:]}) == 2
    assert (await verify(app.gate, ME)).intact
    await app.close()


async def test_a_receipt_can_be_shown_to_be_the_one_of_the_trail() -> None:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        await brain.retain("Mara plays the oboe.", bank_id="family")
        result = await brain.forget("family", scope="all", compliance=True)
        assert result.receipt
        (_, completed) = (await brain.list_audit_events()).events
        assert completed.details == {
            "count": "1",
            "root_hash_before": result.receipt.root_hash_before,
            "root_hash_after": result.receipt.root_hash_after,
        }
        assert (await brain.verify_audit()).intact


class Changed:
    """A server that lies about one row."""

    def __init__(self, change: Callable[[AuditEvent], AuditEvent]) -> None:
        self._change = change

    async def call(self, caller: Caller, request: Any, proceed: Proceed) -> AuditPage:
        page: AuditPage = await proceed(caller, request)
        return dataclasses.replace(page, events=tuple(map(self._change, page.events)))

    def stream(self, caller: Caller, request: Any, proceed: ProceedStream) -> AsyncIterator[Any]:
        return proceed(caller, request)


@pytest.mark.parametrize(
    "values",
    [
        {"tenant": "other"},
        {"sequence": 1},
        {"event": "undelete"},
        {"actor": "user:mallory"},
        {"bank_key": 77},
        {"details": {}},
    ],
)
async def test_each_field_of_a_row_counts(gate: Gate, values: dict[str, Any]) -> None:
    await filled(gate)

    def change(event: AuditEvent) -> AuditEvent:
        return dataclasses.replace(event, **values) if event.sequence == 3 else event

    assert (await verify(MiddlewareBackend(gate, Changed(change)), ME)).broken_at == 3


def test_the_hash_is_the_one_that_is_written_down() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    event = AuditEvent("default", 1, "forget", when, "user:mara", 7, {"position": "9", "count": "2"}, b"")
    # sha256 of 32 zero bytes and the row, as docs/audit.md says.
    row = b'["default",1,"forget",1767323045678,"user:mara",7,{"count":"2","position":"9"}]'
    assert event_hash(bytes(32), event) == hashlib.sha256(bytes(32) + row).digest()
