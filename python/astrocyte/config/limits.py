"""How much a call may ask for, and how many calls may come."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


class RateLimitSettings(Section):
    """Calls per minute, none unlimited. A bucket holds a minute's worth and is full at first."""

    retain_per_minute: Count | None = Field(
        None, description="Memories that are sent or updated, in each bank; every item of a batch is one."
    )
    recall_per_minute: Count | None = Field(
        None, description="Recalls and histories, in each bank; every query of a batch is one."
    )
    reflect_per_minute: Count | None = Field(
        None, description="Reflects, in each bank; the recalls behind them are not counted."
    )
    global_per_minute: Count | None = Field(
        None, description="All of these together, over all tenants and banks of the server."
    )


class QuotaSettings(Section):
    """What a bank may use up: in a day (UTC), or in all."""

    retain_per_day: Count | None = Field(
        None, description="Memories that are sent or updated, in each bank; every item of a batch is one."
    )
    reflect_per_day: Count | None = Field(None, description="Reflects, in each bank.")
    storage_bytes_per_bank: Count | None = Field(
        None, description="UTF-8 bytes of the contents of a bank's memories, as they are now."
    )
    database: Path | None = Field(
        None, description="Where a day's use is counted; servers that name the same file share it. None: in data_dir."
    )


class HomeostasisSettings(Section):
    """How much a call may bring and take away, and how many calls may come."""

    recall_max_tokens: Count = Field(
        32_768, description="Ceiling of a recall's token budget; a larger wish is cut to it, no wish takes it."
    )
    reflect_max_tokens: Count = Field(8_192, description="Ceiling of an answer's tokens; a larger wish is cut to it.")
    retain_max_content_bytes: Count = Field(102_400, description="UTF-8 bytes of one memory.")
    rate_limits: RateLimitSettings = RateLimitSettings()
    quotas: QuotaSettings = QuotaSettings()


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
