"""One question to several banks: how they are asked, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from astrocyte.model.fusion import FusionMethod


class MultiBankMode(StrEnum):
    """In which order banks are asked, and whose hits count.

    ``parallel`` asks all banks at once and fuses their hits. ``cascade`` asks them in order, most specific first, stops
    when it has enough, and fuses the hits of those asked. ``first_match`` asks them in order and takes the hits of the
    first bank that has any.
    """

    PARALLEL = "parallel"
    CASCADE = "cascade"
    FIRST_MATCH = "first_match"


@dataclass(frozen=True, slots=True)
class MultiBankStrategy:
    """The strategy of one call over several banks. Fields are checked by the gate, not here.

    A field that is None is as the bank group says, or else as the configuration and `BankStrategy` do.

    Args:
        mode: In which order banks are asked, and whose hits count; its bare name will do.
        min_results_to_stop: Distinct hits with which a cascade has enough, at least 1.
        min_score_to_stop: Score, as a recall on that bank alone gives it, below which a hit does not count for
            ``min_results_to_stop``, nor as a match for ``first_match``. A recall ranks whatever a bank has, so without
            it the first bank that holds enough memories of any kind ends a cascade.
        cascade_order: Banks to ask first, in this order; the others follow in the order of the request.
        bank_weights: Factor by bank, 0 or more; a bank that is missing has 1, one with 0 is asked but has no hits.
        dedup_across_banks: Whether a content that several banks hold is one hit, which names the other banks.
        fusion_method: How the banks' lists become one.
        require_all: Whether a bank that fails or is late fails the call; else it is named in the trace.
    """

    mode: MultiBankMode | str | None = MultiBankMode.PARALLEL
    min_results_to_stop: int | None = 3
    min_score_to_stop: float | None = None
    cascade_order: Sequence[str] | None = None
    bank_weights: Mapping[str, float] | None = None
    dedup_across_banks: bool | None = True
    fusion_method: FusionMethod | str | None = None
    require_all: bool | None = None


# Leaves everything to the bank group and the configuration.
OPEN_STRATEGY = MultiBankStrategy(None, None, dedup_across_banks=None)


@dataclass(frozen=True, slots=True)
class BankGroup:
    """Banks that are asked together under one name; in their ids {user_id} and its like are filled by who calls."""

    name: str
    banks: tuple[str, ...]
    strategy: MultiBankStrategy


@dataclass(frozen=True, slots=True)
class BankStrategy:
    """A strategy over several banks with nothing left open; see `MultiBankStrategy`."""

    mode: MultiBankMode = MultiBankMode.PARALLEL
    min_results_to_stop: int = 3
    min_score_to_stop: float | None = None
    cascade_order: tuple[str, ...] = ()
    bank_weights: Mapping[str, float] = field(default_factory=dict)
    dedup_across_banks: bool = True
    fusion_method: FusionMethod = FusionMethod.RRF
    require_all: bool = False


class BankOutcome(StrEnum):
    """The outcome of a bank in a call to several."""

    SEARCHED = "searched"
    NOT_NEEDED = "not_needed"
    FAILED = "failed"
    LATE = "late"


@dataclass(slots=True)
class BankTrace:
    """The outcome of one bank.

    ``found`` counts the hits that it offered, ``kept`` those in the answer, ``tokens`` theirs; ``token_budget`` is its
    share of the budget before what others left was given to it. ``reason`` is an error's reason for FAILED, and for
    NOT_NEEDED what ended the search ("enough_results" or "first_match"); "" otherwise. ``position`` is the bank's.
    """

    bank_id: str
    outcome: BankOutcome
    weight: float
    found: int = 0
    kept: int = 0
    tokens: int = 0
    token_budget: int = 0
    position: int = 0
    reason: str = ""
