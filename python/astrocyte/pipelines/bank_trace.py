"""What became of each bank of a call to several, and how the whole went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from astrocyte.config.engines import PIPELINE
from astrocyte.core import Hit, RecallResponse
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Bank,
    BankOutcome,
    BankStrategy,
    BankTrace,
    EngineTrace,
    MemoryHit,
    RecallQuery,
    RecallTrace,
    TimeRange,
)
from astrocyte.pipelines.analysis import from_ms
from astrocyte.pipelines.candidates import Candidate
from astrocyte.pipelines.external import brought
from astrocyte.pipelines.intent import NO_INTENT
from astrocyte.pipelines.planning import Plan
from astrocyte.pipelines.recall_trace import FULL_RETRIEVAL
from astrocyte.pipelines.shaping import layer_distribution


@dataclass(slots=True)
class Part:
    """One bank of a call, and what became of it.

    A part with a ``leader`` is of a bank that the call does not name: ``only`` are its memories that are relevant to
    the leader's bank, with which they are asked, weighed and given tokens.
    """

    bank: Bank
    weight: float
    leader: Part | None = None
    only: tuple[str, ...] = ()
    plan: Plan | None = None
    response: RecallResponse | None = None
    outcome: BankOutcome = BankOutcome.NOT_NEEDED
    reason: str = ""
    error: AstrocyteError | None = None
    token_budget: int = 0
    # Its hits in the order of the stages after the core, and what these made of each, by row; None where none ran.
    ranked: list[Hit] | None = None
    boosted: dict[int, Candidate] = field(default_factory=dict)

    @property
    def searched(self) -> Plan:
        """The plan of a bank that was searched."""
        assert self.plan is not None  # noqa: S101 - only a planned bank is searched
        return self.plan

    @property
    def query(self) -> RecallQuery:
        """The query as it was put to this bank."""
        return self.searched.query

    @property
    def hits(self) -> Sequence[Hit]:
        """Its hits, best first."""
        if self.ranked is not None:
            return self.ranked
        return () if self.response is None else self.response.hits

    def answered(self, response: RecallResponse) -> None:
        """The core searched it."""
        self.response = response
        self.outcome = BankOutcome.SEARCHED

    def failed(self, error: AstrocyteError, outcome: BankOutcome = BankOutcome.FAILED) -> None:
        """It will not answer."""
        self.error = error
        self.outcome = outcome
        self.reason = error.reason


def trace_of(
    parts: Sequence[Part], hits: Sequence[MemoryHit], strategy: BankStrategy, start: float, searched: float
) -> RecallTrace:
    """The trace of a call, which began and whose searches ended at these instants of `perf_counter`."""
    asked = [(part.plan, part.response) for part in parts if part.plan is not None and part.response is not None]
    counts: dict[str, int] = {}
    millis: dict[str, float] = {}
    for _, response in asked:
        for name, count, micros in zip(response.arm_names, response.arm_candidates, response.arm_micros, strict=True):
            counts[name] = counts.get(name, 0) + count
            millis[name] = millis.get(name, 0.0) + micros / 1e3
    now = perf_counter()
    kind, confidence = asked[0][0].intent if asked else NO_INTENT
    stages: dict[str, float] = {}
    for plan, _ in asked:
        for name, spent in plan.stages.items():
            stages[name] = stages.get(name, 0.0) + spent
    windows = next((plan.windows for plan, _ in asked if plan.windows), [])
    trace = RecallTrace(
        strategies_used=tuple(name for name, count in counts.items() if count),
        total_candidates=sum(counts.values()),
        fusion_method=str(strategy.fusion_method),
        latency_ms=(now - start) * 1e3,
        strategy_timings_ms=millis,
        strategy_candidate_counts=counts,
        tier_used=FULL_RETRIEVAL,
        cache_hit=False,
        wiki_tier_used=False,
        stage_timings_ms={
            "core": (searched - start) * 1e3,
            "hydrate": (now - searched) * 1e3 - sum(stages.values()),
            **stages,
        },
        degraded=", ".join(sorted({plan.degraded for plan, _ in asked if plan.degraded})),
        plan=f"{strategy.mode}: {len(asked)} of {len(parts)} banks",
        intent=kind,
        intent_confidence=confidence,
        time_windows=tuple(TimeRange(from_ms(first), from_ms(last)) for first, last in windows),
        banks=tuple(_bank_trace(part) for part in parts),
    )
    return recounted(trace, hits)


def recounted(trace: RecallTrace, hits: Sequence[MemoryHit]) -> RecallTrace:
    """The trace of an answer of which some hits were left out or changed: it tells of these."""
    kept: dict[str | None, list[int]] = {}
    for hit in hits:
        if not (brought(hit) or hit.engine):
            kept.setdefault(hit.bank_id, []).append(hit.token_count)
    banks = []
    for bank in trace.banks:
        tokens = kept.get(bank.bank_id, ())
        told = (bank.kept, bank.tokens) == (len(tokens), sum(tokens))
        banks.append(bank if told else replace(bank, kept=len(tokens), tokens=sum(tokens)))
    engines = [replace(one, kept=sum(_is_of(one, hit) for hit in hits)) for one in trace.engines]
    return replace(trace, layer_distribution=layer_distribution(hits), banks=tuple(banks), engines=tuple(engines))


def _is_of(side: EngineTrace, hit: MemoryHit) -> bool:
    """Whether a side brought a hit; those of the pipeline name no engine."""
    if side.engine == PIPELINE:
        return not hit.engine
    return (hit.engine, hit.bank_id) == (side.engine, side.bank_id)


def _bank_trace(part: Part) -> BankTrace:
    response = part.response
    return BankTrace(
        bank_id=part.bank.bank_id,
        outcome=part.outcome,
        weight=part.weight,
        found=0 if response is None else min(len(response.hits), part.query.max_results),
        token_budget=part.token_budget,
        position=0 if response is None else response.position,
        reason=part.reason,
    )
