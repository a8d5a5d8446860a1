"""Custom fusion: the merge of the arms' lists by a program of the operator's.

The core ranks by its own fusion all that the arms propose, so that nothing is lost before the other is asked; its
scores then take the place of the core's, on the core's scale.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from astrocyte.core import Answer
from astrocyte.pipelines.custom.bounded_call import BoundedStage, UnusableError
from astrocyte.pipelines.index.rows import bytes_to_id
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.pipelines.search.plan import Plan
from astrocyte.providers.stages import Fusion, RankedList

STAGE = "fusion"


class CustomFusion:
    """Calls a custom fusion within bounds.

    Args:
        name: What the trace calls it.
        fusion: Whom.
        stage: How.
    """

    def __init__(self, name: str, fusion: Fusion, stage: BoundedStage) -> None:
        self.name = name
        self.fusion = fusion
        self._stage = stage

    async def fuse(self, plan: Plan, response: Answer, weights: Mapping[str, float]) -> None:
        """Set the scores of the plan's candidates; None if the fusion failed.

        Args:
            plan: Searched.
            response: All candidates that the core has.
            weights: By arm.
        """
        if not response.hits:
            return
        lists = _lists(response, weights)
        outcome = await self._stage.call(
            plan.bank.bank_id,
            lambda deadline: self.fusion.fuse(plan.query.query, lists, deadline=deadline),
            lambda scores: _checked(scores, response),
        )
        plan.fused = outcome.value
        plan.spent = {**plan.spent, STAGE: outcome.millis}
        if outcome.value is not None:
            plan.fusion_name = self.name
        else:
            plan.missed(self._stage.told(outcome.problem))


def rescored(candidates: Sequence[Candidate], scores: Mapping[bytes, float]) -> list[Candidate]:
    """Candidates with the scores of a custom fusion, best first; those without a score are left out."""
    kept = [one for one in candidates if one.hit.memory_id in scores]
    if not kept:
        return []
    own = [one.hit.score for one in kept]
    given = [scores[one.hit.memory_id] for one in kept]
    spread, middle = statistics.pstdev(given), statistics.fmean(given)
    mean, deviation = statistics.fmean(own), statistics.pstdev(own) or 1.0
    for one, score in zip(kept, given, strict=True):
        place = mean + (score - middle) / spread * deviation if spread > 0.0 else mean
        one.add(STAGE, place - one.score)
        # To the bit, so that what it scores alike is alike.
        one.score = place
    kept.sort(key=lambda one: (-scores[one.hit.memory_id], one.hit.memory_id))
    return kept


def _lists(response: Answer, weights: Mapping[str, float]) -> list[RankedList]:
    names = response.arm_names
    entries: list[list[tuple[str, int, float]]] = [[] for _ in names]
    for hit in response.hits:
        memory_id = bytes_to_id(hit.memory_id)
        for arm, rank, score in hit.arms:
            if rank:
                entries[arm].append((memory_id, rank, score))
    return [
        RankedList(name, weights.get(name, 1.0), tuple(sorted(own, key=lambda one: (one[1], one[0]))))
        for name, own in zip(names, entries, strict=True)
    ]


def _checked(scores: object, response: Answer) -> dict[bytes, float]:
    """Scores of candidates, by identity.

    Raises:
        UnusableError: It is no mapping of ids to finite numbers.
    """
    if not isinstance(scores, Mapping):
        raise UnusableError
    if not all(isinstance(score, (int, float)) and math.isfinite(score) for score in scores.values()):
        raise UnusableError
    known = {bytes_to_id(hit.memory_id): hit.memory_id for hit in response.hits}
    return {known[one]: float(score) for one, score in scores.items() if one in known}
