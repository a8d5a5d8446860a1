"""Engines: memory systems that stand beside the pipeline of this server, each for some of its banks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.section import Count, Seconds, Section, Weight

# What this server's own pipeline is called in traces.
PIPELINE = "pipeline"
EngineName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
BankPattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9*?][A-Za-z0-9._:@*?-]{0,254}$")]
# Where memories go.
RetainTarget = Literal["pipeline", "engine", "both"]


class HybridSettings(Section):
    """How an engine and the pipeline of this server share the work for a bank."""

    banks: tuple[BankPattern, ...] = Field(
        ("*",), min_length=1, description="Banks that it stands beside: ids, or patterns with * and ?."
    )
    tenant: str = Field("default", min_length=1, description="Whose banks; those of other tenants never reach it.")
    retain_target: RetainTarget = Field("pipeline", description="Where memories go.")
    reflect_target: Literal["pipeline", "engine"] = Field(
        "pipeline",
        description="Who answers a reflect: the pipeline, from what both sides find, or the engine by itself.",
    )
    engine_recall_weight: Weight = Field(1.0, description="Factor of its hits; 0 never asks it.")
    pipeline_recall_weight: Weight = Field(1.0, description="Factor of the pipeline's hits; 0 leaves them out.")
    fusion_method: Literal["rrf", "relative_score"] = Field("rrf", description="How the two lists become one.")
    adaptive_routing: bool = Field(False, description="Let the form of a query shift the weights.")
    require_both: bool = Field(False, description="Refuse a call that one of the two could not do.")
    read_only: bool = Field(False, description="Never store or forget anything there.")
    timeout_seconds: Seconds = Field(2.0, description="How long a recall waits for it.")
    # Less than the server's own deadline for writes.
    write_timeout_seconds: Seconds = Field(8.0, description="How long a retain or a forget waits for it.")
    reflect_timeout_seconds: Seconds = Field(25.0, description="How long a reflect waits for it.")
    outbox_limit: Count = Field(
        100_000,
        description="Memories whose copies may wait for it; what would add one more is refused. It goes for `both`.",
    )
    most_hops: Count = Field(
        1,
        le=16,
        description="Servers that a call may have passed, this one included, for the engine still to be asked.",
    )

    @model_validator(mode="after")
    def _check_use(self) -> HybridSettings:
        if self.read_only and self.retain_target != PIPELINE:
            raise ValueError(f"retain_target {self.retain_target} stores there, and read_only says never to")
        if not (self.engine_recall_weight or self.pipeline_recall_weight):
            raise ValueError("both weights are 0; nothing could be found")
        return self


class EngineSettings(HybridSettings):
    """One engine: what it is, and what it does for which banks. A bank has the first one that names it."""

    provider: str = Field(min_length=1, description="astrocyte, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )

    @model_validator(mode="before")
    @classmethod
    def _other_words(cls, values: Any) -> Any:  # noqa: ANN401 - whatever came
        """``local`` says the same as ``pipeline``."""
        if isinstance(values, dict) and values.get("retain_target") == "local":
            return {**values, "retain_target": PIPELINE}
        return values
