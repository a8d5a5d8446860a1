"""Settings of chunking, curation, multimodal content, deduplication and signal quality."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from astrocyte.config.extraction import Chunking
from astrocyte.config.loading.section import Cosine, Count, Seconds, Section

# The natural boundary of each content type.
CHUNKING: dict[str, Chunking] = {
    "text": "sentence",
    "conversation": "dialogue",
    "transcript": "dialogue",
    "document": "paragraph",
    "email": "paragraph",
    "event": "sentence",
}


class RetainSettings(Section):
    """Chunking."""

    chunk_tokens: int = Field(
        160, ge=16, description="Maximum tokens of a chunk. A memory of up to 1.25 times that is not split."
    )
    overlap_tokens: int = Field(32, ge=0, description="Overlap of chunks of the fixed strategy, in tokens.")
    chunking: dict[str, Chunking] = Field(
        default_factory=lambda: dict(CHUNKING),
        description="Strategy by content type; unlisted types use that of text.",
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> RetainSettings:
        if self.overlap_tokens * 2 > self.chunk_tokens:
            raise ValueError("overlap_tokens may be at most half of chunk_tokens")
        return self


class CuratedRetainSettings(Section):
    """Curation: a language model decides to add, update, merge, skip or delete. Off by default.

    The model receives the content and the nearest memories. Forbidden or malformed decisions and failures result in a
    plain retain.
    """

    enabled: bool = Field(False, description="Use curation; one model call per content.")
    context_recall_limit: Annotated[int, Field(ge=0, le=20)] = Field(
        5, description="Number of nearest memories; 0 if the caller may not read the bank."
    )
    max_tokens: Count = Field(1_024, description="Token limit of a decision, including merged content.")
    deadline_seconds: Seconds = Field(5.0, description="Timeout.")


class MultimodalSettings(Section):
    """Images and audio in content parts. The stored memory is text, optionally with a vector of the parts."""

    mode: Literal["caption_then_embed", "multimodal_embed"] = Field(
        "caption_then_embed",
        description="caption_then_embed stores a description by the language model. multimodal_embed embeds the "
        "parts themselves if the embedder supports it.",
    )
    caption_max_tokens: Count = Field(300, description="Token limit of the description of one part.")
    deadline_seconds: Seconds = Field(8.0, description="Timeout for all parts of an item.")
    urls: bool = Field(False, description="Accept parts by URL. The provider fetches them, never this server.")


Share = Annotated[float, Field(ge=0.0, le=1.0)]


class DedupSettings(Section):
    """Near-duplicate detection. Exact duplicates are never stored twice."""

    enabled: bool = Field(True, description="Detect near duplicates of items that do not request it.")
    similarity_threshold: Cosine = Field(
        0.95, description="Cosine from which a memory is a near duplicate, if it also contains all words of the other."
    )
    action: Literal["skip", "warn", "update"] = Field("skip", description="Action for a near duplicate.")


class ScoringSettings(Section):
    """Content quality."""

    enabled: bool = Field(False, description="Score retained content.")
    scorer: Literal["rules", "llm"] = Field(
        "rules",
        description="rules scores length, variety and language; llm uses llm_provider.",
    )
    min_score: Share = Field(0.3, description="Minimum score, from 0 to 1.")
    action: Literal["reject", "tag", "warn"] = Field(
        "reject",
        description="reject refuses it, tag stores it with the metadata _quality: low, warn stores it and logs an "
        "event.",
    )


class NoisyBankSettings(Section):
    """Detection of runaway writers, from the last hour and the last 50 retains of a bank."""

    enabled: bool = Field(True, description="Monitor retains.")
    retain_spike_multiplier: float = Field(
        5.0,
        gt=1.0,
        allow_inf_nan=False,
        description="Ratio of the last minute's rate to the earlier rate that is a spike.",
    )
    min_avg_content_length: int = Field(20, ge=0, description="Minimum mean length of contents in characters.")
    max_dedup_rate: Share = Field(0.8, description="Maximum share of duplicates.")
    action: Literal["warn", "throttle", "reject"] = Field(
        "warn",
        description="warn logs an event, throttle refuses with a retry delay, reject answers that the item was "
        "rejected.",
    )


class SignalQualitySettings(Section):
    """Deduplication, quality scores and noisy banks."""

    dedup: DedupSettings = DedupSettings()
    scoring: ScoringSettings = ScoringSettings()
    noisy_bank: NoisyBankSettings = NoisyBankSettings()
