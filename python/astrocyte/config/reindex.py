"""How banks move to another embedding model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section

# A share of something, both ends included.
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ReindexSettings(Section):
    """How banks move to another embedding model, in the background."""

    share: float = Field(
        0.5, gt=0.0, le=1.0, description="Share of the time that a reindex works; for the rest of it, it rests."
    )
    batch_texts: Count = Field(64, description="Texts that are embedded at once.")
    attempts: Count = Field(5, description="How often a text is sent to an embedder that fails, before the move fails.")
    retry_seconds: Seconds = Field(1.0, description="Rest before the second attempt; it doubles with each.")
    sample: int = Field(
        64,
        ge=0,
        le=1_000,
        description="Memories whose words both indexes are asked before a move, unless the request says; 0 asks none.",
    )
    min_overlap: Share = Field(
        0.0,
        description="Mean share of the first ten memories that both answers must hold, or the bank stays as it is; a "
        "request may say otherwise.",
    )
    keep_hours: float = Field(
        168.0,
        ge=0.0,
        le=876_000.0,
        description="How long the former vectors are kept to go back to; 0 drops them at once.",
    )
