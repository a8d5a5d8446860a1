"""What turns text into vectors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from astrocyte.config.section import Section

# What an embedder is called in the settings; banks know it by its model.
EmbedderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class EmbeddingSettings(Section):
    """What turns text into vectors: the embedder of banks that name no other model."""

    provider: str = Field("static", min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )


class EmbedderSettings(Section):
    """Another embedder, for banks of its model."""

    provider: str = Field(min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )
