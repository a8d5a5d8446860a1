"""Recall from two sides: the pipeline of this server, and the engine of a bank.

Both run concurrently, after the call was admitted. The hits of the engine are screened (`result_screening`), and the
two lists are merged (`pipelines.side_fusion`). A side that fails or is late is named in the trace, and the other
answers, unless the settings of the engine require both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple

from astrocyte.config.engines import PIPELINE
from astrocyte.errors import AstrocyteError, DeadlineExceeded, FailedPrecondition, ProviderUnavailable, StoreError
from astrocyte.model import (
    Bank,
    BankOutcome,
    BankStrategy,
    Caller,
    EngineOutcome,
    EngineTrace,
    FusionMethod,
    MemoryHit,
    MultiBankMode,
    RecallQuery,
    RecallResult,
    RecallTrace,
)
from astrocyte.pipelines.multi_bank.engine_fusion import SideList, fuse_sides, tagged
from astrocyte.pipelines.multi_bank.trace import recounted
from astrocyte.pipelines.query.engine_routing import Route, route
from astrocyte.pipelines.recall.external_context import within
from astrocyte.pipelines.recall.trace import empty_trace
from astrocyte.policy.banks.cross_references import Relevant
from astrocyte.policy.engines.registry import Engine, Engines, cause_of
from astrocyte.policy.engines.result_screening import Judged, ResultScreening
from astrocyte.policy.events import emit

Local = Callable[[RecallQuery], Awaitable[RecallResult]]
# Failures of the pipeline for which an engine's answer can stand in; the others are the caller's.
OURS = (ProviderUnavailable, DeadlineExceeded, StoreError)
NO_ROUTE = Route(1.0, 1.0, ())
# Why a side was not asked.
HOP_LIMIT, WEIGHT, NOT_SUPPORTED, NOT_NEEDED = "hop_limit", "weight", "not_supported", "not_needed"


class Asking(NamedTuple):
    """An admitted recall: its caller, call, banks, strategy, and token budget.

    ``beside`` has, by bank, what other banks hold that is relevant to it. ``watch`` hears of all hits of all sides,
    best first, before they are cut.
    """

    caller: Caller
    operation: str
    banks: Sequence[Bank]
    query: RecallQuery
    most_tokens: int
    strategy: BankStrategy | None = None
    beside: Mapping[str, tuple[Relevant, ...]] = MappingProxyType({})
    watch: Callable[[Sequence[MemoryHit]], None] | None = None


@dataclass(slots=True, kw_only=True)
class _Part:
    """The outcome of a side."""

    outcome: EngineOutcome = EngineOutcome.NOT_ASKED
    reason: str = ""
    latency_ms: float = 0.0
    error: AstrocyteError | None = None

    def failed(self, error: AstrocyteError) -> None:
        """True if the side did not answer."""
        self.error, self.reason = error, cause_of(error)
        self.outcome = EngineOutcome.LATE if isinstance(error, DeadlineExceeded) else EngineOutcome.FAILED


@dataclass(slots=True)
class _Own(_Part):
    """The pipeline's part."""

    result: RecallResult | None = None


@dataclass(slots=True)
class _Side(_Part):
    """An engine's part in the answer of one bank."""

    bank: Bank
    engine: Engine
    bank_weight: float
    route: Route = NO_ROUTE
    judged: Judged = field(default_factory=lambda: Judged((), 0, 0))

    @property
    def weight(self) -> float:
        """Of the engine's hits."""
        return self.bank_weight * self.engine.settings.engine_recall_weight * self.route.engine

    @property
    def own_weight(self) -> float:
        """Of the pipeline's hits from the bank."""
        return self.engine.settings.pipeline_recall_weight * self.route.pipeline


class Hybrid:
    """Answers recalls on banks with an engine.

    Args:
        engines: All of them.
        screening: Screens their hits.
        name_of: Who a caller counts as.
        rank_constant: k of rrf.
    """

    def __init__(
        self, engines: Engines, screening: ResultScreening, name_of: Callable[[Caller], str], rank_constant: float
    ) -> None:
        self._engines = engines
        self._screening = screening
        self._name_of = name_of
        self._rank_constant = rank_constant

    def concerns(self, banks: Sequence[Bank]) -> bool:
        """True if any of the banks has an engine."""
        return bool(self._engines.all) and any(self._engines.recalled_for(bank) for bank in banks)

    async def recall(self, asking: Asking, local: Local) -> RecallResult:
        """The merged answer of all sides; that of ``local`` alone where no bank has an engine.

        Raises:
            AstrocyteError: No side could answer, or one could not and its settings require both.
        """
        if not self.concerns(asking.banks):
            return await local(asking.query)
        start = perf_counter()
        sides = self._sides(asking)
        own = _Own()
        if asking.strategy is None or asking.strategy.mode is MultiBankMode.PARALLEL:
            tasks = [asyncio.create_task(self._ask(asking, side)) for side in sides]
            try:
                await self._ask_pipeline(asking, sides, own, local)
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        else:
            await self._ask_pipeline(asking, sides, own, local)
            await self._ask_in_turn(asking, sides, own)
        _fail(sides, own)
        return self._joined(asking, sides, own, start)

    def _sides(self, asking: Asking) -> list[_Side]:
        weights = asking.strategy.bank_weights if asking.strategy is not None else {}
        sides = []
        asked = [(bank, engine) for bank in asking.banks for engine in self._engines.recalled_for(bank)]
        for bank, engine in asked:
            side = _Side(bank, engine, weights.get(bank.bank_id, 1.0))
            if engine.settings.adaptive_routing:
                side.route = route(asking.query.query, engine.able)
            side.reason = _why_not(asking, side)
            sides.append(side)
        return sides

    async def _ask_pipeline(self, asking: Asking, sides: Sequence[_Side], own: _Own, local: Local) -> None:
        start = perf_counter()
        if len(asking.banks) == 1 and sides[0].own_weight <= 0.0 and not sides[0].reason:
            own.reason = WEIGHT
            return
        in_turn = asking.strategy is not None and asking.strategy.mode is not MultiBankMode.PARALLEL
        try:
            own.result = await local(replace(asking.query, include_trace=True) if in_turn else asking.query)
            own.outcome = EngineOutcome.ANSWERED
        except OURS as error:
            own.failed(error)
        own.latency_ms = (perf_counter() - start) * 1e3

    async def _ask_in_turn(self, asking: Asking, sides: Sequence[_Side], own: _Own) -> None:
        """Query the engines of the banks that the pipeline used; for a first match the first with any hits."""
        assert asking.strategy is not None  # noqa: S101 - one bank is never asked in turn
        first = asking.strategy.mode is MultiBankMode.FIRST_MATCH
        needed = _needed(own.result)
        matched = own.result.hits[0].bank_id if first and own.result is not None and own.result.hits else None
        if not first:
            wanted = [side for side in sides if side.bank.bank_id in needed]
            await asyncio.gather(*[self._ask(asking, side) for side in wanted])
        else:
            for bank in asking.banks:
                wanted = [side for side in sides if side.bank is bank and matched in {None, bank.bank_id}]
                await asyncio.gather(*[self._ask(asking, side) for side in wanted])
                if any(side.judged.hits for side in wanted):
                    break
        for side in sides:
            if side.outcome is EngineOutcome.NOT_ASKED and not side.reason:
                side.reason = NOT_NEEDED

    async def _ask(self, asking: Asking, side: _Side) -> None:
        """Query an engine, screen its hits, and record the outcome."""
        if side.reason:
            return
        start = perf_counter()
        engine, bank = side.engine, side.bank
        seconds = engine.settings.timeout_seconds
        call = engine.call_for(asking.caller, self._name_of(asking.caller), bank.bank_id, seconds)
        query = _question(asking, bank)
        try:
            answer = await engine.ask(lambda: engine.provider.recall(call, query), seconds)
            side.judged = self._screening.judge(engine.name, bank, asking.operation, query, answer)
            side.outcome = EngineOutcome.ANSWERED
        except AstrocyteError as error:
            side.failed(error)
            emit(
                "engine_failed",
                operation=asking.operation,
                bank_id=bank.bank_id,
                engine=engine.name,
                reason=side.reason,
            )
        side.latency_ms = (perf_counter() - start) * 1e3

    def _joined(self, asking: Asking, sides: Sequence[_Side], own: _Own, start: float) -> RecallResult:
        query = asking.query
        local = own.result or RecallResult((), 0, truncated=False)
        answered = [side for side in sides if side.outcome is EngineOutcome.ANSWERED]
        hits: Sequence[MemoryHit] = local.hits
        truncated, available = local.truncated, local.total_available
        if answered:
            budget = min(asking.most_tokens, query.max_tokens or asking.most_tokens)
            # The engine of a bank, which is its first side, says what the pipeline's hits are worth.
            weights = {side.bank.bank_id: side.own_weight for side in reversed(sides)}
            lists = [SideList("", tuple(local.hits), weights)]
            lists += [
                SideList(side.engine.name, side.judged.hits, {side.bank.bank_id: side.weight}) for side in answered
            ]
            method = FusionMethod(answered[0].engine.settings.fusion_method)
            across = asking.strategy is not None and asking.strategy.dedup_across_banks
            constant = query.rank_constant or self._rank_constant
            fused = fuse_sides(lists, method, constant, query=query.query, across_banks=across)
            if asking.watch is not None:
                asking.watch(fused)
            available += sum(bool(hit.engine) for hit in fused)
            hits, cut = within(fused[: query.max_results], budget)
            truncated = truncated or cut
        if query.include_sources:
            hits = tuple(tagged(hits))
        warnings = (*local.warnings, *(said for side in answered for said in side.judged.warnings))
        result = replace(
            local, hits=hits, truncated=truncated, total_available=available, warnings=tuple(dict.fromkeys(warnings))
        )
        if any(hit.engine for hit in hits):
            # How sure the pipeline is says nothing about what the engines brought.
            result = replace(result, abstain=False)
        failed = own.error is not None or any(side.error is not None for side in sides)
        if not (query.include_trace or failed):
            return replace(result, trace=None)
        return replace(result, trace=_trace(local.trace, hits, sides, own, start))


def _why_not(asking: Asking, side: _Side) -> str:
    """The reason why an engine cannot run a query, or an empty text."""
    query = asking.query
    if side.weight <= 0.0:
        return WEIGHT
    if side.engine.too_far(asking.caller):
        return HOP_LIMIT
    past = query.as_of is not None or query.valid_at is not None
    if (past and not side.engine.able.time_travel) or not query.query.strip():
        return NOT_SUPPORTED
    return ""


def _question(asking: Asking, bank: Bank) -> RecallQuery:
    """The query for an engine: without parameters of this server's index, or of the call as a whole."""
    return replace(
        asking.query,
        bank_id=bank.bank_id,
        banks=(),
        bank_group=None,
        strategy=None,
        external_context=(),
        embedding=None,
        min_position=0,
        weights={},
        fusion_method=None,
        rank_constant=None,
        dedup_threshold=None,
        include_trace=False,
        max_tokens=min(asking.most_tokens, asking.query.max_tokens or asking.most_tokens),
    )


def _needed(result: RecallResult | None) -> set[str]:
    """The banks that a cascade reached; none where it failed."""
    if result is None or result.trace is None:
        return set()
    return {bank.bank_id for bank in result.trace.banks if bank.outcome is not BankOutcome.NOT_NEEDED}


def _fail(sides: Sequence[_Side], own: _Own) -> None:
    """Raise if a required side did not answer, or if none did."""
    parts: list[_Part] = [own, *sides]
    errors = [one.error for one in parts if one.error is not None]
    required = any(side.engine.settings.require_both for side in sides)
    if errors and (required or not any(one.outcome is EngineOutcome.ANSWERED for one in parts)):
        error = errors[0]
        if isinstance(error, (FailedPrecondition, DeadlineExceeded)) or (own.error is error and not required):
            raise error
        # Not as an open circuit, for which an answer of nothing would be given in its stead.
        raise ProviderUnavailable(error.message, metadata=error.metadata) from error
    for side in sides:
        if side.engine.settings.require_both and side.reason in {HOP_LIMIT, NOT_SUPPORTED}:
            raise FailedPrecondition(
                f"engine {side.engine.name!r} cannot run this recall ({side.reason}), and the settings require the "
                "engine and the pipeline",
                metadata={"engine": side.engine.name, "cause": side.reason},
            )


def _trace(
    trace: RecallTrace | None, hits: Sequence[MemoryHit], sides: Sequence[_Side], own: _Own, start: float
) -> RecallTrace:
    """The trace of both sides: the pipeline's, with the outcome of each engine."""
    pipeline = EngineTrace(
        PIPELINE,
        own.outcome,
        weight=sides[0].own_weight if len({side.bank.bank_id for side in sides}) == 1 else 1.0,
        found=0 if own.result is None else len(own.result.hits),
        latency_ms=own.latency_ms,
        reason=own.reason,
    )
    engines = [
        EngineTrace(
            side.engine.name,
            side.outcome,
            bank_id=side.bank.bank_id,
            weight=side.weight,
            found=side.judged.found,
            dropped=side.judged.dropped,
            latency_ms=side.latency_ms,
            reason=side.reason,
            signals=side.route.signals,
        )
        for side in sides
    ]
    whole = replace(
        trace or empty_trace(RecallTrace(), ""),
        engines=(pipeline, *engines),
        latency_ms=(perf_counter() - start) * 1e3,
    )
    return recounted(whole, hits)
