"""Templates at work: who makes banks by their first use, who may do what there, and what a stranger learns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import yaml

from astrocyte.api.requests import (
    BatchRecall,
    CheckAccess,
    CreateBank,
    DeleteBank,
    GetBank,
    GetMemory,
    ListBankGroups,
    ListBanks,
    ListBankTemplates,
    Recall,
    Retain,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.loading import per_bank
from astrocyte.errors import AccessDenied, AstrocyteError, BankNotFound, PiiRejected
from astrocyte.model import BankGroup, Caller, Permission, RecallQuery, RetainItem, TemplateGrant
from astrocyte.policy.gate import Gate
from astrocyte.policy.settings.bank_templates import Templates
from astrocyte.services.convert import codec_of
from astrocyte.v1 import admin_pb2
from harness.calls import ROWS, calls

PRINTED: dict[str, Any] = yaml.safe_load(
    """
user:
  name_pattern: "user-{user_id}"
  profile: personal
  auto_create: true
  access:
    - principal: "user:{user_id}"
      permissions: [read, write, forget, admin]
    - principal: "agent:{agent_id}"
      permissions: [read, write]
team:
  name_pattern: "team-{team_id}"
  profile: support
  auto_create: false
"""
)
OWNER, AGENT, STRANGER = (Caller(principal=name) for name in ("user:7", "agent:helper", "user:8"))
ROOT = Caller(operator=True)
POLICIES = ["deny", "owner_only", "open"]
# Without the RPCs that are about no bank and need no permission.
ABOUT_BANKS = sorted(name for name, rpc in ROWS.items() if rpc.permissions)

Open = Callable[..., Gate]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    apps: list[App] = []

    def make(policy: str | None = "owner_only", **sections: Any) -> Gate:
        control = {"enabled": policy is not None, "default_policy": policy or "deny"}
        values = {"vector_store": "in_memory", "access_control": control, "bank_templates": PRINTED, **sections}
        apps.append(App(Settings.from_mapping(values)))
        return apps[-1].gate

    yield make
    for app in apps:
        await app.close()


async def outcome(work: Awaitable[object]) -> str:
    try:
        await work
    except AstrocyteError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


async def names(gate: Gate) -> list[str]:
    return [bank.bank_id for bank in (await gate.call(ROOT, ListBanks())).banks]


def recall(bank_id: str, query: str = "anything") -> RecallQuery:
    return RecallQuery(query, bank_id)


@pytest.mark.parametrize("caller", [OWNER, AGENT])
async def test_the_first_recall_makes_the_bank_for_whom_the_template_names(opened: Open, caller: Caller) -> None:
    gate = opened()
    assert (await gate.call(caller, Recall(recall("user-7")))).hits == ()
    bank = await gate.call(caller, GetBank("user-7"))
    assert (bank.template, bank.profile, bank.created_by) == ("user", "personal", caller.principal)


@pytest.mark.parametrize("caller", [OWNER, AGENT])
async def test_so_does_the_first_retain_and_a_batch_of_recalls(opened: Open, caller: Caller) -> None:
    gate = opened()
    assert (await gate.call(caller, Retain("user-7", RetainItem("tea")))).stored
    await gate.call(AGENT, BatchRecall([recall("user-8"), recall("user-9"), recall("user-8")]))
    assert await names(gate) == ["user-7", "user-8", "user-9"]


async def test_without_access_control_whoever_asks_makes_it(opened: Open) -> None:
    gate = opened(None)
    assert (await gate.call(Caller(), Recall(recall("user-123")))).hits == ()
    assert (await gate.call(Caller(), ListBanks())).banks[0].profile == "personal"


@pytest.mark.parametrize("name", ["Reflect", "StreamReflect"])
async def test_a_question_makes_it_too(opened: Open, name: str) -> None:
    gate = opened()
    await calls()[name](gate, OWNER, "user-7")
    assert await names(gate) == ["user-7"]


async def test_the_templates_are_for_those_who_rule_all_banks(opened: Open) -> None:
    rule = {"bank_id": "*", "principal": "user:root", "permissions": ["admin"]}
    gate = opened(access_grants=[rule, {**rule, "principal": "user:8", "bank_id": "user-*"}])
    user, team = await gate.call(Caller(principal="user:root"), ListBankTemplates())
    assert (user.name, user.name_pattern, user.profile, user.auto_create) == (
        "user",
        "user-{user_id}",
        "personal",
        True,
    )
    assert user.access[1] == TemplateGrant("agent:{agent_id}", frozenset({Permission.READ, Permission.WRITE}))
    assert (team.name, team.auto_create, team.access) == ("team", False, ())
    with pytest.raises(AccessDenied):
        await gate.call(STRANGER, ListBankTemplates())


async def test_the_groups_are_for_those_who_rule_all_banks(opened: Open) -> None:
    rule = {"bank_id": "*", "principal": "user:root", "permissions": ["admin"]}
    support = {"banks": ["user-{user_id}", "team"], "strategy": "cascade", "bank_weights": {"user-{user_id}": 2.0}}
    gate = opened(access_grants=[rule], multi_bank={"bank_groups": {"support": support}})
    (group,) = await gate.call(Caller(principal="user:root"), ListBankGroups())
    assert (group.name, group.banks, group.strategy.mode) == ("support", ("user-{user_id}", "team"), "cascade")
    assert group.strategy.bank_weights == {"user-{user_id}": 2.0}
    codec = codec_of(BankGroup, admin_pb2.BankGroup)
    assert codec.decode(codec.encode(group)) == group
    with pytest.raises(AccessDenied):
        await gate.call(OWNER, ListBankGroups())


async def test_a_look_into_the_past_makes_nothing(opened: Open) -> None:
    gate = opened()
    for name in ("History", "GetBank", "ListMemories", "Watch", "Forget", "DeleteBank"):
        assert (await outcome(calls()[name](gate, OWNER, "user-7"))).startswith("BankNotFound")
    assert await names(gate) == []


async def test_a_template_without_auto_create_stops_the_first_retain_too(opened: Open) -> None:
    gate = opened(None)
    for caller in (Caller(), ROOT):
        with pytest.raises(BankNotFound):
            await gate.call(caller, Retain("team-support", RetainItem("tea")))
        with pytest.raises(BankNotFound):
            await gate.call(caller, Recall(recall("team-support")))
    made = await gate.call(Caller(), CreateBank("team-support"))
    assert (made.template, made.profile) == ("team", "support")
    assert (await gate.call(Caller(), Retain("team-support", RetainItem("tea")))).stored
    # The whole's own choice holds where no template does.
    assert (await gate.call(Caller(), Retain("elsewhere", RetainItem("tea")))).stored


async def test_a_template_makes_banks_where_the_whole_does_not(opened: Open) -> None:
    gate = opened(bank_defaults={"auto_create": False})
    assert (await gate.call(OWNER, Retain("user-7", RetainItem("tea")))).stored
    with pytest.raises(AccessDenied):
        await gate.call(OWNER, Retain("elsewhere", RetainItem("tea")))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ABOUT_BANKS)
async def test_a_stranger_makes_nothing_and_learns_nothing(opened: Open, policy: str, name: str) -> None:
    outcomes = []
    for exists in (False, True):
        gate = opened(policy)
        if exists:
            await gate.call(OWNER, Retain("user-7", RetainItem("the canary sings")))
        if policy == "open" and (exists or name == "UndeleteMemory"):
            # There everybody may read and write what exists; what is at stake is only who makes it.
            return
        outcomes.append(await outcome(calls()[name](gate, STRANGER, "user-7")))
        assert await names(gate) == (["user-7"] if exists else [])
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].startswith("AccessDenied")


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_grant_from_elsewhere_lets_nobody_make_a_bank_of_a_template(opened: Open, policy: str) -> None:
    wide = {"bank_id": "*", "principal": "user:8", "permissions": ["read", "write"]}
    gate = opened(policy, access_grants=[wide])
    for name in ("Retain", "BatchRetain", "StreamRetain", "Recall", "BatchRecall"):
        assert (await outcome(calls()[name](gate, STRANGER, "user-7"))).startswith("BankNotFound")
    assert await names(gate) == []
    await gate.call(OWNER, Recall(recall("user-7")))
    assert (await gate.call(STRANGER, Retain("user-7", RetainItem("tea")))).stored


async def test_whoever_makes_a_bank_of_a_template_has_what_the_template_says(opened: Open) -> None:
    gate = opened("owner_only")
    await gate.call(AGENT, Retain("user-7", RetainItem("tea")))
    assert (await gate.call(AGENT, CheckAccess("user-7"))).permissions == {Permission.READ, Permission.WRITE}
    with pytest.raises(AccessDenied, match="lacks admin"):
        await gate.call(AGENT, DeleteBank("user-7"))
    assert (await gate.call(OWNER, CheckAccess("user-7"))).permissions == frozenset(Permission)
    # Nor can the name be taken first.
    with pytest.raises(AccessDenied, match="lacks admin"):
        await gate.call(STRANGER, CreateBank("user-7"))


async def test_a_call_made_for_somebody_makes_what_both_may(opened: Open) -> None:
    gate = opened()
    helped, refused = (Caller(principal="agent:helper", on_behalf_of=name) for name in ("user:7", "user:8"))
    with pytest.raises(AccessDenied):
        await gate.call(refused, Recall(recall("user-7")))
    assert await names(gate) == []
    await gate.call(helped, Recall(recall("user-7")))
    assert await names(gate) == ["user-7"]


async def test_what_is_refused_makes_no_bank(opened: Open) -> None:
    gate = opened(banks={"user-7": {"profile": "hipaa"}})
    with pytest.raises(PiiRejected):
        await gate.call(OWNER, Recall(recall("user-7", "who is jo@example.com?")))
    with pytest.raises(PiiRejected):
        await gate.call(OWNER, Retain("user-7", RetainItem("write to jo@example.com")))
    assert await names(gate) == []


async def test_a_profile_holds_in_the_banks_of_its_template(opened: Open) -> None:
    gate = opened(None)
    assert "[EMAIL_REDACTED]" in (await _kept(gate, "user-7", "write to jo@example.com"))
    patterns = {"lab": {"name_pattern": "lab-{team_id}", "profile": "research", "auto_create": True}}
    gate = opened(None, bank_templates=patterns)
    assert "jo@example.com" in (await _kept(gate, "lab-7", "write to jo@example.com"))


@pytest.mark.parametrize("banks", [("plain", "user-7"), ("user-7", "plain"), ("plain", "team-1", "user-7")])
async def test_a_question_to_several_banks_passes_the_barrier_of_each_template(
    opened: Open, banks: tuple[str, ...]
) -> None:
    templates = {
        "user": {"name_pattern": "user-{user_id}", "profile": "hipaa", "auto_create": True},
        "team": {"name_pattern": "team-{team_id}"},
    }
    gate = opened(policy=None, bank_templates=templates, barriers={"pii": {"mode": "disabled"}})
    for bank_id in ("plain", "team-1"):
        await gate.call(ROOT, CreateBank(bank_id))
    with pytest.raises(PiiRejected) as refused:
        await gate.call(OWNER, Recall(RecallQuery("who is jo@example.com?", banks=banks)))
    assert refused.value.metadata["field"] == "query"
    assert await names(gate) == ["plain", "team-1"]


async def _kept(gate: Gate, bank_id: str, text: str) -> str:
    stored = await gate.call(Caller(), Retain(bank_id, RetainItem(text)))
    assert stored.memory_id is not None
    return (await gate.call(Caller(), GetMemory(bank_id, stored.memory_id))).content


async def test_a_name_of_letters_that_patterns_have_gives_nobody_else_anything(opened: Open) -> None:
    gate = opened("deny")
    # The name ends where the principal's does, whatever stands before.
    for principal in ("user:7", "user:x-7", "user:", "user:7-x", "user:*"):
        held = (await gate.call(Caller(principal=principal), CheckAccess("user-x-7"))).permissions
        assert bool(held) == (principal == "user:x-7")


async def test_invented_names_are_not_kept_without_end(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_bank, "KEPT_BANKS", 4)
    found = Templates(Settings.from_mapping({"bank_templates": PRINTED}))
    for number in range(20):
        match = found.of[f"user-{number}"]
        assert match is not None
        assert match.permissions(f"user:{number}") == frozenset(Permission)
    assert len(found.of) <= 4
