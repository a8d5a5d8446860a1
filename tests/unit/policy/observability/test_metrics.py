"""Metrics: the promised names and labels, a bounded number of series, and nothing in them that a caller wrote."""

import asyncio
import logging
import re
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    History,
    Recall,
    RecanonicaliseAgentMemories,
    Reflect,
    Remember,
    Retain,
    ReviewTerm,
    StreamReflect,
    StreamRetain,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, BankNotFound, ConfigError, LimitReached
from astrocyte.model import (
    BankIndexStats,
    Caller,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    RetentionAction,
    TermDecision,
)
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.policy import events
from astrocyte.policy.observability.cardinality import OTHER, BankLabels
from astrocyte.policy.observability.gauges import Levels
from astrocyte.providers.hybrid import HybridEngineProvider
from astrocyte.stores.queue import QueuedItem
from harness.calls import calls
from harness.engines import Shelf

ME = Caller()
# Name, kind and labels, as documented.
PROMISED = {
    "astrocyte_retain": ("counter", {"bank_id", "provider", "status"}),
    "astrocyte_recall": ("counter", {"bank_id", "provider", "status"}),
    "astrocyte_reflect": ("counter", {"bank_id", "provider", "fallback"}),
    "astrocyte_retain_duration_seconds": ("histogram", {"bank_id", "provider"}),
    "astrocyte_recall_duration_seconds": ("histogram", {"bank_id", "provider"}),
    "astrocyte_pii_detected": ("counter", {"bank_id", "action"}),
    "astrocyte_dedup": ("counter", {"bank_id", "action"}),
    "astrocyte_circuit_breaker_state": ("gauge", {"provider"}),
    "astrocyte_engine_recall": ("counter", {"engine", "outcome"}),
    "astrocyte_engine_recall_seconds": ("counter", {"engine"}),
    # Without a source they have no series, and so no labels.
    "astrocyte_ingest_messages": ("counter", set()),
    "astrocyte_ingest_healthy": ("gauge", set()),
    "astrocyte_ingest_lag": ("gauge", set()),
    "astrocyte_rate_limit_rejections": ("counter", {"bank_id", "operation"}),
    "astrocyte_token_budget_truncations": ("counter", {"bank_id", "operation"}),
    "astrocyte_recall_zero_hits": ("counter", {"bank_id"}),
    "astrocyte_agent_memory_recall_zero_hits": ("counter", {"agent_id", "query_topic"}),
    "astrocyte_agent_memory_silent": ("counter", set()),
    # Without a sample as long as no agent remembers anything.
    "astrocyte_canonical_terms_proposed": ("gauge", set()),
    "astrocyte_agent_memory_noncanonical_ratio": ("gauge", set()),
    "astrocyte_build_info": ("gauge", {"version", "core_version", "simd", "schema_version"}),
    "astrocyte_hook_failures": ("counter", {"hook", "outcome"}),
    "astrocyte_queue_depth": ("gauge", {"queue"}),
    # Without a sample as long as no engine keeps copies.
    "astrocyte_engine_behind_seconds": ("gauge", set()),
    # Without a sample as long as no row is damaged.
    "astrocyte_damaged_rows": ("gauge", set()),
    "astrocyte_recall_floor": ("gauge", set()),
    "astrocyte_lifecycle_memories": ("counter", {"bank_id", "action"}),
    "astrocyte_bank_health_score": ("gauge", {"bank_id"}),
    "astrocyte_bank_health_issues": ("gauge", {"issue"}),
    # Without a sample as long as there is no graph.
    "astrocyte_sampled_recall": ("gauge", set()),
    "astrocyte_index_tier_rows": ("gauge", {"tier"}),
    "astrocyte_index_mapped_bytes": ("gauge", set()),
    "astrocyte_index_resident_bytes": ("gauge", set()),
}


def observed(most: int = 200, max_series: int = 2_000, **sections: Any) -> App:
    watched = {"prometheus_enabled": True, "metrics_port": 0, "max_bank_labels": most, "max_series": max_series}
    return App(Settings.from_mapping({"vector_store": "in_memory", "observability": watched, **sections}))


def value(app: App, name: str, **labels: str) -> float:
    assert app.telemetry.metrics
    return app.telemetry.metrics.registry.get_sample_value(name, labels) or 0.0


def fetch(address: str) -> bytes:
    with urllib.request.urlopen(address) as response:  # noqa: S310 - our own address
        body: bytes = response.read()
    return body


def scraped(app: App) -> str:
    assert app.telemetry.metrics
    return generate_latest(app.telemetry.metrics.registry).decode()


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = observed()
    yield app
    await app.close()


def test_without_the_setting_the_gate_is_the_plain_one() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    assert app.backend is app.gate
    assert app.telemetry.metrics is None


async def test_calls_are_counted_with_their_outcome(app: App) -> None:
    gate = app.backend
    await gate.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    await gate.call(ME, BatchRetain("family", [RetainItem("Mara plays the oboe."), RetainItem("Ivo paints boats.")]))
    await gate.call(ME, StreamRetain("family", [RetainItem("Ada keeps bees."), RetainItem("")]))
    await gate.call(ME, Recall(RecallQuery("oboe", "family")))
    await gate.call(ME, BatchRecall([RecallQuery("oboe", "family", max_tokens=1)]))
    await gate.call(ME, History(RecallQuery("oboe", "family", as_of=datetime(2020, 1, 1, tzinfo=UTC))))
    with pytest.raises(BankNotFound):
        await gate.call(ME, Recall(RecallQuery("oboe", "missing")))
    family = {"bank_id": "family", "provider": "in_memory"}
    assert value(app, "astrocyte_retain_total", **family, status="created") == 3
    assert value(app, "astrocyte_retain_total", **family, status="skipped") == 1
    assert value(app, "astrocyte_retain_total", **family, status="error") == 1
    assert value(app, "astrocyte_dedup_total", bank_id="family", action="skip") == 1
    assert value(app, "astrocyte_recall_total", **family, status="ok") == 3
    assert value(app, "astrocyte_recall_total", bank_id=OTHER, provider="in_memory", status="error") == 1
    assert value(app, "astrocyte_recall_zero_hits_total", bank_id="family") == 1
    assert value(app, "astrocyte_token_budget_truncations_total", bank_id="family", operation="recall") == 1
    assert value(app, "astrocyte_recall_duration_seconds_count", **family) == 2
    assert value(app, "astrocyte_retain_duration_seconds_count", **family) == 3


async def test_counting_an_answer_does_not_make_its_hits(app: App) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    hits = (await app.backend.call(ME, Recall(RecallQuery("oboe", "family")))).hits
    assert isinstance(hits, FoundHits)
    assert hits._made is None
    assert bool(hits) is (len(hits) == 1)


async def test_reflects_are_counted_whole_and_in_pieces(app: App) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    result = await app.backend.call(ME, Reflect(ReflectQuery("What does Mara play?", "family")))
    async for _ in app.backend.stream(ME, StreamReflect(ReflectQuery("What does Mara play?", "family"))):
        pass
    fallback = "true" if result.fallback_used else "false"
    assert value(app, "astrocyte_reflect_total", bank_id="family", provider="in_memory", fallback=fallback) == 2


async def test_policy_events_are_counted_until_the_end() -> None:
    app = observed(homeostasis={"rate_limits": {"recall_per_minute": 1}})
    await app.backend.call(ME, Retain("family", RetainItem("Write to mara@example.org.")))
    await app.backend.call(ME, Retain("family", RetainItem("Write to ivo@example.org instead.")))
    await app.backend.call(ME, Recall(RecallQuery("oboe", "family")))
    with pytest.raises(LimitReached):
        await app.backend.call(ME, Recall(RecallQuery("oboe", "family")))
    assert value(app, "astrocyte_rate_limit_rejections_total", bank_id="family", operation="recall") == 1
    assert value(app, "astrocyte_pii_detected_total", bank_id="family", action="redact") >= 1
    for event, state in (("circuit_opened", 1), ("circuit_half_open", 2), ("circuit_closed", 0)):
        events.emit(event, provider="openai", wait_seconds=0)
        assert value(app, "astrocyte_circuit_breaker_state", provider="openai") == state
    await app.close()
    events.emit("circuit_opened", provider="openai", wait_seconds=0)
    assert value(app, "astrocyte_circuit_breaker_state", provider="openai") == 0


async def test_names_kinds_and_labels_are_the_promised_ones(app: App) -> None:
    """By what a scrape of a busy server shows."""
    metrics = app.telemetry.metrics
    assert metrics
    family = await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    await app.backend.call(ME, Recall(RecallQuery("oboe", "family")))
    await app.backend.call(ME, Reflect(ReflectQuery("oboe", "family")))
    metrics.recalled("family", RecallResult((), 0, truncated=True), "recall")
    metrics.retained("family", replace(family, deduplicated=True))
    metrics.engine_recalled("proxy:tickets", "answered", 0.1)
    events.emit("circuit_opened", provider="openai", wait_seconds=1)
    events.emit("rate_limited", bank_id="family", operation="recall")
    events.emit("lifecycle", bank_id="family", action="unused", count=1)
    events.emit("pii_redacted", bank_id="family", action="redact", count=1)
    events.emit("hook_failed", hook="on_retain", error="ValueError")
    events.emit("agent_memory_zero_hits", agent_id="agent:atlas", topic="")
    found = {
        metric.name: (metric.type, {name for sample in metric.samples for name in sample.labels} - {"le"})
        for metric in metrics.registry.collect()
    }
    assert found == PROMISED


async def test_engines_are_counted_by_few_labels(app: App) -> None:
    assert app.telemetry.metrics is not None
    for number in range(25):
        app.telemetry.metrics.engine_recalled(f"proxy:{number}", "answered", 1.0)
    name = "astrocyte_engine_recall_total"
    assert value(app, name, engine="proxy:19", outcome="answered") == 1
    assert value(app, name, engine="proxy:20", outcome="answered") == 0
    assert value(app, name, engine=OTHER, outcome="answered") == 5


async def test_silences_of_agents_are_counted_by_few_labels(app: App) -> None:
    for number in range(150):
        events.emit("agent_memory_zero_hits", agent_id=f"agent:{number}", topic="deploys")
    events.emit("agent_memory_silent", agent_id="agent:1", topic="deploys")
    name = "astrocyte_agent_memory_recall_zero_hits_total"
    assert value(app, name, agent_id="agent:99", query_topic="deploys") == 1
    assert value(app, name, agent_id="agent:100", query_topic="deploys") == 0
    assert value(app, name, agent_id=OTHER, query_topic=OTHER) == 50
    assert value(app, "astrocyte_agent_memory_silent_total") == 1


async def test_the_drift_of_agents_memories_from_the_vocabulary_is_read(app: App) -> None:
    assert "\nastrocyte_agent_memory_noncanonical_ratio" not in scraped(app)
    await app.backend.call(ME, Remember("release window", "Deploys happen on Tuesdays."))
    first = await app.backend.call(ME, Remember("staff canteen", "Lunch costs six euros."))
    assert value(app, "astrocyte_canonical_terms_proposed") == 2
    assert value(app, "astrocyte_agent_memory_noncanonical_ratio") == 1.0
    await app.backend.call(ME, ReviewTerm(first.proposed_term_id or "", TermDecision.APPROVE))
    await app.backend.call(ME, RecanonicaliseAgentMemories())
    assert value(app, "astrocyte_canonical_terms_proposed") == 1
    assert value(app, "astrocyte_agent_memory_noncanonical_ratio") == 0.5


async def test_what_waits_is_read_when_somebody_asks(app: App) -> None:
    bank = await app.backend.call(ME, CreateBank("family"))
    assert value(app, "astrocyte_queue_depth", queue="retry") == 0
    waiting = [QueuedItem(f"mem_{number:032x}", "me", RetainItem("later")) for number in range(3)]
    await app.storage.store.enqueue(bank, waiting, limit=10)
    assert value(app, "astrocyte_queue_depth", queue="retry") == 3
    assert value(app, "astrocyte_queue_depth", queue="writes") == 0
    await app.close()
    assert "astrocyte_build_info" in scraped(app)
    assert value(app, "astrocyte_recall_floor") == app.settings.index.recall_floor


def test_the_graphs_that_find_least_are_told_of(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app.telemetry.metrics
    name = "astrocyte_sampled_recall"
    registry = app.telemetry.metrics.registry
    shares = [BankIndexStats(5, 0, 0, 0, 0, 0, 0, 0, sampled_recall=share) for share in (1.0, None, 0.9)]
    monkeypatch.setattr(IndexRegistry, "statistics", lambda _, rows=0: shares if rows == 5 else [])
    assert registry.get_sample_value(name) is None
    graphs = app.settings.index.model_copy(update={"graph_rows": 5})
    levels = Levels(app.storage.store, app.storage.store, app.gate._registry, graphs, dict)
    (sampled,) = [metric for metric in levels.collect() if metric.name == name]
    assert [sample.value for sample in sampled.samples] == [0.9]


def test_the_first_banks_have_labels_and_inventions_take_no_place() -> None:
    labels = BankLabels(2)
    assert [labels.known("x"), labels.of("a"), labels.of("b"), labels.of("c")] == [OTHER, "a", "b", OTHER]
    assert [labels.known("a"), labels.known("c")] == ["a", OTHER]
    assert BankLabels(0).of("a") == ""


def busy(app: App, banks: int) -> int:
    """Everything that can be counted, for so many banks; how many series that makes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    metrics = app.telemetry.metrics
    assert metrics
    cut = RecallResult((), 0, truncated=True)
    for number in range(banks):
        bank = f"bank-{number}"
        for action in (*RetentionAction, "tagged"):
            metrics.retained(bank, RetainResult(stored=True, retention_action=str(action), deduplicated=True))
        metrics.retained(bank, RetainResult(stored=True, was_update=True))
        metrics.retain_took(bank, 0.1)
        metrics.retain_failed(bank)
        for operation in ("recall", "history"):
            metrics.recalled(bank, cut, operation)
        metrics.recall_took(bank, 0.1)
        metrics.recall_failed(f"invented-{number}")
        metrics.recall_failed(bank)
        for fallback in (True, False):
            metrics.reflected(bank, ReflectResult("", fallback_used=fallback))
        for operation in ("retain", "recall", "reflect"):
            events.emit("rate_limited", bank_id=bank, operation=operation)
        for action in ("redact", "reject", "warn"):
            events.emit("pii_redacted", bank_id=bank, action=action, count=1)
    for provider in ("openai", "anthropic"):
        events.emit("circuit_opened", provider=provider, wait_seconds=1)
    return sum(not line.startswith("#") for line in scraped(app).splitlines())


@pytest.mark.parametrize("banks", [1, 60, 200, 10_000])
async def test_series_stay_under_two_thousand_however_many_banks_there_are(app: App, banks: int) -> None:
    assert busy(app, banks) < 2_000
    answered = re.findall(r'^astrocyte_recall_total{.*status="ok"} (\S+)$', scraped(app), re.MULTILINE)
    # What finds no room is counted all the same.
    assert sum(map(float, answered)) == 2 * banks


async def test_without_a_bound_on_series_there_are_more() -> None:
    app = observed(200, max_series=1_000_000)
    assert busy(app, 200) > 2_000
    await app.close()


async def test_nothing_that_a_caller_wrote_is_in_a_metric(app: App) -> None:
    kept = await app.backend.call(
        ME, Retain("family", RetainItem("canary sings", tags=("canarytag",), source="canarysource"))
    )
    for name, call in calls(kept.memory_id or "").items():
        for bank in ("family", "canarybank-missing", "canary bank, refused"):
            if name in {"CreateBank", "Retain", "BatchRetain", "StreamRetain", "Watch", "DeleteBank"}:
                continue
            try:
                await call(app.backend, ME, bank)
            except AstrocyteError:
                continue
    with pytest.raises(AstrocyteError):
        await app.backend.call(ME, Retain("family", RetainItem("canary" * 100_000)))
    assert "canary" not in scraped(app)


async def test_they_are_served_on_a_port_of_their_own_until_the_end(app: App) -> None:
    assert app.telemetry.metrics
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    address = f"http://127.0.0.1:{app.telemetry.metrics.serve()}/metrics"
    assert b"astrocyte_build_info{" in await asyncio.to_thread(fetch, address)
    await app.close()
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(fetch, address)


async def test_a_port_that_is_taken_is_a_wrong_setting(app: App) -> None:
    assert app.telemetry.metrics
    port = app.telemetry.metrics.serve()
    other = observed(observability={"prometheus_enabled": True, "metrics_port": port})
    assert other.telemetry.metrics
    with pytest.raises(ConfigError, match="cannot serve metrics"):
        other.telemetry.metrics.serve()
    await other.close()


async def test_an_engine_that_is_behind_is_told_of() -> None:
    shelf = Shelf(failure=RuntimeError())
    app = observed()
    app.providers.engines.attach(HybridEngineProvider(shelf, name="shelf", options={"retain_target": "both"}))
    try:
        assert value(app, "astrocyte_engine_behind_seconds", engine="shelf") == 0
        await app.backend.call(ME, Retain("family", RetainItem("tea")))
        assert value(app, "astrocyte_queue_depth", queue="engine:shelf") == 1
        assert value(app, "astrocyte_engine_behind_seconds", engine="shelf") >= 0
        shelf.failure = None
        await app.backend.call(ME, Retain("family", RetainItem("milk")))
        assert value(app, "astrocyte_queue_depth", queue="engine:shelf") == 0
    finally:
        await app.close()
