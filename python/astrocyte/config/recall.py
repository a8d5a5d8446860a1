"""How memories are found and ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.boosts import BoostSettings, UtilitySettings
from astrocyte.config.section import Cosine, Count, Seconds, Section, Weight

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


class RecallWeights(Section):
    """Weight of each arm in the fusion; 0 silences an arm.

    The defaults measured best on LoCoMo, LifeBench, BEAM, Cranfield and TimeQA together: scores are flat for a semantic
    weight from .6 to 1; ranks lose less the less the weaker arms count.
    """

    semantic: Weight = 0.8
    keyword: Weight = 1.0
    temporal: Weight = 1.0
    entity: Weight = Field(
        0.0,
        description="Memories that name what the question names; needs pipeline.entity_extraction, or a profile's.",
    )


class RecallSettings(Section):
    """How memories are found and ranked."""

    fusion_method: Literal["rrf", "relative_score"] = Field("relative_score", description="How lists become one.")
    rank_constant: float = Field(60.0, gt=0.0, le=1e6, description="k of reciprocal rank fusion.")
    weights: RecallWeights = Field(RecallWeights(), description="Weights of relative_score.")
    rrf_weights: RecallWeights = Field(
        RecallWeights(semantic=0.5, keyword=1.0, temporal=0.3), description="Weights of rrf, which knows ranks only."
    )
    depth: Count = Field(50, description="Candidates of each arm, at the least.")
    overfetch: Count = Field(3, description="Candidates of each arm per hit asked for.")
    intent: IntentSettings = IntentSettings()
    feedback: float = Field(
        0.25, ge=0.0, le=1.0, description="Weight of words that the first three hits add to the query; 0 adds none."
    )
    feedback_pieces: float = Field(
        3.0,
        ge=1.0,
        description="No feedback in banks whose memories have more rows than this on average.",
    )
    context_windows: bool = Field(True, description="Score short turns together with their neighbours in the session.")
    cache_bytes: int = Field(
        0, ge=0, description="Memory for answers to questions asked again while the bank stays as it is; 0 keeps none."
    )
    external_weight: Weight = Field(
        1.0, description="1 lets the best item of external_context stand with the best memory; 0 leaves the list out."
    )
    time_tail_days: float = Field(30.0, ge=0.0, le=36_500.0, description="How long after a date people still tell it.")
    dedup_threshold: Cosine | None = Field(None, description="Fold hits at least this alike (cosine); none by default.")
    inline_rows: int = Field(20_000, ge=0, description="Up to so many rows a recall runs on the loop, without a hop.")
    min_position_seconds: Seconds = Field(5.0, description="How long to wait for a min_position not yet applied.")
    boosts: BoostSettings = BoostSettings()
    utility: UtilitySettings = UtilitySettings()
    abstention_floor: float = Field(
        0.15, ge=0.0, le=1.0, description="Confidence below which an answer says abstain; it keeps its hits."
    )

    date_languages: tuple[str, ...] = Field(
        (),
        description="Codes of languages besides English (de, fr) whose dates in questions count; extra dates.",
    )

    @model_validator(mode="after")
    def _check_cache(self) -> RecallSettings:
        counts = self.utility.enabled or self.boosts.frequency.weight or self.boosts.utility.weight
        if self.cache_bytes and counts:
            raise ValueError(
                "cache_bytes keeps answers that utility and frequency change with every recall: set one or the other"
            )
        return self


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


TierId = Annotated[str, Field(min_length=1, max_length=64)]


class AuthorityTier(Section):
    """One tier of authority."""

    id: TierId = Field(description="What metadata and tier_by_bank call it.")
    priority: int = Field(1, description="Lower comes first; equal ones by id.")
    label: str = Field("", description="Heading in the block; its id in brackets where empty.")


class RecallAuthoritySettings(Section):
    """A block of text beside the hits that sorts them by authority, after rules. It never changes the ranking."""

    enabled: bool = Field(False, description="Whether a recall carries it.")
    rules_inline: str = Field("", description="What to do with the tiers, in words; stands before the hits.")
    rules_path: Path | None = Field(None, description="File of such rules (UTF-8), read when the server starts.")
    tiers: tuple[AuthorityTier, ...] = Field((), description="The tiers; without any the block is the rules alone.")
    apply_to_reflect: bool = Field(True, description="Whether a language model that answers is given it too.")
    tier_by_bank: dict[str, TierId] = Field(
        default_factory=dict,
        description="Bank id, or a pattern with * and ?, to the tier of all its memories, whatever metadata says.",
    )

    @model_validator(mode="after")
    def _check_tiers(self) -> RecallAuthoritySettings:
        names = [tier.id for tier in self.tiers]
        if len(set(names)) < len(names):
            raise ValueError("two tiers have the same id")
        for bank, tier in self.tier_by_bank.items():
            if tier not in names:
                raise ValueError(f"tier_by_bank gives {bank!r} a tier that tiers does not list: {tier!r}")
        if self.rules_inline and self.rules_path is not None:
            raise ValueError("rules_inline and rules_path are two ways to say the same: set one")
        return self
