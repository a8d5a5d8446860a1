"""Retain by a language model's decision."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from astrocyte.config.section import Cosine, Count, Seconds, Section


class CuratedRetainSettings(Section):
    """Let the language model decide what becomes of each content: add, update, merge, skip or delete. Off by default.

    It sees the content and the memories nearest to it. What it may not do, or says in the wrong form, and whatever goes
    wrong on the way, leaves a plain retain.
    """

    enabled: bool = Field(False, description="Ask it; a call of the model for every content.")
    context_recall_limit: Annotated[int, Field(ge=0, le=20)] = Field(
        5, description="Memories that it sees beside the content; none where the caller may not read the bank."
    )
    max_tokens: Count = Field(1_024, description="Tokens of its decision, a merged content among them.")
    deadline_seconds: Seconds = Field(5.0, description="How long it may take.")


class MultimodalSettings(Section):
    """Images and recordings among the parts of a content: what is kept is text, and perhaps a vector of the whole."""

    mode: Literal["caption_then_embed", "multimodal_embed"] = Field(
        "caption_then_embed",
        description="caption_then_embed: the language model says what is there, and that is stored; multimodal_embed: "
        "the embedder makes the vector from the parts themselves, where it can, else as before.",
    )
    caption_max_tokens: Count = Field(300, description="Tokens of what is said of one part.")
    deadline_seconds: Seconds = Field(8.0, description="How long all parts of an item may take.")
    urls: bool = Field(
        False, description="Take parts by address; it is the provider that fetches them, never this server."
    )


Share = Annotated[float, Field(ge=0.0, le=1.0)]


class DedupSettings(Section):
    """Near duplicates of what the bank holds. Exact ones are never stored twice, whatever is set here."""

    enabled: bool = Field(True, description="Look for near duplicates of items that do not ask for it themselves.")
    similarity_threshold: Cosine = Field(
        0.95, description="Cosine of near duplicates, of which one has all that the other says."
    )
    action: Literal["skip", "warn", "update"] = Field("skip", description="What is done with a near duplicate.")


class ScoringSettings(Section):
    """Whether a content is worth storing."""

    enabled: bool = Field(False, description="Score what is retained.")
    scorer: Literal["rules", "llm"] = Field(
        "rules",
        description="Who scores: rules (how much is said, how varied, and whether it is language), or llm_provider.",
    )
    min_score: Share = Field(0.3, description="From 0 to 1; what scores less is of low quality.")
    action: Literal["reject", "tag", "warn"] = Field(
        "reject", description="Refuse it, store it with the metadata _quality: low, or store it and tell the log."
    )


class NoisyBankSettings(Section):
    """Banks that are written to as by a loop gone wild, judged by the last hour and its last 50 retains."""

    enabled: bool = Field(True, description="Watch what is retained.")
    retain_spike_multiplier: float = Field(
        5.0, gt=1.0, allow_inf_nan=False, description="So many times the earlier rate, in the last minute, is a spike."
    )
    min_avg_content_length: int = Field(20, ge=0, description="Characters of a content, on the average.")
    max_dedup_rate: Share = Field(0.8, description="Share of duplicates.")
    action: Literal["warn", "throttle", "reject"] = Field(
        "warn", description="Tell the log, refuse with a time to retry after, or answer that it was rejected."
    )


class SignalQualitySettings(Section):
    """What is worth keeping."""

    dedup: DedupSettings = DedupSettings()
    scoring: ScoringSettings = ScoringSettings()
    noisy_bank: NoisyBankSettings = NoisyBankSettings()
