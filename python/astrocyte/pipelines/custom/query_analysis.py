"""Custom query analysis: intent and windows of a question, by a program of the operator's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

from astrocyte.model import Intent, QueryIntent, TimeRange
from astrocyte.pipelines.custom.bounded_call import BoundedStage, UnusableError
from astrocyte.pipelines.query.time_windows import EARLIEST_MS, LATEST_MS, to_ms
from astrocyte.pipelines.search.plan import Plan, Reading
from astrocyte.providers.stages import QueryAnalyser, QueryAnalysis

STAGE = "query_analysis"
MOST_WINDOWS = 16


class CustomAnalysis:
    """Calls a custom query analyser within bounds.

    Args:
        analyser: Whom.
        stage: How.
    """

    def __init__(self, analyser: QueryAnalyser, stage: BoundedStage) -> None:
        self.analyser = analyser
        self._stage = stage

    async def analyse(self, plans: Sequence[Plan]) -> None:
        """Set the analyses of the plans; each question is analysed once."""
        asked: dict[tuple[str, object], list[Plan]] = {}
        for plan in plans:
            if plan.query.query and plan.reading is None:
                asked.setdefault((plan.query.query, _today(plan)), []).append(plan)
        for alike in asked.values():
            await self._read(alike)

    async def _read(self, plans: Sequence[Plan]) -> None:
        """Of plans whose question, and whose today, is the same."""
        plan = plans[0]
        question, today = plan.query.query, _today(plan)
        outcome = await self._stage.call(
            plan.bank.bank_id,
            lambda deadline: self.analyser.analyse(question, today=today, deadline=deadline),
            _checked,
        )
        for one in plans:
            one.reading = outcome.value
            one.spent = {**one.spent, STAGE: outcome.millis}
            if outcome.problem:
                one.missed(self._stage.told(outcome.problem))


def _today(plan: Plan) -> date:
    """The reference day of relative dates."""
    assert plan.reference is not None  # noqa: S101 - plans have it before anybody reads their questions
    return plan.reference.date()


def read_over(plan: Plan) -> None:
    """Apply a custom analysis to an analysed plan; the caller's own range stays a window."""
    reading = plan.reading
    if reading is None:
        return
    if reading.intent is not None:
        plan.intent = reading.intent
    if reading.windows is not None:
        own = () if plan.query.time_range is None else (_window(plan.query.time_range),)
        plan.windows = list(dict.fromkeys([*own, *reading.windows]))
        plan.windows_hold = False


def _checked(analysis: object) -> Reading:
    """An analysis as it is used.

    Raises:
        UnusableError: It is none, or a part of it is out of bounds.
    """
    if not isinstance(analysis, QueryAnalysis):
        raise UnusableError
    intent = None
    if analysis.intent is not None:
        # Of any type: others wrote it.
        sure: object = analysis.confidence
        if not isinstance(sure, (int, float)) or not math.isfinite(sure) or not 0.0 <= sure <= 1.0:
            raise UnusableError
        intent = QueryIntent(Intent(analysis.intent), float(sure))
    if analysis.windows is None:
        return Reading(intent, None)
    if len(analysis.windows) > MOST_WINDOWS:
        raise UnusableError
    return Reading(intent, tuple(_window(one) for one in analysis.windows))


def _window(span: TimeRange) -> tuple[int, int]:
    ends = (span.start, span.end)
    if any(end is not None and end.tzinfo is None for end in ends):
        raise UnusableError
    first = EARLIEST_MS if span.start is None else to_ms(span.start)
    last = LATEST_MS if span.end is None else to_ms(span.end)
    if first > last:
        raise UnusableError
    return first, last
