"""Metrics in Prometheus's format, in a registry of their own; docs/observability.md promises their names and labels.

Labels are ids of banks and of agents and canonical terms, bounded in number, names of providers, and words of ours:
never what a caller wrote.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from wsgiref.simple_server import WSGIServer

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from astrocyte.config import ObservabilitySettings
from astrocyte.errors import ConfigError
from astrocyte.model import RecallResult, ReflectResult, RetainResult, ServerInfo
from astrocyte.policy import events
from astrocyte.policy.observability.cardinality import (
    BESIDE_BUCKETS,
    OTHER,
    UNBOUND,
    BankLabels,
    Family,
    PlainRegistry,
    Room,
)
from astrocyte.policy.observability.gauges import HealthLevels, Levels
from astrocyte.policy.observability.index_levels import IndexLevels
from astrocyte.policy.observability.source_levels import SourceLevels
from astrocyte.policy.observability.vocabulary_levels import VocabularyLevels
from astrocyte.policy.quality.bank_activity import BankActivity

# From a recall of a small bank to a retain behind a slow embedder.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
HOOK_EVENTS = {"hook_failed": "failed", "hook_events_lost": "lost"}
# Pairs of an agent and a canonical topic with a series of their own; few, because `max_series` does not count them.
MOST_SILENCES = 100
# Engines and sources with series of their own, for the same reason.
MOST_ENGINES = 20
BREAKER_STATES = {"circuit_closed": 0, "circuit_opened": 1, "circuit_half_open": 2}


class Metrics:
    """The metrics of the server.

    Policy events are those of the process: two applications in one process count each other's.

    Args:
        settings: Which banks have labels, and where the metrics are served.
        provider: Name of the memory provider.
    """

    def __init__(self, settings: ObservabilitySettings, provider: str) -> None:
        self._settings = settings
        self._provider = provider
        self._server: tuple[WSGIServer, threading.Thread] | None = None
        self.banks = BankLabels(settings.max_bank_labels)
        self.registry = PlainRegistry(auto_describe=True)
        # Two pools, so that the many series of histograms leave room for counters.
        bound = settings.max_series - UNBOUND
        self._counter_room, self._histogram_room = Room(bound - bound // 2), Room(bound // 2)
        self._retains = self._counter("retain", "Memories by outcome.", "provider", "status")
        self._recalls = self._counter("recall", "Recalls by outcome.", "provider", "status")
        self._reflects = self._counter("reflect", "Answers of reflect.", "provider", "fallback")
        self._retain_seconds = self._histogram("retain", "Time of a retain.")
        self._recall_seconds = self._histogram("recall", "Time of a recall.")
        self._pii = self._counter("pii_detected", "Findings of personal data.", "action")
        self._dedup = self._counter("dedup", "Memories that were there already.", "action")
        self._refusals = self._counter("rate_limit_rejections", "Calls that a limit refused.", "operation")
        self._truncations = self._counter("token_budget_truncations", "Answers that a budget cut.", "operation")
        self._zero_hits = self._counter("recall_zero_hits", "Recalls that found nothing.")
        self._fates = self._counter("lifecycle_memories", "Memories that a lifecycle run changed or spared.", "action")
        self._silences = Counter(
            "astrocyte_agent_memory_recall_zero_hits_total",
            "Recalls of agents that found nothing.",
            ("agent_id", "query_topic"),
            registry=self.registry,
        )
        self._silent = Counter(
            "astrocyte_agent_memory_silent_total",
            "Recalls of agents that found nothing where the caller expected a hit.",
            registry=self.registry,
        )
        self._silence_labels: set[tuple[str, str]] = set()
        self._breaker = Gauge(
            "astrocyte_circuit_breaker_state", "0 closed, 1 open, 2 half open.", ("provider",), registry=self.registry
        )
        self._engines = Counter(
            "astrocyte_engine_recall_total",
            "Recalls from engines and proxy sources by outcome.",
            ("engine", "outcome"),
            registry=self.registry,
        )
        self._engine_seconds = Counter(
            "astrocyte_engine_recall_seconds_total",
            "Time of recalls from engines and proxy sources.",
            ("engine",),
            registry=self.registry,
        )
        self._engine_labels: set[str] = set()
        self._hooks = Counter(
            "astrocyte_hook_failures_total",
            "Events that a hook failed at, or that were lost before it.",
            ("hook", "outcome"),
            registry=self.registry,
        )
        build = ("version", "core_version", "simd", "schema_version")
        self._build = Gauge("astrocyte_build_info", "What runs; always 1.", build, registry=self.registry)
        events.subscribe(self._on_event)

    def describe(self, info: ServerInfo) -> None:
        """Report the version and the models of the server."""
        self._build.labels(info.version, info.core_version, info.simd, str(info.schema_version)).set(1)

    def watch(self, levels: Levels | IndexLevels | SourceLevels | VocabularyLevels) -> None:
        """Report queue lengths and graph recall, the tiers of indexes, or the state of sources, at each scrape."""
        self.registry.register(levels)

    def watch_banks(self, activity: BankActivity, clock: Callable[[], int]) -> None:
        """Report the health of the banks at each scrape."""
        self.registry.register(HealthLevels(activity, self.banks, self._counter_room, clock))

    def retained(self, bank_id: str, result: RetainResult) -> None:
        """One memory's outcome."""
        label = self.banks.of(bank_id)
        self._retains.of(label, self._provider, result.retention_action or "unknown").inc()
        if result.was_update or result.deduplicated:
            self._dedup.of(label, "update" if result.was_update else "skip").inc()

    def recalled(self, bank_id: str, result: RecallResult, operation: str) -> None:
        """One answer."""
        label = self.banks.of(bank_id)
        self._recalls.of(label, self._provider, "ok").inc()
        if not result.hits:
            self._zero_hits.of(label).inc()
        if result.truncated:
            self._truncations.of(label, operation).inc()

    def reflected(self, bank_id: str, result: ReflectResult) -> None:
        """One answer."""
        fallback = "true" if result.fallback_used else "false"
        self._reflects.of(self.banks.of(bank_id), self._provider, fallback).inc()

    def retain_failed(self, bank_id: str) -> None:
        """A retain that raised."""
        self._retains.of(self.banks.known(bank_id), self._provider, "error").inc()

    def recall_failed(self, bank_id: str) -> None:
        """A recall that raised."""
        self._recalls.of(self.banks.known(bank_id), self._provider, "error").inc()

    def retain_took(self, bank_id: str, seconds: float) -> None:
        """Count the seconds of a call."""
        self._retain_seconds.of(self.banks.known(bank_id), self._provider).observe(seconds)

    def recall_took(self, bank_id: str, seconds: float) -> None:
        """Count the seconds of a call."""
        self._recall_seconds.of(self.banks.known(bank_id), self._provider).observe(seconds)

    def engine_recalled(self, engine: str, outcome: str, seconds: float) -> None:
        """Count a recall from an engine: ``answered``, ``failed``, or ``cancelled`` because it was late."""
        if engine not in self._engine_labels:
            if len(self._engine_labels) >= MOST_ENGINES:
                engine = OTHER
            self._engine_labels.add(engine)
        self._engines.labels(engine, outcome).inc()
        self._engine_seconds.labels(engine).inc(seconds)

    def serve(self) -> int:
        """Serve scrapes from a thread; returns the port.

        Raises:
            ConfigError: The address cannot be bound.
        """
        host, port = self._settings.metrics_host, self._settings.metrics_port
        try:
            self._server = start_http_server(port, host, self.registry)
        except OSError as error:
            raise ConfigError(
                f"cannot serve metrics on {host}:{port}: {error.strerror}", metadata={"address": f"{host}:{port}"}
            ) from error
        return int(self._server[0].server_port)

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        events.unsubscribe(self._on_event)
        if self._server is not None:
            server, thread = self._server
            self._server = None
            server.shutdown()
            server.server_close()
            thread.join()

    def _counter(self, name: str, documentation: str, *labels: str) -> Family[Counter]:
        counter = Counter(f"astrocyte_{name}_total", documentation, ("bank_id", *labels), registry=self.registry)
        return Family(counter, self.banks, self._counter_room)

    def _histogram(self, name: str, documentation: str) -> Family[Histogram]:
        histogram = Histogram(
            f"astrocyte_{name}_duration_seconds",
            documentation,
            ("bank_id", "provider"),
            buckets=SECONDS,
            registry=self.registry,
        )
        return Family(histogram, self.banks, self._histogram_room, len(SECONDS) + BESIDE_BUCKETS)

    def _on_event(self, event: str, fields: events.Fields) -> None:
        if event in events.PII_EVENTS:
            count = float(fields.get("count") or 1)
            self._pii.of(self.banks.known(str(fields["bank_id"])), str(fields["action"])).inc(count)
        elif event in HOOK_EVENTS:
            self._hooks.labels(str(fields["hook"]), HOOK_EVENTS[event]).inc(float(fields.get("amount") or 1))
        elif event == "lifecycle":
            label = self.banks.known(str(fields["bank_id"]))
            self._fates.of(label, str(fields["action"])).inc(float(fields["count"] or 0))
        elif event == "rate_limited":
            self._refusals.of(self.banks.known(str(fields["bank_id"])), str(fields["operation"])).inc()
        elif event == "agent_memory_zero_hits":
            self._silences.labels(*self._silence_label(str(fields["agent_id"]), str(fields["topic"]))).inc()
        elif event == "agent_memory_silent":
            self._silent.inc()
        elif event in BREAKER_STATES:
            self._breaker.labels(str(fields["provider"])).set(BREAKER_STATES[event])

    def _silence_label(self, agent_id: str, topic: str) -> tuple[str, str]:
        label = (agent_id, topic)
        if label not in self._silence_labels:
            if len(self._silence_labels) >= MOST_SILENCES:
                return (OTHER, OTHER)
            self._silence_labels.add(label)
        return label
