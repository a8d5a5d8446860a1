"""Every RPC is held to a rate, a size and a number at once, by a table that knows all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import grpc
import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, LimitReached
from astrocyte.model import Caller
from astrocyte.server import ADMIN_SERVICE, MEMORY_SERVICE
from astrocyte.services.status import PUSHBACK_KEY
from calls import calls
from serving import Served, reason, serving, trailer

ME = Caller()
BANK = "family"
PATHS = {
    method.name: f"/{service.full_name}/{method.name}"
    for service in (MEMORY_SERVICE, ADMIN_SERVICE)
    for method in service.methods
}


class Held(NamedTuple):
    """What an RPC is held to: the places that it takes one of, and the rate that it draws from, if any."""

    places: str
    rate: str | None = None


TABLE: Mapping[str, Held] = {
    "Retain": Held("write", "retain"),
    "BatchRetain": Held("write", "retain"),
    "StreamRetain": Held("stream", "retain"),
    "UpdateMemory": Held("write", "retain"),
    "Forget": Held("write"),
    "UndeleteMemory": Held("write"),
    "Recall": Held("read", "recall"),
    "BatchRecall": Held("read", "recall"),
    "History": Held("read", "recall"),
    "Explain": Held("read", "recall"),
    "GetMemory": Held("read"),
    "ListMemories": Held("read"),
    "Reflect": Held("reflect", "reflect"),
    "StreamReflect": Held("reflect", "reflect"),
    "Watch": Held("stream"),
    **dict.fromkeys((method.name for method in ADMIN_SERVICE.methods), Held("admin")),
}
RATES = ("retain", "recall", "reflect")


def test_every_rpc_has_an_entry_and_every_entry_an_rpc() -> None:
    assert set(TABLE) == set(PATHS)
    assert set(calls()) == set(PATHS)


async def ask(served: Served, name: str, raw: bytes = b"") -> grpc.aio.AioRpcError | None:
    """How a call of any kind with this message fails, None if it answers; on the wire all kinds look alike."""

    async def messages() -> AsyncIterator[bytes]:
        yield raw

    stream: Any = served.channel.stream_stream(PATHS[name])
    call = stream(messages(), timeout=20)
    try:
        await asyncio.wait_for(call.read(), 20)
    except grpc.aio.AioRpcError as error:
        return error
    finally:
        call.cancel()
    return None


async def test_a_message_that_is_too_large_is_refused_by_every_rpc() -> None:
    async with serving(server={"max_message_bytes": 1_024}) as served:
        for name in PATHS:
            error = await ask(served, name, bytes(1_025))
            assert error is not None, name
            assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE"), name
            error = await ask(served, name, bytes(1_024))
            assert error is None or reason(error) != "MESSAGE_TOO_LARGE", name


async def test_a_call_takes_a_place_of_its_kind_and_of_no_other() -> None:
    async with serving() as served:
        admissions = {kind: rule.admission for kind, rule in served.server._rules.items()}
        assert {held.places for held in TABLE.values()} == set(admissions)
        for kind, admission in admissions.items():
            # As when as many run as may, and as many wait.
            admission._running += 2 * admission.limit
            for name, held in TABLE.items():
                error = await ask(served, name)
                refused = error is not None and reason(error) == "OVERLOADED"
                assert refused is (held.places == kind), name
                if error is not None and refused:
                    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                    assert trailer(error, PUSHBACK_KEY), name
            admission._running -= 2 * admission.limit


async def outcome_of(app: App, name: str) -> object:
    """What becomes of a call through the gate; a stream without end is given up."""
    try:
        async with asyncio.timeout(0.05 if name == "Watch" else 20):
            return await calls()[name](app.gate, ME, BANK)
    except (AstrocyteError, TimeoutError) as error:
        return error


@pytest.mark.parametrize("spent", RATES)
async def test_a_call_draws_from_its_rate_and_from_no_other(spent: str) -> None:
    limits = {f"{rate}_per_minute": 1 if rate == spent else 1_000 for rate in RATES}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "homeostasis": {"rate_limits": limits}}))
    await app.gate.create_bank(ME, BANK)
    await outcome_of(app, {"retain": "Retain", "recall": "Recall", "reflect": "Reflect"}[spent])
    # The bank goes with its call, which is the last one.
    for name in sorted(PATHS, key="DeleteBank".__eq__):
        outcome = await outcome_of(app, name)
        if TABLE[name].rate == spent:
            assert isinstance(outcome, LimitReached), name
            assert outcome.metadata["operation"] == spent
            assert 0 < outcome.retry_after <= 60
        else:
            assert not isinstance(outcome, LimitReached), name
    await app.close()


async def test_what_has_a_rate_counts_for_that_of_all_together() -> None:
    for name, held in TABLE.items():
        limits = {"global_per_minute": 1}
        app = App(Settings.from_mapping({"vector_store": "in_memory", "homeostasis": {"rate_limits": limits}}))
        await app.gate.create_bank(ME, BANK)
        first, second = await outcome_of(app, name), await outcome_of(app, name)
        assert not isinstance(first, LimitReached), name
        assert isinstance(second, LimitReached) is (held.rate is not None), name
        await app.close()
