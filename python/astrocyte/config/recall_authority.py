"""Which memories outrank which, in words for who reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from astrocyte.config.section import Section

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
