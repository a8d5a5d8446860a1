"""What tells how the service fares."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


class ObservabilitySettings(Section):
    """What tells how the service fares: spans, metrics on a port of their own, and the log of `astrocyte serve`."""

    otel_enabled: bool = Field(
        False,
        description="Make OpenTelemetry spans; needs the extra `telemetry`. Where they go is said by the variables "
        "`OTEL_*` that all programs have in common.",
    )
    prometheus_enabled: bool = Field(
        False, description="Serve metrics in Prometheus's format; needs the extra `telemetry`."
    )
    metrics_host: str = Field("127.0.0.1", min_length=1, description="Address of the metrics; they ask for no key.")
    metrics_port: int = Field(9_464, ge=0, le=65_535, description="Port of the metrics; 0 lets the system choose.")
    max_bank_labels: int = Field(
        200,
        ge=0,
        le=1_000,
        description="Banks that have a `bank_id` of their own in the metrics; the rest are `other`. 0 leaves it empty.",
    )
    max_series: int = Field(
        2_000,
        ge=500,
        le=1_000_000,
        description="Series of all metrics together: what a bank would add beyond them is counted as `other`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least important events that `astrocyte serve` logs."
    )


class HookSettings(Section):
    """Functions of others that are told what happened, on a thread of their own."""

    enabled: tuple[str, ...] = Field(
        (),
        description="Entry points of the group `astrocyte.hooks`, each of which registers its functions at the start.",
    )
    queue_size: Count = Field(1_000, description="Events that wait for functions that are slow; further ones are lost.")
    timeout_seconds: Seconds = Field(10.0, description="Then an `async` function is given up.")
