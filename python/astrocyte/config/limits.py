"""Settings of request limits, token budgets, rate limits, quotas, circuit breakers and degraded mode."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from astrocyte.config.loading.section import Count, Seconds, Section

# Clients of gRPC take this much unless they are told otherwise.
DEFAULT_ANSWER_BYTES = 4 * 1_024 * 1_024
# The Python client takes this much, so no setting can make an answer that it refuses.
MOST_ANSWER_BYTES = 64 * 1_024 * 1_024


class RateLimitSettings(Section):
    """Calls per minute; none is unlimited. Token bucket with the capacity of one minute, initially full."""

    retain_per_minute: Count | None = Field(
        None, description="Memories retained or updated, per bank; each item of a batch counts."
    )
    recall_per_minute: Count | None = Field(
        None, description="Recalls and histories, per bank; each query of a batch counts."
    )
    reflect_per_minute: Count | None = Field(None, description="Reflects, per bank; their recalls do not count.")
    global_per_minute: Count | None = Field(None, description="All of these, for all tenants and banks of the server.")


class QuotaSettings(Section):
    """Usage per day (UTC) and in total."""

    retain_per_day: Count | None = Field(
        None, description="Memories retained or updated, per bank; each item of a batch counts."
    )
    reflect_per_day: Count | None = Field(None, description="Reflects, per bank.")
    storage_bytes_per_bank: Count | None = Field(None, description="UTF-8 bytes of the current contents of a bank.")
    database: Path | None = Field(
        None, description="Database of the daily usage; servers with the same file share it. None: in data_dir."
    )


class HomeostasisSettings(Section):
    """Token budgets, content size, rate limits and quotas."""

    recall_max_tokens: Count = Field(
        32_768, description="Maximum and default token budget of a recall; larger values are reduced."
    )
    reflect_max_tokens: Count = Field(
        8_192, description="Maximum token budget of an answer; larger values are reduced."
    )
    retain_max_content_bytes: Count = Field(102_400, description="Maximum size of a memory, in UTF-8 bytes.")
    rate_limits: RateLimitSettings = RateLimitSettings()
    quotas: QuotaSettings = QuotaSettings()


class CircuitBreakerSettings(Section):
    """Circuit breaker of an embedder or language model; each provider has its own."""

    failure_threshold: Count = Field(5, description="Consecutive failures that open the circuit.")
    recovery_timeout_seconds: Seconds = Field(30.0, description="Seconds until an open circuit becomes half-open.")
    half_open_max_calls: Count = Field(
        2, description="Trial calls in the half-open state; the circuit closes when all succeed."
    )
    # Below the default deadline of reads, so that a hung provider fails before its callers time out.
    call_timeout_seconds: Seconds = Field(
        4.0, description="Timeout of an embedder for up to 64 texts, and for every 64 more."
    )


class EscalationSettings(Section):
    """Behaviour on provider failure."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()
    degraded_mode: Literal["empty_recall", "cache", "error"] = Field(
        "empty_recall", description="Result of calls that need a provider whose circuit is open."
    )
    queue_limit: Count = Field(
        10_000, description="Maximum number of memories in the retry queue; further retains are refused."
    )
    cache_entries: Count = Field(1_000, description="Recall results kept for degraded_mode cache, for all banks.")


class LimitSettings(Section):
    """Request limits. A call beyond a limit fails with the name of the field and changes nothing."""

    tags: Count = Field(64, description="Tags of a memory or filter.")
    tag_chars: Count = Field(128, description="Characters of a tag.")
    metadata_keys: Count = Field(64, description="Metadata keys of a memory or filter.")
    metadata_key_bytes: Count = Field(128, description="UTF-8 bytes of a metadata key.")
    metadata_value_bytes: Count = Field(1_024, description="UTF-8 bytes of a metadata value as text.")
    metadata_bytes: Count = Field(4_096, description="UTF-8 bytes of all keys and values.")
    external_bytes: Count = Field(16_384, description="UTF-8 bytes of one item of external_context.")
    query_bytes: Count = Field(8_192, description="UTF-8 bytes of a query.")
    max_results: Count = Field(200, description="Hits of one recall.")
    batch_items: Count = Field(256, description="Items of a BatchRetain, queries of a BatchRecall.")
    parts: Count = Field(16, description="Parts of multimodal content.")
    part_bytes: Count = Field(
        5_000_000,
        description="Bytes of all parts of an item. For gRPC, server.max_message_bytes also applies.",
    )
    page_size: Count = Field(1_000, description="Maximum page size of a list.")
    memory_ids: Count = Field(1_000, description="Memory ids in one filter or selector.")
    archive_bytes: Count = Field(
        8_589_934_592,
        description="Bytes of an archive, which is kept in an unnamed file of data_dir during its import.",
    )
    explained_ids: Count = Field(20, description="Memory ids in one Explain.")
    fact_types: Count = Field(32, description="Fact types in one filter.")
    label_chars: Count = Field(64, description="Characters of a fact type, content type or layer.")
    name_chars: Count = Field(256, description="Characters of a session, speaker, source, model or display name.")
    text_chars: Count = Field(4_096, description="Characters of a reason or a bank's description.")
    dimensions: Count = Field(4_096, description="Dimensions of a vector.")
