"""Every RPC is held to a rate, a size and a number at once, by a table that knows all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import grpc
import pytest

from astrocyte.api import ADMIN_SERVICE, RPCS, Concurrency, LimitKind, Rpc
from astrocyte.api.requests import CreateBank
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, LimitReached, NotFound, ValidationError
from astrocyte.model import Caller, NewEntityLink
from astrocyte.policy.limits.rate_limits import Limits
from astrocyte.services import interceptors
from astrocyte.services.admission import Admission
from astrocyte.services.status import PUSHBACK_KEY
from harness.calls import METHODS, ROWS, calls, request_of
from harness.serving import Served, reason, serving, trailer

ME = Caller()
BANK = "family"
PATHS = {name: f"/{method.containing_service.full_name}/{name}" for name, method in METHODS.items()}
# What makes one operation of each kind.
SPENDING = {LimitKind.RETAIN: "Retain", LimitKind.RECALL: "Recall", LimitKind.REFLECT: "Reflect"}


def test_every_rpc_has_an_entry_and_every_entry_an_rpc() -> None:
    assert {f"/{rpc.service}/{rpc.name}" for rpc in ROWS.values()} == set(PATHS.values())
    assert set(calls()) == set(PATHS)


def test_what_reads_and_what_writes_counts_for_a_rate() -> None:
    """So that the table cannot say that nothing does; what it says is held against the gate below."""
    for operation, name in SPENDING.items():
        assert ROWS[name].limit_kind is operation
    # Each of them counts apart.
    for names, kind in (
        ({"StreamRetain", "ExportGraph"}, Concurrency.STREAM),
        ({"Watch"}, Concurrency.WATCH),
        ({"WaitOperation"}, Concurrency.WAIT),
    ):
        assert names == {other for other, rpc in ROWS.items() if rpc.concurrency is kind}
    assert {name for name, rpc in ROWS.items() if rpc.concurrency is Concurrency.ADMIN} == {
        name for name, method in METHODS.items() if method.containing_service.full_name == ADMIN_SERVICE
    } - {"WaitOperation", "ExportBank", "ImportBank"} | {"RecanonicaliseAgentMemories"}
    assert {name for name, rpc in ROWS.items() if rpc.concurrency is Concurrency.ARCHIVE} == {
        "ExportBank",
        "ImportBank",
    }


async def ask(served: Served, name: str, raw: bytes = b"") -> grpc.aio.AioRpcError | None:
    """The error of a call of any kind with this message, None if it answers; on the wire all kinds look alike."""

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


async def sizes_hold() -> None:
    async with serving(server={"max_message_bytes": 1_024}) as served:
        for name in PATHS:
            error = await ask(served, name, bytes(1_025))
            assert error is not None, name
            assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE"), name
            error = await ask(served, name, bytes(1_024))
            assert error is None or reason(error) != "MESSAGE_TOO_LARGE", name


async def places_hold() -> None:
    async with serving() as served:
        admissions = {kind: rule.admission for kind, rule in served.server._rules.items()}
        assert {rpc.concurrency for rpc in ROWS.values()} == set(admissions)
        for kind, admission in admissions.items():
            # As when as many run, and wait, as may.
            admission._running += admission.places
            for name, rpc in ROWS.items():
                error = await ask(served, name)
                refused = error is not None and reason(error) == "OVERLOADED"
                assert refused is (rpc.concurrency is kind), name
                if error is not None and refused:
                    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                    assert trailer(error, PUSHBACK_KEY), name
            admission._running -= admission.places


async def outcome_of(app: App, name: str) -> object:
    """The outcome of a call through the gate; a stream without end is given up."""
    try:
        async with asyncio.timeout(0.05 if name == "Watch" else 20):
            return await calls()[name](app.gate, ME, BANK)
    except (AstrocyteError, TimeoutError) as error:
        return error


async def rates_hold(spent: LimitKind) -> None:
    limits = {f"{rate}_per_minute": 1 if rate is spent else 1_000 for rate in LimitKind}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "homeostasis": {"rate_limits": limits}}))
    await app.gate.call(ME, CreateBank(BANK))
    await outcome_of(app, SPENDING[spent])
    # The bank goes with its call, which is the last one.
    for name in sorted(PATHS, key="DeleteBank".__eq__):
        outcome = await outcome_of(app, name)
        # Of what belongs to no bank, the rate of all holds alone.
        if ROWS[name].limit_kind is spent and ROWS[name].bank:
            assert isinstance(outcome, LimitReached), name
            assert outcome.metadata["operation"] == spent
            assert 0 < outcome.retry_after <= 60
        else:
            assert not isinstance(outcome, LimitReached), name
    await app.close()


async def the_rate_of_all_holds() -> None:
    for name, rpc in ROWS.items():
        limits = {"global_per_minute": 1}
        app = App(Settings.from_mapping({"vector_store": "in_memory", "homeostasis": {"rate_limits": limits}}))
        await app.gate.call(ME, CreateBank(BANK))
        first, second = await outcome_of(app, name), await outcome_of(app, name)
        assert not isinstance(first, LimitReached), name
        assert isinstance(second, LimitReached) is (rpc.limit_kind is not None), name
        await app.close()


def beyond(rpc: Rpc, number: int) -> Any:
    """A request with so many elements, or for so many."""
    request = request_of(rpc, BANK)
    many = [f"mem_{index:032x}" for index in range(number)]
    match rpc.size:
        case "batch_items":
            (name,) = rpc.fields & {"items", "links", "operations", "queries", "questions"}
            links = [NewEntityLink("person:a", entity, "knows") for entity in many]
            return replace(request, **{name: links if name == "links" else getattr(request, name) * number})
        case "page_size" | "max_results" if rpc.fields & {"page_size", "max_results", "limit"}:
            (name,) = rpc.fields & {"page_size", "max_results", "limit"}
            return replace(request, **{name: number})
        case "max_results":
            return replace(request, query=replace(request.query, max_results=number))
        case "explained_ids":
            return replace(request, query=replace(request.query, memory_ids=tuple(many)))
        case _ if "selector" in rpc.fields:
            return replace(request, selector=replace(request.selector, memory_ids=tuple(many)))
        case _:
            (name,) = rpc.fields & {"memory_ids", "evidence", "source_ids"}
            return replace(request, **{name: many})


@pytest.mark.parametrize("rpc", [rpc for rpc in RPCS.values() if rpc.size], ids=lambda rpc: rpc.name)
async def test_a_request_of_too_many_elements_is_refused_by_the_limit_of_its_row(rpc: Rpc) -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "limits": {str(rpc.size): 10}}))
    await app.gate.call(ME, CreateBank(BANK))
    with pytest.raises(ValidationError, match="10"):
        await app.gate.call(ME, beyond(rpc, 11))
    with suppress(NotFound):
        await app.gate.call(ME, beyond(rpc, 10))
    await app.close()


async def test_a_message_that_is_too_large_is_refused_by_every_rpc() -> None:
    await sizes_hold()


async def test_a_call_takes_a_place_of_its_kind_and_of_no_other() -> None:
    await places_hold()


@pytest.mark.parametrize("spent", LimitKind)
async def test_a_call_draws_from_its_rate_and_from_no_other(spent: LimitKind) -> None:
    await rates_hold(spent)


async def test_what_has_a_rate_counts_for_that_of_all_together() -> None:
    await the_rate_of_all_holds()


def without_sizes(patch: pytest.MonkeyPatch) -> None:
    parser = interceptors._parser
    patch.setattr(interceptors, "_parser", lambda method, _: parser(method, 1 << 30))


def without_places(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "full", False)
    patch.setattr(Admission, "try_enter", lambda _: True)
    patch.setattr(Admission, "leave", lambda _: None)


def without_rates(patch: pytest.MonkeyPatch) -> None:
    async def admit(*_: object) -> None:
        pass

    patch.setattr(Limits, "admit", admit)


@pytest.mark.parametrize(
    ("switch_off", "hold", "first"),
    [
        (without_sizes, sizes_hold, "Retain"),
        (without_places, places_hold, "GetMemory"),
        *((without_rates, lambda spent=spent: rates_hold(spent), name) for spent, name in SPENDING.items()),
        (without_rates, the_rate_of_all_holds, "Retain"),
    ],
)
async def test_without_the_guard_the_tests_fail(
    monkeypatch: pytest.MonkeyPatch,
    switch_off: Callable[[pytest.MonkeyPatch], None],
    hold: Callable[[], Awaitable[None]],
    first: str,
) -> None:
    """The control: each of the checks above, with what it is about taken away."""
    switch_off(monkeypatch)
    with pytest.raises(AssertionError, match=first):
        await hold()
