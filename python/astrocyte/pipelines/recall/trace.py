"""How a recall on one bank went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

from astrocyte.core import RecallResponse, encode_found_trace, encode_trace
from astrocyte.model import MemoryHit, QueryIntent, RecallResult, RecallTrace, TimeRange
from astrocyte.model.building import open_twin
from astrocyte.pipelines.custom.fusion import STAGE as FUSING
from astrocyte.pipelines.custom.query_analysis import STAGE as READING
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.external_context import ARM
from astrocyte.pipelines.recall.hits import layer_distribution
from astrocyte.pipelines.search.core_request import Plan
from astrocyte.stores.protocols import HydratedRow

# Which tier answered.
CACHE, FAST_PATH, FULL_RETRIEVAL, AGENTIC = 1, 2, 3, 4

_OpenTrace = open_twin(RecallTrace)
_set = object.__setattr__


class Found(NamedTuple):
    """What a trace is made of."""

    response: RecallResponse
    hits: Sequence[MemoryHit]
    fusion: str
    latency_ms: float
    stages: dict[str, float]
    windows: tuple[TimeRange, ...]
    degraded: str
    intent: QueryIntent


class FoundTrace(RecallTrace):
    """The trace of an answer that was searched for. Equals a `RecallTrace` of the same fields.

    Most leave by the wire, and nobody looks into them: as with `FoundHits`, the fields are made only when somebody
    does, and the server asks for the bytes.
    """

    __slots__ = ("_found",)
    __hash__ = None  # type: ignore[assignment]  # as equal to others as it is, it would have to be hashed as one

    def __new__(cls, *given: Any, **fields: Any) -> RecallTrace:  # type: ignore[misc]  # noqa: ANN401 - a trace's fields
        """One with fields of its own, as `dataclasses.replace` makes it, is like any other."""
        return RecallTrace(*given, **fields)

    @staticmethod
    def of(found: Found) -> FoundTrace:
        """One whose fields are still to be made."""
        made: FoundTrace = object.__new__(FoundTrace)
        _set(made, "_found", found)
        return made

    def encoded(self, rows: Sequence[HydratedRow], encode: Callable[[TimeRange], bytes]) -> bytes:
        """The trace as a message, of an answer whose hits have these rows; ``encode`` makes one of a time window."""
        found = self._found
        if not isinstance(found, Found):
            return encode_trace(found, [encode(window) for window in found.time_windows])
        return encode_found_trace(
            found.response,
            rows,
            found.fusion,
            found.latency_ms,
            FULL_RETRIEVAL,
            found.stages,
            [encode(window) for window in found.windows],
            found.degraded,
            *found.intent,
        )

    def _whole(self) -> RecallTrace:
        found: Found | RecallTrace = self._found
        if not isinstance(found, RecallTrace):
            found = _closed(_open(found))
            _set(self, "_found", found)
        return found

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of a field that is not filled here
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._whole(), name)

    def __eq__(self, other: object) -> bool:
        return self._whole() == (other._whole() if isinstance(other, FoundTrace) else other)

    def __repr__(self) -> str:
        return repr(self._whole())


def trace_of(plan: Plan, response: RecallResponse, hits: Sequence[MemoryHit], fusion: str) -> RecallTrace:
    """The trace of an answer that was searched for."""
    latency_ms = (perf_counter() - plan.start) * 1e3
    windows = tuple([TimeRange(from_ms(start), from_ms(end)) for start, end in plan.windows])
    found = Found(response, hits, fusion, latency_ms, _stages(plan, response), windows, plan.degraded, plan.intent)
    if not plan.proposing and not plan.query.external_context:
        return FoundTrace.of(found)
    made = _open(found)
    for name, spent_ms in plan.proposing.items():
        made.strategy_timings_ms[name] = made.strategy_timings_ms.get(name, 0.0) + spent_ms
    if plan.query.external_context:
        count = len(plan.external)
        made.strategies_used += (ARM,) * bool(count)
        made.total_candidates += count
        made.strategy_candidate_counts[ARM] = count
    return _closed(made)


def _stages(plan: Plan, response: RecallResponse) -> dict[str, float]:
    """Milliseconds of each stage."""
    feedback, lifting, spent = response.feedback_micros / 1e3, response.lift_micros / 1e3, plan.spent
    fused = spent.get(FUSING, 0.0)
    # Then the core was asked once more.
    failed = fused if plan.fused is None else 0.0
    stages = {
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
        # What the core lifts it does before.
        after = 0.0 if plan.lift else sum(plan.stages.values())
        stages["external_context"] = (plan.blended - plan.hydrated) * 1e3 - after
    if plan.naming is not None:
        stages["names"] = plan.naming * 1e3
        stages["core"] -= plan.naming * 1e3
    return stages


def _open(found: Found) -> Any:  # noqa: ANN401 - an open twin of a trace
    response = found.response
    names, counts = response.arm_names, response.arm_candidates
    made = _OpenTrace()
    made.strategies_used = tuple([name for name, count in zip(names, counts, strict=True) if count])
    made.total_candidates = sum(counts)
    made.fusion_method = found.fusion
    made.latency_ms = found.latency_ms
    made.strategy_timings_ms = {name: us / 1e3 for name, us in zip(names, response.arm_micros, strict=True)}
    made.strategy_candidate_counts = dict(zip(names, counts, strict=True))
    made.tier_used = FULL_RETRIEVAL
    made.layer_distribution = layer_distribution(found.hits)
    made.cache_hit = False
    made.wiki_tier_used = False
    made.stage_timings_ms = found.stages
    made.plan = response.plan
    made.time_windows = found.windows
    made.position = response.position
    made.degraded = found.degraded
    made.intent, made.intent_confidence = found.intent
    made.banks = ()
    made.engines = ()
    made.tier_reason = ""
    return made


def _closed(made: Any) -> RecallTrace:  # noqa: ANN401 - as above
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
