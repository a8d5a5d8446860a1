"""Custom retrieval arms: their lists are fused in the core like those of external stores.

The core takes of a list only memories that it has and that pass the filter, and the truth decides on each of them as on
any other hit; so an arm decides at most in which order what may be seen is shown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from astrocyte.config import RecallSettings
from astrocyte.pipelines.custom.bounded_call import BoundedStage, UnusableError
from astrocyte.pipelines.external_stores.items import filters_of
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.pipelines.search.arm_paths import paths_of
from astrocyte.pipelines.search.plan import ExternalList, Plan
from astrocyte.providers.stages import ArmQuery, RetrievalArm


@dataclass(frozen=True, slots=True)
class CustomArm:
    """A custom arm with its weight and its deadline."""

    arm: RetrievalArm
    weight: float
    stage: BoundedStage


class CustomArms:
    """Queries the custom arms concurrently.

    Args:
        arms: By name.
        settings: How many candidates an arm has.
    """

    def __init__(self, arms: Mapping[str, CustomArm], settings: RecallSettings) -> None:
        self.arms = arms
        self._settings = settings

    async def ask(self, plan: Plan) -> list[ExternalList]:
        """The proposals of the arms; records in the plan the time of each, and which failed."""
        query = plan.query
        depth = max(self._settings.depth, self._settings.overfetch * query.max_results)
        asked = ArmQuery(plan.bank.tenant, plan.bank.bank_id, query.query, plan.vector, filters_of(query), depth)
        found = await asyncio.gather(*[self._proposed(plan, name, one, asked) for name, one in self.arms.items()])
        return [one for one in found if one is not None]

    async def _proposed(self, plan: Plan, name: str, one: CustomArm, query: ArmQuery) -> ExternalList | None:
        outcome = await one.stage.call(
            query.bank_id,
            lambda deadline: one.arm.search(query, deadline=deadline),
            lambda hits: (_memories(hits, query.limit), paths_of(hits)),
        )
        plan.proposing = {**plan.proposing, name: outcome.millis}
        if outcome.value is None:
            plan.missed(one.stage.told(outcome.problem))
            return None
        memories, paths = outcome.value
        if paths:
            plan.paths = paths
        return name, one.weight, memories


def _memories(hits: object, most: int) -> list[tuple[bytes, float]]:
    """Memories by their best score, best first; invalid ids are left out.

    Raises:
        UnusableError: It is no list of ids with finite scores.
    """
    if not isinstance(hits, Sequence) or isinstance(hits, str):
        raise UnusableError
    best: dict[bytes, float] = {}
    for memory_id, score in hits[:most]:
        if not isinstance(memory_id, str) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise UnusableError
        identity = id_to_bytes(memory_id)
        if identity is not None:
            best[identity] = max(float(score), best.get(identity, float(score)))
    return sorted(best.items(), key=lambda one: (-one[1], one[0]))
