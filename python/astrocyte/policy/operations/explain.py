"""Explain at the gate: the same checks as for the recall in question, and the same limits.

It tells nothing that the caller could not see: a memory that is not there, was forgotten or is elsewhere is not found,
and one that may not leave its bank is said to be held back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from astrocyte.api import LimitKind
from astrocyte.api.requests import Explain
from astrocyte.errors import ValidationError
from astrocyte.model import Bank, Caller, ExplainQuery, ExplainResult, MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.explain.counterfactuals import CounterfactualSearch
from astrocyte.policy.operations.explain_multi_bank import SeveralExplaining, Sides
from astrocyte.policy.operations.knowledge.item_explanations import ItemExplanations, Items, leaving
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests.composed_text import composed

OPERATION = "Explain"
BY_TIERS = "tiers: this is the full recall; where the trace names a cheaper tier, that one answered and saw less"


class Explaining:
    """Handler of Explain.

    Args:
        parts: What the operations share.
        items: Adds observations and mental models to an answer, and tells of them.
    """

    def __init__(self, parts: OperationParts, items: ItemExplanations) -> None:
        self._items = items
        settings = parts.settings
        self._relevance = parts.relevance
        self._hybrid = parts.hybrid
        self._several = SeveralExplaining(parts, items)
        self._policies = parts.policies
        self._banks = parts.banks
        self._bank_sets = parts.bank_sets
        self._pipeline = parts.pipelines.explain
        self._check = parts.check
        self._most_results = settings.limits.max_results
        self._overfetch = settings.recall.overfetch
        self._remarks = (BY_TIERS,) if settings.tiered_retrieval.enabled else ()

    async def explain(self, caller: Caller, request: Explain) -> ExplainResult:
        """Explain each memory: where it fell out of the recall, and what would have kept it."""
        asked = request.query
        banks = self._bank_sets.resolve(caller, asked.query)
        self._banks.require_each(caller, OPERATION, banks)
        await self._policies.limits.admit_each(caller.tenant, banks.bank_ids, LimitKind.RECALL)
        self._check.explain(asked)
        handles = tuple([self._banks.handle(caller, OPERATION, bank_id) for bank_id in banks.bank_ids])
        beside = self._relevance.beside(caller, handles)
        query, warnings = await self._policies.barriers.query(OPERATION, composed(asked.query), banks.bank_ids)
        screened = replace(asked, query=query)
        if banks.strategy is None and not beside and not self._hybrid.concerns(handles):
            return await self._told(handles[0], screened, asked, warnings)
        if banks.strategy is not None and asked.position:
            raise ValidationError("applies to one bank, and the call names several; leave it out", field="position")
        others = [one.bank.bank_id for those in beside.values() for one in those]
        most_tokens = min(self._most_tokens(bank_id) for bank_id in banks.bank_ids)
        sides = Sides(caller, OPERATION, handles, beside, most_tokens, self._passes((*banks.bank_ids, *others)))
        return await self._told_of_sides(sides, screened, asked, warnings)

    async def _told_of_sides(
        self, sides: Sides, screened: ExplainQuery, asked: ExplainQuery, warnings: tuple[str, ...]
    ) -> ExplainResult:
        """As `_told`, of an answer of several sides."""
        told, run = await self._several.told(sides, screened, asked)
        trace = run.result.trace
        position = 0 if trace is None else trace.position
        return ExplainResult(
            tuple(told),
            position,
            moved=bool(asked.position) and asked.position != position,
            returned=len(run.result.hits),
            candidates=run.result.total_available,
            warnings=(*warnings, *self._remarks),
            items=run.items,
        )

    def _most_tokens(self, bank_id: str) -> int:
        return self._policies.overrides.of[bank_id].homeostasis.recall_max_tokens

    async def _told(
        self, bank: Bank, screened: ExplainQuery, asked: ExplainQuery, warnings: tuple[str, ...]
    ) -> ExplainResult:
        pipeline, passes = self._pipeline, self._passes((bank.bank_id,))
        most_tokens = self._most_tokens(bank.bank_id)
        plan = await pipeline.plan(bank, screened.query, most_tokens)
        subjects = pipeline.subjects(bank, asked.memory_ids)

        async def join(query: RecallQuery, answer: RecallResult) -> tuple[RecallResult, Items]:
            return await self._items.joined((bank,), query, answer, most_tokens)

        look = await pipeline.look(plan, plan.query, subjects, join)
        items = leaving(look.items, look.joined.hits, passes)
        told = []
        for subject in subjects:
            one = pipeline.explain(look, subject, passes)
            if not subject.versions:
                one = self._items.asked((bank,), look.plan.query, items, subject.memory_id) or one
            elif one.rank == 0:
                search = CounterfactualSearch(
                    pipeline, plan, subject, passes, self._most_results, self._overfetch, join=join
                )
                one = replace(one, counterfactual=await search.find(asked.query, look, one))
            told.append(one)
        return ExplainResult(
            tuple(told),
            look.position,
            moved=bool(asked.position) and asked.position != look.position,
            returned=len(look.joined.hits),
            candidates=look.joined.total_available,
            warnings=(*warnings, *self._remarks),
            items=items,
        )

    def _passes(self, bank_ids: Sequence[str]) -> Callable[[MemoryHit], MemoryHit | None]:
        """A hit as it may leave its bank, or None."""

        def passes(hit: MemoryHit) -> MemoryHit | None:
            alone = RecallResult((hit,), 1, truncated=False)
            left = self._policies.barriers.output(bank_ids, OPERATION, alone).hits
            return left[0] if left else None

        return passes
