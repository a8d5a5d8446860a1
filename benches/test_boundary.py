"""Where the time of one Recall goes, leg by leg, without the transport: 10,000 memories, text query, static embedder.

    python -m pytest -m bench benches/test_boundary.py

The legs are those of `services.servicer`, called as it calls them. `gate` is everything between decoding and
encoding; it runs on the event loop without waiting, so it is driven here without one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from astrocyte.api import LimitKind
from astrocyte.api.requests import CreateApiKey, GetBank, Recall, Retain, StreamRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import RecallRequest, bundled_embedder
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.policy.limits.rate_limits import Demand, Limits
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.services import convert
from astrocyte.services.authentication import authenticator
from astrocyte.services.convert import codec_of
from astrocyte.stores.records import Passage, Visibility
from astrocyte.v1 import memory_pb2
from benches.corpus import english_texts
from benches.machine import describe

pytestmark = pytest.mark.bench

ROWS = 10_000
WORDS = 16
QUERY_WORDS = 6
# Turns per conversation.
SESSION = 20
SEED = 20_250_112
BANK = "bench"
CALLER = Caller()
T = TypeVar("T")
# Enough for a median that does not move, few enough for a minute in all.
ROUNDS = 2_000


@dataclass(frozen=True)
class Product:
    """A filled application, and questions to it without end."""

    app: App
    queries: Iterator[str]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Ten thousand memories in a store on the disk."""
    settings = Settings.from_mapping({"data_dir": str(tmp_path_factory.mktemp("bench"))})
    texts = english_texts(ROWS, words=WORDS, seed=SEED)
    with asyncio.Runner() as runner:
        app = runner.run(_open(settings, texts))
        print("\n" + describe("apsw", "protobuf", rows=ROWS, words=WORDS, rounds=ROUNDS, seed=SEED))
        yield Product(app, itertools.cycle(english_texts(ROUNDS, words=QUERY_WORDS, seed=SEED + 1, numbered=False)))
        runner.run(app.close())


async def _open(settings: Settings, texts: list[str]) -> App:
    app = App(settings)
    items = [RetainItem(text, session_id=f"s{number // SESSION}") for number, text in enumerate(texts)]
    for first in range(0, ROWS, settings.limits.batch_items):
        await app.gate.call(CALLER, StreamRetain(BANK, items[first : first + settings.limits.batch_items]))
    # Loads the index.
    await app.gate.call(CALLER, Recall(RecallQuery("anything", BANK)))
    return app


def drive(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    raise AssertionError("it waited: the bank is beyond recall.inline_rows")


def test_decode(product: Product, benchmark: BenchmarkFixture) -> None:
    def decode() -> RecallQuery:
        query: RecallQuery = codec_of(RecallQuery, memory_pb2.RecallRequest).decode(
            memory_pb2.RecallRequest.FromString(raw)
        )
        return query

    raw = memory_pb2.RecallRequest(bank_id=BANK, query=next(product.queries)).SerializeToString()
    assert benchmark.pedantic(decode, rounds=ROUNDS, iterations=5).bank_id == BANK


def test_embed(product: Product, benchmark: BenchmarkFixture) -> None:
    embedder = bundled_embedder()
    vectors = benchmark.pedantic(lambda: embedder.embed([next(product.queries)]), rounds=ROUNDS, iterations=1)
    assert len(vectors[0]) == 4 * embedder.dimensions


def test_core_recall(product: Product, benchmark: BenchmarkFixture) -> None:
    embedder = bundled_embedder()
    bank = product.app.gate._registry.loaded(drive(product.app.gate.call(CALLER, GetBank(BANK))))
    assert bank is not None

    def request() -> tuple[tuple[RecallRequest], dict[str, object]]:
        query = next(product.queries)
        return (RecallRequest(text=query, vector=embedder.embed([query])[0], budget=32_768),), {}

    response = benchmark.pedantic(bank.core.recall, setup=request, rounds=ROUNDS)
    assert len(response.hits) == 10


def test_hydrate(product: Product, benchmark: BenchmarkFixture) -> None:
    app = product.app
    bank = drive(app.gate.call(CALLER, GetBank(BANK)))
    first = itertools.cycle(range(1, ROWS - 1_000))

    def passages() -> tuple[tuple[Any, ...], dict[str, object]]:
        start = next(first)
        return (bank, [Passage(start + 97 * offset, -1) for offset in range(10)], Visibility()), {}

    rows = benchmark.pedantic(app.storage.store.hydrate, setup=passages, rounds=ROUNDS)
    assert len(rows) == 10


def test_gate(product: Product, benchmark: BenchmarkFixture) -> None:
    gate = product.app.gate
    result = benchmark.pedantic(
        lambda: drive(gate.call(CALLER, Recall(RecallQuery(next(product.queries), BANK)))), rounds=ROUNDS, iterations=1
    )
    assert len(result.hits) == 10


def limited(limits: dict[str, Any] | None = None) -> Limits:
    """Limits as the settings give them, by default none."""
    settings = Settings.from_mapping({"homeostasis": {"rate_limits": limits or {}}})
    return Limits(settings, Overrides(settings), None)


@pytest.mark.parametrize("limits", [None, {"recall_per_minute": 10**9, "global_per_minute": 10**9}], ids=["off", "on"])
def test_limits(product: Product, benchmark: BenchmarkFixture, limits: dict[str, Any] | None) -> None:
    """Rates by bank and in all, as they are asked before a recall."""
    held = limited(limits)
    demands = (Demand(CALLER.tenant, BANK, LimitKind.RECALL),)
    benchmark.pedantic(lambda: drive(held.admit(demands)), rounds=ROUNDS, iterations=20)
    assert product.app.gate._policies.limits is not held


def test_degraded_mode(product: Product, benchmark: BenchmarkFixture) -> None:
    """The cost of the degraded modes in a successful recall, of which they keep nothing by default."""
    gate = product.app.gate
    bank = drive(gate.call(CALLER, GetBank(BANK)))
    query = RecallQuery(next(product.queries), BANK)
    result = drive(gate.call(CALLER, Recall(query)))
    escalation = gate._policies.escalation
    benchmark.pedantic(lambda: escalation.keep(bank, query, result, escalation.erasures), rounds=ROUNDS, iterations=20)
    assert not escalation._answers


def test_encode(product: Product, benchmark: BenchmarkFixture) -> None:
    result = drive(product.app.gate.call(CALLER, Recall(RecallQuery(next(product.queries), BANK))))
    raw = benchmark.pedantic(lambda: convert.encode_recall_result(result), rounds=ROUNDS, iterations=1)
    assert len(memory_pb2.RecallResponse.FromString(raw).hits) == 10


# Principals with a bank of their own; one agent may write in all of them.
GRANTED = 1_000
AGENT = Caller(principal="agent:bench")


@pytest.fixture(scope="module")
def guarded() -> Iterator[App]:
    """A bank under access control, with a thousand grants beside the one that matters."""
    grants = [{"bank_id": f"user-{i}", "principal": f"user:{i}", "permissions": ["*"]} for i in range(GRANTED)]
    grants.append({"bank_id": "*", "principal": "agent:*", "permissions": ["read", "write"]})
    control = {"enabled": True, "default_policy": "deny"}
    settings = {"vector_store": "in_memory", "access_control": control, "access_grants": grants}
    with asyncio.Runner() as runner:
        app = runner.run(_guarded(Settings.from_mapping(settings)))
        yield app
        runner.run(app.close())


async def _guarded(settings: Settings) -> App:
    app = App(settings)
    await app.gate.call(AGENT, Retain(BANK, RetainItem("one memory")))
    return app


def test_authenticate(guarded: App, benchmark: BenchmarkFixture) -> None:
    with asyncio.Runner() as runner:
        _, secret = runner.run(guarded.gate.call(Caller(operator=True), CreateApiKey("bench", AGENT.principal)))
    metadata = (("authorization", f"Bearer {secret}"), ("user-agent", "grpc"), ("x-request-id", "1"))
    # Uses are noted by the minute, on a loop; there is none here.
    guarded.gate.keys._noted_at = 2**63
    authenticate = authenticator(guarded.settings, guarded.gate.keys.caller)
    context = cast("Any", None)
    assert benchmark.pedantic(lambda: authenticate(metadata, context), rounds=ROUNDS, iterations=20) == AGENT


def test_access(guarded: App, benchmark: BenchmarkFixture) -> None:
    banks = guarded.gate._banks

    def passed() -> str:
        banks.require(AGENT, "Recall", BANK)
        return banks.handle(AGENT, "Recall", BANK).bank_id

    assert benchmark.pedantic(passed, rounds=ROUNDS, iterations=20) == BANK
