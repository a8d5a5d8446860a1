"""Access control over the wire: the credential says who calls, and the answers tell nobody more than they may know."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from astrocyte.api.requests import (
    CheckAccess,
    CreateApiKey,
    GetBank,
    GetMemory,
    Grant,
    ListApiKeys,
    ListBanks,
    ListGrants,
    Recall,
    Retain,
    Revoke,
    RevokeApiKey,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import AccessDenied, AuthorizationError
from astrocyte.model import ALL_PERMISSIONS, Caller, Permission, RecallQuery, RetainItem
from astrocyte.services.status import DETAILS_KEY
from astrocyte.v1 import admin_pb2, memory_pb2, memory_pb2_grpc
from harness.calls import ROWS, calls
from harness.serving import Served, detail, reason, serving, trailer
from harness.tokens import AUDIENCE, ISSUER, claims, jwks, token

PEOPLE = ("root", "bob")
CONTROL = {"enabled": True, "default_policy": "deny"}
ROOT_GRANT = {"bank_id": "*", "principal": "user:root", "permissions": ["*"]}
ME = Caller()


def config_key(name: str) -> dict[str, str]:
    return {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "principal": f"user:{name}"}


@asynccontextmanager
async def controlled(**sections: Any) -> AsyncIterator[tuple[Served, RemoteBackend, RemoteBackend]]:
    keys = [config_key(name) for name in PEOPLE]
    grants = {"access_control": CONTROL, "access_grants": [ROOT_GRANT]}
    async with serving(auth={"api_keys": keys}, **grants, **sections) as served:
        root, bob = (RemoteBackend(served.address, api_key=name) for name in PEOPLE)
        yield served, root, bob
        await root.close()
        await bob.close()


async def test_grants_are_made_checked_listed_and_revoked() -> None:
    async with controlled() as (_, root, bob):
        kept = await root.call(ME, Retain("notes", RetainItem("Mara is allergic to sesame.")))
        with pytest.raises(AccessDenied, match="'user:bob' lacks read access to bank 'notes'"):
            await bob.call(ME, Recall(RecallQuery("sesame", "notes")))
        made = await root.call(ME, Grant("not?s", "user:bob", ["read", "write"], request_id="one"))
        assert made == (await root.call(ME, ListGrants(principal="user:bob"))).grants[0]
        assert made.granted_by == "user:root"
        assert made.permissions == {Permission.READ, Permission.WRITE}
        assert [hit.memory_id for hit in (await bob.call(ME, Recall(RecallQuery("sesame", "notes")))).hits] == [
            kept.memory_id
        ]
        check = await bob.call(ME, CheckAccess("notes", permission="forget"))
        assert (check.allowed, check.permissions) == (False, made.permissions)
        assert await root.call(ME, Revoke("not?s", "user:bob", ["*"])) == made.permissions
        with pytest.raises(AccessDenied):
            await bob.call(ME, Recall(RecallQuery("sesame", "notes")))
        (ended,) = (await root.call(ME, ListGrants(principal="user:bob", include_revoked=True))).grants
        assert ended.revoked_by == "user:root"
        assert (await root.call(ME, CheckAccess("notes"))).permissions == ALL_PERMISSIONS


@pytest.mark.parametrize("name", sorted(name for name, rpc in ROWS.items() if rpc.permissions and rpc.bank))
async def test_a_forbidden_bank_and_a_missing_one_are_the_same_on_the_wire(name: str) -> None:
    async with controlled() as (_, root, bob):
        kept = await root.call(ME, Retain("held", RetainItem("the canary sings")))
        answers = []
        for bank in ("held", "none"):
            with pytest.raises(AccessDenied) as refusal:
                await calls(kept.memory_id or "")[name](bob, ME, bank)
            error = refusal.value
            answers.append((str(error).replace(bank, "?"), sorted((*error.metadata, *error.metadata.values()))))
            answers[-1][1].remove(bank)
        assert answers[0] == answers[1]


async def test_the_whole_status_is_the_same() -> None:
    async with controlled() as (served, root, _):
        await root.call(ME, Retain("held", RetainItem("the canary sings")))
        stub = memory_pb2_grpc.MemoryServiceStub(served.channel)
        answers = set()
        for bank in ("held", "none"):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await stub.Recall(
                    memory_pb2.RecallRequest(bank_id=bank, query="canary"), metadata=(("authorization", "Bearer bob"),)
                )
            status = Status.FromString(trailer(refusal.value, DETAILS_KEY))
            answers.add((refusal.value.code(), str(status).replace(bank, "bank")))
        assert len(answers) == 1
        assert next(iter(answers))[0] is grpc.StatusCode.PERMISSION_DENIED


@asynccontextmanager
async def tokens_accepted(folder: Path, **sections: Any) -> AsyncIterator[Served]:
    (folder / "keys.json").write_bytes(jwks())
    settings = {"issuer": ISSUER, "audience": [AUDIENCE], "jwks_file": str(folder / "keys.json"), "tenant_claim": "org"}
    async with serving(auth={"jwt": settings}, **sections) as served:
        yield served


def good(**changes: Any) -> str:
    return token(claims(**{"exp": time.time() + 60, "iat": time.time(), "org": "acme", **changes}))


async def test_a_token_decides_tenant_and_principal(tmp_path: Path) -> None:
    async with tokens_accepted(tmp_path) as served:
        ann = RemoteBackend(served.address, api_key=good())
        kept = await ann.call(ME, Retain("notes", RetainItem("Mara is allergic to sesame.")))
        assert (await ann.call(ME, GetMemory("notes", kept.memory_id or ""))).principal == "user:ann"
        assert (await ann.call(ME, GetBank("notes"))).tenant == "acme"
        await ann.close()


@pytest.mark.parametrize("credential", [None, "", "key", "a.b.c", "forged"])
async def test_without_a_good_token_nothing_is_answered(tmp_path: Path, credential: str | None) -> None:
    async with tokens_accepted(tmp_path) as served:
        given = good(exp=time.time() - 60) if credential == "forged" else credential
        metadata = () if given is None else (("authorization", f"Bearer {given}"),)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await served.memory.Recall(memory_pb2.RecallRequest(bank_id="b", query="q"), metadata=metadata)
        assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert reason(refusal.value) == "UNAUTHENTICATED"


async def test_metadata_may_say_what_the_credential_says_and_nothing_else(tmp_path: Path) -> None:
    async with tokens_accepted(tmp_path) as served:
        authorization = ("authorization", f"Bearer {good()}")

        async def call(*claimed: tuple[str, str]) -> None:
            await served.admin.ListBanks(admin_pb2.ListBanksRequest(), metadata=(authorization, *claimed))

        await call(("x-astrocyte-tenant", "acme"), ("x-astrocyte-principal", "user:ann"))
        for header, value in (("tenant", "beta"), ("principal", "user:root"), ("principal", "")):
            with pytest.raises(grpc.aio.AioRpcError, match="not what the credential says") as refusal:
                await call((f"x-astrocyte-{header}", value))
            assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.aio.AioRpcError, match="two credentials"):
            await call(authorization)


async def test_two_principals_to_act_for_are_refused_with_the_field(tmp_path: Path) -> None:
    async with tokens_accepted(tmp_path) as served:
        metadata = (
            ("authorization", f"Bearer {good()}"),
            ("x-astrocyte-on-behalf-of", "user:bob"),
            ("x-astrocyte-on-behalf-of", "user:carol"),
        )
        listed = served.admin.ListBanks(admin_pb2.ListBanksRequest(), metadata=metadata)
        watched = served.memory.Watch(memory_pb2.WatchRequest(bank_id="notes"), metadata=metadata).read()
        for call in (listed, watched):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await call
            assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            (violation,) = detail(refusal.value, error_details_pb2.BadRequest).field_violations
            assert violation.field == "x-astrocyte-on-behalf-of"


async def test_acting_for_another_narrows_a_call(tmp_path: Path) -> None:
    grants = [
        {"bank_id": "*", "principal": "user:ann", "permissions": ["*"], "tenant": "acme"},
        {"bank_id": "notes", "principal": "user:bob", "permissions": ["read"], "tenant": "acme"},
    ]
    async with tokens_accepted(tmp_path, access_control=CONTROL, access_grants=grants) as served:
        ann = RemoteBackend(served.address, api_key=good())
        await ann.call(ME, Retain("notes", RetainItem("Mara is allergic to sesame.")))
        for_bob = Caller(on_behalf_of="user:bob")
        assert len((await ann.call(for_bob, Recall(RecallQuery("sesame", "notes")))).hits) == 1
        with pytest.raises(AccessDenied, match="'user:bob' lacks write"):
            await ann.call(for_bob, Retain("notes", RetainItem("Bob writes nothing.")))
        # An agent's token, made for the user of whom it speaks.
        agent = RemoteBackend(served.address, api_key=good(sub="bob", act={"sub": "ann"}))
        assert (await agent.call(ME, CheckAccess("notes"))).permissions == {Permission.READ}
        with pytest.raises(AuthorizationError, match="on-behalf-of"):
            await agent.call(Caller(on_behalf_of="user:ann"), CheckAccess("notes"))
        await ann.close()
        await agent.close()


async def test_a_key_made_by_call_opens_the_server_until_it_is_revoked() -> None:
    async with controlled() as (served, root, _):
        made, secret = await root.call(ME, CreateApiKey("carol", "user:carol"))
        await root.call(ME, Grant("notes", "user:carol", ["read", "write"]))
        carol = RemoteBackend(served.address, api_key=secret)
        await carol.call(ME, Retain("notes", RetainItem("Mara is allergic to sesame.")))
        metadata = (("authorization", f"Bearer {secret}"),)
        watch = served.memory.Watch(memory_pb2.WatchRequest(bank_id="notes"), metadata=metadata)
        await watch.initial_metadata()
        assert (await root.call(ME, RevokeApiKey(made.key_id))).revoked_by == "user:root"
        with pytest.raises(AuthorizationError, match="was revoked"):
            await carol.call(ME, Recall(RecallQuery("sesame", "notes")))
        # The stream that is open ends before it says more.
        await root.call(ME, Retain("notes", RetainItem("A secret of later.")))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await watch.read()
        assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
        (kept,) = await root.call(ME, ListApiKeys())
        assert (kept.key_id, kept.principal) == (made.key_id, "user:carol")
        await carol.close()


async def test_a_server_may_demand_keys_that_were_made_by_call() -> None:
    async with serving(auth={"required": True}) as served:
        with pytest.raises(AuthorizationError, match="no credential"):
            await served.backend.call(ME, ListBanks())
        _, secret = await served.app.gate.call(Caller(operator=True), CreateApiKey("ann", "user:ann"))
        ann = RemoteBackend(served.address, api_key=secret)
        assert (await ann.call(ME, ListBanks())).banks == ()
        await ann.close()
