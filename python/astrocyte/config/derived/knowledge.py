"""Settings of observations, mental models, directives, wiki pages and coverage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from astrocyte.config.access import PRINCIPAL_CHARS
from astrocyte.config.loading.section import Cosine, Count, Seconds, Section, Weight

Days = Annotated[float, Field(gt=0.0, le=36_500.0)]
Ratio = Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False)]
# A tag or a name with its prefix: longer ones are refused in memories. Each memory is compared with all scopes.
SCOPE_CHARS, MOST_SCOPES = 1_024, 100
PrincipalPattern = Annotated[str, Field(min_length=1, max_length=PRINCIPAL_CHARS)]


class DirectiveSettings(Section):
    """Directives: rules that recall and reflect return before all memories."""

    # The principal of calls without one, which is the user of this process.
    allowed_principals: tuple[PrincipalPattern, ...] = Field(
        ("local",),
        description="Principals that can create and delete directives, if they also have the permission. In names, * "
        "matches any characters and ? matches one. `local` is a caller without a principal.",
    )
    max_per_bank: Annotated[int, Field(ge=1, le=1_000)] = Field(100, description="Directives of a bank.")


class TrendSettings(Section):
    """Trends of observations."""

    recent_days: Days = Field(30.0, description="Maximum age of recent evidence.")
    old_days: Days = Field(90.0, description="Age after which evidence is old; must exceed recent_days.")
    strengthening_ratio: Ratio = Field(
        1.5,
        description="Ratio of recent evidence per day to earlier evidence per day above which an observation is "
        "strengthening.",
    )
    weakening_ratio: Ratio = Field(0.5, description="Ratio below which it is weakening.")

    @model_validator(mode="after")
    def _check_order(self) -> TrendSettings:
        if self.old_days <= self.recent_days:
            raise ValueError("old_days must exceed recent_days")
        if self.weakening_ratio > self.strengthening_ratio:
            raise ValueError("weakening_ratio must not exceed strengthening_ratio")
        return self


def _scope(scope: str) -> str:
    """Return a scope as it is.

    Raises:
        ValueError: It is none of the three forms.
    """
    kind, _, name = scope.partition(":")
    if scope != "bank" and (kind not in {"tag", "entity"} or not name.strip()):
        raise ValueError(f"expected 'bank', 'tag:' and a tag, or 'entity:' and a name or id, got {scope!a:.64}")
    return scope


Scope = Annotated[str, Field(min_length=1, max_length=SCOPE_CHARS), AfterValidator(_scope)]


class ConsolidationSettings(Section):
    """Consolidation: observations made of memories, by rules or by a language model.

    A bank may have settings of its own, except for delay_seconds and memories_per_minute.
    """

    enabled: bool = Field(
        False, description="Consolidate the bank in the background after each retain, update and forget."
    )
    writer: Literal["rules", "model"] = Field(
        "rules",
        description="Writer of observations: rules, or model, the language model of `llm_provider`; rules read the "
        "memories for which the model gives no usable answer.",
    )
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=MOST_SCOPES)] = Field(
        ("bank",),
        description="Scopes of observations: bank, tag: and a tag, entity: and a name or id; tag:* and entity:* are "
        "all of them. A memory is read once for each of its scopes.",
    )
    calls_per_day: Count = Field(
        1_000, description="Maximum language model calls of a UTC day in each bank. The rest waits for the next day."
    )
    tokens_per_day: Count = Field(
        2_000_000, description="Maximum tokens of a UTC day in each bank; the last call may exceed them."
    )
    model_seconds: Seconds = Field(60.0, description="Timeout of one language model call.")
    least_confidence: Cosine = Field(
        0.5, description="Least confidence of an action, as the language model states it. Others are dropped."
    )
    delay_seconds: Annotated[float, Field(ge=0.0, le=3_600.0)] = Field(
        1.0, description="Time to gather changes before a bank is consolidated, so that retains share a step."
    )
    memories_per_minute: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        100_000, description="Maximum number of memories per minute, over all banks of a writer."
    )


class ObservationSettings(Section):
    """Observations."""

    max_per_bank: Annotated[int, Field(ge=1, le=100_000)] = Field(10_000, description="Observations of a bank.")
    observation_weight: Weight = Field(
        1.5, description="Factor of the relevance of observations in a recall; 0 leaves them out."
    )
    proof_bonus: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.025, description="Addition to the relevance for each source after the first."
    )
    max_proof_bonus: Annotated[float, Field(ge=0.0, le=1.0)] = Field(0.1, description="Maximum of that addition.")
    trends: TrendSettings = TrendSettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()


class MentalModelSettings(Section):
    """Mental models."""

    max_per_bank: Annotated[int, Field(ge=1, le=10_000)] = Field(1_000, description="Mental models of a bank.")
    max_bytes: Count = Field(65_536, description="UTF-8 bytes of a mental model as Markdown.")
    model_weight: Weight = Field(
        1.5, description="Factor of the relevance of mental models in a recall; 0 leaves them out."
    )
    keep_deleted_days: Days = Field(30.0, description="Days until a deleted mental model is purged.")


class WikiSettings(Section):
    """Wiki pages, compiled from the memories of a bank."""

    writer: Literal["rules", "model"] = Field(
        "rules",
        description="Writer of pages: rules, which quote memories, or model, the language model of `llm_provider`; "
        "rules write the pages that the model does not.",
    )
    min_memories: Annotated[int, Field(ge=1, le=1_000)] = Field(
        3, description="Memories of a topic that gets a page when a whole bank is compiled."
    )
    cluster_similarity: Annotated[float, Field(ge=0.3, le=1.0)] = Field(
        0.75,
        description="Cosine from which two memories without a tag or name of a topic are in one cluster, which gets a "
        "page when a whole bank is compiled; 1 makes no clusters.",
    )
    max_memories_per_page: Annotated[int, Field(ge=1, le=1_000)] = Field(
        100, description="Memories that a page is compiled from, the newest of its topic."
    )
    max_pages: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1_000, description="Pages of a bank: topics that have one, then those with most memories."
    )
    keep_revisions: Annotated[int, Field(ge=1, le=1_000)] = Field(20, description="Revisions of a page that are kept.")
    model_seconds: Seconds = Field(20.0, description="Timeout of the language model for a page.")


class CoverageSettings(Section):
    """Audits of what a bank covers."""

    judge: Literal["auto", "rules", "model"] = Field(
        "auto", description="Method: the language model if there is one (auto), rules, or the language model alone."
    )
    least_relevance: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.5, description="Score of a memory from which it counts as evidence for a topic."
    )
    outdated_days: Days = Field(365.0, description="Age of the newest evidence above which a topic is outdated.")
    model_seconds: Seconds = Field(20.0, description="Timeout of the language model.")
    keep_unanswered: Annotated[int, Field(ge=0, le=10_000)] = Field(
        200, description="Queries without an answer that a bank keeps for audits, those asked last; 0 keeps none."
    )
