"""Metrics in Prometheus's format, in a registry of their own; docs/observability.md promises their names and labels.

Labels are ids of banks, bounded in number, names of providers, and words of ours: never what a caller wrote.
"""

from __future__ import annotations

import threading
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from astrocyte.config import ObservabilitySettings
from astrocyte.errors import ConfigError
from astrocyte.model import RecallResult, ReflectResult, RetainResult, ServerInfo
from astrocyte.policy import events

# From a recall of a small bank to a retain behind a slow embedder.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
OTHER = "other"
BREAKER_STATES = {"circuit_closed": 0, "circuit_opened": 1, "circuit_half_open": 2}


class BankLabels:
    """The value of the label ``bank_id``: the bank's, for the first so many banks that answered a call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = OTHER if most else ""
        self._names: set[str] = set()

    def of(self, bank_id: str) -> str:
        """The label of a bank that there is."""
        if bank_id not in self._names:
            if len(self._names) >= self._most:
                return self._rest
            self._names.add(bank_id)
        return bank_id

    def known(self, bank_id: str) -> str:
        """The label of a bank that may be a caller's invention: it takes no place of another."""
        return bank_id if bank_id in self._names else self._rest


class Metrics:
    """What is counted.

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
        self.registry = registry = CollectorRegistry(auto_describe=True)
        call = ("bank_id", "provider", "status")
        self._retains = Counter("astrocyte_retain_total", "Memories by outcome.", call, registry=registry)
        self._recalls = Counter("astrocyte_recall_total", "Recalls by outcome.", call, registry=registry)
        self._reflects = Counter(
            "astrocyte_reflect_total", "Answers of reflect.", ("bank_id", "provider", "fallback"), registry=registry
        )
        # By label: finding them anew costs as much as counting.
        self._answered: dict[str, Counter] = {}
        self._timed: dict[str, Histogram] = {}
        timed = ("bank_id", "provider")
        self._retain_seconds = Histogram(
            "astrocyte_retain_duration_seconds", "Time of a retain.", timed, buckets=SECONDS, registry=registry
        )
        self._recall_seconds = Histogram(
            "astrocyte_recall_duration_seconds", "Time of a recall.", timed, buckets=SECONDS, registry=registry
        )
        self._pii = Counter(
            "astrocyte_pii_detected_total", "Findings of personal data.", ("bank_id", "action"), registry=registry
        )
        self._dedup = Counter(
            "astrocyte_dedup_total", "Memories that were there already.", ("bank_id", "action"), registry=registry
        )
        self._breaker = Gauge(
            "astrocyte_circuit_breaker_state", "0 closed, 1 open, 2 half open.", ("provider",), registry=registry
        )
        limited = ("bank_id", "operation")
        self._refusals = Counter(
            "astrocyte_rate_limit_rejections_total", "Calls that a limit refused.", limited, registry=registry
        )
        self._truncations = Counter(
            "astrocyte_token_budget_truncations_total", "Answers that a budget cut.", limited, registry=registry
        )
        self._zero_hits = Counter(
            "astrocyte_recall_zero_hits_total", "Recalls that found nothing.", ("bank_id",), registry=registry
        )
        build = ("version", "core_version", "simd", "schema_version")
        self._build = Gauge("astrocyte_build_info", "What runs; always 1.", build, registry=registry)
        events.subscribe(self._on_event)

    def describe(self, info: ServerInfo) -> None:
        """Say what runs."""
        self._build.labels(info.version, info.core_version, info.simd, str(info.schema_version)).set(1)

    def retained(self, bank_id: str, result: RetainResult) -> None:
        """One memory's outcome."""
        label = self.banks.of(bank_id)
        self._retains.labels(label, self._provider, result.retention_action or "unknown").inc()
        if result.was_update or result.deduplicated:
            self._dedup.labels(label, "update" if result.was_update else "skip").inc()

    def recalled(self, bank_id: str, result: RecallResult, operation: str) -> None:
        """One answer."""
        label = self.banks.of(bank_id)
        counter = self._answered.get(label)
        if counter is None:
            counter = self._answered[label] = self._recalls.labels(label, self._provider, "ok")
        counter.inc()
        if not result.hits:
            self._zero_hits.labels(label).inc()
        if result.truncated:
            self._truncations.labels(label, operation).inc()

    def reflected(self, bank_id: str, result: ReflectResult) -> None:
        """One answer."""
        fallback = "true" if result.fallback_used else "false"
        self._reflects.labels(self.banks.of(bank_id), self._provider, fallback).inc()

    def retain_failed(self, bank_id: str) -> None:
        """A retain that raised."""
        self._retains.labels(self.banks.known(bank_id), self._provider, "error").inc()

    def recall_failed(self, bank_id: str) -> None:
        """A recall that raised."""
        self._recalls.labels(self.banks.known(bank_id), self._provider, "error").inc()

    def retain_took(self, bank_id: str, seconds: float) -> None:
        """How long a call took."""
        self._retain_seconds.labels(self.banks.known(bank_id), self._provider).observe(seconds)

    def recall_took(self, bank_id: str, seconds: float) -> None:
        """How long a call took."""
        label = self.banks.known(bank_id)
        histogram = self._timed.get(label)
        if histogram is None:
            histogram = self._timed[label] = self._recall_seconds.labels(label, self._provider)
        histogram.observe(seconds)

    def serve(self) -> int:
        """Answer scrapes from a thread of its own; returns the port.

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

    def _on_event(self, event: str, fields: events.Fields) -> None:
        if event in events.PII_EVENTS:
            count = float(fields.get("count") or 1)
            self._pii.labels(self.banks.known(str(fields["bank_id"])), str(fields["action"])).inc(count)
        elif event == "rate_limited":
            self._refusals.labels(self.banks.known(str(fields["bank_id"])), str(fields["operation"])).inc()
        elif event in BREAKER_STATES:
            self._breaker.labels(str(fields["provider"])).set(BREAKER_STATES[event])
