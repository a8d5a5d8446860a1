"""Access control over the wire: the credential says who calls, and the answers tell nobody more than they may know."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status

from astrocyte.client import RemoteBackend
from astrocyte.errors import AccessDenied
from astrocyte.model import ALL_PERMISSIONS, Caller, Permission, RecallQuery, RetainItem
from astrocyte.policy.permissions import REQUIRED
from astrocyte.services.status import DETAILS_KEY
from astrocyte.v1 import memory_pb2, memory_pb2_grpc
from calls import calls
from serving import Served, serving, trailer

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
        kept = await root.retain(ME, "notes", RetainItem("Mara is allergic to sesame."))
        with pytest.raises(AccessDenied, match="'user:bob' lacks read access to bank 'notes'"):
            await bob.recall(ME, RecallQuery("sesame", "notes"))
        made = await root.grant(ME, "not?s", "user:bob", ["read", "write"], request_id="one")
        assert made == (await root.list_grants(ME, principal="user:bob")).grants[0]
        assert made.granted_by == "user:root"
        assert made.permissions == {Permission.READ, Permission.WRITE}
        assert [hit.memory_id for hit in (await bob.recall(ME, RecallQuery("sesame", "notes"))).hits] == [
            kept.memory_id
        ]
        check = await bob.check_access(ME, "notes", permission="forget")
        assert (check.allowed, check.permissions) == (False, made.permissions)
        assert await root.revoke(ME, "not?s", "user:bob", ["*"]) == made.permissions
        with pytest.raises(AccessDenied):
            await bob.recall(ME, RecallQuery("sesame", "notes"))
        (ended,) = (await root.list_grants(ME, principal="user:bob", revoked=True)).grants
        assert ended.revoked_by == "user:root"
        assert (await root.check_access(ME, "notes")).permissions == ALL_PERMISSIONS


@pytest.mark.parametrize("name", sorted(name for name, needed in REQUIRED.items() if needed))
async def test_a_forbidden_bank_and_a_missing_one_are_the_same_on_the_wire(name: str) -> None:
    async with controlled() as (_, root, bob):
        kept = await root.retain(ME, "held", RetainItem("the canary sings"))
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
        await root.retain(ME, "held", RetainItem("the canary sings"))
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
