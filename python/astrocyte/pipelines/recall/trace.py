"""The trace of a recall on one bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from time import perf_counter

from astrocyte.core import Answer, AnswerTrace
from astrocyte.model import MemoryHit, RecallResult, RecallTrace, TimeRange
from astrocyte.pipelines.custom.fusion import STAGE as FUSING
from astrocyte.pipelines.custom.query_analysis import STAGE as READING
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.external_context import ARM
from astrocyte.pipelines.recall.hits import layer_distribution
from astrocyte.pipelines.search.arm_paths import proposed_paths
from astrocyte.pipelines.search.plan import Plan

# Which tier answered.
CACHE, FAST_PATH, FULL_RETRIEVAL, AGENTIC = 1, 2, 3, 4


def trace_of(plan: Plan, response: Answer, hits: Sequence[MemoryHit]) -> RecallTrace:
    """The trace of an answer that was searched for."""
    told = response.trace
    counts = told.arm_candidates
    intent, confidence = plan.intent
    trace = RecallTrace(
        strategies_used=tuple(filter(counts.get, counts)),
        total_candidates=sum(counts.values()),
        fusion_method=plan.fusion_name or plan.fusion,
        latency_ms=(perf_counter() - plan.start) * 1e3,
        strategy_timings_ms=told.arm_millis,
        strategy_candidate_counts=counts,
        tier_used=FULL_RETRIEVAL,
        layer_distribution=layer_distribution(hits),
        cache_hit=False,
        wiki_tier_used=False,
        stage_timings_ms=_stages(plan, told),
        plan=told.plan + plan.told,
        time_windows=tuple(starmap(_window, plan.windows)),
        position=response.position,
        degraded=plan.degraded,
        intent=intent,
        intent_confidence=confidence,
        date_warnings=plan.date_warnings,
        via=proposed_paths((plan,), hits) if plan.paths else (),
        prefixes=() if plan.prefixes is None else plan.prefixes.expansions,
    )
    if plan.proposing or plan.query.external_context:
        return _with_lists_of_others(trace, plan)
    return trace


def _with_lists_of_others(trace: RecallTrace, plan: Plan) -> RecallTrace:
    """A trace with the lists that external stores, custom arms and the caller brought."""
    timings = dict(trace.strategy_timings_ms or {})
    for name, spent_ms in plan.proposing.items():
        timings[name] = timings.get(name, 0.0) + spent_ms
    if not plan.query.external_context:
        return replace(trace, strategy_timings_ms=timings)
    count = len(plan.external)
    return replace(
        trace,
        strategy_timings_ms=timings,
        strategies_used=(*(trace.strategies_used or ()), *(ARM,) * bool(count)),
        total_candidates=(trace.total_candidates or 0) + count,
        strategy_candidate_counts={**(trace.strategy_candidate_counts or {}), ARM: count},
    )


def _window(start: int, end: int) -> TimeRange:
    return TimeRange(from_ms(start), from_ms(end))


def _stages(plan: Plan, told: AnswerTrace) -> dict[str, float]:
    """Milliseconds of each stage."""
    feedback, spent = told.feedback_millis, plan.spent
    turns, lifting = told.turn_millis, told.lift_millis
    fused = spent.get(FUSING, 0.0)
    # Then the core was asked once more.
    failed = fused if plan.fused is None else 0.0
    stages = {
        "embed": (plan.embedded - plan.start) * 1e3 - spent.get(READING, 0.0),
        "analyse": (plan.analysed - (plan.asked or plan.embedded) - plan.queued) * 1e3 - failed,
        "core": (plan.searched - plan.analysed - plan.waited) * 1e3 - feedback - turns - lifting,
        "feedback": feedback,
        "turns": turns,
        "hydrate": (plan.hydrated - plan.searched) * 1e3 - (fused - failed),
        **spent,
        **plan.stages,
    }
    if plan.outside is not None:
        stages["outside"] = (plan.asked - plan.embedded) * 1e3
    if plan.queued:
        stages["queue"] = (plan.queued + plan.waited) * 1e3
    if plan.query.external_context:
        # What the core lifts it does before.
        after = 0.0 if plan.lift else sum(plan.stages.values())
        stages["external_context"] = (plan.blended - plan.hydrated) * 1e3 - after
    if plan.naming is not None:
        stages["names"] = plan.naming * 1e3
        stages["core"] -= plan.naming * 1e3
    return stages


def again(kept: RecallResult, start: float) -> RecallResult:
    """A kept answer, told of as what it is; ``start`` is when it was asked for, by `perf_counter`."""
    if kept.trace is None:
        return kept
    spent = (perf_counter() - start) * 1e3
    stages = {"cache": spent}
    trace = replace(
        kept.trace,
        cache_hit=True,
        tier_used=CACHE,
        latency_ms=spent,
        strategy_timings_ms={},
        stage_timings_ms=stages,
    )
    return replace(kept, trace=trace)


# No tier was tried.
NO_TIER = 0


def empty_trace(trace: RecallTrace, mode: str) -> RecallTrace:
    """A trace of nothing, with every field filled."""
    return replace(
        trace,
        strategies_used=(),
        total_candidates=0,
        fusion_method="",
        latency_ms=0.0,
        strategy_timings_ms={},
        strategy_candidate_counts={},
        tier_used=NO_TIER,
        layer_distribution={},
        cache_hit=False,
        wiki_tier_used=False,
        stage_timings_ms={},
        plan="",
        degraded=mode,
    )
