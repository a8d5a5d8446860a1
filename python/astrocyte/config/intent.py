"""What a query's intent changes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Section

IntentName = Literal["factual", "temporal", "relational", "comparative", "procedural", "exploratory", "unknown"]


class IntentFactors(Section):
    """Factors on the arms' configured weights."""

    semantic: float = Field(1.0, ge=0.0, le=100.0, description="On the semantic arm.")
    keyword: float = Field(1.0, ge=0.0, le=100.0, description="On the keyword arm.")
    temporal: float = Field(1.0, ge=0.0, le=100.0, description="On the temporal arm.")


class IntentSettings(Section):
    """What a query's intent changes. By default nothing: no factor that was tried gained on the development sets."""

    factors: dict[IntentName, IntentFactors] = Field(
        default_factory=dict, description="Factors on the weights by intent; a query's own weights are left alone."
    )
