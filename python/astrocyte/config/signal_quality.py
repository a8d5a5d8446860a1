"""What is worth keeping."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Cosine, Section


class DedupSettings(Section):
    """Near duplicates of what the bank holds. Exact ones are never stored twice, whatever is set here."""

    enabled: bool = Field(True, description="Look for near duplicates of items that do not ask for it themselves.")
    similarity_threshold: Cosine = Field(
        0.95, description="Cosine of near duplicates, of which one has all that the other says."
    )
    action: Literal["skip", "warn", "update"] = Field("skip", description="What is done with a near duplicate.")


class SignalQualitySettings(Section):
    """What is worth keeping."""

    dedup: DedupSettings = DedupSettings()
