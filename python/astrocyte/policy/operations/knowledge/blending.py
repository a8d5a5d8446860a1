"""Observations and mental models between the hits of a recall: their scores, their places, and the room for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from astrocyte.core import count_tokens
from astrocyte.model import (
    ArmScore,
    Bank,
    DetailLevel,
    MemoryHit,
    RecallQuery,
    RecallResult,
    RecallTrace,
)
from astrocyte.pipelines.knowledge.search import Found, Verdict
from astrocyte.pipelines.query.layers import by_layer
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.external_context import within
from astrocyte.pipelines.recall.hits import MENTAL_MODEL_ARM, OBSERVATION_ARM, layer_distribution
from astrocyte.pipelines.search.arm_paths import paths_to
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.stores.knowledge.items import ItemKind

ARMS = {ItemKind.OBSERVATION: OBSERVATION_ARM, ItemKind.MENTAL_MODEL: MENTAL_MODEL_ARM}
LAYERS = {ItemKind.OBSERVATION: "observation", ItemKind.MENTAL_MODEL: "model"}
SEARCHED = frozenset(ARMS)
# Share of an answer that knowledge may take: the memories that it rests on have the other half.
MOST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Weighed:
    """An item that a search considered.

    ``score`` is ``weight`` times the sum of its relevance and ``bonus``, which ``proofs`` sources give.
    """

    score: float
    weight: float
    proofs: int
    bonus: float
    bank: Bank
    found: Found
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Blend:
    """An answer with items.

    ``chosen`` are those that compete for places, best first, at most ``room``; ``ranked`` has them between the
    memories, before count and budget. ``relevances`` are those of the memories after the weights of their layers, in
    their order.
    """

    result: RecallResult
    room: int
    chosen: Sequence[Weighed] = ()
    ranked: Sequence[MemoryHit] = ()
    relevances: Sequence[float] = ()


class Blending:
    """Puts observations and mental models between the hits of answers.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int]) -> None:
        self._store = parts.knowledge
        self._search = parts.pipelines.knowledge
        observations, models = parts.settings.observations, parts.settings.mental_models
        self._weights = {
            ItemKind.OBSERVATION: observations.observation_weight,
            ItemKind.MENTAL_MODEL: models.model_weight,
        }
        self._observations = observations
        self._clock = clock

    def blended(
        self, banks: Sequence[Bank], query: RecallQuery, result: RecallResult, most_tokens: int
    ) -> RecallResult:
        """An answer with the observations and mental models that are relevant, within its count and its budget.

        Each takes the place of the first hit below which all are less relevant than it, after the weights of layers.
        """
        if has_none(query):
            return result
        start = perf_counter()
        found = [
            self._weighed(query, bank, one, Verdict.RELEVANT)
            for bank in self._searched(banks)
            for one in self._search.search(bank, query, self._clock())
        ]
        return self.blend(query, result, best_first(found), most_tokens, start).result

    def considered(self, banks: Sequence[Bank], query: RecallQuery) -> list[Weighed]:
        """All items that the searches consider for a query, relevant or not, the highest score first."""
        if has_none(query):
            return []
        return best_first(
            [
                self._weighed(query, bank, one, verdict)
                for bank in self._searched(banks)
                for one, verdict in self._search.judged(bank, query, self._clock())
            ]
        )

    def _searched(self, banks: Sequence[Bank]) -> list[Bank]:
        return [bank for bank in banks if SEARCHED & self._store.kinds(bank)]

    def blend(
        self, query: RecallQuery, result: RecallResult, found: Sequence[Weighed], most_tokens: int, start: float
    ) -> Blend:
        """An answer with the relevant items, given best first; ``start`` is the time at which their search began."""
        room = math.ceil(query.max_results * MOST_SHARE)
        chosen = [one for one in found if one.score > 0][:room]
        if not chosen:
            return Blend(result, room)
        hits = list(result.hits)
        weights = by_layer(query.layer_weights)
        relevances = [
            relevance * weights.get(hit.memory_layer or "", 1.0)
            for hit, relevance in zip(
                hits, self._search.relevances(query.query, [hit.text for hit in hits]), strict=True
            )
        ]
        ranked_hits = _placed(query, hits, relevances, chosen)
        budget = min(query.max_tokens or most_tokens, most_tokens)
        kept, dropped = within(ranked_hits[: query.max_results], budget)
        trace = None if result.trace is None else _traced(result.trace, kept, [one.found for one in chosen], start)
        told = replace(
            result,
            hits=kept,
            total_available=result.total_available + len(found),
            truncated=result.truncated or dropped,
            trace=trace,
        )
        return Blend(told, room, chosen, ranked_hits, relevances)

    def _weighed(self, query: RecallQuery, bank: Bank, found: Found, verdict: Verdict) -> Weighed:
        kind = found.record.kind
        weight = query.weights.get(ARMS[kind], self._weights[kind]) * query.layer_weights.get(LAYERS[kind], 1.0)
        proofs = len(found.record.current.sources)
        counted = proofs if kind is ItemKind.OBSERVATION else 1
        bonus = min(self._observations.max_proof_bonus, self._observations.proof_bonus * max(counted - 1, 0))
        return Weighed(weight * (found.relevance + bonus), weight, proofs, bonus, bank, found, verdict)


def has_none(query: RecallQuery) -> bool:
    """True for a query whose answer has memories alone: one as of an instant, and one without text."""
    return query.as_of is not None or not query.query or query.query.isspace()


def best_first(found: Sequence[Weighed]) -> list[Weighed]:
    """Items by falling score; equal ones by bank and age."""
    return sorted(found, key=lambda one: (-one.score, one.bank.bank_id, one.found.record.key))


def _placed(
    query: RecallQuery, hits: list[MemoryHit], relevances: list[float], chosen: Sequence[Weighed]
) -> list[MemoryHit]:
    """Hits and items in one order, with scores that fall."""
    best_below = [0.0] * (len(hits) + 1)
    for place in range(len(hits) - 1, -1, -1):
        best_below[place] = max(best_below[place + 1], relevances[place])
    made: list[MemoryHit] = []
    waiting = list(enumerate(chosen, 1))
    for place in range(len(hits) + 1):
        while waiting and waiting[0][1].score > best_below[place]:
            rank, one = waiting.pop(0)
            above = made[-1].score if made else (hits[place].score if place < len(hits) else 1.0)
            below = hits[place].score if place < len(hits) else above
            made.append(_hit(query, one.bank, one.found, (above + below) / 2, rank))
        if place < len(hits):
            made.append(hits[place])
    return made


def _hit(query: RecallQuery, bank: Bank, found: Found, score: float, rank: int) -> MemoryHit:
    """An item as a hit; ``metadata`` names its scope and its sources."""
    record = found.record
    sources = record.current.sources
    text = found.heading if found.heading and query.detail_level is DetailLevel.TITLES else found.text
    metadata: dict[str, str | int | float | bool | None] = {"scope": record.scope, "proof_count": len(sources)}
    if record.kind is ItemKind.OBSERVATION:
        metadata["confidence"] = record.current.body["confidence"]
    else:
        metadata["section"] = found.heading
    if query.include_sources:
        metadata["source_ids"] = ",".join(source.memory_id for source in sources)
    layer = LAYERS[record.kind]
    return MemoryHit(
        text=text,
        score=score,
        memory_id=record.item_id,
        bank_id=bank.bank_id,
        metadata=metadata,
        tags=(),
        occurred_at=from_ms(max(source.observed_at for source in sources)) if sources else None,
        retained_at=from_ms(record.updated_at),
        memory_layer=layer,
        fact_type=layer,
        principal=record.created_by if query.include_sources else None,
        token_count=count_tokens(text),
        version=record.current.revision,
        arms=(ArmScore(ARMS[record.kind], rank, found.relevance),),
    )


def _traced(trace: RecallTrace, hits: Sequence[MemoryHit], found: Sequence[Found], start: float) -> RecallTrace:
    """The trace with the arms of the items."""
    spent = (perf_counter() - start) * 1e3
    counts = {arm: sum(ARMS[one.record.kind] == arm for one in found) for arm in ARMS.values()}
    used = tuple(arm for arm, count in counts.items() if count)
    return replace(
        trace,
        strategies_used=(*(trace.strategies_used or ()), *used),
        total_candidates=(trace.total_candidates or 0) + len(found),
        strategy_timings_ms={**(trace.strategy_timings_ms or {}), OBSERVATION_ARM: spent},
        strategy_candidate_counts={**(trace.strategy_candidate_counts or {}), **counts},
        layer_distribution=layer_distribution(hits),
        via=paths_to(trace.via, hits),
    )
