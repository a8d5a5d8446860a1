"""Fusion of the answers of several banks by the core.

The core puts the scores of all banks on one scale, drops repeats, weighs, orders, and splits the token budget
(`rust_core/core/src/cross_bank/mod.rs`). Answers are passed as they are: only hits that leave become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from astrocyte.core import Answer, Hit, fuse_banks, split_budget
from astrocyte.model import FusionMethod

# A hit among all banks: the place of its bank, its row key and ordinal.
Place = tuple[int, int, int]
# Weights of the semantic, the keyword and the temporal arm.
ArmWeights = tuple[float, float, float]


class BankArm(NamedTuple):
    """An arm of a bank's answer: its weight, and its scores over all memories of the bank that pass the filter."""

    name: str
    weight: float
    memories: int
    mean: float
    deviation: float


class BankList(NamedTuple):
    """The ranked list of one bank, and its weight.

    Attributes:
        weight: Of the bank; at 0 its hits are left out, but not what they say of its arms.
        hits: The core's answer, or its hits in another order.
        arms: By the indices that the hits name; None where they are those of the core's answer.
        space: Names the scale of the semantic arm, which banks of the same embedding model share.
        lifts: What stages after the arms added to each hit, in deviations; empty where none did.
        group: Place of the list together with which it says how well a bank answers, and with which it shares its
            tokens, where it is but a part of that bank's answer; -1 for its own.
    """

    weight: float
    hits: Answer | Sequence[Hit]
    arms: Sequence[BankArm] | None = None
    space: str = ""
    lifts: Sequence[float] = ()
    group: int = -1


class Candidate(NamedTuple):
    """A hit of one list. ``rank`` is that in its bank, from 1; ``others`` the banks that repeat it."""

    bank: int
    rank: int
    hit: Hit
    relevance: float
    score: float
    others: Sequence[int]

    @property
    def place(self) -> Place:
        """The key of the candidate."""
        return self.bank, self.hit.key, self.hit.ordinal


class Share(NamedTuple):
    """The result of the token budget: places in the order given, whether any was left out, and each bank's part.

    ``cut`` says that the first hit is larger than the whole budget: it is taken alone, and its text must be cut.
    """

    places: list[int]
    truncated: bool
    cut: bool
    parts: list[int]


class Fusion(NamedTuple):
    """The hits that leave, best first, and what became of the budget, as in `Share`."""

    candidates: list[Candidate]
    truncated: bool
    cut: bool
    parts: list[int]


def fuse(  # noqa: PLR0913 - one argument per part of the strategy
    lists: Sequence[BankList],
    *,
    weights: ArmWeights,
    method: FusionMethod,
    rank_constant: float,
    dedup: bool,
    most: int,
    budget: int | None = None,
    gone: Collection[Place] = (),
) -> Fusion:
    """The hits of all banks in one order, best first; equal scores by relevance, then by memory id, then by bank.

    Args:
        lists: What the banks answered.
        weights: Of the arms, where a list brings none.
        method: rrf, relative_score or dbsf.
        rank_constant: k of rrf.
        dedup: Whether of equal contents the best alone stays.
        most: Hits wanted, at least 1.
        budget: Tokens for all together, at least 1, shared as `share` does; None takes the first ``most`` hits.
        gone: Hits that are not there.
    """
    chosen, truncated, cut, parts = fuse_banks(
        lists,
        weights=weights,
        fusion=method,
        rank_constant=rank_constant,
        dedup=dedup,
        most=most,
        budget=budget,
        gone=list(gone),
    )
    return Fusion([Candidate._make(one) for one in chosen], truncated, cut, parts)


def share(sizes: Sequence[tuple[int, int]], weights: Sequence[float], budget: int, most: int) -> Share:
    """Share a token budget between banks in proportion to their weights; what one leaves is given to the others.

    The first hit is always taken, if need be at the cost of the other banks' parts. Then, in order, a hit is taken if
    its bank's part still has room for it. What no bank used is in the end one part for those that were passed over.

    Args:
        sizes: Per hit, best first, its bank's place in ``weights`` and its tokens.
        weights: Per bank; those of banks without a hit are left out of the split.
        budget: Tokens for all together, at least 1.
        most: Hits wanted, at least 1.
    """
    return Share._make(split_budget(sizes, weights, budget, most))
