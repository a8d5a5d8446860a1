"""From the lists of several banks to one: repeats out, scores on one scale, weights, and each bank's share of tokens.

Scores of different banks cannot be compared as they are: a bank's z-scores say how much a memory stands out in *that*
bank, and every bank has a best memory, whether it knows the answer or not. `relative_score` puts the raw scores of
each arm on the scale that one bank of all memories would have had: mean and deviation pooled over the banks, from their
counts, means and deviations. To that it adds how well the bank as a whole answers (collection selection: Callan, Lu and
Croft, 1995), the mean of its best few hits. `rrf` uses ranks only (Cormack, Clarke and Büttcher, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from astrocyte.core import Hit
from astrocyte.model import FusionMethod

# Hits that say how well a bank answers, and what their mean counts beside a hit's own relevance: on LoCoMo with five
# conversations as banks, R@10 is .691 with 3 and 1, .697 with 5 and 2, .705 with these.
LEADERS = 10
LEADERS_WEIGHT = 2.0
# As in the core: near a date, few memories of a bank may stand out by far without saying more.
TEMPORAL_CAP = 4.0


class Spread(NamedTuple):
    """An arm's scores over all memories of a bank that pass the filter."""

    memories: int
    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class BankList:
    """What one bank answered: hits, best first, and its arms with their names, weights and spreads.

    ``space`` names the scale of the semantic arm, which banks of the same embedding model share. ``lifts`` are what
    stages after the arms added to each hit, in deviations; empty where none did. ``group`` is the place of the list
    together with which it says how well a bank answers, where it is but a part of that bank's answer; -1 for its own.
    """

    weight: float
    hits: Sequence[Hit]
    arm_names: Sequence[str]
    arm_weights: Sequence[float]
    spreads: Sequence[Spread]
    space: str = ""
    lifts: Sequence[float] = ()
    group: int = -1


@dataclass(slots=True)
class Candidate:
    """A hit on its way into one list. ``rank`` is that in its bank, from 1; ``others`` the banks that repeat it."""

    bank: int
    rank: int
    hit: Hit
    relevance: float
    score: float
    others: tuple[int, ...] = ()


def fuse(lists: Sequence[BankList], method: FusionMethod, rank_constant: float, *, dedup: bool) -> list[Candidate]:
    """All hits of all banks in one order, best first; equal scores by relevance, then by memory id, then by bank.

    Args:
        lists: What the banks answered.
        method: relative_score or rrf.
        rank_constant: k of rrf.
        dedup: Whether of equal contents the best alone stays.
    """
    candidates = [
        Candidate(bank, place, hit, relevance, _weighted(relevance, one.weight))
        for bank, (one, values) in enumerate(zip(lists, _relevances(lists), strict=True))
        if one.weight > 0.0
        for place, (hit, relevance) in enumerate(zip(one.hits, values, strict=True), 1)
    ]
    if dedup:
        candidates = _without_repeats(candidates)
    if method is FusionMethod.RRF:
        places = [0] * len(lists)
        for one in candidates:
            places[one.bank] += 1
            one.score = lists[one.bank].weight / (rank_constant + places[one.bank])
    return _sorted(candidates)


def _sorted(candidates: list[Candidate]) -> list[Candidate]:
    """Best first; what ties are broken by is looked at only where there are any."""
    candidates.sort(key=lambda one: (one.score, one.relevance), reverse=True)
    keys = [(one.score, one.relevance) for one in candidates]
    if len(set(keys)) < len(keys):
        candidates.sort(key=lambda one: (-one.score, -one.relevance, one.hit.memory_id, one.bank))
    return candidates


def _weighted(relevance: float, weight: float) -> float:
    """Relevance times weight, so that a greater weight never lowers it."""
    return relevance * weight if relevance >= 0.0 else relevance / weight


def _without_repeats(candidates: list[Candidate]) -> list[Candidate]:
    """The best of each content, in the order of the candidates, with the banks of the others in their order.

    Scores are weighted relevances here.
    """
    best: dict[bytes, Candidate] = {}
    repeats = 0
    for one in candidates:
        content = one.hit.content_hash
        kept = best.setdefault(content, one)
        if kept is one:
            continue
        repeats += 1
        if one.score > kept.score:
            one.others = (kept.bank, *kept.others)
            best[content] = one
        else:
            kept.others = (*kept.others, one.bank)
    if not repeats:
        return candidates
    chosen = [one for one in candidates if best[one.hit.content_hash] is one]
    for one in chosen:
        one.others = tuple(sorted(one.others))
    return chosen


def _relevances(lists: Sequence[BankList]) -> list[list[float]]:
    """Per bank and hit, the relevance on the scale of all banks together."""
    pooled = _pooled(lists)
    relevances = []
    for one in lists:
        means, units, factors, tops = [], [], [], []
        for name, weight in zip(one.arm_names, one.arm_weights, strict=True):
            together = pooled[name, one.space if name == "semantic" else ""]
            means.append(together.mean)
            units.append(together.deviation or 1.0)
            factors.append(weight if together.deviation else 0.0)
            tops.append(TEMPORAL_CAP if name == "temporal" else math.inf)
        # A hit that an arm did not propose has what the bank's memories have on the average.
        absent = [
            factor * min((spread.mean - mean) / unit, top)
            for factor, spread, mean, unit, top in zip(factors, one.spreads, means, units, tops, strict=True)
        ]
        base = sum(absent)
        values = []
        for hit in one.hits:
            value = base
            for arm, _, score in hit.arms:
                deviations = (score - means[arm]) / units[arm]
                # As `min` does it, without the call: a thousand hits have three thousand of these.
                if deviations > tops[arm]:  # noqa: PLR1730 - see above
                    deviations = tops[arm]
                value += factors[arm] * deviations - absent[arm]
            values.append(value)
        if one.lifts:
            values = [value + lift for value, lift in zip(values, one.lifts, strict=True)]
        relevances.append(values)
    return _lifted(lists, relevances)


def _lifted(lists: Sequence[BankList], relevances: Sequence[list[float]]) -> list[list[float]]:
    """The relevances, to each of which is added how well its bank answers: the mean of the best of its group."""
    groups = [place if one.group < 0 else one.group for place, one in enumerate(lists)]
    together: dict[int, list[float]] = {}
    for group, values in zip(groups, relevances, strict=True):
        together.setdefault(group, []).extend(values)
    leaders = {group: sorted(values, reverse=True)[:LEADERS] for group, values in together.items()}
    lifts = {group: LEADERS_WEIGHT * sum(best) / len(best) if best else 0.0 for group, best in leaders.items()}
    return [[value + lifts[group] for value in values] for group, values in zip(groups, relevances, strict=True)]


def _pooled(lists: Sequence[BankList]) -> dict[tuple[str, str], Spread]:
    """Each arm's spread over the memories of all banks, by arm and, for the semantic one, embedding space."""
    sums: dict[tuple[str, str], tuple[int, float, float]] = {}
    for one in lists:
        for name, spread in zip(one.arm_names, one.spreads, strict=True):
            key = (name, one.space if name == "semantic" else "")
            count, total, squares = sums.get(key, (0, 0.0, 0.0))
            square = spread.deviation * spread.deviation + spread.mean * spread.mean
            sums[key] = (
                count + spread.memories,
                total + spread.memories * spread.mean,
                squares + spread.memories * square,
            )
    pooled = {}
    for key, (count, total, squares) in sums.items():
        mean = total / count if count else 0.0
        variance = squares / count - mean * mean if count else 0.0
        pooled[key] = Spread(count, mean, math.sqrt(variance) if variance > 0.0 else 0.0)
    return pooled


class Share(NamedTuple):
    """What the token budget lets through: places in the order given, whether any was left out, and each bank's part.

    ``cut`` says that the first hit is larger than the whole budget: it is taken alone, and its text must be cut.
    """

    places: list[int]
    truncated: bool
    cut: bool
    parts: list[int]


def split_budget(sizes: Sequence[tuple[int, int]], weights: Sequence[float], budget: int, most: int) -> Share:
    """Share a token budget between banks in proportion to their weights; what one leaves is given to the others.

    The first hit is always taken, if need be at the cost of the other banks' parts. Then, in order, a hit is taken if
    its bank's part still has room for it. What no bank used is in the end one part for those that were passed over.

    Args:
        sizes: Per hit, best first, its bank's place in ``weights`` and its tokens.
        weights: Per bank; those of banks without a hit are left out of the split.
        budget: Tokens for all together, at least 1.
        most: Hits wanted, at least 1.
    """
    parts = _parts({bank for bank, _ in sizes}, weights, budget)
    if not sizes:
        return Share([], truncated=False, cut=False, parts=parts)
    first, size = sizes[0]
    if size > budget:
        return Share([0], truncated=True, cut=True, parts=parts)
    left = list(parts)
    if size > left[first]:
        left = _parts({bank for bank, _ in sizes} - {first}, weights, budget - size)
    else:
        left[first] -= size
    taken, passed = [0], []
    for place, (bank, tokens) in enumerate(sizes[1:], 1):
        if len(taken) == most:
            break
        if tokens <= left[bank]:
            left[bank] -= tokens
            taken.append(place)
        else:
            passed.append(place)
    spare = budget - sum(sizes[place][1] for place in taken)
    truncated = False
    for place in passed:
        tokens = sizes[place][1]
        if tokens <= spare and len(taken) < most:
            spare -= tokens
            taken.append(place)
        else:
            truncated = True
    return Share(sorted(taken), truncated, cut=False, parts=parts)


def _parts(present: Collection[int], weights: Sequence[float], budget: int) -> list[int]:
    """Each bank's part of the budget in whole tokens, 0 for those that are not present."""
    total = sum(weights[bank] for bank in present)
    return [int(budget * weight / total) if bank in present else 0 for bank, weight in enumerate(weights)]
