"""Settings of custom pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section, Weight
from astrocyte.config.loading.source import KeyPath

if TYPE_CHECKING:
    from astrocyte.config import Settings

ArmName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
# Names of built-in arms and of lists in traces.
RESERVED_ARMS = frozenset(
    {
        "semantic",
        "keyword",
        "temporal",
        "entity",
        "graph",
        "observation",
        "proxy",
        "external_context",
        "vector_store",
        "document_store",
        "graph_store",
    }
)


class QueryAnalysisSettings(Section):
    """Query analysis: intent and time windows."""

    mode: Literal["rules", "custom"] = Field(
        "rules", description="rules uses the built-in analysis, custom uses custom_analyser."
    )
    custom_analyser: str | None = Field(
        None,
        min_length=1,
        description="Entry point of astrocyte.query_analysers, or package.module:name. For mode custom.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of custom_analyser, which validates them."
    )
    timeout_seconds: Seconds = Field(
        0.1, description="Timeout of custom_analyser. On timeout, the built-in analysis is used."
    )

    @model_validator(mode="after")
    def _check_custom(self) -> QueryAnalysisSettings:
        pair(self.mode == "custom", "mode", self.custom_analyser, "custom_analyser", self.options)
        return self


class ArmSettings(Section):
    """Custom retrieval arm."""

    arm: str = Field(min_length=1, description="Entry point of astrocyte.retrieval_arms, or package.module:name.")
    weight: Weight = Field(0.5, description="Fusion weight of its list; the keyword arm has 1.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the arm, which validates them."
    )
    timeout_seconds: Seconds = Field(0.25, description="Timeout. On timeout, the recall continues without the arm.")


class RetrievalSettings(Section):
    """Candidate retrieval and custom arms."""

    semantic_overfetch_multiplier: Count | None = Field(
        None, description="Alias of recall.overfetch: candidates of each arm per requested hit."
    )
    graph_max_depth: Annotated[int, Field(ge=1, le=10)] = Field(
        2, description="Maximum number of entity hops of a graph_store from the query's entities."
    )
    graph_max_results: Count | None = Field(
        None, description="Maximum number of candidates of a graph_store. Default: as for every arm."
    )
    custom_arms: dict[ArmName, ArmSettings] = Field(
        default_factory=dict,
        description="Custom arms by name, each with arm, weight, options and timeout_seconds.",
    )

    @field_validator("custom_arms")
    @classmethod
    def _check_names(cls, arms: dict[str, ArmSettings]) -> dict[str, ArmSettings]:
        taken = sorted(RESERVED_ARMS.intersection(arms))
        if taken:
            raise ValueError(f"{taken[0]!r} is a reserved arm name; choose another name")
        return arms


class PipelineFusionSettings(Section):
    """Fusion of the arms' lists. Defaults come from recall.fusion_method and recall.rank_constant."""

    rrf_k: float | None = Field(
        None, gt=0.0, le=1e6, description="Alias of recall.rank_constant: k of reciprocal rank fusion."
    )
    mode: Literal["builtin", "custom"] = Field(
        "builtin",
        description="builtin uses recall.fusion_method; custom uses custom_fusion for queries that name no method.",
    )
    custom_fusion: str | None = Field(
        None,
        min_length=1,
        description="Entry point of astrocyte.fusions, or package.module:name. For mode custom.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of custom_fusion, which validates them."
    )
    timeout_seconds: Seconds = Field(
        0.1, description="Timeout of custom_fusion. On timeout, recall.fusion_method is used."
    )

    @model_validator(mode="after")
    def _check_custom(self) -> PipelineFusionSettings:
        pair(self.mode == "custom", "mode", self.custom_fusion, "custom_fusion", self.options)
        return self


def pair(wanted: bool, key: str, name: str | None, key_of_name: str, options: Mapping[str, Any]) -> None:  # noqa: FBT001 - a condition
    """Check that a custom stage is named exactly if it is used, and that options belong to one.

    Raises:
        ValueError: The combination is invalid.
    """
    if wanted and name is None:
        raise ValueError(f"{key} custom needs {key_of_name}")
    if name is not None and not wanted:
        raise ValueError(f"{key_of_name} has no effect: {key} is not custom")
    if options and not wanted:
        raise ValueError(f"options have no effect: {key} is not custom")


def check_stages(settings: Settings) -> None:
    """Check that a custom chunker is named exactly if it is used, and that custom stages exclude the answer cache.

    Raises:
        ConfigError: The combination is invalid; the message has the key and its line.
    """
    chunking = settings.pipeline.chunking
    wanting: list[KeyPath] = [("pipeline", "chunking", "strategy")] if chunking.strategy == "custom" else []
    wanting += [("retain", "chunking", kind) for kind, how in settings.retain.chunking.items() if how == "custom"]
    wanting += [
        ("extraction_profiles", name, "chunking_strategy")
        for name, profile in settings.extraction_profiles.items()
        if profile.chunking_strategy == "custom"
    ]
    if wanting and chunking.custom_chunker is None:
        raise settings.refusal(wanting[0], "custom needs pipeline.chunking.custom_chunker")
    if not wanting:
        for key, given in (("custom_chunker", chunking.custom_chunker), ("options", chunking.options)):
            if given:
                raise settings.refusal(("pipeline", "chunking", key), "has no effect: no strategy is custom")
    others = {
        "query_analysis": settings.pipeline.query_analysis.mode == "custom",
        "retrieval.custom_arms": bool(settings.pipeline.retrieval.custom_arms),
        "fusion": settings.pipeline.fusion.mode == "custom",
    }
    for name, used in others.items():
        if used and settings.recall.cache_bytes:
            raise settings.refusal(
                ("recall", "cache_bytes"),
                f"the answer cache cannot be used with a custom pipeline.{name}; set cache_bytes to 0",
            )
