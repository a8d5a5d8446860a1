"""What turns text into vectors."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from astrocyte.config.section import Section


class EmbeddingSettings(Section):
    """What turns text into vectors."""

    provider: str = Field("static", min_length=1, description="static, openai, fastembed, or another entry point.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to the provider, which checks them."
    )
