"""Images and recordings among the parts of a content."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from astrocyte.config.section import Count, Seconds, Section


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
