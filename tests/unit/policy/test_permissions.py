"""The table of permissions is complete, and every call is held to it, for banks that exist and for others alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, AstrocyteError, FailedPrecondition, NotFound
from astrocyte.model import ALL_PERMISSIONS, Caller, ForgetSelector, Permission, RecallQuery, RetainItem
from astrocyte.policy.permissions import CHECK_OTHERS, FORGET_ALL, MAKING, PARTS, REQUIRED
from astrocyte.server import ADMIN_SERVICE, MEMORY_SERVICE
from calls import calls

METHODS = {method.name for service in (MEMORY_SERVICE, ADMIN_SERVICE) for method in service.methods}
# These are about all banks; what they need is tried in test_keys.py and test_templates.py.
ABOUT_ALL = {"CreateApiKey", "ListApiKeys", "RevokeApiKey", "ListBankTemplates", "ListBankGroups", "ListEngines"}
ABOUT_A_BANK = sorted(name for name, needed in REQUIRED.items() if needed and name not in ABOUT_ALL)
NOTHING_TO_DO: dict[str, type[AstrocyteError]] = {
    "StartReindex": FailedPrecondition,
    "GetOperation": NotFound,
    "WaitOperation": NotFound,
    "CancelOperation": NotFound,
}
ROOT = Caller(principal="user:root")
SUBJECT = Caller(principal="user:subject")
BANK = "held"
MISSING = "missing"


def test_every_rpc_has_an_entry_and_every_entry_an_rpc() -> None:
    assert set(REQUIRED) == METHODS
    assert METHODS >= MAKING
    assert set(PARTS) == {FORGET_ALL, CHECK_OTHERS}


def test_every_rpc_is_tried_here() -> None:
    assert set(calls()) >= {name for name, needed in REQUIRED.items() if needed}


def grant(principal: str, permissions: frozenset[Permission], bank: str = "*") -> dict[str, Any]:
    return {"bank_id": bank, "principal": principal, "permissions": sorted(permissions)}


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


async def opened(apps: list[App], permissions: frozenset[Permission], policy: str = "deny") -> tuple[App, str]:
    """An application in which the subject has these permissions everywhere, and a memory."""
    grants = [grant("user:root", ALL_PERMISSIONS)]
    if permissions:
        grants.append(grant("user:subject", permissions))
    control = {"enabled": True, "default_policy": policy}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "access_control": control, "access_grants": grants}))
    apps.append(app)
    kept = await app.gate.retain(ROOT, BANK, RetainItem("the canary sings"))
    assert kept.memory_id is not None
    return app, kept.memory_id


@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_call_passes_with_what_it_needs(apps: list[App], name: str) -> None:
    app, memory = await opened(apps, REQUIRED[name])
    bank = MISSING if name == "CreateBank" else BANK
    if name == "UndeleteMemory":
        await app.gate.forget(ROOT, BANK, ForgetSelector(memory_ids=(memory,)))
    if name == "ReleaseHold":
        await app.gate.place_hold(ROOT, BANK, reason="a case", hold_id="case-1")
    # There is nothing to go back to, and no operation: that is found out by whoever is let in.
    with nullcontext() if name not in NOTHING_TO_DO else pytest.raises(NOTHING_TO_DO[name]):
        await calls(memory)[name](app.gate, SUBJECT, bank)


@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_call_is_refused_without_each_permission(apps: list[App], name: str) -> None:
    for lacking in REQUIRED[name]:
        app, memory = await opened(apps, ALL_PERMISSIONS - {lacking})
        with pytest.raises(AccessDenied, match=rf"lacks {lacking} access"):
            await calls(memory)[name](app.gate, SUBJECT, BANK)


@pytest.mark.parametrize("policy", ["deny", "owner_only"])
@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_missing_bank_answers_as_a_forbidden_one(apps: list[App], name: str, policy: str) -> None:
    if policy == "owner_only" and name in MAKING:
        pytest.skip("whoever asks first for a free name owns it")
    app, memory = await opened(apps, frozenset(), policy)
    answers = []
    for bank in (BANK, MISSING):
        with pytest.raises(AstrocyteError) as refusal:
            await calls(memory)[name](app.gate, SUBJECT, bank)
        error = refusal.value
        metadata = {key: value.replace(bank, "BANK") for key, value in error.metadata.items()}
        answers.append((type(error), error.reason, str(error).replace(bank, "BANK"), metadata))
    assert answers[0] == answers[1]


async def test_forgetting_all_needs_admin(apps: list[App]) -> None:
    everything = ForgetSelector(scope="all")
    app, _ = await opened(apps, ALL_PERMISSIONS - {Permission.ADMIN})
    with pytest.raises(AccessDenied, match="lacks admin access"):
        await app.gate.forget(SUBJECT, BANK, everything)
    app, _ = await opened(apps, frozenset({Permission.ADMIN}))
    assert (await app.gate.forget(SUBJECT, BANK, everything)).deleted_count == 1


@pytest.mark.parametrize("name", sorted(METHODS & set(calls())))
async def test_a_caller_without_a_name_is_denied_everything(apps: list[App], name: str) -> None:
    for policy in ("deny", "owner_only", "open"):
        app, memory = await opened(apps, frozenset(), policy)
        for caller in (Caller(), Caller(on_behalf_of="user:root")):
            with pytest.raises(AccessDenied, match="anonymous"):
                await calls(memory)[name](app.gate, caller, BANK)


async def test_a_recall_over_a_forbidden_bank_recalls_nothing(apps: list[App]) -> None:
    app, _ = await opened(apps, frozenset())
    with pytest.raises(AccessDenied):
        await app.gate.recall_batch(SUBJECT, [RecallQuery("canary", BANK), RecallQuery("canary", MISSING)])
