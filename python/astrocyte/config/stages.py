"""Steps of the pipelines that others write: in the place of a built-in one, or beside the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from astrocyte.config.section import Count, Seconds, Section, Weight
from astrocyte.config.source import KeyPath

if TYPE_CHECKING:
    from astrocyte.config import Settings

ArmName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
# Arms that the server has, or names for the lists of others.
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
    """How a question is read: which kind it is, and which times it asks about."""

    mode: Literal["rules", "custom"] = Field("rules", description="Who reads it: built-in rules, or custom_analyser.")
    custom_analyser: str | None = Field(
        None,
        min_length=1,
        description="What mode custom asks: an entry point of astrocyte.query_analysers, or package.module:name.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to custom_analyser, which checks them."
    )
    timeout_seconds: Seconds = Field(0.1, description="How long to wait for it; then the rules stand.")

    @model_validator(mode="after")
    def _check_custom(self) -> QueryAnalysisSettings:
        pair(self.mode == "custom", "mode", self.custom_analyser, "custom_analyser", self.options)
        return self


class ArmSettings(Section):
    """A retrieval arm beside the built-in ones."""

    arm: str = Field(min_length=1, description="An entry point of astrocyte.retrieval_arms, or package.module:name.")
    weight: Weight = Field(0.5, description="Of its list in the fusion, where 1 is the keyword arm's.")
    options: dict[str, Any] = Field(default_factory=dict, repr=False, description="Handed to it; it checks them.")
    timeout_seconds: Seconds = Field(0.25, description="How long to wait for it; then the answer is made without.")


class RetrievalSettings(Section):
    """How many candidates are fetched, and which further arms fetch some."""

    semantic_overfetch_multiplier: Count | None = Field(
        None, description="Another name of recall.overfetch: candidates of each arm per hit asked for."
    )
    graph_max_depth: Annotated[int, Field(ge=1, le=10)] = Field(
        2, description="How many names apart a graph_store walks from what the question names."
    )
    graph_max_results: Count | None = Field(
        None, description="Candidates of a graph_store at the most; as many as of any arm, where it is left out."
    )
    custom_arms: dict[ArmName, ArmSettings] = Field(
        default_factory=dict,
        description="Further arms by name, each with arm, weight, options and timeout_seconds.",
    )

    @field_validator("custom_arms")
    @classmethod
    def _check_names(cls, arms: dict[str, ArmSettings]) -> dict[str, ArmSettings]:
        taken = sorted(RESERVED_ARMS.intersection(arms))
        if taken:
            raise ValueError(f"{taken[0]!r} is an arm of the server; choose another name")
        return arms


class PipelineFusionSettings(Section):
    """How the lists of the arms become one; what is left out, recall.fusion_method and recall.rank_constant say."""

    rrf_k: float | None = Field(
        None, gt=0.0, le=1e6, description="Another name of recall.rank_constant: k of reciprocal rank fusion."
    )
    mode: Literal["builtin", "custom"] = Field(
        "builtin", description="Who fuses: recall.fusion_method, or custom_fusion where a query names no method."
    )
    custom_fusion: str | None = Field(
        None,
        min_length=1,
        description="What mode custom asks: an entry point of astrocyte.fusions, or package.module:name.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to custom_fusion, which checks them."
    )
    timeout_seconds: Seconds = Field(0.1, description="How long to wait for it; then recall.fusion_method stands.")

    @model_validator(mode="after")
    def _check_custom(self) -> PipelineFusionSettings:
        pair(self.mode == "custom", "mode", self.custom_fusion, "custom_fusion", self.options)
        return self


def pair(wanted: bool, key: str, name: str | None, key_of_name: str, options: Mapping[str, Any]) -> None:  # noqa: FBT001 - a condition
    """Refuse a custom stage that is wanted and not named, named and not wanted, or options of none.

    Raises:
        ValueError: Says which.
    """
    if wanted and name is None:
        raise ValueError(f"{key} custom needs {key_of_name}")
    if name is not None and not wanted:
        raise ValueError(f"{key_of_name} has no effect: {key} is not custom")
    if options and not wanted:
        raise ValueError(f"options have no effect: {key} is not custom")


def check_stages(settings: Settings) -> None:
    """Refuse a chunker that is wanted and not named, or the other way round, and kept answers that others help to make.

    Raises:
        ConfigError: Names the key and its line.
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
                f"answers are not kept where pipeline.{name} has a part in them; set it to 0",
            )
