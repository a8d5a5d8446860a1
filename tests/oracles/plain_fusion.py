"""The fusion of several banks and the split of their budget in plain Python: what the core must equal to the bit.

It says the same as the core in the same order of steps, without any care for time; what it promises is said once more,
in other words, in tests/property/test_bank_fusion.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from astrocyte.model import FusionMethod

LEADERS = 10
LEADERS_WEIGHT = 2.0
TEMPORAL_CAP = 4.0


@dataclass(frozen=True)
class Offered:
    """A hit as fusion reads it."""

    key: int
    memory_id: bytes
    content_hash: bytes
    arms: tuple[tuple[int, int, float], ...]
    tokens: int = 1


@dataclass(frozen=True)
class PlainArm:
    """An arm with its spread over a bank."""

    name: str
    weight: float
    memories: int
    mean: float
    deviation: float


@dataclass(frozen=True)
class PlainList:
    """The answer of a bank."""

    weight: float
    hits: tuple[Offered, ...]
    arms: tuple[PlainArm, ...]
    space: str = ""
    lifts: tuple[float, ...] = ()
    group: int = -1


class PlainHit(NamedTuple):
    """A hit of the one list."""

    bank: int
    rank: int
    hit: Offered
    relevance: float
    score: float
    others: tuple[int, ...]


class PlainShare(NamedTuple):
    """The hits within a budget."""

    places: list[int]
    truncated: bool
    cut: bool
    parts: list[int]


def added(values: Sequence[float]) -> float:
    """Their sum, one after the other: from Python 3.12 on `sum` makes up for rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


def weighted(relevance: float, weight: float) -> float:
    return relevance * weight if relevance >= 0.0 else relevance / weight


def fuse(lists: Sequence[PlainList], method: FusionMethod, rank_constant: float, *, dedup: bool) -> list[PlainHit]:
    """All hits of all banks, best first."""
    relevances = _relevances(lists)
    hits = [
        PlainHit(bank, place, hit, relevances[bank][place - 1], weighted(relevances[bank][place - 1], one.weight), ())
        for bank, one in enumerate(lists)
        if one.weight > 0.0
        for place, hit in enumerate(one.hits, 1)
    ]
    if dedup:
        hits = _without_repeats(hits)
    if method is FusionMethod.RRF:
        ranks = [sum(other.bank == one.bank for other in hits[: place + 1]) for place, one in enumerate(hits)]
        hits = [
            one._replace(score=lists[one.bank].weight / (rank_constant + rank))
            for one, rank in zip(hits, ranks, strict=True)
        ]
    if method is FusionMethod.RELATIVE_SCORE:
        hits = [
            one._replace(score=lists[one.bank].weight * min_max(one.relevance, relevances[one.bank])) for one in hits
        ]
    return sorted(hits, key=lambda one: (-one.score, -one.relevance, one.hit.memory_id, one.bank))


def min_max(value: float, values: Sequence[float]) -> float:
    """The value between the least and the most; 1 where all are equal."""
    least, most = min(values), max(values)
    return (value - least) / (most - least) if most > least else 1.0


def _without_repeats(hits: list[PlainHit]) -> list[PlainHit]:
    kept = []
    for one in hits:
        alike = [other for other in hits if other.hit.content_hash == one.hit.content_hash]
        # The first of those that are worth most.
        if max(alike, key=lambda other: other.score) is one:
            kept.append(one._replace(others=tuple(sorted(other.bank for other in alike if other is not one))))
    return kept


def _relevances(lists: Sequence[PlainList]) -> list[list[float]]:
    found = []
    for one in lists:
        scales = [(arm, *_pooled(lists, one, arm)) for arm in one.arms]
        absent = [_value(arm, mean, deviation, arm.mean) for arm, mean, deviation in scales]
        values = []
        for place, hit in enumerate(one.hits):
            value = added(absent)
            for arm, _, score in hit.arms:
                value += _value(*scales[arm], score) - absent[arm]
            values.append(value + one.lifts[place] if one.lifts else value)
        found.append(values)
    groups = [place if one.group < 0 else one.group for place, one in enumerate(lists)]
    lifts = {}
    for group in groups:
        together = [value for own, values in zip(groups, found, strict=True) if own == group for value in values]
        best = sorted(together, reverse=True)[:LEADERS]
        lifts[group] = LEADERS_WEIGHT * added(best) / len(best) if best else 0.0
    return [[value + lifts[group] for value in values] for group, values in zip(groups, found, strict=True)]


def _value(arm: PlainArm, mean: float, deviation: float, score: float) -> float:
    """The part of a relevance that an arm's score adds."""
    far = (score - mean) / (deviation or 1.0)
    return (arm.weight if deviation else 0.0) * min(far, TEMPORAL_CAP if arm.name == "temporal" else math.inf)


def _pooled(lists: Sequence[PlainList], mine: PlainList, arm: PlainArm) -> tuple[float, float]:
    """Mean and deviation of an arm over the memories of all banks whose scores are on the same scale."""
    peers = [
        other
        for one in lists
        for other in one.arms
        if other.name == arm.name and (arm.name != "semantic" or one.space == mine.space)
    ]
    count = sum(one.memories for one in peers)
    if not count:
        return 0.0, 0.0
    mean = added([one.memories * one.mean for one in peers]) / count
    squares = added([one.memories * (one.deviation * one.deviation + one.mean * one.mean) for one in peers])
    variance = squares / count - mean * mean
    return mean, math.sqrt(variance) if variance > 0.0 else 0.0


def split_budget(sizes: Sequence[tuple[int, int]], weights: Sequence[float], budget: int, most: int) -> PlainShare:
    """Share a token budget between banks."""
    present = {bank for bank, _ in sizes}
    parts = _parts(present, weights, budget)
    if not sizes:
        return PlainShare([], truncated=False, cut=False, parts=parts)
    first, size = sizes[0]
    if size > budget:
        return PlainShare([0], truncated=True, cut=True, parts=parts)
    left = list(parts)
    if size > left[first]:
        left = _parts(present - {first}, weights, budget - size)
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
    return PlainShare(sorted(taken), truncated, cut=False, parts=parts)


def _parts(present: Collection[int], weights: Sequence[float], budget: int) -> list[int]:
    total = added([weights[bank] for bank in sorted(present)])
    return [int(budget * weight / total) if bank in present else 0 for bank, weight in enumerate(weights)]
