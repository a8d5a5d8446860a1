"""Another server as an engine: two real servers on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from astrocyte.api.requests import (
    CreateBank,
    Forget,
    ListBanks,
    ListEngines,
    ListMemories,
    Recall,
    Reflect,
    Retain,
    UpdateMemory,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import ConfigError, FailedPrecondition, ProviderUnavailable, ValidationError
from astrocyte.federation import ORIGIN, create
from astrocyte.model import (
    Caller,
    EngineTrace,
    ForgetSelector,
    MemoryUpdate,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    RetainItem,
)
from astrocyte.v1 import memory_pb2
from harness.processes import doomed_server
from harness.serving import Served, serving

ME = Caller()
COFFEE = RecallQuery("where is the coffee?", "notes")


@asynccontextmanager
async def federated(there: str, *, options: dict[str, Any] | None = None, **block: Any) -> AsyncIterator[Served]:
    """A server whose engine is the one at an address."""
    engine = {"provider": "astrocyte", "options": {"address": there, **(options or {})}, **block}
    async with serving(engines={"hq": engine}) as served:
        yield served


def side(result: RecallResult, name: str = "hq") -> EngineTrace:
    assert result.trace is not None
    return next(one for one in result.trace.engines if one.engine == name)


async def test_a_recall_goes_across_and_its_answer_says_whose_each_hit_is() -> None:
    async with serving() as far, federated(far.address) as near:
        await far.backend.call(ME, Retain("notes", RetainItem("The coffee machine is at headquarters.", tags=("far",))))
        await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        result = await near.backend.call(ME, Recall(COFFEE))
        assert {(hit.text, hit.engine) for hit in result.hits} == {
            ("The coffee machine is at headquarters.", "hq"),
            ("The coffee is in the kitchen.", ""),
        }
        assert (side(result).outcome, side(result).found, side(result).kept) == ("answered", 1, 1)
        only = await near.backend.call(ME, Recall(RecallQuery("coffee", "notes", tags=("far",))))
        assert [hit.engine for hit in only.hits] == ["hq"]
        answer = await near.backend.call(ME, Reflect(ReflectQuery("where is the coffee machine?", "notes")))
        assert "headquarters" in answer.answer
        (described,) = await near.backend.call(ME, ListEngines())
        assert (described.name, described.provider, described.healthy) == ("hq", "astrocyte", True)
        several = RecallQuery("coffee", banks=("notes", "notes-2"), strategy=MultiBankStrategy("parallel"))
        await near.backend.call(ME, CreateBank("notes-2"))
        assert {hit.engine for hit in (await near.backend.call(ME, Recall(several))).hits} == {"", "hq"}


async def test_a_bank_that_is_not_there_is_an_empty_answer() -> None:
    async with serving() as far, federated(far.address) as near:
        await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        result = await near.backend.call(ME, Recall(COFFEE))
        assert (len(result.hits), side(result).outcome, side(result).found) == (1, "answered", 0)
        forgotten = await near.backend.call(ME, Forget("notes", ForgetSelector(scope="all")))
        assert (forgotten.deleted_count, forgotten.engines[0].deleted_count) == (1, 0)


@pytest.mark.process
async def test_a_server_that_is_killed_while_it_answers_is_named_and_the_other_answers(tmp_path: Path) -> None:
    with doomed_server(tmp_path) as (address, process):
        async with federated(address, timeout_seconds=4.0) as near:
            far = RemoteBackend(address)
            await far.call(ME, Retain("notes", RetainItem("The coffee machine is at headquarters.")))
            await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
            assert len((await near.backend.call(ME, Recall(COFFEE))).hits) == 2
            # It has the call, and does not answer any more.
            process.send_signal(signal.SIGSTOP)
            asking = asyncio.create_task(near.backend.call(ME, Recall(COFFEE)))
            done, _ = await asyncio.wait([asking], timeout=0.2)
            assert not done
            process.kill()
            result = await asking
            assert [hit.engine for hit in result.hits] == [""]
            assert (side(result).outcome, side(result).reason) == ("failed", "UNAVAILABLE")
            with pytest.raises(ProviderUnavailable):
                await near.backend.call(ME, Forget("notes", ForgetSelector(scope="all")))
            await far.close()


async def test_a_server_that_hangs_is_late_and_costs_no_more_than_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with federated(address, timeout_seconds=0.2) as near:
            await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
            async with asyncio.timeout(3):
                result = await near.backend.call(ME, Recall(COFFEE))
            assert (len(result.hits), side(result).outcome) == (1, "late")


def keyed(name: str, principal: str) -> dict[str, str]:
    return {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "principal": principal}


GUARDED: dict[str, Any] = {
    "auth": {"api_keys": [keyed("right", "service:near"), keyed("root", "user:root")]},
    "access_control": {"enabled": True, "default_policy": "deny"},
    "access_grants": [
        {"bank_id": "*", "principal": "user:root", "permissions": ["*"]},
        {"bank_id": "*", "principal": "service:near", "permissions": ["*"]},
        {"bank_id": "notes", "principal": "user:ann", "permissions": ["read"]},
    ],
}


async def test_a_wrong_key_is_a_failure_that_opens_the_circuit() -> None:
    async with serving(**GUARDED) as far, federated(far.address, options={"api_key": "wrong"}) as near:
        await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        reasons = [side(await near.backend.call(ME, Recall(COFFEE))).reason for _ in range(6)]
        assert reasons == ["UNAUTHENTICATED"] * 5 + ["CIRCUIT_OPEN"]


async def test_the_other_server_lets_a_call_do_no_more_than_who_it_is_made_for(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("right\n", encoding="utf-8")
    async with serving(**GUARDED) as far, federated(far.address, options={"api_key_file": str(key)}) as near:
        root = RemoteBackend(far.address, api_key="root")
        await root.call(ME, Retain("notes", RetainItem("The coffee machine is at headquarters.")))
        ann, bob = Caller(principal="user:ann"), Caller(principal="user:bob")
        gate = near.app.gate
        await gate.call(ann, CreateBank("notes"))
        assert [hit.engine for hit in (await gate.call(ann, Recall(COFFEE))).hits] == ["hq"]
        refused = await gate.call(bob, Recall(COFFEE))
        assert (refused.hits, side(refused).reason) == ((), "ACCESS_DENIED")
        # For a caller without a name, it is this server that calls.
        assert len((await gate.call(ME, Recall(COFFEE))).hits) == 1
        with pytest.raises(FailedPrecondition, match="ACCESS_DENIED"):
            await gate.call(ann, Forget("notes", ForgetSelector(scope="all")))
        await root.close()


async def test_copies_follow_updates_and_forgets_by_their_origin() -> None:
    async with serving() as far, federated(far.address, retain_target="both") as near:
        kept = await near.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.", tags=("a",))))
        (copy,) = (await far.backend.call(ME, ListMemories("notes"))).memories
        assert (copy.content, copy.tags) == ("The coffee is in the kitchen.", ("a", f"{ORIGIN}{kept.memory_id}"))
        (hit,) = (await near.backend.call(ME, Recall(COFFEE))).hits
        assert (hit.memory_id, hit.tags) == (kept.memory_id, ("a",))
        assert "engine:hq" in [arm.arm for arm in hit.arms]
        for text in ("It is in the office.", "The coffee is in the kitchen."):
            update = MemoryUpdate(kept.memory_id or "", frozenset({"content"}), content=text)
            await near.backend.call(ME, UpdateMemory("notes", update))
            assert [one.content for one in (await far.backend.call(ME, ListMemories("notes"))).memories] == [text]
        selector = ForgetSelector(memory_ids=(kept.memory_id or "",))
        done = await near.backend.call(ME, Forget("notes", selector, compliance=True))
        assert (done.deleted_count, done.engines[0].deleted_count) == (1, 1)
        assert (await far.backend.call(ME, ListMemories("notes"))).total_size == 0


async def test_two_servers_that_are_each_others_engine_go_in_no_circle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    one = {"provider": "astrocyte", "options": {"address": f"127.0.0.1:{port}"}, "read_only": True}
    async with serving(engines={"other": one}) as first:
        other = {"provider": "astrocyte", "options": {"address": first.address}, "retain_target": "both"}
        async with serving(engines={"other": other}, server={"port": port}) as second:
            await second.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
            for backend in (first.backend, second.backend):
                async with asyncio.timeout(5):
                    result = await backend.call(ME, Recall(COFFEE))
                assert [hit.text for hit in result.hits] == ["The coffee is in the kitchen."]
                assert side(result, "other").outcome == "answered"
            await second.backend.call(ME, Forget("notes", ForgetSelector(scope="all"), compliance=True))
            assert (await first.backend.call(ME, ListMemories("notes"))).total_size == 0


async def test_banks_have_other_names_there() -> None:
    options = {"bank_map": {"notes": "near.notes"}, "bank_prefix": "eu-"}
    async with serving() as far, federated(far.address, options=options, retain_target="both") as near:
        for bank in ("notes", "plans"):
            await near.backend.call(ME, Retain(bank, RetainItem("tea")))
        assert [bank.bank_id for bank in (await far.backend.call(ME, ListBanks())).banks] == ["eu-plans", "near.notes"]


async def test_a_number_of_servers_that_is_none_is_refused() -> None:
    async with serving() as served:
        for value in ("-1", "many", "100", ""):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await served.memory.Recall(
                    memory_pb2.RecallRequest(bank_id="notes", query="x"), metadata=(("x-astrocyte-hops", value),)
                )
            assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "address"),
        ({"address": "a:1", "colour": "red"}, "colour"),
        ({"address": "hq.example.com:1", "api_key": "k"}, "sent unencrypted"),
        ({"address": "127.0.0.1:1", "api_key": "k", "api_key_file": "f"}, "set one of them"),
        ({"address": "a:1", "bank_map": {"a": "c", "b": "c"}}, "two banks to the same"),
        ({"address": "a:1", "bank_map": {"a": "no/bank"}}, "bank_map"),
        ({"address": "a:1", "bank_prefix": "/"}, "bank_prefix"),
        ({"address": "a:1", "tls_roots_file": "/no/such/file"}, "cannot read"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create(options)


async def test_a_bank_whose_name_there_is_anothers_is_refused() -> None:
    options = {"bank_map": {"notes": "plans"}}
    async with serving() as far, federated(far.address, options=options) as near:
        await near.backend.call(ME, CreateBank("plans"))
        assert side(await near.backend.call(ME, Recall(RecallQuery("x", "plans")))).reason == ValidationError.reason
