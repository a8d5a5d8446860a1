"""Recall by steps, the cheap ones first."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from astrocyte.config.section import Section


class TieredRetrievalSettings(Section):
    """Tiers of rising cost; the first that finds enough answers. Off: a cheaper answer is a worse one.

    1 is the cache, 2 the words of the newest memories and then of all of them, 3 the full recall, 4 the full recall for
    questions in which a language model put the query otherwise.
    """

    enabled: bool = Field(False, description="Whether a recall on one bank goes by tiers.")
    min_results: Annotated[int, Field(ge=1, le=200)] = Field(3, description="Good hits that are enough.")
    min_score: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.3, description="Share of the query's content words that a good hit holds."
    )
    max_tier: Annotated[int, Field(ge=2, le=4)] = Field(3, description="The last tier; 4 needs a language model.")
    full_recall: Literal["pipeline"] = Field("pipeline", description="Who answers in tier 3.")
    recent_memories: Annotated[int, Field(ge=1, le=10_000)] = Field(100, description="Newest memories of a bank.")
    recent_banks: Annotated[int, Field(ge=1)] = Field(500, description="Banks whose newest memories are at hand.")
    rewrite_seconds: Annotated[float, Field(gt=0.0, le=600.0)] = Field(
        3.0, description="How long the language model may take; then the full recall stands."
    )
