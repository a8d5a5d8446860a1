"""Ranking metrics of one question, and their means with paired bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence

Scores = Mapping[str, float]

# The depths that readers of other memory benchmarks know.
RECALL_DEPTHS = (5, 10, 20)
# Depth of the hit rate and of nDCG: what a reader model is usually given.
HEAD = 10
METRICS = ("R@1", *(f"R@{depth}" for depth in RECALL_DEPTHS), f"Hit@{HEAD}", "MRR", f"nDCG@{HEAD}")
# Enough resamples that the ends of a 95 % interval move by less than .002 between seeds.
RESAMPLES = 2000
CONFIDENCE = 0.95


def score(ranked: Sequence[str], evidence: Iterable[str]) -> dict[str, float]:
    """Metrics of one ranking.

    R@1 is 1 if the first id is evidence, R@k for other k the share of the evidence among the first k, Hit@10 whether
    any of it is among the first 10, MRR the inverse rank of the first piece of it (0 when none was returned), nDCG@10
    the gain with binary relevance over that of the best possible order.

    Args:
        ranked: Ids, best first; an id that comes again counts once, where it came first.
        evidence: The ids that should come back; at least one.

    Returns:
        One value from 0 to 1 for each name in `METRICS`.

    Raises:
        ValueError: There is no evidence.

    Source:
        Järvelin and Kekäläinen, TOIS 2002 (nDCG).
    """
    wanted = frozenset(evidence)
    if not wanted:
        raise ValueError("evidence: expected at least one id, got none")
    found = [identifier in wanted for identifier in dict.fromkeys(ranked)]
    scores = {"R@1": float(any(found[:1]))}
    scores.update({f"R@{depth}": sum(found[:depth]) / len(wanted) for depth in RECALL_DEPTHS})
    scores[f"Hit@{HEAD}"] = float(any(found[:HEAD]))
    scores["MRR"] = 1 / (found.index(True) + 1) if any(found) else 0.0
    gain = sum(_discount(rank) for rank, relevant in enumerate(found[:HEAD], 1) if relevant)
    scores[f"nDCG@{HEAD}"] = gain / sum(_discount(rank) for rank in range(1, min(len(wanted), HEAD) + 1))
    return scores


def mean(scores: Sequence[Scores]) -> dict[str, float]:
    """The mean of each metric over questions; empty without questions."""
    if not scores:
        return {}
    return {name: math.fsum(one[name] for one in scores) / len(scores) for name in METRICS}


def area(known: Sequence[float], traps: Sequence[float]) -> float:
    """Chance that a value of `known` is above one of `traps`; equal ones count half.

    Raises:
        ValueError: One of the two is empty.
    """
    if not known or not traps:
        raise ValueError(f"expected values on both sides, got {len(known)} and {len(traps)}")
    return math.fsum((one > trap) + 0.5 * (one == trap) for one in known for trap in traps) / len(known) / len(traps)


def paired_interval(
    new: Sequence[float], old: Sequence[float], *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """The mean difference new - old and its bootstrap interval.

    Questions are drawn with replacement, both runs' values of a question together.

    Args:
        new: One value per question.
        old: The values of the same questions in the same order.
        seed: Seed of the draws.
        resamples: Number of draws; at least 1.

    Returns:
        Difference, lower and upper end of the 95 % percentile interval.

    Raises:
        ValueError: The runs differ in length or are empty.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    if not new or len(new) != len(old):
        raise ValueError(f"expected two runs of equal length, got {len(new)} and {len(old)} values")
    differences = [a - b for a, b in zip(new, old, strict=True)]
    count = len(differences)
    draw = random.Random(seed)
    means = sorted(math.fsum(draw.choices(differences, k=count)) / count for _ in range(resamples))
    tail = (1 - CONFIDENCE) / 2
    lower = means[math.floor(tail * (resamples - 1))]
    upper = means[math.ceil((1 - tail) * (resamples - 1))]
    return math.fsum(differences) / count, lower, upper


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
