"""Grants by call: they hold from the next call on, end as soon, and remember who made them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, FailedPrecondition, RequestIdReused, ValidationError
from astrocyte.model import ALL_PERMISSIONS, Caller, Grant, Permission, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate

ROOT, ALICE, BOB = (Caller(principal=name) for name in ("user:root", "user:alice", "user:bob"))
GRANTS = [
    {"bank_id": "*", "principal": "user:root", "permissions": ["*"]},
    {"bank_id": "team-*", "principal": "user:alice", "permissions": ["admin"]},
]


def opened(data_dir: Path | None = None, policy: str = "deny", **sections: Any) -> App:
    where = {"vector_store": "in_memory"} if data_dir is None else {"data_dir": str(data_dir)}
    control = {"enabled": True, "default_policy": policy}
    return App(Settings.from_mapping({**where, "access_control": control, "access_grants": GRANTS, **sections}))


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    app = opened()
    await app.gate.retain(ROOT, "team-1", RetainItem("sesame"))
    yield app.gate
    await app.close()


async def reads(gate: Gate, caller: Caller, bank: str = "team-1") -> bool:
    try:
        await gate.recall(caller, RecallQuery("sesame", bank))
    except AccessDenied:
        return False
    return True


async def listed(gate: Gate, **which: Any) -> list[tuple[str, str, list[str], str, str | None]]:
    page = await gate.list_grants(ROOT, **which)
    return [
        (grant.bank_id, grant.principal, sorted(grant.permissions), grant.granted_by, grant.revoked_by)
        for grant in page.grants
    ]


async def denied(work: Awaitable[object]) -> None:
    with pytest.raises(AccessDenied):
        await work


async def test_a_grant_and_its_end_hold_on_the_next_call(gate: Gate) -> None:
    for _ in range(3):
        assert not await reads(gate, BOB)
        await gate.grant(ROOT, "team-1", "user:bob", ["read"])
        assert await reads(gate, BOB)
        assert await gate.revoke(ROOT, "team-1", "user:bob") == {Permission.READ}
    assert not await reads(gate, BOB)


async def test_a_grant_is_of_its_tenant(gate: Gate) -> None:
    await gate.grant(ROOT, "*", "user:bob", ["*"])
    assert not await reads(gate, Caller("acme", "user:bob"))


async def test_grants_add_up_and_are_taken_one_by_one(gate: Gate) -> None:
    await gate.grant(ROOT, "team-1", "user:bob", ["read"])
    both = await gate.grant(ALICE, "team-1", "user:bob", ["write"])
    assert both.permissions == {Permission.READ, Permission.WRITE}
    assert await gate.revoke(ROOT, "team-1", "user:bob", ["read", "admin"]) == {Permission.READ}
    assert not await reads(gate, BOB)
    assert (await gate.check_access(ROOT, "team-1", principal="user:bob")).permissions == {Permission.WRITE}


async def test_who_granted_and_revoked_is_kept(gate: Gate) -> None:
    await gate.grant(ROOT, "team-1", "user:bob", ["read"])
    await gate.grant(ALICE, "team-1", "user:bob", ["write"])
    await gate.revoke(ROOT, "team-1", "user:bob")
    of_bob: dict[str, Any] = {"principal": "user:bob"}
    assert await listed(gate, **of_bob) == []
    assert await listed(gate, **of_bob, revoked=True) == [
        ("team-1", "user:bob", ["read"], "user:root", "user:alice"),
        ("team-1", "user:bob", ["read", "write"], "user:alice", "user:root"),
    ]
    for grant in (await gate.list_grants(ROOT, **of_bob, revoked=True)).grants:
        assert grant.granted_at is not None
        assert grant.revoked_at is not None
        assert grant.granted_at <= grant.revoked_at


async def test_a_repeated_request_happens_once(gate: Gate) -> None:
    first = await gate.grant(ROOT, "team-1", "user:bob", ["read"], request_id="g")
    await gate.revoke(ROOT, "team-1", "user:bob", request_id="r")
    assert await gate.grant(ROOT, "team-1", "user:bob", ["read"], request_id="g") == first
    assert not await reads(gate, BOB)
    await gate.grant(ROOT, "team-1", "user:bob", ["read"])
    assert await gate.revoke(ROOT, "team-1", "user:bob", request_id="r") == {Permission.READ}
    assert await reads(gate, BOB)
    with pytest.raises(RequestIdReused):
        await gate.grant(ROOT, "team-1", "user:bob", ["write"], request_id="g")


async def test_only_admin_grants_and_only_where_it_is_admin(gate: Gate) -> None:
    await gate.grant(ALICE, "team-?", "user:bob", ["read"])
    await gate.grant(ALICE, "team-x-*", "user:*", ["*"])
    for pattern in ("*", "team*", "other", "?eam-1"):
        await denied(gate.grant(ALICE, pattern, "user:bob", ["read"]))
        await denied(gate.revoke(ALICE, pattern, "user:bob"))
    await denied(gate.grant(BOB, "team-1", "user:bob", ["*"]))
    await denied(gate.list_grants(ALICE))
    await denied(gate.list_grants(BOB, bank_id="team-1"))
    await denied(gate.grant(Caller(principal="user:root", on_behalf_of="user:alice"), "*", "user:bob", ["*"]))
    assert [grant.principal for grant in (await gate.list_grants(ALICE, bank_id="team-*")).grants] == ["user:alice"]


async def test_a_list_tells_who_gets_at_a_bank(gate: Gate) -> None:
    await gate.grant(ROOT, "team-?", "agent:*", ["read"])
    await gate.grant(ROOT, "other", "agent:a", ["read"])
    everywhere = [("*", "user:root", sorted(ALL_PERMISSIONS), "", None), ("team-*", "user:alice", ["admin"], "", None)]
    assert await listed(gate, bank_id="team-1") == [*everywhere, ("team-?", "agent:*", ["read"], "user:root", None)]
    assert len(await listed(gate)) == 4
    assert await listed(gate, bank_id="team-?") == [("team-?", "agent:*", ["read"], "user:root", None)]
    assert [entry[0] for entry in await listed(gate, principal="agent:a")] == ["team-?", "other"]


async def test_pages_are_complete(gate: Gate) -> None:
    for number in range(5):
        await gate.grant(ROOT, f"team-{number}", "user:bob", ["read"])
    seen: list[Grant] = []
    token = ""
    while True:
        page = await gate.list_grants(ROOT, page_size=2, page_token=token)
        seen += page.grants
        token = page.next_page_token
        if not token:
            break
    assert [grant.bank_id for grant in seen] == ["*", "team-*", *(f"team-{number}" for number in range(5))]
    with pytest.raises(ValidationError, match="another list"):
        await gate.list_grants(
            ROOT, principal="user:bob", page_token=(await gate.list_grants(ROOT, page_size=2)).next_page_token
        )


async def test_check_tells_what_the_calls_decide(gate: Gate) -> None:
    check = await gate.check_access(ALICE, "team-1", permission="read")
    assert not check.allowed
    assert check.permissions == {Permission.ADMIN}
    assert (await gate.check_access(ALICE, "team-1")).allowed
    assert not (await gate.check_access(BOB, "missing")).allowed
    assert (await gate.check_access(ALICE, "team-1", principal="user:root", permission="read")).allowed
    await denied(gate.check_access(BOB, "team-1", principal="user:alice"))
    await denied(gate.check_access(Caller(), "team-1"))
    both = Caller(principal="user:root", on_behalf_of="user:alice")
    assert (await gate.check_access(both, "team-1")).permissions == {Permission.ADMIN}


async def test_a_watch_ends_with_the_right_to_it(gate: Gate) -> None:
    await gate.grant(ROOT, "team-1", "user:bob", ["read"])
    changes = gate.watch(BOB, "team-1", after=0)
    await anext(changes)
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    await gate.revoke(ROOT, "team-1", "user:bob")
    await gate.retain(ROOT, "team-1", RetainItem("a secret"))
    await denied(waiting)


async def test_a_grant_goes_with_the_bank_that_it_names() -> None:
    app = opened(policy="owner_only")
    gate = app.gate
    await gate.retain(ALICE, "notes", RetainItem("sesame"))
    await gate.grant(ALICE, "notes", "user:bob", ["read"])
    await gate.grant(ROOT, "no*", "agent:a", ["read"])
    assert await reads(gate, BOB, "notes")
    await gate.delete_bank(ALICE, "notes")
    await gate.retain(Caller(principal="user:carol"), "notes", RetainItem("sesame"))
    assert not await reads(gate, BOB, "notes")
    assert await reads(gate, Caller(principal="agent:a"), "notes")
    assert (await listed(gate, principal="user:bob", revoked=True))[-1][-2:] == ("user:alice", "user:alice")
    await app.close()


async def test_grants_survive_a_restart(tmp_path: Path) -> None:
    app = opened(tmp_path)
    await app.gate.retain(ROOT, "team-1", RetainItem("sesame"))
    await app.gate.grant(ROOT, "team-1", "user:bob", ["read"])
    await app.close()
    app = opened(tmp_path)
    assert await reads(app.gate, BOB)
    await app.gate.revoke(ROOT, "team-1", "user:bob")
    assert not await reads(app.gate, BOB)
    await app.close()


async def test_without_access_control_a_grant_is_refused() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    with pytest.raises(FailedPrecondition, match="access control is off"):
        await app.gate.grant(Caller(), "b", "user:bob", ["read"])
    assert (await app.gate.check_access(Caller(), "b")).permissions == ALL_PERMISSIONS
    await app.close()


@pytest.mark.parametrize(
    ("bank", "principal", "permissions", "field"),
    [
        ("a/b", "p", ["read"], "bank_id"),
        ("", "p", ["read"], "bank_id"),
        ("a[b]", "p", ["read"], "bank_id"),
        ("b", "", ["read"], "principal"),
        ("b", "local", ["read"], "principal"),
        ("b", "p" * 257, ["read"], "principal"),
        ("b", "p\x00", ["read"], "principal"),
        ("b", "p", [], "permissions"),
        ("b", "p", ["own"], "permissions"),
        ("b", "p", "read", "permissions"),
    ],
)
async def test_wrong_grants_change_nothing(gate: Gate, bank: str, principal: str, permissions: Any, field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        await gate.grant(ROOT, bank, principal, permissions)
    assert refusal.value.field == field
    assert len(await listed(gate)) == len(GRANTS)
