"""The table of permissions is complete, and every call is held to it, for banks that exist and for others alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest

from astrocyte.api import RPCS, Creates
from astrocyte.api.requests import BatchRecall, Forget, PlaceHold, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, AstrocyteError, FailedPrecondition, NotFound
from astrocyte.model import ALL_PERMISSIONS, Caller, ForgetSelector, Permission, RecallQuery, RetainItem
from astrocyte.policy.permissions import CHECK_OTHERS, FORGET_ALL, PARTS, required
from harness.calls import METHODS, ROWS, calls, request_of

READ, WRITE, FORGET, ADMIN = "read", "write", "forget", "admin"
# The permissions of every RPC, written by hand: a slip in a row fails here.
EXPECTED: dict[str, set[str]] = {
    "Retain": {WRITE},
    "BatchRetain": {WRITE},
    "StreamRetain": {WRITE},
    "GetMemory": {READ},
    "ListMemories": {READ},
    "UpdateMemory": {READ, WRITE},
    "Recall": {READ},
    "BatchRecall": {READ},
    "Explain": {READ},
    "History": {READ},
    "Reflect": {READ},
    "StreamReflect": {READ},
    "Forget": {FORGET},
    "UndeleteMemory": {READ, ADMIN},
    "Watch": {READ},
    "SearchEntities": {READ},
    "GetEntity": {READ},
    "ListEntities": {READ},
    "Neighbors": {READ},
    "FindPath": {READ},
    "CreateEntityLink": {READ, WRITE},
    "DeleteEntityLink": {FORGET},
    "UpdateEntity": {READ, WRITE},
    "MergeEntities": {READ, WRITE},
    "SplitEntity": {READ, WRITE},
    "GetGraphStats": {READ},
    "ExportGraph": {READ, ADMIN},
    "RebuildGraph": {READ, ADMIN},
    "CreateBank": {ADMIN},
    "GetBank": {READ},
    "ListBanks": set(),
    "UpdateBank": {READ, ADMIN},
    "DeleteBank": {ADMIN},
    "GetBankStats": {READ},
    "GetServerInfo": set(),
    "Grant": {ADMIN},
    "Revoke": {ADMIN},
    "ListGrants": {ADMIN},
    "CheckAccess": set(),
    "PlaceHold": {ADMIN},
    "ReleaseHold": {ADMIN},
    "ListHolds": {ADMIN},
    "ListAuditEvents": {ADMIN},
    "StartReindex": {ADMIN},
    "RunLifecycle": {ADMIN},
    "GetOperation": {ADMIN},
    "ListOperations": {ADMIN},
    "WaitOperation": {ADMIN},
    "CancelOperation": {ADMIN},
    "CreateDirective": {WRITE},
    "ListDirectives": {READ},
    "DeleteDirective": {WRITE, FORGET},
    "CreateObservation": {READ, WRITE},
    "GetObservation": {READ},
    "ListObservations": {READ},
    "UpdateObservation": {READ, WRITE},
    "DeleteObservation": {FORGET},
    "InvalidateObservations": {FORGET},
    "ListObservationRevisions": {READ},
    "ConsolidateBank": {READ, WRITE},
    "CreateMentalModel": {WRITE},
    "GetMentalModel": {READ},
    "ListMentalModels": {READ},
    "UpdateMentalModel": {READ, WRITE},
    "RefreshMentalModel": {READ, WRITE},
    "DeleteMentalModel": {FORGET},
    "UndeleteMentalModel": {READ, ADMIN},
    "ListMentalModelRevisions": {READ},
    "GetMentalModelRevision": {READ},
    "DiffMentalModelRevisions": {READ},
    "AuditCoverage": {READ},
    "DiagnoseBank": {READ, ADMIN},
    "RepairBank": {READ, ADMIN},
    "CompileBank": {READ, WRITE},
    "GetPage": {READ},
    "ListPages": {READ},
    "SearchPages": {READ},
    "ListPageRevisions": {READ},
    "LintPages": {READ},
    "CreateApiKey": {ADMIN},
    "ListApiKeys": {ADMIN},
    "RevokeApiKey": {ADMIN},
    "ListBankTemplates": {ADMIN},
    "ListBankGroups": {ADMIN},
    "ListEngines": {ADMIN},
    "ListSources": {ADMIN},
    "ExportBank": {READ, ADMIN},
    "ImportBank": {WRITE, ADMIN},
    "Remember": set(),
    "RecallAgentMemory": set(),
    "ForgetAgentMemory": set(),
    "ListAgentMemories": set(),
    "ListAgents": set(),
    "RecanonicaliseAgentMemories": {ADMIN},
    "LookupTerm": set(),
    "ProposeTerm": set(),
    "ListTerms": set(),
    "ReviewTerm": {ADMIN},
    "SearchSharedKb": {READ},
    "ListSharedKb": {READ},
    "GetSharedKbIndex": {READ},
}
# These are about all banks; their permissions are tested in test_api_keys.py and test_bank_templates.py.
ABOUT_ALL = {
    "RecanonicaliseAgentMemories",
    "CreateApiKey",
    "ListApiKeys",
    "RevokeApiKey",
    "ListBankTemplates",
    "ListBankGroups",
    "ListEngines",
    "ListSources",
    "ReviewTerm",
}
CREATING = {"Retain", "BatchRetain", "StreamRetain", "CreateBank", "CreateDirective", "CreateMentalModel", "ImportBank"}
CREATING_BY_TEMPLATE = {"Recall", "BatchRecall", "Reflect", "StreamReflect"}
ABOUT_A_BANK = sorted(name for name, rpc in ROWS.items() if rpc.permissions and rpc.bank)
NOTHING_TO_DO: dict[str, type[AstrocyteError]] = {
    "StartReindex": FailedPrecondition,
    "GetOperation": NotFound,
    "WaitOperation": NotFound,
    "CancelOperation": NotFound,
    # The memory mentions nobody.
    "GetEntity": NotFound,
    "Neighbors": NotFound,
    "FindPath": NotFound,
    "CreateEntityLink": NotFound,
    "DeleteEntityLink": NotFound,
    "UpdateEntity": NotFound,
    "MergeEntities": NotFound,
    "SplitEntity": NotFound,
    "GetObservation": NotFound,
    "UpdateObservation": NotFound,
    "ListObservationRevisions": NotFound,
    "GetMentalModel": NotFound,
    "UpdateMentalModel": NotFound,
    "RefreshMentalModel": NotFound,
    "UndeleteMentalModel": NotFound,
    "ListMentalModelRevisions": NotFound,
    "GetMentalModelRevision": NotFound,
    "DiffMentalModelRevisions": NotFound,
    "GetPage": NotFound,
    "ListPageRevisions": NotFound,
}
ROOT = Caller(principal="user:root")
SUBJECT = Caller(principal="user:subject")
BANK = "held"
MISSING = "missing"


def test_every_rpc_has_an_entry_and_every_entry_an_rpc() -> None:
    assert {rpc.name: rpc.service for rpc in RPCS.values()} == {
        name: method.containing_service.full_name for name, method in METHODS.items()
    }
    assert set(PARTS) == {FORGET_ALL, CHECK_OTHERS}


def test_every_row_has_the_permissions_that_are_expected_of_it() -> None:
    assert {name: set(rpc.permissions) for name, rpc in ROWS.items()} == EXPECTED
    assert {name for name, rpc in ROWS.items() if not rpc.bank and rpc.permissions} == ABOUT_ALL
    assert {name: set(needed) for name, needed in required().items()} == {
        **EXPECTED,
        FORGET_ALL: {ADMIN},
        CHECK_OTHERS: {ADMIN},
    }


def test_the_rows_say_which_rpcs_create_banks() -> None:
    assert {name for name, rpc in ROWS.items() if rpc.creates is Creates.BANK} == CREATING
    assert {name for name, rpc in ROWS.items() if rpc.creates is Creates.BANK_OF_TEMPLATE} == CREATING_BY_TEMPLATE


def test_every_request_that_changes_something_can_be_repeated() -> None:
    for rpc in RPCS.values():
        assert rpc.mutates is bool(rpc.fields & {"request_id", "request_ids", "archive"}), rpc.name


def test_the_rows_say_where_requests_name_their_bank() -> None:
    for rpc in RPCS.values():
        # A batch of recalls names one for each.
        named = rpc.bank and rpc.name != "BatchRecall"
        assert rpc.bank_id(request_of(rpc, BANK)) == (BANK if named else ""), rpc.name


def test_the_rows_say_how_the_rpcs_stream() -> None:
    for name, method in METHODS.items():
        rpc = ROWS[name]
        # The responses of StreamRetain are one for each item of its request.
        assert (rpc.client_streaming, rpc.server_streaming or rpc.client_streaming) == (
            method.client_streaming,
            method.server_streaming,
        ), name


def test_the_gate_has_a_handler_for_every_row() -> None:
    gate = App(Settings.from_mapping({"vector_store": "in_memory"})).gate
    assert set(gate._handlers) | set(gate._streams) == set(RPCS)
    assert set(gate._streams) == {rpc.request for rpc in RPCS.values() if rpc.server_streaming}


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
    settings = {"vector_store": "in_memory", "access_control": control, "access_grants": grants}
    app = App(Settings.from_mapping({**settings, "directives": {"allowed_principals": ["*"]}}))
    apps.append(app)
    kept = await app.gate.call(ROOT, Retain(BANK, RetainItem("the canary sings")))
    assert kept.memory_id is not None
    return app, kept.memory_id


@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_call_passes_with_what_it_needs(apps: list[App], name: str) -> None:
    app, memory = await opened(apps, ROWS[name].permissions)
    bank = MISSING if name == "CreateBank" else BANK
    if name == "UndeleteMemory":
        await app.gate.call(ROOT, Forget(BANK, ForgetSelector(memory_ids=(memory,))))
    if name == "ReleaseHold":
        await app.gate.call(ROOT, PlaceHold(BANK, reason="a case", hold_id="case-1"))
    # There is nothing to go back to, and no operation: that is found out by whoever is let in.
    with nullcontext() if name not in NOTHING_TO_DO else pytest.raises(NOTHING_TO_DO[name]):
        await calls(memory)[name](app.gate, SUBJECT, bank)


@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_call_is_refused_without_each_permission(apps: list[App], name: str) -> None:
    for lacking in ROWS[name].permissions:
        app, memory = await opened(apps, ALL_PERMISSIONS - {lacking})
        with pytest.raises(AccessDenied, match=rf"lacks {lacking} access"):
            await calls(memory)[name](app.gate, SUBJECT, BANK)


@pytest.mark.parametrize("policy", ["deny", "owner_only"])
@pytest.mark.parametrize("name", ABOUT_A_BANK)
async def test_a_missing_bank_answers_as_a_forbidden_one(apps: list[App], name: str, policy: str) -> None:
    if policy == "owner_only" and name in CREATING:
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
        await app.gate.call(SUBJECT, Forget(BANK, everything))
    app, _ = await opened(apps, frozenset({Permission.ADMIN}))
    assert (await app.gate.call(SUBJECT, Forget(BANK, everything))).deleted_count == 1


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_a_caller_without_a_name_is_denied_everything(apps: list[App], name: str) -> None:
    for policy in ("deny", "owner_only", "open"):
        app, memory = await opened(apps, frozenset(), policy)
        for caller in (Caller(), Caller(on_behalf_of="user:root")):
            with pytest.raises(AccessDenied, match="anonymous"):
                await calls(memory)[name](app.gate, caller, BANK)


async def test_a_recall_over_a_forbidden_bank_recalls_nothing(apps: list[App]) -> None:
    app, _ = await opened(apps, frozenset())
    with pytest.raises(AccessDenied):
        await app.gate.call(SUBJECT, BatchRecall([RecallQuery("canary", BANK), RecallQuery("canary", MISSING)]))
