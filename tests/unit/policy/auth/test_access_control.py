"""Access control: grants, policies, owners, and calls made for another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import (
    CheckAccess,
    CreateBank,
    DeleteBank,
    GetBank,
    GetMemory,
    ListBanks,
    ListMemories,
    Recall,
    Retain,
    UndeleteMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, AlreadyExists, BankNotFound, ConfigError, RequestIdReused
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate

ALICE, BOB, AGENT = (Caller(principal=name) for name in ("user:alice", "user:bob", "agent:helper"))
READ_WRITE = ["read", "write"]

Open = Callable[..., Gate]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    apps: list[App] = []

    def make(*grants: tuple[str, str, list[str]], policy: str = "deny", **sections: Any) -> Gate:
        control = {"enabled": True, "default_policy": policy}
        written = [{"bank_id": bank, "principal": name, "permissions": allowed} for bank, name, allowed in grants]
        values = {"vector_store": "in_memory", "access_control": control, "access_grants": written, **sections}
        apps.append(App(Settings.from_mapping(values)))
        return apps[-1].gate

    yield make
    for app in apps:
        await app.close()


async def retain(gate: Gate, caller: Caller, bank: str, text: str = "sesame") -> str:
    result = await gate.call(caller, Retain(bank, RetainItem(text)))
    assert result.memory_id is not None
    return result.memory_id


async def found(gate: Gate, caller: Caller, bank: str) -> list[str]:
    return [hit.text for hit in (await gate.call(caller, Recall(RecallQuery("sesame", bank)))).hits]


async def denied(work: Awaitable[object], permission: str) -> None:
    with pytest.raises(AccessDenied) as refusal:
        await work
    assert refusal.value.permission == permission


async def test_a_grant_matches_by_name_or_pattern(opened: Open) -> None:
    gate = opened(("notes", "user:alice", READ_WRITE), ("user-*", "agent:*", READ_WRITE), ("a?", "user:*", READ_WRITE))
    await retain(gate, ALICE, "notes")
    await retain(gate, AGENT, "user-1")
    await retain(gate, BOB, "ab")
    await denied(retain(gate, BOB, "notes"), "write")
    await denied(retain(gate, AGENT, "team-1"), "write")
    await denied(retain(gate, ALICE, "abc"), "write")
    await denied(retain(gate, Caller(principal="User:alice"), "notes"), "write")


async def test_a_star_is_all_four_and_grants_add_up(opened: Open) -> None:
    gate = opened(("*", "user:alice", ["*"]), ("b", "user:bob", ["read"]), ("*", "user:bob", ["write"]))
    await gate.call(ALICE, CreateBank("b"))
    await retain(gate, BOB, "b")
    assert await found(gate, BOB, "b") == ["sesame"]
    await denied(gate.call(BOB, DeleteBank("b")), "admin")
    await gate.call(ALICE, DeleteBank("b"))


async def test_a_bank_has_grants_of_its_own(opened: Open) -> None:
    gate = opened(banks={"notes": {"access": [{"principal": "user:alice", "permissions": ["*"]}]}})
    await retain(gate, ALICE, "notes")
    await denied(retain(gate, ALICE, "other"), "write")
    await denied(found(gate, BOB, "notes"), "read")


async def test_a_grant_is_of_one_tenant(opened: Open) -> None:
    gate = opened(("*", "user:alice", ["*"]))
    await denied(retain(gate, Caller("acme", "user:alice"), "notes"), "write")
    grants = [{"bank_id": "*", "principal": "user:alice", "permissions": ["*"], "tenant": "acme"}]
    other = opened(access_grants=grants)
    await retain(other, Caller("acme", "user:alice"), "notes")
    await denied(retain(other, ALICE, "notes"), "write")


async def test_open_lets_everybody_read_and_write_only(opened: Open) -> None:
    gate = opened(policy="open")
    memory = await retain(gate, ALICE, "notes")
    assert await found(gate, BOB, "notes") == ["sesame"]
    await denied(gate.call(ALICE, UndeleteMemory("notes", memory)), "admin")
    await denied(gate.call(ALICE, CreateBank("more")), "admin")


async def test_who_makes_a_bank_owns_it(opened: Open) -> None:
    gate = opened(policy="owner_only")
    await retain(gate, ALICE, "hers")
    made = await gate.call(BOB, CreateBank("his"))
    assert made.created_by == "user:bob"
    assert (await gate.call(ALICE, GetBank("hers"))).created_by == "user:alice"
    await denied(found(gate, BOB, "hers"), "read")
    await denied(retain(gate, BOB, "hers"), "write")
    await denied(gate.call(BOB, CreateBank("hers")), "admin")
    with pytest.raises(AlreadyExists):
        await gate.call(ALICE, CreateBank("hers"))
    assert await gate.call(ALICE, DeleteBank("hers")) == 1
    await denied(found(gate, ALICE, "hers"), "read")
    await retain(gate, BOB, "hers")
    await denied(found(gate, ALICE, "hers"), "read")


async def test_an_owner_hears_again_what_a_deletion_answered(opened: Open) -> None:
    gate = opened(policy="owner_only")
    await retain(gate, ALICE, "hers")
    assert await gate.call(ALICE, DeleteBank("hers", request_id="once")) == 1
    assert await gate.call(ALICE, DeleteBank("hers", request_id="once")) == 1
    await denied(gate.call(BOB, DeleteBank("hers", request_id="once")), "admin")
    await retain(gate, BOB, "hers")
    with pytest.raises(RequestIdReused):
        await gate.call(BOB, DeleteBank("hers", request_id="once"))
    assert await found(gate, BOB, "hers") == ["sesame"]


async def test_without_auto_create_a_free_name_is_as_forbidden_as_another(opened: Open) -> None:
    gate = opened(policy="owner_only", bank_defaults={"auto_create": False})
    await denied(retain(gate, ALICE, "missing"), "write")
    await gate.call(ALICE, CreateBank("hers"))
    await retain(gate, ALICE, "hers")


async def test_a_grant_reaches_beyond_the_owner(opened: Open) -> None:
    gate = opened(("hers", "user:bob", ["read"]), policy="owner_only")
    await retain(gate, ALICE, "hers")
    assert await found(gate, BOB, "hers") == ["sesame"]
    await denied(retain(gate, BOB, "hers"), "write")


async def test_on_behalf_of_another_only_what_both_may(opened: Open) -> None:
    gate = opened(("*", "agent:helper", READ_WRITE), ("alices", "user:alice", ["*"]), ("bobs", "user:bob", ["read"]))
    for_alice, for_bob = (Caller(principal="agent:helper", on_behalf_of=who) for who in ("user:alice", "user:bob"))
    await retain(gate, AGENT, "bobs")
    await retain(gate, for_alice, "alices")
    assert (await gate.call(ALICE, ListMemories("alices"))).memories[0].principal == "agent:helper"
    assert await found(gate, for_bob, "bobs") == ["sesame"]
    await denied(retain(gate, for_bob, "bobs"), "write")
    await denied(found(gate, for_alice, "bobs"), "read")
    await denied(gate.call(for_alice, DeleteBank("alices")), "admin")
    assert [bank.bank_id for bank in (await gate.call(for_bob, ListBanks())).banks] == ["bobs"]


async def test_acting_for_nobody_is_refused_and_opens_no_door(opened: Open) -> None:
    gate = opened(("*", "*", ["*"]))
    await retain(gate, ALICE, "notes")
    await denied(found(gate, Caller(principal="user:alice", on_behalf_of="local"), "notes"), "read")
    await denied(found(gate, Caller(), "notes"), "read")
    assert await found(gate, ALICE, "notes") == ["sesame"]
    assert (
        await gate.call(Caller(principal="user:alice", on_behalf_of="local"), CheckAccess("notes"))
    ).permissions == set()


async def test_nobody_comes_to_own_a_bank_by_acting_for_another(opened: Open) -> None:
    gate = opened(policy="owner_only")
    await denied(retain(gate, Caller(principal="agent:helper", on_behalf_of="user:alice"), "new"), "write")
    with pytest.raises(BankNotFound):
        await gate.call(Caller(operator=True), GetBank("new"))


async def test_a_list_holds_what_the_caller_may_read(opened: Open) -> None:
    gate = opened(("*", "user:alice", ["*"]), ("b-?7", "user:bob", ["read"]), ("b-01", "user:bob", ["write"]))
    for number in range(40):
        await gate.call(ALICE, CreateBank(f"b-{number:02}"))
    seen, token = [], ""
    while True:
        page = await gate.call(BOB, ListBanks(page_size=2, page_token=token))
        seen += [bank.bank_id for bank in page.banks]
        token = page.next_page_token
        if not token:
            break
        assert len(page.banks) == 2
    assert seen == ["b-07", "b-17", "b-27", "b-37"]
    assert (await gate.call(AGENT, ListBanks())).banks == ()
    assert len((await gate.call(ALICE, ListBanks())).banks) == 40


async def test_the_settings_say_who_callers_without_a_name_are(opened: Open) -> None:
    gate = opened(policy="owner_only", identity={"principal": "user:alice"})
    memory = await retain(gate, Caller(), "notes")
    assert (await gate.call(ALICE, GetMemory("notes", memory))).principal == "user:alice"
    await denied(found(gate, BOB, "notes"), "read")


async def test_whoever_holds_the_data_needs_no_grant(opened: Open) -> None:
    gate = opened()
    operator = Caller(operator=True)
    await retain(gate, operator, "notes")
    assert await found(gate, operator, "notes") == ["sesame"]
    await gate.call(operator, DeleteBank("notes"))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (
            {"access_grants": [{"bank_id": "b", "principal": "local", "permissions": ["*"]}]},
            "access_grants.0.principal",
        ),
        ({"identity": {"principal": "local"}}, "identity.principal"),
        (
            {"banks": {"b": {"access": [{"principal": "local", "permissions": ["read"]}]}}},
            "banks.b.access.0.principal",
        ),
        ({"access_grants": [{"bank_id": "b", "principal": "p", "permissions": ["own"]}]}, "permissions.0"),
        ({"access_grants": [{"bank_id": "b", "principal": "p", "permissions": []}]}, "permissions"),
        ({"access_grants": [{"bank_id": "b/c", "principal": "p", "permissions": ["*"]}]}, "bank_id"),
        ({"access_control": {"default_policy": "closed"}}, "default_policy"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        App(Settings.from_mapping({"vector_store": "in_memory", **settings}))


@pytest.mark.parametrize("enabled", [True, False])
async def test_grants_that_have_no_effect_are_told(opened: Open, *, enabled: bool) -> None:
    with capture_logs() as logs:
        opened(("b", "user:alice", ["read"]), access_control={"enabled": enabled})
    told = [line["key"] for line in logs if line["event"] == "grants_have_no_effect"]
    assert told == ([] if enabled else ["access_grants.0"])
