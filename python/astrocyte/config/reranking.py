"""A second reading of the best candidates of a recall."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from astrocyte.config.section import Seconds, Section


class RerankingSettings(Section):
    """Who reads the best candidates of a recall against the question, and what that counts. Nobody by default."""

    mode: str = Field(
        "disabled", min_length=1, description="disabled, cross_encoder, llm, or an entry point of astrocyte.rerankers."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the reranker, which checks them."
    )
    top_n: Annotated[int, Field(ge=2, le=32)] = Field(32, description="Candidates that are read, best first.")
    weight: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.5, description="1 orders them by the reranker alone; less blends in the fused score."
    )
    passage_chars: Annotated[int, Field(ge=100, le=8_000)] = Field(
        2_000, description="Characters that are read of each, around the words of the question."
    )
    timeout_seconds: Seconds = Field(1.0, description="How long to wait; then the fused order stands.")
    least_seconds: Annotated[float, Field(ge=0.0, le=60.0)] = Field(
        0.1, description="A call with less time left than this is not reranked."
    )
