"""How much a call may ask for."""

from __future__ import annotations

from pydantic import Field

from astrocyte.config.section import Count, Section


class HomeostasisSettings(Section):
    """How much one call may bring and take away."""

    recall_max_tokens: Count = Field(
        32_768, description="Ceiling of a recall's token budget; a larger wish is cut to it, no wish takes it."
    )
    retain_max_content_bytes: Count = Field(102_400, description="UTF-8 bytes of one memory.")
