"""From the lists of several sides to one: the pipeline's own, and those of engines beside it.

Sides score as they please, so their scores are never compared with each other: `rrf` takes ranks, `relative_score` lays
each side's scores over 0 to 1. Then weights multiply. Of equal texts the one that is worth most counts, and what the
database knows of a memory is shown before what an engine says of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from astrocyte.core import content_hash, relevance_at_rank, text_relevance
from astrocyte.model import ArmScore, FusionMethod, MemoryHit
from astrocyte.pipelines.recall.relevance import descending, rank_score

# Before the name of an engine, among the arms of a hit.
ARM_PREFIX = "engine:"
# What stands as the source of a hit that has none.
TIER_1, TIER_2 = "tier1_pipeline", "tier2_engine"


@dataclass(frozen=True, slots=True)
class SideList:
    """The hits of one side, best first. ``engine`` is "" for the pipeline.

    ``weights`` are factors by bank; a bank that is missing has 1, hits of one with 0 are left out.
    """

    engine: str
    hits: Sequence[MemoryHit]
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Candidate:
    side: int
    rank: int
    hit: MemoryHit
    value: float
    arms: tuple[ArmScore, ...]
    banks: tuple[str, ...] = ()


def fuse_sides(
    sides: Sequence[SideList],
    method: FusionMethod,
    rank_constant: float,
    *,
    query: str = "",
    across_banks: bool = False,
) -> list[MemoryHit]:
    """Return the hits of all sides, best first, each text of a bank once.

    Equal scores are in the order of sides, then of ranks.

    Args:
        sides: Those that answered, the pipeline first.
        method: relative_score or rrf.
        rank_constant: k of rrf.
        query: The question, by which the relevance of engine results is estimated.
        across_banks: Whether a text that several banks hold is one hit, which names the other banks.
    """
    best: dict[object, _Candidate] = {}
    for one in _candidates(sides, method, rank_constant):
        same = content_hash(one.hit.text)
        key: object = same if across_banks else (one.hit.bank_id, same)
        kept = best.get(key)
        if kept is None:
            best[key] = one
            continue
        if one.hit.bank_id != kept.hit.bank_id:
            kept.banks = (*kept.banks, *one.hit.also_in, one.hit.bank_id or "", kept.hit.bank_id or "")
            if one.value > kept.value and kept.hit.engine:
                # Of the bank where it is worth most; a hit of the database stays.
                kept.hit, kept.side, kept.rank = one.hit, one.side, one.rank
        kept.value = max(kept.value, one.value)
        kept.arms += tuple(arm for arm in one.arms if arm.arm not in {known.arm for known in kept.arms})
    ranked = sorted(best.values(), key=lambda one: (-one.value, one.side, one.rank))
    hits = [
        replace(one.hit, fused_score=one.value, arms=one.arms, also_in=_also_in(one.hit, one.banks)) for one in ranked
    ]
    scored = [
        replace(hit, score=relevance_at_rank(text_relevance(query, hit.text), place)) if hit.engine else hit
        for place, hit in enumerate(hits, 1)
    ]
    return list(descending(scored))


def _also_in(hit: MemoryHit, banks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the other banks that hold a hit, each once."""
    return tuple(dict.fromkeys(bank for bank in (*hit.also_in, *banks) if bank != hit.bank_id))


def _candidates(sides: Sequence[SideList], method: FusionMethod, rank_constant: float) -> list[_Candidate]:
    candidates = []
    for place, side in enumerate(sides):
        scores = [rank_score(hit) for hit in side.hits]
        least, span = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
        for rank, (hit, score) in enumerate(zip(side.hits, scores, strict=True), 1):
            weight = side.weights.get(hit.bank_id or "", 1.0)
            if weight <= 0.0:
                continue
            if method is FusionMethod.RRF:
                value = weight / (rank_constant + rank)
            else:
                value = weight * ((score - least) / span if span > 0.0 else 1.0)
            arms = hit.arms if not side.engine else (ArmScore(f"{ARM_PREFIX}{side.engine}", rank, score),)
            candidates.append(_Candidate(place, rank, hit, value, arms))
    return candidates


def tagged(hits: Sequence[MemoryHit]) -> list[MemoryHit]:
    """Hits that say as their source which side they are of, where they have no other."""
    return [hit if hit.source else replace(hit, source=TIER_2 if hit.engine else TIER_1) for hit in hits]
