"""Settings of recall."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from astrocyte.config.boosts import BoostSettings, UtilitySettings
from astrocyte.config.loading.section import Cosine, Count, Seconds, Section, Weight

IntentName = Literal["factual", "temporal", "relational", "comparative", "procedural", "exploratory", "unknown"]


class IntentFactors(Section):
    """Factors of the arms' weights."""

    semantic: float = Field(1.0, ge=0.0, le=100.0, description="Factor of the semantic arm.")
    keyword: float = Field(1.0, ge=0.0, le=100.0, description="Factor of the keyword arm.")
    temporal: float = Field(1.0, ge=0.0, le=100.0, description="Factor of the temporal arm.")


class IntentSettings(Section):
    """Weight adjustments by query intent. None by default: no tested factor improved the development sets."""

    factors: dict[IntentName, IntentFactors] = Field(
        default_factory=dict, description="Weight factors by intent. Weights of the query are not changed."
    )


class RecallWeights(Section):
    """Fusion weight of each arm; 0 disables an arm.

    The defaults measured best on LoCoMo, LifeBench, BEAM, Cranfield and TimeQA together. Results vary little for a
    semantic weight from .6 to 1.
    """

    semantic: Weight = 0.8
    keyword: Weight = 1.0
    temporal: Weight = 1.0
    entity: Weight = Field(
        0.0,
        description="Memories with entities of the query; needs pipeline.entity_extraction or a profile's.",
    )


class RecallSettings(Section):
    """Retrieval and ranking."""

    fusion_method: Literal["rrf", "relative_score", "dbsf"] = Field(
        "dbsf",
        description="Fusion method of the arms' lists: ranks (rrf), scores between the least and the most of a list "
        "(relative_score), or scores by mean and standard deviation (dbsf).",
    )
    rank_constant: float = Field(60.0, gt=0.0, le=1e6, description="k of reciprocal rank fusion.")
    weights: RecallWeights = Field(
        RecallWeights(),
        description="Weights of dbsf and relative_score; 0 disables an arm. The defaults measured best on LoCoMo, "
        "LifeBench, BEAM, Cranfield and TimeQA together. Results vary little for a semantic weight from .6 to 1.",
    )
    rrf_weights: RecallWeights = Field(
        RecallWeights(semantic=0.5, keyword=1.0, temporal=0.3), description="Weights of rrf; 0 disables an arm."
    )
    # The core makes as many first cosines exact. Up to so many results the same candidates compete, so that the first
    # hits do not depend on how many are requested.
    depth: Count = Field(
        60,
        description="Minimum number of candidates of each arm. Recalls of up to so many results divided by overfetch "
        "have the same first hits.",
    )
    overfetch: Count = Field(1, description="Candidates of each arm per requested hit.")
    intent: IntentSettings = IntentSettings()
    feedback: float = Field(
        0.25,
        ge=0.0,
        le=1.0,
        description="Weight of the words that the first three hits add to the query; 0 disables feedback.",
    )
    feedback_pieces: float = Field(
        3.0,
        ge=1.0,
        description="Maximum mean number of rows per memory for which feedback is used.",
    )
    context_windows: bool = Field(True, description="Score short turns together with their neighbours in the session.")
    cache_bytes: int = Field(
        0, ge=0, description="Memory of the answer cache, which is valid until the bank changes; 0 disables it."
    )
    external_weight: Weight = Field(
        1.0, description="Weight of external_context. At 1 its best item equals the best memory; 0 omits the list."
    )
    time_tail_days: float = Field(
        30.0, ge=0.0, le=36_500.0, description="Days after a date during which people still report it."
    )
    dedup_threshold: Cosine | None = Field(None, description="Cosine from which hits are merged; none disables it.")
    inline_rows: int = Field(20_000, ge=0, description="Maximum rows of a bank for a recall on the event loop.")
    # Below the default deadline of reads, so that the answer tells the position.
    min_position_seconds: Seconds = Field(
        4.0, description="Timeout of waiting for a min_position that is not applied yet."
    )
    boosts: BoostSettings = BoostSettings()
    utility: UtilitySettings = UtilitySettings()
    abstention_floor: float = Field(
        0.15, ge=0.0, le=1.0, description="Confidence below which a recall sets abstain; hits are still returned."
    )

    date_languages: tuple[str, ...] = Field(
        (),
        description="Languages besides English (de, fr) of dates in queries; needs the extra dates.",
    )

    @model_validator(mode="after")
    def _check_cache(self) -> RecallSettings:
        counts = self.utility.enabled or self.boosts.frequency.weight or self.boosts.utility.weight
        if self.cache_bytes and counts:
            raise ValueError(
                "cache_bytes cannot be combined with utility or the boosts frequency and utility: both vary per recall"
            )
        return self


class TieredRetrievalSettings(Section):
    """Tiers of increasing cost; the first with enough good hits answers. Off: cheaper tiers lose quality.

    Tier 1 is the answer cache. Tier 2 is keyword search in the newest memories, then in all. Tier 3 is the full recall.
    Tier 4 is the full recall with queries rewritten by a language model.
    """

    enabled: bool = Field(False, description="Use tiers for recalls on one bank.")
    min_results: Annotated[int, Field(ge=1, le=200)] = Field(3, description="Number of good hits that is enough.")
    min_score: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.3, description="Share of the query's content words that a good hit contains."
    )
    wiki: bool = Field(True, description="Let wiki pages answer, before tier 2.")
    wiki_relevance: Annotated[float, Field(ge=0.4, le=1.0)] = Field(
        0.7, description="Relevance of a wiki page from which it answers."
    )
    max_tier: Annotated[int, Field(ge=2, le=4)] = Field(3, description="Last tier; 4 needs a language model.")
    full_recall: Literal["pipeline"] = Field("pipeline", description="Implementation of tier 3.")
    recent_memories: Annotated[int, Field(ge=1, le=10_000)] = Field(
        100, description="Newest memories of a bank that tier 2 searches first."
    )
    recent_banks: Annotated[int, Field(ge=1)] = Field(500, description="Banks whose newest memories are cached.")
    rewrite_seconds: Annotated[float, Field(gt=0.0, le=600.0)] = Field(
        3.0, description="Timeout of the language model. On timeout, tier 3 answers."
    )


class RerankingSettings(Section):
    """Reranking of the best candidates. Disabled by default."""

    mode: str = Field(
        "disabled", min_length=1, description="disabled, cross_encoder, llm, or an entry point of astrocyte.rerankers."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the reranker, which validates them."
    )
    top_n: Annotated[int, Field(ge=2, le=32)] = Field(32, description="Number of candidates to rerank.")
    weight: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        0.5, description="1 orders by the reranker alone; less blends in the fused score."
    )
    passage_chars: Annotated[int, Field(ge=100, le=8_000)] = Field(
        2_000, description="Characters per candidate, around the words of the query."
    )
    timeout_seconds: Seconds = Field(1.0, description="Timeout. On timeout, the fused order is used.")
    least_seconds: Annotated[float, Field(ge=0.0, le=60.0)] = Field(
        0.1, description="Minimum remaining time of a call for reranking."
    )


Share = Annotated[float, Field(ge=0.0, le=1.0)]
SHARES = ("original", "freshness", "reliability", "salience")


class CuratedRecallSettings(Section):
    """Final ranking by freshness, reliability and salience. Off: it lowers recall on every development set."""

    enabled: bool = Field(False, description="Use this ranking.")
    original: Share = Field(0.3, description="Weight of relevance: 0 for the last candidate, 1 for the first.")
    freshness: Share = Field(0.3, description="Weight of the event's age.")
    reliability: Share = Field(0.2, description="Weight of the fact type and a known source.")
    salience: Share = Field(0.2, description="Weight of the layer.")
    freshness_half_life_days: Annotated[float, Field(gt=0.0, le=36_500.0)] = Field(
        30.0, description="Half-life of freshness."
    )
    min_score: Share | None = Field(None, description="Minimum score of a hit; none disables it.")
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

    id: TierId = Field(description="Id, as in metadata and tier_by_bank.")
    priority: int = Field(1, description="Order; lower is first, ties by id.")
    label: str = Field("", description="Heading; default is the id in brackets.")


class RecallAuthoritySettings(Section):
    """Text block beside the hits that groups them by authority, after rules. It does not change the ranking."""

    enabled: bool = Field(False, description="Return the block.")
    rules_inline: str = Field("", description="Rules for the tiers, before the hits.")
    rules_path: Path | None = Field(None, description="File of the rules (UTF-8), read at startup.")
    tiers: tuple[AuthorityTier, ...] = Field((), description="Tiers; if empty, the block contains the rules only.")
    apply_to_reflect: bool = Field(True, description="Include the block in the prompt of a reflect.")
    tier_by_bank: dict[str, TierId] = Field(
        default_factory=dict,
        description="Tier by bank id or pattern (* and ?); overrides metadata.",
    )

    @model_validator(mode="after")
    def _check_tiers(self) -> RecallAuthoritySettings:
        names = [tier.id for tier in self.tiers]
        if len(set(names)) < len(names):
            raise ValueError("tier ids must be unique")
        for bank, tier in self.tier_by_bank.items():
            if tier not in names:
                raise ValueError(f"tier_by_bank: bank {bank!r} has the tier {tier!r}, which is not in tiers")
        if self.rules_inline and self.rules_path is not None:
            raise ValueError("set only one of rules_inline and rules_path")
        return self
