"""Grants by call: they hold from the next call on, end as soon, and remember who made them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api import requests
from astrocyte.api.requests import CheckAccess, DeleteBank, ListGrants, Recall, Retain, Revoke, Watch
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
    await app.gate.call(ROOT, Retain("team-1", RetainItem("sesame")))
    yield app.gate
    await app.close()


async def reads(gate: Gate, caller: Caller, bank: str = "team-1") -> bool:
    try:
        await gate.call(caller, Recall(RecallQuery("sesame", bank)))
    except AccessDenied:
        return False
    return True


async def listed(gate: Gate, **which: Any) -> list[tuple[str, str, list[str], str, str | None]]:
    page = await gate.call(ROOT, ListGrants(**which))
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
        await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
        assert await reads(gate, BOB)
        assert await gate.call(ROOT, Revoke("team-1", "user:bob")) == {Permission.READ}
    assert not await reads(gate, BOB)


async def test_a_grant_is_of_its_tenant(gate: Gate) -> None:
    await gate.call(ROOT, requests.Grant("*", "user:bob", ["*"]))
    assert not await reads(gate, Caller("acme", "user:bob"))


async def test_grants_add_up_and_are_taken_one_by_one(gate: Gate) -> None:
    await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
    both = await gate.call(ALICE, requests.Grant("team-1", "user:bob", ["write"]))
    assert both.permissions == {Permission.READ, Permission.WRITE}
    assert await gate.call(ROOT, Revoke("team-1", "user:bob", ["read", "admin"])) == {Permission.READ}
    assert not await reads(gate, BOB)
    assert (await gate.call(ROOT, CheckAccess("team-1", principal="user:bob"))).permissions == {Permission.WRITE}


async def test_who_granted_and_revoked_is_kept(gate: Gate) -> None:
    await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
    await gate.call(ALICE, requests.Grant("team-1", "user:bob", ["write"]))
    await gate.call(ROOT, Revoke("team-1", "user:bob"))
    of_bob: dict[str, Any] = {"principal": "user:bob"}
    assert await listed(gate, **of_bob) == []
    assert await listed(gate, **of_bob, include_revoked=True) == [
        ("team-1", "user:bob", ["read"], "user:root", "user:alice"),
        ("team-1", "user:bob", ["read", "write"], "user:alice", "user:root"),
    ]
    for grant in (await gate.call(ROOT, ListGrants(**of_bob, include_revoked=True))).grants:
        assert grant.granted_at is not None
        assert grant.revoked_at is not None
        assert grant.granted_at <= grant.revoked_at


async def test_a_repeated_request_happens_once(gate: Gate) -> None:
    first = await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"], request_id="g"))
    await gate.call(ROOT, Revoke("team-1", "user:bob", request_id="r"))
    assert await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"], request_id="g")) == first
    assert not await reads(gate, BOB)
    await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
    assert await gate.call(ROOT, Revoke("team-1", "user:bob", request_id="r")) == {Permission.READ}
    assert await reads(gate, BOB)
    with pytest.raises(RequestIdReused):
        await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["write"], request_id="g"))


async def test_only_admin_grants_and_only_where_it_is_admin(gate: Gate) -> None:
    await gate.call(ALICE, requests.Grant("team-?", "user:bob", ["read"]))
    await gate.call(ALICE, requests.Grant("team-x-*", "user:*", ["*"]))
    for pattern in ("*", "team*", "other", "?eam-1"):
        await denied(gate.call(ALICE, requests.Grant(pattern, "user:bob", ["read"])))
        await denied(gate.call(ALICE, Revoke(pattern, "user:bob")))
    await denied(gate.call(BOB, requests.Grant("team-1", "user:bob", ["*"])))
    await denied(gate.call(ALICE, ListGrants()))
    await denied(gate.call(BOB, ListGrants(bank_id="team-1")))
    await denied(
        gate.call(Caller(principal="user:root", on_behalf_of="user:alice"), requests.Grant("*", "user:bob", ["*"]))
    )
    assert [grant.principal for grant in (await gate.call(ALICE, ListGrants(bank_id="team-*"))).grants] == [
        "user:alice"
    ]


async def test_a_list_tells_who_gets_at_a_bank(gate: Gate) -> None:
    await gate.call(ROOT, requests.Grant("team-?", "agent:*", ["read"]))
    await gate.call(ROOT, requests.Grant("other", "agent:a", ["read"]))
    everywhere = [("*", "user:root", sorted(ALL_PERMISSIONS), "", None), ("team-*", "user:alice", ["admin"], "", None)]
    assert await listed(gate, bank_id="team-1") == [*everywhere, ("team-?", "agent:*", ["read"], "user:root", None)]
    assert len(await listed(gate)) == 4
    assert await listed(gate, bank_id="team-?") == [("team-?", "agent:*", ["read"], "user:root", None)]
    assert [entry[0] for entry in await listed(gate, principal="agent:a")] == ["team-?", "other"]


async def test_pages_are_complete(gate: Gate) -> None:
    for number in range(5):
        await gate.call(ROOT, requests.Grant(f"team-{number}", "user:bob", ["read"]))
    seen: list[Grant] = []
    token = ""
    while True:
        page = await gate.call(ROOT, ListGrants(page_size=2, page_token=token))
        seen += page.grants
        token = page.next_page_token
        if not token:
            break
    assert [grant.bank_id for grant in seen] == ["*", "team-*", *(f"team-{number}" for number in range(5))]
    with pytest.raises(ValidationError, match="another list"):
        await gate.call(
            ROOT,
            ListGrants(
                principal="user:bob", page_token=(await gate.call(ROOT, ListGrants(page_size=2))).next_page_token
            ),
        )


async def test_check_tells_what_the_calls_decide(gate: Gate) -> None:
    check = await gate.call(ALICE, CheckAccess("team-1", permission="read"))
    assert not check.allowed
    assert check.permissions == {Permission.ADMIN}
    assert (await gate.call(ALICE, CheckAccess("team-1"))).allowed
    assert not (await gate.call(BOB, CheckAccess("missing"))).allowed
    assert (await gate.call(ALICE, CheckAccess("team-1", principal="user:root", permission="read"))).allowed
    await denied(gate.call(BOB, CheckAccess("team-1", principal="user:alice")))
    await denied(gate.call(Caller(), CheckAccess("team-1")))
    both = Caller(principal="user:root", on_behalf_of="user:alice")
    assert (await gate.call(both, CheckAccess("team-1"))).permissions == {Permission.ADMIN}


async def test_a_watch_ends_with_the_right_to_it(gate: Gate) -> None:
    await gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
    changes = gate.stream(BOB, Watch("team-1", after_position=0))
    await anext(changes)
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    await gate.call(ROOT, Revoke("team-1", "user:bob"))
    await gate.call(ROOT, Retain("team-1", RetainItem("a secret")))
    await denied(waiting)


async def test_a_grant_goes_with_the_bank_that_it_names() -> None:
    app = opened(policy="owner_only")
    gate = app.gate
    await gate.call(ALICE, Retain("notes", RetainItem("sesame")))
    await gate.call(ALICE, requests.Grant("notes", "user:bob", ["read"]))
    await gate.call(ROOT, requests.Grant("no*", "agent:a", ["read"]))
    assert await reads(gate, BOB, "notes")
    await gate.call(ALICE, DeleteBank("notes"))
    await gate.call(Caller(principal="user:carol"), Retain("notes", RetainItem("sesame")))
    assert not await reads(gate, BOB, "notes")
    assert await reads(gate, Caller(principal="agent:a"), "notes")
    assert (await listed(gate, principal="user:bob", include_revoked=True))[-1][-2:] == ("user:alice", "user:alice")
    await app.close()


async def test_grants_survive_a_restart(tmp_path: Path) -> None:
    app = opened(tmp_path)
    await app.gate.call(ROOT, Retain("team-1", RetainItem("sesame")))
    await app.gate.call(ROOT, requests.Grant("team-1", "user:bob", ["read"]))
    await app.close()
    app = opened(tmp_path)
    assert await reads(app.gate, BOB)
    await app.gate.call(ROOT, Revoke("team-1", "user:bob"))
    assert not await reads(app.gate, BOB)
    await app.close()


async def test_without_access_control_a_grant_is_refused() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    with pytest.raises(FailedPrecondition, match="access control is off"):
        await app.gate.call(Caller(), requests.Grant("b", "user:bob", ["read"]))
    assert (await app.gate.call(Caller(), CheckAccess("b"))).permissions == ALL_PERMISSIONS
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
        await gate.call(ROOT, requests.Grant(bank, principal, permissions))
    assert refusal.value.field == field
    assert len(await listed(gate)) == len(GRANTS)
