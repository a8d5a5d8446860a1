"""How forgetting ends."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.section import Seconds, Section


class ForgetSettings(Section):
    """How forgetting ends."""

    purge_after_days: float = Field(30.0, ge=0.0, le=36_500.0, description="How long a forgotten memory can come back.")
    purge_interval_seconds: Seconds = Field(3_600.0, description="How often what is due is erased.")
