"""Settings of engines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section, Weight

# Name of this server's pipeline in traces.
PIPELINE = "pipeline"
EngineName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
BankPattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9*?][A-Za-z0-9._:@*?-]{0,254}$")]
# Target of retains.
RetainTarget = Literal["pipeline", "engine", "both"]


class HybridSettings(Section):
    """Division of work between an engine and this server's pipeline for a bank."""

    banks: tuple[BankPattern, ...] = Field(
        ("*",), min_length=1, description="Banks of the engine: ids, or patterns with * and ?."
    )
    tenant: str = Field(
        "default", min_length=1, description="Tenant of these banks. Other tenants never reach the engine."
    )
    retain_target: RetainTarget = Field("pipeline", description="Target of retains.")
    reflect_target: Literal["pipeline", "engine"] = Field(
        "pipeline",
        description="pipeline answers from the hits of both sides; engine answers alone.",
    )
    engine_recall_weight: Weight = Field(1.0, description="Weight of engine results; 0 disables queries to the engine.")
    pipeline_recall_weight: Weight = Field(1.0, description="Weight of the pipeline's hits; 0 omits them.")
    fusion_method: Literal["rrf", "relative_score"] = Field("rrf", description="Fusion method of the two lists.")
    adaptive_routing: bool = Field(False, description="Adjust the weights by the form of the query.")
    require_both: bool = Field(False, description="Fail the call if either side fails.")
    read_only: bool = Field(False, description="Never retain or forget in the engine.")
    timeout_seconds: Seconds = Field(2.0, description="Timeout of a recall.")
    # Less than the server's default deadline for writes.
    write_timeout_seconds: Seconds = Field(8.0, description="Timeout of a retain or forget.")
    reflect_timeout_seconds: Seconds = Field(25.0, description="Timeout of a reflect.")
    outbox_limit: Count = Field(
        100_000,
        description="Maximum number of memories in the engine's outbox; further retains are refused. Applies to "
        "`both`.",
    )
    most_hops: Count = Field(
        1,
        le=16,
        description="Maximum number of servers in the path of a call, including this one.",
    )

    @model_validator(mode="after")
    def _check_use(self) -> HybridSettings:
        if self.read_only and self.retain_target != PIPELINE:
            raise ValueError(f"retain_target {self.retain_target} conflicts with read_only; set one of them")
        if not (self.engine_recall_weight or self.pipeline_recall_weight):
            raise ValueError(
                "engine_recall_weight and pipeline_recall_weight are both 0; at least one must be positive"
            )
        return self


class EngineSettings(HybridSettings):
    """An engine and its use. A bank uses the first engine that matches it."""

    provider: str = Field(min_length=1, description="astrocyte, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the provider, which validates them."
    )

    @model_validator(mode="before")
    @classmethod
    def _other_words(cls, values: Any) -> Any:  # noqa: ANN401 - whatever came
        """Accept ``local`` as an alias of ``pipeline``."""
        if isinstance(values, dict) and values.get("retain_target") == "local":
            return {**values, "retain_target": PIPELINE}
        return values
