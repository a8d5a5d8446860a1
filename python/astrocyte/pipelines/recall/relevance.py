"""Calibrated scores of hits in their final order, and of hits that the core does not rank.

The core estimates the relevance of a hit by its evidence, as if it were the first. Its score is the relevance at its
rank, and never above that of the hit before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from astrocyte.core import relevance_at_rank
from astrocyte.model import MemoryHit


def set_scores(hits: Sequence[MemoryHit]) -> None:
    """Set the scores of new hits, best first, whose scores are their relevances at the first rank."""
    most = 1.0
    for rank, hit in enumerate(hits, 1):
        most = hit.score = min(most, relevance_at_rank(hit.score, rank))


def descending(hits: Sequence[MemoryHit]) -> tuple[MemoryHit, ...]:
    """The hits of several lists in one order, with scores of which none is above the one before."""
    most = 1.0
    kept = []
    for hit in hits:
        most = min(most, hit.score)
        kept.append(hit if hit.score == most else replace(hit, score=most))
    return tuple(kept)


def rank_score(hit: MemoryHit) -> float:
    """The score that ranks a hit among others of its list."""
    return hit.score if hit.fused_score is None else hit.fused_score
