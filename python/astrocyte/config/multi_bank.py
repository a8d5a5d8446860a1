"""Settings of multi-bank recall and bank groups."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section, Weight

Mode = Literal["parallel", "cascade", "first_match"]
# Allowed names in braces.
PLACEHOLDERS = ("user_id", "agent_id", "service_id", "team_id", "tenant_id")
# A bank id with placeholders for parts of the caller's identity.
BankName = Annotated[str, Field(pattern=r"^[A-Za-z0-9{][A-Za-z0-9._:@{}_-]{0,254}$")]


class BankGroupSettings(Section):
    """Bank group. Defaults come from the call or `multi_bank`.

    Names may contain {user_id}, {agent_id}, {service_id}, {team_id} and {tenant_id}, which are filled from the caller,
    or from the principal on whose behalf the call is made.
    """

    banks: tuple[BankName, ...] = Field(min_length=1, description="Bank ids, most specific first.")
    strategy: Mode | None = Field(None, description="Multi-bank strategy.")
    cascade_order: tuple[BankName, ...] | None = Field(
        None, description="Banks to query first, in order; the others follow."
    )
    bank_weights: dict[BankName, Weight] = Field(default_factory=dict, description="Weight by bank; default 1.")
    min_results_to_stop: Count | None = Field(None, description="Number of hits that ends a cascade.")
    min_score_to_stop: float | None = Field(
        None,
        allow_inf_nan=False,
        description="Minimum score, in its bank, of a hit that counts towards min_results_to_stop.",
    )
    dedup_across_banks: bool | None = Field(None, description="Merge hits with the same content from several banks.")
    require_all: bool | None = Field(None, description="Fail the call if a bank fails or times out.")

    @model_validator(mode="after")
    def _check_names(self) -> BankGroupSettings:
        check_placeholders(self.banks)
        for key, names in (("cascade_order", self.cascade_order or ()), ("bank_weights", self.bank_weights)):
            strange = [name for name in names if name not in self.banks]
            if strange:
                raise ValueError(f"{key} contains {strange[0]!r}, which is not a bank of the group")
        return self


class MultiBankSettings(Section):
    """Recall and reflect over several banks."""

    default_strategy: Mode = Field("parallel", description="Default strategy.")
    fusion_method: Literal["rrf", "relative_score", "dbsf"] = Field(
        "rrf",
        description="Fusion method of the banks' lists: ranks (rrf), scores between the least and the most of a bank "
        "(relative_score), or scores by mean and standard deviation over all banks (dbsf).",
    )
    bank_timeout_seconds: Seconds = Field(
        2.0, description="Timeout of one bank. On timeout, the call continues without it."
    )
    most_banks: Count = Field(128, description="Maximum number of banks in a call.")
    bank_groups: dict[str, BankGroupSettings] = Field(default_factory=dict, description="Bank groups by name.")


def check_placeholders(patterns: Iterable[str]) -> None:
    """Check that braces contain only `PLACEHOLDERS`.

    Raises:
        ValueError: Braces contain anything else.
    """
    for pattern in patterns:
        for _, name, spec, conversion in string.Formatter().parse(pattern):
            if name is not None and (name not in PLACEHOLDERS or spec or conversion):
                raise ValueError(f"{pattern!r}: expected one of {', '.join(PLACEHOLDERS)} in braces, got {name!r}")
