"""How much a call may ask for, and how many calls may come."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from astrocyte.config.section import Count, Section


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
