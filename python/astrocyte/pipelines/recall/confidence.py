"""How likely the hits hold what was asked, by the scores of the first one alone.

The words of a question that fill few memories add up to a high keyword score only where a memory holds several of them,
and its meaning is near. Ranks, gaps between hits, and scores by the spread of the bank's say less: every question has a
best memory, and a question of another bank stands out as far as one of this bank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from astrocyte.core import RecallResponse

# A logistic function fitted on 2,605 questions of LoCoMo, LifeBench and BEAM, half of them put to a bank that knows
# nothing of it, with the bundled embedder; docs/quality.md says how well it does.
BASE, MEANING, WORDS = -3.6, 1.1, 0.12


def confidence(response: RecallResponse) -> float:
    """From 0 to 1; 0 where there are no hits."""
    scores = response.lead_scores
    return 0.0 if scores is None else confidence_of(*scores)


def confidence_of(meaning: float, words: float) -> float:
    """As `confidence`, by the scores of the first hit in the semantic and the keyword arm."""
    return 1 / (1 + math.exp(-(BASE + MEANING * meaning + WORDS * words)))


def most_confidence(scores: Sequence[tuple[float, float]]) -> float:
    """The most that `confidence_of` gives of any; 0 where there are none."""
    if not scores:
        return 0.0
    # Of the sums, since the function only grows with them.
    return 1 / (1 + math.exp(-max([BASE + MEANING * meaning + WORDS * words for meaning, words in scores])))
