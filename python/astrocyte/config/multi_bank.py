"""Recall over several banks: how they are asked where a call does not say, and the sets of banks that have a name."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from astrocyte.config.section import Count, Seconds, Section, Weight

Mode = Literal["parallel", "cascade", "first_match"]
# What a name may hold in braces.
PLACEHOLDERS = ("user_id", "agent_id", "service_id", "team_id", "tenant_id")
# A bank id in which {user_id} and its like stand for a part of who calls.
BankName = Annotated[str, Field(pattern=r"^[A-Za-z0-9{][A-Za-z0-9._:@{}_-]{0,254}$")]


class BankGroupSettings(Section):
    """Banks that are asked together under one name, and how; what is left out, the call or `multi_bank` says.

    Names may hold {user_id}, {agent_id}, {service_id}, {team_id} and {tenant_id}, filled from who calls, or from whom
    the call is made for.
    """

    banks: tuple[BankName, ...] = Field(min_length=1, description="Bank ids, most specific first.")
    strategy: Mode | None = Field(None, description="How they are asked.")
    cascade_order: tuple[BankName, ...] | None = Field(None, description="Which to ask first; the others follow.")
    bank_weights: dict[BankName, Weight] = Field(default_factory=dict, description="Factor by bank; 1 for others.")
    min_results_to_stop: Count | None = Field(None, description="Hits with which a cascade has enough.")
    min_score_to_stop: float | None = Field(
        None, allow_inf_nan=False, description="Score in its own bank below which a hit does not count for that."
    )
    dedup_across_banks: bool | None = Field(None, description="Whether a content that several banks hold is one hit.")
    require_all: bool | None = Field(None, description="Whether a bank that fails, or is late, fails the call.")

    @model_validator(mode="after")
    def _check_names(self) -> BankGroupSettings:
        check_placeholders(self.banks)
        for key, names in (("cascade_order", self.cascade_order or ()), ("bank_weights", self.bank_weights)):
            strange = [name for name in names if name not in self.banks]
            if strange:
                raise ValueError(f"{key} names {strange[0]!r}, which is not among the banks of the group")
        return self


class MultiBankSettings(Section):
    """Recall and reflect over several banks."""

    default_strategy: Mode = Field("parallel", description="How several banks are asked where nothing else says.")
    # On LoCoMo with five conversations as banks, relative_score finds 92 % of what asking the right bank alone does,
    # rrf 60 %: it gives every bank its share of the places, whether it knows the answer or not.
    fusion_method: Literal["rrf", "relative_score"] = Field(
        "relative_score", description="How the lists of several banks become one."
    )
    bank_timeout_seconds: Seconds = Field(2.0, description="How long a call waits for a bank before it goes on.")
    most_banks: Count = Field(128, description="Banks of one call.")
    bank_groups: dict[str, BankGroupSettings] = Field(default_factory=dict, description="Groups by name.")


def check_placeholders(patterns: Iterable[str]) -> None:
    """Refuse names whose braces do not hold one of `PLACEHOLDERS`.

    Raises:
        ValueError: What stands in the braces instead.
    """
    for pattern in patterns:
        for _, name, spec, conversion in string.Formatter().parse(pattern):
            if name is not None and (name not in PLACEHOLDERS or spec or conversion):
                raise ValueError(f"{pattern!r}: expected one of {', '.join(PLACEHOLDERS)} in braces, got {name!r}")
