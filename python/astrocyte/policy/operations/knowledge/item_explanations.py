"""The fate of observations and mental models in a recall: their scores, and why each is, or is not, among the hits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from time import perf_counter

from astrocyte.model import (
    ArmStanding,
    Bank,
    ExplainStage,
    Explanation,
    ItemExplanation,
    MemoryHit,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines.explain.pipeline import ITEM_ARMS
from astrocyte.pipelines.knowledge.search import LEAST_RELEVANCE, Verdict
from astrocyte.policy.operations.knowledge.blending import (
    ARMS,
    LAYERS,
    SEARCHED,
    Blend,
    Blending,
    Weighed,
    best_first,
    has_none,
)
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.stores.knowledge.items import ItemRecord

Items = tuple[ItemExplanation, ...]
Passes = Callable[[MemoryHit], MemoryHit | None]


class ItemExplanations:
    """Runs the step that adds items to an answer, and tells what became of each.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
        executor: Runs searches.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int], executor: Executor) -> None:
        self._store = parts.knowledge
        self._blending = Blending(parts, clock)
        self._executor = executor

    async def joined(
        self, banks: Sequence[Bank], query: RecallQuery, result: RecallResult, most_tokens: int
    ) -> tuple[RecallResult, Items]:
        """An answer with its items as the recall adds them, and the fate of each item that was considered."""
        if has_none(query) or not any(SEARCHED & self._store.kinds(bank) for bank in banks):
            return result, ()

        def join() -> tuple[RecallResult, Items]:
            start = perf_counter()
            considered = self._blending.considered(banks, query)
            relevant = best_first([one for one in considered if one.verdict is Verdict.RELEVANT])
            blend = self._blending.blend(query, result, relevant, most_tokens, start)
            return blend.result, tuple(_told(query, blend, one) for one in considered)

        return await asyncio.get_running_loop().run_in_executor(self._executor, join)

    def asked(
        self, banks: Sequence[Bank], query: RecallQuery, items: Sequence[ItemExplanation], item_id: str
    ) -> Explanation | None:
        """The explanation of an id that is no memory's; None where it is not that of an item either."""
        several = len(banks) > 1
        found = next(((place, one) for place, one in enumerate(items, 1) if one.item_id == item_id), None)
        if found is not None:
            place, one = found
            proposed = one.stage not in {ExplainStage.FILTER, ExplainStage.ARM_CUT}
            standing = ArmStanding(one.arm, place, one.relevance, proposed, LEAST_RELEVANCE)
            score = one.score if one.rank else None
            return Explanation(
                item_id,
                one.stage,
                one.detail,
                rank=one.rank,
                score=score,
                arms=(standing,),
                bank_id=one.bank_id if several else "",
            )
        known = next(self._stored(banks, item_id), None)
        if known is None:
            return None
        if query.as_of is not None:
            detail = "an answer as of an instant has memories alone"
            return Explanation(item_id, ExplainStage.FILTER, detail, conditions=("as_of",))
        arm = ARMS[known.kind]
        return Explanation(
            item_id,
            ExplainStage.NO_ARM,
            f"the search of the arm {arm} does not propose it for this query",
            bank_id=known.bank_id if several else "",
        )

    def _stored(self, banks: Sequence[Bank], item_id: str) -> Iterator[ItemRecord]:
        for bank in banks:
            for kind in sorted(SEARCHED):
                record = self._store.get(bank, kind, item_id)
                if record is not None:
                    yield record


def leaving(items: Items, hits: Sequence[MemoryHit], passes: Passes) -> Items:
    """The items as they may be told: one whose hit may not leave its bank is no hit."""
    told = []
    for one in items:
        if one.rank and passes(hits[one.rank - 1]) is None:
            detail = "it holds personal data that may not leave the bank"
            told.append(replace(one, stage=ExplainStage.POLICY, detail=detail, rank=0))
        else:
            told.append(one)
    return tuple(told)


def _told(query: RecallQuery, blend: Blend, one: Weighed) -> ItemExplanation:
    kind, found = one.found.record.kind, one.found
    rank = _rank(blend.result.hits, one)
    stage, detail = _fate(query, blend, one, rank)
    return ItemExplanation(
        item_id=found.record.item_id,
        bank_id=one.bank.bank_id,
        arm=ARMS[kind],
        stage=stage,
        detail=detail,
        relevance=found.relevance,
        weight=one.weight,
        proof_count=one.proofs,
        proof_bonus=one.bonus,
        score=one.score,
        rank=rank,
    )


def _rank(hits: Sequence[MemoryHit], one: Weighed) -> int:
    """The place of an item among hits, from 1; 0 where it is none."""
    arm, name = ARMS[one.found.record.kind], (one.bank.bank_id, one.found.record.item_id)
    for rank, hit in enumerate(hits, 1):
        if (hit.bank_id, hit.memory_id) == name and any(own.arm == arm for own in hit.arms):
            return rank
    return 0


def _fate(query: RecallQuery, blend: Blend, one: Weighed, rank: int) -> tuple[ExplainStage, str]:
    """The stage that dropped an item, and why."""
    if one.verdict is not Verdict.RELEVANT:
        return _unsearched(query, one)
    if one.score <= 0.0:
        return ExplainStage.ARM_CUT, "its weight is 0"
    if not any(other is one for other in blend.chosen):
        return ExplainStage.MAX_RESULTS, f"{blend.room} others have higher scores, and no more items have room"
    place = _rank(blend.ranked, one)
    if rank:
        above = sum(not any(own.arm in ITEM_ARMS for own in hit.arms) for hit in blend.ranked[:place])
        best = max(blend.relevances[above:], default=0.0)
        return (
            ExplainStage.RETURNED,
            f"hit {rank}: those after it have a weighted relevance of at most {best:.4f}",
        )
    if place > query.max_results:
        return ExplainStage.MAX_RESULTS, f"rank {place}, behind enough others"
    return ExplainStage.TOKEN_BUDGET, f"rank {place}, and it did not fit"


def _unsearched(query: RecallQuery, one: Weighed) -> tuple[ExplainStage, str]:
    """Of an item that the search of its bank leaves out."""
    layer = LAYERS[one.found.record.kind]
    if one.verdict is Verdict.INVALID:
        return ExplainStage.FILTER, "it does not hold at the time of the query"
    if one.verdict is Verdict.IRRELEVANT:
        return ExplainStage.ARM_CUT, f"relevance {one.found.relevance:.4f} is below {LEAST_RELEVANCE}"
    if query.fact_types and layer not in query.fact_types:
        return ExplainStage.FILTER, f"fact_types lack {layer}"
    return ExplainStage.FILTER, "a memory that it rests on does not pass the filter, or it rests on none"
