"""The trace of a recall over several banks, with the outcome of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from astrocyte.config.engines import PIPELINE
from astrocyte.model import (
    BankStrategy,
    BankTrace,
    EngineTrace,
    MemoryHit,
    RecallTrace,
    TimeRange,
)
from astrocyte.pipelines.multi_bank.bank_answers import Part, Summary, summary_of
from astrocyte.pipelines.query.intent import NO_INTENT
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.external_context import brought
from astrocyte.pipelines.recall.hits import layer_distribution
from astrocyte.pipelines.recall.trace import FULL_RETRIEVAL
from astrocyte.pipelines.search.arm_paths import paths_to, proposed_paths


def trace_of(
    parts: Sequence[Part],
    hits: Sequence[MemoryHit],
    strategy: BankStrategy,
    start: float,
    searched: float,
    told: Summary | None = None,
) -> RecallTrace:
    """The trace of a call, which began and whose searches ended at these instants of `perf_counter`.

    ``told`` spares asking once more what the answers of all parts say.
    """
    asked = [part for part in parts if part.response is not None]
    plans = [part.searched for part in asked]
    told = told or summary_of(asked)
    counts = {name: count for name, count, _ in told.arms}
    now = perf_counter()
    kind, confidence = plans[0].intent if plans else NO_INTENT
    stages: dict[str, float] = {}
    for own in [plan.stages for plan in plans if plan.stages]:
        for name, spent in own.items():
            stages[name] = stages.get(name, 0.0) + spent
    windows = next((plan.windows for plan in plans if plan.windows), ())
    return RecallTrace(
        strategies_used=tuple(name for name, count in counts.items() if count),
        total_candidates=sum(counts.values()),
        fusion_method=str(strategy.fusion_method),
        latency_ms=(now - start) * 1e3,
        strategy_timings_ms={name: micros / 1e3 for name, _, micros in told.arms},
        strategy_candidate_counts=counts,
        tier_used=FULL_RETRIEVAL,
        cache_hit=False,
        wiki_tier_used=False,
        stage_timings_ms={
            "core": (searched - start) * 1e3,
            "hydrate": (now - searched) * 1e3 - sum(stages.values()),
            **stages,
        },
        degraded=", ".join(sorted({plan.degraded for plan in plans if plan.degraded})),
        plan=f"{strategy.mode}: {len(asked)} of {len(parts)} banks",
        intent=kind,
        intent_confidence=confidence,
        time_windows=tuple(TimeRange(from_ms(first), from_ms(last)) for first, last in windows),
        date_warnings=tuple(dict.fromkeys(warning for plan in plans for warning in plan.date_warnings)),
        layer_distribution=layer_distribution(hits),
        via=proposed_paths(plans, hits),
        prefixes=tuple(one for plan in plans if plan.prefixes is not None for one in plan.prefixes.expansions),
        banks=_bank_traces(parts, told.banks, plans[0].query.max_results if plans else 0, _tokens_by_bank(hits)),
    )


def recounted(trace: RecallTrace, hits: Sequence[MemoryHit]) -> RecallTrace:
    """The trace of an answer of which some hits were left out or changed: it tells of these."""
    kept = _tokens_by_bank(hits)
    banks = []
    for bank in trace.banks:
        tokens = kept.get(bank.bank_id, ())
        told = (bank.kept, bank.tokens) == (len(tokens), sum(tokens))
        banks.append(bank if told else replace(bank, kept=len(tokens), tokens=sum(tokens)))
    engines = [replace(one, kept=sum(_is_of(one, hit) for hit in hits)) for one in trace.engines]
    return replace(
        trace,
        layer_distribution=layer_distribution(hits),
        banks=tuple(banks),
        engines=tuple(engines),
        via=paths_to(trace.via, hits),
    )


def _tokens_by_bank(hits: Sequence[MemoryHit]) -> dict[str | None, list[int]]:
    """By bank the tokens of each of its hits."""
    kept: dict[str | None, list[int]] = {}
    for hit in hits:
        if not (brought(hit) or hit.engine):
            kept.setdefault(hit.bank_id, []).append(hit.token_count)
    return kept


def _is_of(side: EngineTrace, hit: MemoryHit) -> bool:
    """True if a side brought a hit; those of the pipeline name no engine."""
    if side.engine == PIPELINE:
        return not hit.engine
    return (hit.engine, hit.bank_id) == (side.engine, side.bank_id)


def _bank_traces(
    parts: Sequence[Part], answers: Sequence[tuple[int, int]], most: int, kept: Mapping[str | None, Sequence[int]]
) -> tuple[BankTrace, ...]:
    """The outcome of each bank.

    Args:
        parts: The banks.
        answers: The number of hits and the position of each that was searched.
        most: Hits wanted of each.
        kept: The tokens of each hit in the answer.
    """
    traces = []
    left = iter(answers)
    for part in parts:
        found, position = (0, 0) if part.response is None else next(left)
        tokens = kept.get(part.bank.bank_id, ())
        traces.append(
            BankTrace(
                part.bank.bank_id,
                part.outcome,
                part.weight,
                found=min(found, most),
                kept=len(tokens),
                tokens=sum(tokens),
                token_budget=part.token_budget,
                position=position,
                reason=part.reason,
            )
        )
    return tuple(traces)
