"""How memories are found and ranked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from astrocyte.config.boosts import BoostSettings, UtilitySettings
from astrocyte.config.intent import IntentSettings
from astrocyte.config.section import Cosine, Count, Seconds, Section, Weight


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
    lone_ms: float = Field(
        5.0,
        ge=0.0,
        le=100.0,
        description="Milliseconds that a larger bank's recall may hold the server's loop, by what it usually takes, "
        "where no other call is under way; 0 for none.",
    )
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
