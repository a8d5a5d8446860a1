"""What happens when a provider fails."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


class CircuitBreakerSettings(Section):
    """When a provider from outside, an embedder or a language model, is left alone for a while; each has its own."""

    failure_threshold: Count = Field(5, description="Failures in a row after which no call is tried.")
    recovery_timeout_seconds: Seconds = Field(30.0, description="How long none is tried then.")
    half_open_max_calls: Count = Field(
        2, description="Calls that are tried after that; when all of them succeed, all are tried again."
    )
    # Below the deadline that a server imposes on reads, so that a hung provider is a failure before its callers go.
    call_timeout_seconds: Seconds = Field(
        4.0, description="How long an embedder may take for up to 64 texts, and as long for every 64 more."
    )


class EscalationSettings(Section):
    """What happens when a provider fails."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()
    degraded_mode: Literal["empty_recall", "cache", "error"] = Field(
        "empty_recall", description="What calls get that need a provider while its circuit is open."
    )
    queue_limit: Count = Field(10_000, description="Memories that may wait in the retry queue; more are refused.")
    cache_entries: Count = Field(1_000, description="Answers kept for degraded_mode cache, of all banks together.")
