"""Settings of logs, metrics, spans and hooks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.loading.section import Count, Seconds, Section


class ObservabilitySettings(Section):
    """OpenTelemetry spans, Prometheus metrics and the log of `astrocyte serve`."""

    otel_enabled: bool = Field(
        False,
        description="Export OpenTelemetry spans; needs the extra `telemetry`. The standard `OTEL_*` variables "
        "configure the exporter.",
    )
    prometheus_enabled: bool = Field(False, description="Serve Prometheus metrics; needs the extra `telemetry`.")
    metrics_host: str = Field(
        "127.0.0.1", min_length=1, description="Address of the metrics endpoint, which has no authentication."
    )
    metrics_port: int = Field(
        9_464, ge=0, le=65_535, description="Port of the metrics endpoint; 0 selects a free port."
    )
    max_bank_labels: int = Field(
        200,
        ge=0,
        le=1_000,
        description="Banks with their own `bank_id` label; the others are `other`. 0 leaves the label empty.",
    )
    max_series: int = Field(
        2_000,
        ge=500,
        le=1_000_000,
        description="Maximum number of time series; beyond it, banks are counted as `other`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level of logged events."
    )


class HookSettings(Section):
    """Hooks: callbacks for events, on a thread of their own."""

    enabled: tuple[str, ...] = Field(
        (),
        description="Entry points of the group `astrocyte.hooks`, each of which registers callbacks at startup.",
    )
    queue_size: Count = Field(1_000, description="Queued events; further events are dropped.")
    timeout_seconds: Seconds = Field(10.0, description="Timeout of an `async` callback.")
