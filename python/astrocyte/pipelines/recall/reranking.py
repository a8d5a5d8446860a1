"""Reranking: the best candidates of a recall are read against the question once more, by a model.

The reranker reads a passage of each, around the words of the question, and its scores are blended with the fused ones
on their scale. A recall never fails for it: where the time is too short, or the reranker is late, fails, or answers
with something else than scores, the fused order stands, and the trace and whoever counts hear why.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from time import perf_counter
from typing import Any

from astrocyte.config.recall import RerankingSettings
from astrocyte.deadlines import seconds_left
from astrocyte.errors import AstrocyteError
from astrocyte.model import MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.recall.external_context import ARM, blend, passing
from astrocyte.pipelines.recall.hits import layer_distribution
from astrocyte.pipelines.recall.pipeline import RecallParts, RecallPipeline
from astrocyte.pipelines.recall.post_ranking import reordered
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.pipelines.search.plan import Plan
from astrocyte.pipelines.text.snippets import passage
from astrocyte.providers.protocols import Reranker

STAGE = "reranking"
# Of the time that is left, for what comes after.
KEPT_SECONDS = 0.02
# Who hears that a recall went without: the bank, the reranker, and why.
Note = Callable[[str, str, str], None]
# Texts of a bank as they may leave this process.
Outbound = Callable[[str, Sequence[str]], list[str]]


class Reranking:
    """Asks a reranker, within bounds.

    Args:
        reranker: Reads.
        settings: How much of what, and how long.
        note: Hears of every recall that went without.
        outbound: Makes of texts of a bank what may leave this process; None for a reranker that is part of it.
    """

    def __init__(
        self, reranker: Reranker, settings: RerankingSettings, note: Note, outbound: Outbound | None = None
    ) -> None:
        self._reranker = reranker
        self._settings = settings
        self._note = note
        self._outbound = outbound
        self.top_n = settings.top_n

    async def rescore(self, bank_id: str, question: str, candidates: Sequence[Candidate]) -> str:
        """Blend the reranker's word into the scores of the first candidates; returns why not, or nothing."""
        read = candidates[: self.top_n]
        if len(read) < 2:  # noqa: PLR2004 - one has no order
            return ""
        scores, reason = await self._scores(bank_id, question, read)
        if reason:
            self._note(bank_id, self._reranker.model_id, reason)
            return reason
        for candidate, score in zip(read, _blended(read, scores, self._settings.weight), strict=True):
            candidate.add(STAGE, score - candidate.score)
            # To the bit, so that what the reranker says is equal is equal.
            candidate.score = score
        return ""

    async def _scores(self, bank_id: str, question: str, read: Sequence[Candidate]) -> tuple[list[float], str]:
        left, wait = seconds_left(), self._settings.timeout_seconds
        if left is not None:
            wait = min(wait, left - KEPT_SECONDS)
            if wait < self._settings.least_seconds:
                return [], "too_little_time"
        texts = [one.row.chunk_text for one in read]
        if self._outbound is not None:
            # Before they are cut: half a number is not known for one.
            texts = self._outbound(bank_id, texts)
        passages = [passage(question, text, self._settings.passage_chars) for text in texts]
        try:
            async with asyncio.timeout(wait):
                scores = await self._reranker.score(question, passages, deadline=time.monotonic() + wait)
        except TimeoutError:
            return [], "timeout"
        except AstrocyteError as error:
            return [], error.reason.lower()
        except Exception as error:  # noqa: BLE001 - others wrote it, and no recall fails for it
            return [], type(error).__name__
        if not _usable(scores, len(read)):
            return [], "invalid_scores"
        return [float(score) for score in scores], ""

    async def close(self) -> None:
        """Release the reranker."""
        await self._reranker.close()


class RerankedRecall(RecallPipeline):
    """A recall whose best candidates are read once more; its answers are not kept, since time decides on them.

    Args:
        parts: Those of `RecallPipeline`.
        reranking: Asks the reranker.
    """

    def __init__(self, parts: RecallParts, reranking: Reranking) -> None:
        super().__init__(parts)
        self._reranking = reranking
        self._cache = None

    async def answer(self, plan: Plan) -> RecallResult:
        """The answer to a plan that has its vector."""
        query = plan.query
        if not query.query:
            return await super().answer(plan)
        inner = copy(plan)
        inner.query = replace(query, external_context=(), include_trace=True)
        inner.reranked = max(self._reranking.top_n, query.max_results)
        found = await super().answer(inner)
        vars(plan).update(vars(inner), query=query)
        start = perf_counter()
        candidates = plan.candidates or []
        reason = await self._reranking.rescore(plan.bank.bank_id, query.query, candidates)
        # Stable: what scores alike keeps its fused order.
        candidates.sort(key=lambda one: -one.score)
        return self._finished(plan, found, reason, perf_counter() - start)

    async def run_many(self, requests: Sequence[tuple[Any, RecallQuery, int, str]]) -> list[RecallResult]:
        """The answers to many queries, one after the other: the reranker is one."""
        return [await self.run(*request) for request in requests]

    def _finished(self, plan: Plan, found: RecallResult, reason: str, seconds: float) -> RecallResult:
        """The answer with what was asked for of the candidates, and what the caller brought."""
        query = plan.query
        hits: Sequence[MemoryHit]
        hits, truncated = reordered(query, plan.candidates or (), plan.arm_names, plan.budget)
        brought = passing(query) if query.external_context else []
        if brought:
            weight = self._settings.external_weight
            hits, dropped = blend(query, hits, brought, weight=weight, budget=plan.budget)
            truncated = truncated or dropped
        self.assembly.note_use(plan, hits)
        trace = None
        if query.include_trace and found.trace is not None:
            why = f"{STAGE} ({reason})" if reason else ""
            trace = replace(
                found.trace,
                layer_distribution=layer_distribution(hits),
                latency_ms=(perf_counter() - plan.start) * 1e3,
                stage_timings_ms={**(found.trace.stage_timings_ms or {}), STAGE: seconds * 1e3},
                degraded=", ".join(filter(None, (found.trace.degraded, why))),
            )
            if query.external_context:
                counts = {**(trace.strategy_candidate_counts or {}), ARM: len(brought)}
                trace = replace(trace, strategy_candidate_counts=counts)
        return replace(
            found, hits=hits, total_available=found.total_available + len(brought), truncated=truncated, trace=trace
        )


def _usable(scores: object, wanted: int) -> bool:
    """True if a reranker answered with as many numbers as it read passages."""
    return (
        isinstance(scores, Sequence)
        and len(scores) == wanted
        and all(isinstance(score, (int, float)) and math.isfinite(score) for score in scores)
    )


def _blended(read: Sequence[Candidate], scores: Sequence[float], weight: float) -> list[float]:
    """The fused scores blended with the reranker's, which are given their mean and deviation before."""
    fused = [one.score for one in read]
    spread, own = statistics.pstdev(scores), statistics.pstdev(fused)
    if spread == 0.0:
        return fused
    middle, mean = statistics.fmean(scores), statistics.fmean(fused)
    return [
        (1.0 - weight) * before + weight * (mean + (score - middle) / spread * own)
        for score, before in zip(scores, fused, strict=True)
    ]
