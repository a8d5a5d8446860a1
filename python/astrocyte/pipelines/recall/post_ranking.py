"""Stages after the core: they look at more candidates than are wanted, with their rows, and order them anew.

Where no stage is on, or none has anything to do for a query, the core's answer stands as it is and nothing is paid.
Else the core gives `recall.boosts.pool` candidates without a budget, and the budget is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from astrocyte.config import Settings
from astrocyte.core import Answer
from astrocyte.model import Boost, DetailLevel, MemoryHit, RecallQuery
from astrocyte.pipelines.custom.fusion import rescored
from astrocyte.pipelines.index.rows import speaker_label
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.recall.boosts import OWN, BoostStage
from astrocyte.pipelines.recall.curated_ranking import CuratedStage
from astrocyte.pipelines.recall.hits import fitting
from astrocyte.pipelines.recall.usage_statistics import Usage
from astrocyte.pipelines.search.candidates import Asked, Candidate, Stage
from astrocyte.pipelines.search.core_request import STANDING, unit_of
from astrocyte.pipelines.search.plan import Lift, Plan
from astrocyte.stores.records import HydratedRow

# Scores nearer to each other than this were set for the order alone.
TIED = 1e-9
# Hits that feedback keeps; see rust_core/core/src/recall/feedback.rs.
KEPT = 3


class Rescorer:
    """Runs the stages that the settings turn on, in a fixed order.

    Args:
        settings: Which.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        boosts, utility = settings.recall.boosts, settings.recall.utility
        counts = utility.enabled or boosts.frequency.weight > 0.0 or boosts.utility.weight > 0.0
        self.usage = Usage(utility, clock) if counts else None
        self._tells_utility = utility.enabled
        self._pool = boosts.pool
        self._rank_constant = settings.recall.rank_constant
        self._stages: list[Stage] = []
        boosting = self._boosting = BoostStage(boosts, self.usage)
        self._own = [speaker_label(speaker) for speaker in boosts.own.speakers]
        if boosting.any:
            self._stages.append(boosting)
        if settings.curated_recall.enabled:
            self._stages.append(CuratedStage(settings.curated_recall))
        always = self._tells_utility or settings.curated_recall.enabled
        # What a query must hold for a stage to have anything to do; None where one always has.
        self.cue = None if always else boosting.cue

    def pool(self, query: RecallQuery) -> int:
        """The number of candidates that a query needs; 0 where the core's answer stands."""
        wanted = self._tells_utility
        for stage in self._stages:
            wanted = wanted or stage.wanted(query)
        return max(self._pool, query.max_results) if wanted else 0

    def lift(self, plan: Plan) -> Lift | None:
        """The boost that the core adds in the place of the stages, so that no more rows are read than shown.

        That is where nothing but what the asker said is lifted, and hits are counted by their chunks.
        """
        query = plan.query
        boost = self._boosting.own(query)
        alone = not self._tells_utility and all(one is self._boosting or not one.wanted(query) for one in self._stages)
        if boost is None or not alone or query.detail_level is not DetailLevel.CHUNK:
            return None
        unit = self.unit(plan)
        value = min(boost.weight, boost.bound) * unit
        return OWN, self._own, value, STANDING * unit, query.max_results, plan.budget

    def run(
        self, plan: Plan, response: Answer, rows: Sequence[HydratedRow]
    ) -> tuple[list[Candidate], dict[str, float]]:
        """The candidates, best first, equal ones by memory id; and the milliseconds of each stage."""
        by_passage = {row[:2]: row for row in rows}
        candidates = [
            Candidate(hit, row, hit.score, [Boost(name, value) for name, value in hit.boosts])
            for hit in response.hits
            if (row := by_passage.get((hit.key, hit.ordinal))) is not None
        ]
        asked = Asked(plan.query, _today(plan), self.unit(plan))
        if plan.fused is not None:
            candidates = rescored(candidates, plan.fused)
        elif response.trace.feedback_terms:
            _stand(candidates, asked.unit)
        spent = {}
        for stage in self._stages:
            if not stage.wanted(plan.query):
                continue
            start = perf_counter()
            candidates = stage.apply(asked, candidates)
            candidates.sort(key=lambda candidate: (-candidate.score, candidate.hit.memory_id))
            spent[stage.name] = (perf_counter() - start) * 1e3
        if self._tells_utility and self.usage is not None:
            start = perf_counter()
            for candidate in candidates:
                candidate.utility = self.usage.utility(candidate)
            spent["utility"] = (perf_counter() - start) * 1e3
        return candidates, spent

    def unit(self, plan: Plan) -> float:
        """The score of one deviation, or of a first place of rrf, for an analysed plan."""
        return unit_of(plan, self._rank_constant)


def _stand(candidates: list[Candidate], unit: float) -> None:
    """Give hits whose scores were set for the order alone a distance to what stands below them."""
    for place in range(min(KEPT, len(candidates) - 1) - 1, -1, -1):
        mine, below = candidates[place], candidates[place + 1]
        if mine.score - below.hit.score <= TIED * max(1.0, abs(mine.score)) or mine.score < below.score:
            mine.score = below.score + STANDING * unit


def _today(plan: Plan) -> int | None:
    """The instant that ages count from: the caller's date, else ``as_of``, else the bank's newest memory."""
    query = plan.query
    if query.query_reference_date is not None:
        return to_ms(query.query_reference_date)
    if query.as_of is not None:
        return to_ms(query.as_of)
    return plan.index.latest


def reordered(
    query: RecallQuery, candidates: Sequence[Candidate], names: Sequence[str], budget: int
) -> tuple[tuple[MemoryHit, ...], bool]:
    """The first candidates that fit the budget, as hits, and whether one was cut or dropped for it.

    Args:
        query: What was asked.
        candidates: Best first.
        names: Of the arms.
        budget: Tokens.
    """
    hits, truncated = fitting(query, [(one.hit, one.row) for one in candidates], names, budget)
    known = {one.row.memory_id: one for one in candidates}
    found = [(hit, known[hit.memory_id or ""]) for hit in hits]
    return tuple(boosted(hit, one, one.score) for hit, one in found), truncated


def boosted(hit: MemoryHit, candidate: Candidate, score: float) -> MemoryHit:
    """The hit, which was made a moment ago, with the fused score, the boosts and the utility of its candidate."""
    hit.fused_score, hit.boosts, hit.utility_score = score, tuple(candidate.boosts), candidate.utility
    return hit
