"""Ranking by what kind of memory it is, beside relevance."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from astrocyte.config.section import Section

Share = Annotated[float, Field(ge=0.0, le=1.0)]
SHARES = ("original", "freshness", "reliability", "salience")


class CuratedRecallSettings(Section):
    """A last order by freshness, reliability and salience. Off: it costs recall on every development set."""

    enabled: bool = Field(False, description="Whether hits are put into this order.")
    original: Share = Field(0.3, description="Share of the relevance: 0 for the last candidate, 1 for the first.")
    freshness: Share = Field(0.3, description="Share of the age when it happened.")
    reliability: Share = Field(0.2, description="Share of what kind of fact it is, and whether its source is known.")
    salience: Share = Field(0.2, description="Share of its layer.")
    freshness_half_life_days: Annotated[float, Field(gt=0.0, le=36_500.0)] = Field(
        30.0, description="After which the age counts half."
    )
    min_score: Share | None = Field(None, description="Leave out what scores less; none by default.")
    reliability_by_fact_type: dict[str, Share] = Field(
        default_factory=lambda: {"experience": 0.9, "world": 0.7, "observation": 0.6, "model": 0.5},
        description="Reliability by fact type; others have .5. A known source adds .1.",
    )
    salience_by_layer: dict[str, Share] = Field(
        default_factory=lambda: {"model": 1.0, "observation": 0.75, "semantic": 0.5, "episodic": 0.5},
        description="Salience by layer; others have .5.",
    )

    @model_validator(mode="after")
    def _check_shares(self) -> CuratedRecallSettings:
        values: dict[str, Any] = self.model_dump()
        if not any(values[name] for name in SHARES):
            raise ValueError(f"at least one of {', '.join(SHARES)} must be above 0")
        return self
