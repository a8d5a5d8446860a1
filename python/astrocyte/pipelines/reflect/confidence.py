"""The confidence that memory holds what was asked: a logistic function of the evidence."""

from __future__ import annotations

import math

from astrocyte.pipelines.reflect.evidence import Evidence

# The weights were rounded by hand, the best of several tries on development data; only the intercept was fitted, on
# questions with an answer, questions of other banks, and questions about the wrong one of two speakers. docs/quality.md
# says how well it does.
BASE = -3.4
SUPPORT, NAMED, COVERED, MEANING, UNKNOWN = 1.6, -0.8, 2.0, 3.5, -0.7


def confidence(evidence: Evidence) -> float:
    """From 0 to 1; 0 where there is nothing at all."""
    if not evidence.sentences:
        return 0.0
    logit = (
        BASE
        + SUPPORT * evidence.support
        + NAMED * (evidence.speaker is not None)
        + COVERED * evidence.covered
        + MEANING * evidence.meaning
        + UNKNOWN * bool(evidence.unknown)
    )
    return 1 / (1 + math.exp(-logit))
