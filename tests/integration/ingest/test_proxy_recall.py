"""Proxy sources in recalls: two real servers over REST, and services that misbehave."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import generate_latest

from astrocyte.api.requests import ListEngines, Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.sources.proxies import as_engine
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, EngineTrace, MultiBankStrategy, RecallQuery, RecallResult, ReflectQuery, RetainItem
from astrocyte.policy.observability.metrics import Metrics
from astrocyte.providers.proxy.engine import ProxyEngine
from external.proxied import Names, Network, reply, source
from harness.engines import Shelf, hybrid_app
from harness.serving import Served, serving

ME = Caller()
COFFEE = RecallQuery("where is the coffee?", "notes", include_trace=True)
LOOPBACK = ["127.0.0.0/8"]


def proxy(url: str, **values: Any) -> dict[str, Any]:
    """Settings of a source on this machine."""
    # A loaded machine is slower than the default allows.
    return {"type": "proxy", "url": url, "allow_networks": LOOPBACK, "recall_timeout_seconds": 30, **values}


def side(result: RecallResult, name: str = "proxy:hq") -> EngineTrace:
    assert result.trace is not None
    return next(one for one in result.trace.engines if one.engine == name)


@asynccontextmanager
async def with_gateway(**sections: Any) -> AsyncIterator[tuple[Served, str]]:
    """A server, and the address of its recall over REST."""
    async with serving(**{"gateway": {"port": 0}, **sections}) as served:
        assert served.server.http_address is not None
        yield served, f"{served.server.http_address}/v1/recall"


def app_with(network: Network, **values: Any) -> App:
    """An application in memory whose only source is on a network of a test."""
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    attach(app, network, **values)
    return app


def attach(app: App, network: Network, name: str = "hq", **values: Any) -> None:
    settings = source(**{"recall_timeout_seconds": 30, **values})
    engine = ProxyEngine(name, settings, None, resolver=Names(), transport=network)
    app.providers.engines.add(f"proxy:{name}", "proxy", as_engine(settings), engine, is_source=True)


async def test_two_servers_federate_over_rest() -> None:
    async with with_gateway() as (there, url):
        item = RetainItem(
            "The coffee machine is on the shelf.", tags=("kitchen",), metadata={"floor": 2}, fact_type="world"
        )
        kept = await there.backend.call(ME, Retain("notes", item))
        async with serving(sources={"hq": proxy(url)}) as here:
            await here.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.", tags=("kitchen",))))
            result = await here.backend.call(ME, Recall(replace(COFFEE, tags=("kitchen",))))
            assert {(hit.text, hit.engine) for hit in result.hits} == {
                ("The coffee is in the kitchen.", ""),
                ("The coffee machine is on the shelf.", "proxy:hq"),
            }
            (theirs,) = [hit for hit in result.hits if hit.engine]
            assert (theirs.memory_id, theirs.tags, theirs.fact_type) == (kept.memory_id, ("kitchen",), "world")
            assert theirs.metadata == {"floor": 2}
            assert theirs.retained_at is not None
            assert [arm.arm for arm in theirs.arms] == ["engine:proxy:hq"]
            assert (side(result).outcome, side(result).found, side(result).kept) == ("answered", 1, 1)
            # A filter that the source does not know is applied to what it brings.
            result = await here.backend.call(ME, Recall(replace(COFFEE, tags=("garden",))))
            assert [hit.text for hit in result.hits] == []
            assert (side(result).found, side(result).dropped) == (1, 1)
            (listed,) = await here.backend.call(ME, ListEngines())
            assert (listed.name, listed.provider, listed.read_only, listed.circuit) == (
                "proxy:hq",
                "proxy",
                True,
                "closed",
            )


async def test_a_bank_that_is_not_there_is_a_refusal_and_leaves_the_circuit_closed() -> None:
    async with with_gateway() as (_, url), serving(sources={"hq": proxy(url)}) as here:
        await here.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        for _ in range(6):
            result = await here.backend.call(ME, Recall(COFFEE))
            assert (len(result.hits), side(result).outcome) == (1, "failed")
        (listed,) = await here.backend.call(ME, ListEngines())
        assert listed.circuit == "closed"


async def test_two_servers_that_are_each_others_source_go_in_no_circle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    first_source = {"hq": proxy(f"http://127.0.0.1:{port}/v1/recall")}
    async with (
        with_gateway(sources=first_source) as (first, url),
        with_gateway(sources={"hq": proxy(url)}, gateway={"port": port}) as (second, _),
    ):
        for one in (first, second):
            await one.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        async with asyncio.timeout(30):
            result = await first.backend.call(ME, Recall(COFFEE))
        assert side(result).outcome == "answered"


async def test_a_source_that_is_not_there_is_named_and_opens_its_circuit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    async with serving(sources={"hq": proxy(f"http://127.0.0.1:{port}/a")}) as here:
        await here.backend.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
        outcomes = []
        for _ in range(7):
            result = await here.backend.call(ME, Recall(replace(COFFEE, include_trace=False)))
            assert len(result.hits) == 1
            outcomes.append((side(result).outcome, side(result).reason))
        assert outcomes[0] == ("failed", "PROVIDER_UNAVAILABLE")
        assert outcomes[-1][1] == "CIRCUIT_OPEN"


async def test_a_source_that_hangs_is_late() -> None:
    class Hanging(Network):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return await asyncio.Event().wait()  # type: ignore[return-value]  # never

    app = app_with(Hanging(lambda _: reply({})), recall_timeout_seconds=0.05)
    await app.gate.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
    async with asyncio.timeout(30):
        result = await app.gate.call(ME, Recall(COFFEE))
    assert len(result.hits) == 1
    assert side(result).outcome == "late"
    await app.close()


async def test_what_a_source_says_is_screened_like_the_answer_of_an_engine() -> None:
    rows = [
        {"text": "Mail ann@example.org about the coffee.", "score": 9},
        {"text": "x" * 2_000_000, "score": 8},
        {"text": "The coffee is cold.", "score": 7, "bank_id": "secrets", "metadata": {"ssn": "a", "floor": 1}},
        {"score": 6},
    ]
    settings = {"barriers": {"pii": {"mode": "regex", "action": "redact"}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
    attach(app, Network(lambda _: reply({"hits": rows})), max_response_bytes=16_777_216)
    await app.gate.call(ME, Retain("notes", RetainItem("The tea is hot.")))
    result = await app.gate.call(ME, Recall(COFFEE))
    theirs = {hit.text: hit for hit in result.hits if hit.engine}
    assert set(theirs) == {"Mail [EMAIL_REDACTED] about the coffee.", "The coffee is cold."}
    assert {hit.bank_id for hit in theirs.values()} == {"notes"}
    assert (side(result).found, side(result).dropped) == (3, 1)
    await app.close()


async def test_the_question_goes_out_as_the_barrier_leaves_it() -> None:
    network = Network(lambda _: reply({"hits": []}))
    app = App(Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": {"mode": "regex"}}}))
    attach(app, network)
    await app.gate.call(ME, Retain("notes", RetainItem("The tea is hot.")))
    await app.gate.call(ME, Recall(replace(COFFEE, query="what did ann@example.org drink?")))
    assert b"ann@example.org" not in network.requests[0].content
    await app.close()


async def test_sources_beside_an_engine_and_each_other() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf)
    shelf.put("The coffee grinder is on the shelf.")
    for name, text in (("a", "The coffee cup is red."), ("b", "The coffee bean is brown.")):
        attach(app, Network(lambda _, text=text: reply({"hits": [{"text": text}]})), name, banks=["note*"])  # type: ignore[misc]
    attach(app, Network(lambda _: reply({"hits": [{"text": "The coffee is elsewhere."}]})), "c", banks=["other"])
    attach(app, Network(lambda _: reply({"hits": []})), "d", weight=0)
    await app.gate.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
    result = await app.gate.call(ME, Recall(COFFEE))
    assert {hit.engine for hit in result.hits} == {"", "shelf", "proxy:a", "proxy:b"}
    assert [(one.engine, one.outcome, one.reason) for one in result.trace.engines] == [  # type: ignore[union-attr]
        ("pipeline", "answered", ""),
        ("shelf", "answered", ""),
        ("proxy:a", "answered", ""),
        ("proxy:b", "answered", ""),
        ("proxy:d", "not_asked", "weight"),
    ]
    assert len({hit.fused_score for hit in result.hits}) == 1
    await app.close()


@pytest.mark.parametrize("mode", ["parallel", "cascade", "first_match"])
async def test_recalls_of_several_banks(mode: str) -> None:
    network = Network(lambda request: reply({"hits": [{"text": f"coffee {request.content.decode()[-40:]}"}]}))
    app = app_with(network, banks=["notes", "plans"])
    for bank in ("notes", "plans"):
        await app.gate.call(ME, Retain(bank, RetainItem(f"The coffee of {bank}.")))
    strategy = MultiBankStrategy(mode=mode)
    query = replace(COFFEE, bank_id="", banks=("notes", "plans"), strategy=strategy)
    result = await app.gate.call(ME, Recall(query))
    asked = {one.bank_id for one in result.trace.engines if one.outcome == "answered" and one.bank_id}  # type: ignore[union-attr]
    assert asked == ({"notes", "plans"} if mode == "parallel" else asked)
    assert asked
    assert {hit.bank_id for hit in result.hits if hit.engine} == asked
    await app.close()


async def test_retains_and_reflects_are_the_pipelines(tmp_path: Path) -> None:
    network = Network(lambda _: reply({"hits": [{"text": "The coffee is cold."}]}))
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    attach(app, network)
    await app.gate.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
    assert network.requests == []
    answer = await app.gate.call(ME, Reflect(ReflectQuery("where is the coffee?", "notes")))
    assert "kitchen" in answer.answer
    # The recall of the reflect asked the source.
    assert len(network.requests) == 1
    await app.close()


async def test_metrics_name_the_source() -> None:
    watched = {"prometheus_enabled": True, "metrics_port": 0}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "observability": watched}))
    network = Network(lambda _: reply({"hits": []}))
    attach(app, network)
    await app.gate.call(ME, Retain("notes", RetainItem("The coffee is in the kitchen.")))
    await app.gate.call(ME, Recall(COFFEE))
    network.handler = lambda _: reply({}, 500)
    await app.gate.call(ME, Recall(COFFEE))
    assert isinstance(app.telemetry.metrics, Metrics)
    told = generate_latest(app.telemetry.metrics.registry).decode()
    for outcome in ("answered", "failed"):
        assert f'astrocyte_engine_recall_total{{engine="proxy:hq",outcome="{outcome}"}} 1.0' in told
    assert 'astrocyte_engine_recall_seconds_total{engine="proxy:hq"}' in told
    await app.close()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"url": "ftp://a.example/"}, "expected an address with http"),
        ({"url": "https://a.example/", "tls_roots_file": "/none"}, "tls_roots_file"),
        ({"url": "https://a.example/", "bank": ["a"]}, "did you mean sources.hq.banks"),
        (
            {"url": "https://a.example/", "auth": {"type": "bearer", "tokens": "a"}},
            "did you mean sources.hq.auth.token",
        ),
        (
            {"url": "https://a.example/", "auth": {"type": "bearer", "token": ""}},
            r"sources\.hq\.auth\.token: .* at least",
        ),
        ({"url": "https://a.example/", "auth": {"type": "basic"}}, "oauth2_refresh_token"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        App(Settings.from_mapping({"vector_store": "in_memory", "sources": {"hq": {"type": "proxy", **values}}}))
