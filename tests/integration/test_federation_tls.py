"""Two servers, TLS and keys on both: what is wrong with either is named, and nothing goes without them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateApiKey,
    CreateBank,
    Forget,
    GetBankStats,
    ListBanks,
    ListEngines,
    ListMemories,
    Recall,
    Retain,
    RevokeApiKey,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import AuthorizationError, ProviderUnavailable, Unavailable
from astrocyte.model import Caller, EngineTrace, ForgetSelector, RecallQuery, RecallResult, RetainItem
from harness.certificates import certificates
from harness.serving import serving

ME = Caller()
COFFEE = RecallQuery("where is the coffee?", "notes")
ALL = ForgetSelector(scope="all")
GRANTS = [
    {"bank_id": "*", "principal": principal, "permissions": ["*"]}
    for principal in ("user:root", "user:ann", "service:near")
]


def secured(files: dict[str, Path], *principals: str, **sections: Any) -> dict[str, Any]:
    """Settings of a server that speaks TLS and answers nobody without a key: the principal's name."""
    keys = [
        {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "principal": name} for name in principals
    ]
    return {
        "server": {"tls_cert_file": str(files["server.pem"]), "tls_key_file": str(files["server.key"])},
        "auth": {"api_keys": keys},
        "access_control": {"enabled": True, "default_policy": "deny"},
        "access_grants": GRANTS,
        **sections,
    }


@dataclass
class Pair:
    """A server near and one far: who calls them, and the key by which the one calls the other."""

    near: RemoteBackend
    far: RemoteBackend
    key_id: str


@asynccontextmanager
async def pair(folder: Path, options: dict[str, Any] | None = None, **block: Any) -> AsyncIterator[Pair]:
    """The far one is the near one's engine, by TLS and a key made by call, unless the options say otherwise."""
    here, there = certificates(folder / "near"), certificates(folder / "far")
    async with serving(**secured(there, "user:root")) as far:
        root = RemoteBackend(far.address, api_key="user:root", tls=there["ca.pem"])
        made, secret = await root.call(ME, CreateApiKey("near", "service:near"))
        trusted = {"api_key": secret, "tls_roots_file": str(there["ca.pem"])}
        engine = {
            "provider": "astrocyte",
            "options": {"address": far.address, **(trusted if options is None else options)},
            "timeout_seconds": 10.0,
            "write_timeout_seconds": 10.0,
            **block,
        }
        async with serving(**secured(here, "user:ann", engines={"hq": engine})) as near:
            ann = RemoteBackend(near.address, api_key="user:ann", tls=here["ca.pem"])
            yield Pair(ann, root, made.key_id)
            await ann.close()
        await root.close()


def side(result: RecallResult) -> EngineTrace:
    assert result.trace is not None
    return next(one for one in result.trace.engines if one.engine == "hq")


async def test_memories_go_and_come_by_tls_and_keys(tmp_path: Path) -> None:
    async with pair(tmp_path, retain_target="both", require_both=True) as both:
        await both.far.call(ME, Retain("notes", RetainItem("The coffee machine is at headquarters.")))
        await both.near.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        found = await both.near.call(ME, Recall(COFFEE))
        assert {(hit.text, hit.engine) for hit in found.hits} == {
            ("The coffee machine is at headquarters.", "hq"),
            ("The coffee is in the kitchen.", ""),
        }
        copies = (await both.far.call(ME, ListMemories("notes"))).memories
        # Whose key it was, on behalf of whom: what was stored is the server's.
        assert [memory.principal for memory in copies if "kitchen" in memory.content] == ["service:near"]
        done = await both.near.call(ME, Forget("notes", ALL, compliance=True))
        assert (done.deleted_count, done.engines[0].deleted_count) == (1, 2)


async def untrusted(folder: Path) -> dict[str, Any]:
    return {"api_key": "user:root", "tls_roots_file": str(certificates(folder / "other")["ca.pem"])}


@pytest.mark.parametrize("options", ["another root", "plain text"])
async def test_a_server_that_cannot_be_trusted_is_named_and_told_nothing(tmp_path: Path, options: str) -> None:
    given = {} if options == "plain text" else await untrusted(tmp_path)
    async with pair(tmp_path, given, retain_target="both") as both:
        kept = await both.near.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        assert kept.warnings == ("engine: hq does not hold it yet (UNAVAILABLE)",)
        found = await both.near.call(ME, Recall(COFFEE))
        assert [hit.engine for hit in found.hits] == [""]
        assert (side(found).outcome, side(found).reason) == ("failed", "UNAVAILABLE")
        assert (await both.near.call(ME, GetBankStats("notes"))).waiting_copies == 1
        assert (await both.far.call(ME, ListBanks())).banks == ()
        (engine,) = await both.near.call(ME, ListEngines())
        assert (engine.healthy, engine.detail) == (False, "UNAVAILABLE")
        with pytest.raises(ProviderUnavailable):
            await both.near.call(ME, Forget("notes", ALL))


async def test_where_both_are_required_an_untrusted_one_refuses_the_call(tmp_path: Path) -> None:
    async with pair(tmp_path, await untrusted(tmp_path), retain_target="both", require_both=True) as both:
        await both.near.call(ME, CreateBank("notes"))
        with pytest.raises(ProviderUnavailable) as refused:
            await both.near.call(ME, Recall(COFFEE))
        assert refused.value.metadata["engine"] == "hq"
        with pytest.raises(ProviderUnavailable):
            await both.near.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))


@pytest.mark.parametrize("require_both", [False, True])
async def test_a_key_that_is_revoked_is_of_no_more_use(tmp_path: Path, *, require_both: bool) -> None:
    async with pair(tmp_path, retain_target="both", require_both=require_both) as both:
        await both.near.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        assert side(await both.near.call(ME, Recall(COFFEE))).outcome == "answered"
        await both.far.call(ME, RevokeApiKey(both.key_id))
        if require_both:
            with pytest.raises(ProviderUnavailable) as refused:
                await both.near.call(ME, Recall(COFFEE))
            assert refused.value.metadata["cause"] == "UNAUTHENTICATED"
        else:
            found = await both.near.call(ME, Recall(COFFEE))
            assert [hit.engine for hit in found.hits] == [""]
            assert (side(found).outcome, side(found).reason) == ("failed", "UNAUTHENTICATED")
        # What it copied there before is not acknowledged as forgotten.
        with pytest.raises(ProviderUnavailable):
            await both.near.call(ME, Forget("notes", ALL, compliance=True))
        assert len((await both.far.call(ME, ListMemories("notes"))).memories) == 1


async def test_neither_server_answers_without_a_key_or_without_tls(tmp_path: Path) -> None:
    files = certificates(tmp_path / "ca")
    async with serving(**secured(files, "user:root")) as served:
        for given, refusal in (({"tls": files["ca.pem"]}, AuthorizationError), ({"api_key": "user:root"}, Unavailable)):
            backend = RemoteBackend(served.address, **given)
            with pytest.raises(refusal):
                await backend.call(ME, ListBanks())
            await backend.close()
