"""How a recall on one bank went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from astrocyte.core import RecallResponse
from astrocyte.model import MemoryHit, RecallResult, RecallTrace, TimeRange
from astrocyte.model.building import open_twin
from astrocyte.pipelines.analysis import from_ms
from astrocyte.pipelines.external import ARM
from astrocyte.pipelines.planning import Plan
from astrocyte.pipelines.shaping import layer_distribution
from astrocyte.pipelines.stages.analysis import STAGE as READING
from astrocyte.pipelines.stages.fusion import STAGE as FUSING

# Which tier answered.
CACHE, FAST_PATH, FULL_RETRIEVAL, AGENTIC = 1, 2, 3, 4

_OpenTrace = open_twin(RecallTrace)


def trace_of(plan: Plan, response: RecallResponse, hits: Sequence[MemoryHit], fusion: str) -> RecallTrace:
    """The trace of an answer that was searched for."""
    names, counts = response.arm_names, response.arm_candidates
    made = _OpenTrace()
    made.strategies_used = tuple([name for name, count in zip(names, counts, strict=True) if count])
    made.total_candidates = sum(counts)
    made.fusion_method = fusion
    made.latency_ms = (perf_counter() - plan.start) * 1e3
    timings = {name: us / 1e3 for name, us in zip(names, response.arm_micros, strict=True)}
    for name, spent_ms in plan.proposing.items():
        timings[name] = timings.get(name, 0.0) + spent_ms
    made.strategy_timings_ms = timings
    made.strategy_candidate_counts = dict(zip(names, counts, strict=True))
    made.tier_used = FULL_RETRIEVAL
    made.layer_distribution = layer_distribution(hits)
    made.cache_hit = False
    made.wiki_tier_used = False
    feedback, lifting, spent = response.feedback_micros / 1e3, response.lift_micros / 1e3, plan.spent
    fused = spent.get(FUSING, 0.0)
    # Then the core was asked once more.
    failed = fused if plan.fused is None else 0.0
    stages = made.stage_timings_ms = {
        "embed": (plan.embedded - plan.start) * 1e3 - spent.get(READING, 0.0),
        "analyse": (plan.analysed - (plan.asked or plan.embedded) - plan.queued) * 1e3 - failed,
        "core": (plan.searched - plan.analysed - plan.waited) * 1e3 - feedback - lifting,
        "feedback": feedback,
        "hydrate": (plan.hydrated - plan.searched) * 1e3 - (fused - failed),
        **spent,
        **plan.stages,
    }
    if plan.outside is not None:
        stages["outside"] = (plan.asked - plan.embedded) * 1e3
    if plan.queued:
        stages["queue"] = (plan.queued + plan.waited) * 1e3
    if plan.query.external_context:
        count = len(plan.external)
        made.strategies_used += (ARM,) * bool(count)
        made.total_candidates += count
        made.strategy_candidate_counts[ARM] = count
        # What the core lifts it does before.
        after = 0.0 if plan.lift else sum(plan.stages.values())
        stages["external_context"] = (plan.blended - plan.hydrated) * 1e3 - after
    if plan.naming is not None:
        stages["names"] = plan.naming * 1e3
        stages["core"] -= plan.naming * 1e3
    made.plan = response.plan
    made.time_windows = tuple([TimeRange(from_ms(start), from_ms(end)) for start, end in plan.windows])
    made.position = response.position
    made.degraded = plan.degraded
    made.intent, made.intent_confidence = plan.intent
    made.banks = ()
    made.engines = ()
    made.tier_reason = ""
    made.__class__ = RecallTrace
    trace: RecallTrace = made
    return trace


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
