"""The confidence that memory holds what was asked: that of the recall, less where the subject is another one."""

from __future__ import annotations

import math

from astrocyte.pipelines.reflect.evidence import Evidence

# By what the log odds fall where the question names a speaker, or a person in memories without speakers: for each unit
# by which the best sentence about this one leads that about another by less than ENOUGH. Then for a name that no memory
# holds. Set by hand on LoCoMo's single-hop and adversarial questions; docs/quality.md has the result.
OTHER_SUBJECT, ENOUGH, UNKNOWN = 4.0, 0.2, 0.4


def confidence(recalled: float, evidence: Evidence) -> float:
    """From 0 to ``recalled``, the confidence of the recall; 0 where there is nothing at all."""
    if not evidence.sentences:
        return 0.0
    if not 0.0 < recalled < 1.0:
        return recalled
    against = UNKNOWN * bool(evidence.unknown)
    if evidence.speaker is not None or evidence.person is not None:
        against += OTHER_SUBJECT * max(ENOUGH - evidence.support, 0.0)
    return 1 / (1 + math.exp(against) * (1 - recalled) / recalled)
