"""What the gate does for an explain: the same checks as for the recall in question, and the same limits.

It tells nothing that the caller could not see: a memory that is not there, was forgotten or is elsewhere is not found,
and one that may not leave its bank is said to be held back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from astrocyte.config import Settings
from astrocyte.errors import ValidationError
from astrocyte.model import Bank, Caller, ExplainQuery, ExplainResult, MemoryHit, RecallResult
from astrocyte.pipelines.explain.counterfactuals import CounterfactualSearch
from astrocyte.pipelines.explain.pipeline import ExplainPipeline
from astrocyte.pipelines.multi_bank.pipeline import MultiBankPipeline
from astrocyte.policy.banks.cross_references import Relevance
from astrocyte.policy.banks.lifecycle import Banks
from astrocyte.policy.banks.selection import BankSets
from astrocyte.policy.engines.recall import Hybrid
from astrocyte.policy.limits.rate_limits import Operation
from astrocyte.policy.operations.explain_multi_bank import SeveralExplaining, Sides
from astrocyte.policy.policies import Policies
from astrocyte.policy.requests.validation import Validator

OPERATION = "Explain"
BY_TIERS = "tiers: this is the full recall; where the trace names a cheaper tier, that one answered and saw less"


class Explaining:
    """The part of the gate that tells what became of memories; see `astrocyte.policy.backend.Backend`.

    Args:
        settings: How far a query may be widened.
        policies: How often, and what may leave.
        banks: Which there are, and who may read them.
        bank_sets: What a query names.
        pipeline: Runs recalls again.
        check: The limits of requests.
        relevance: Whether other banks have a part in the answer.
        multi_bank: Answers for several banks.
        hybrid: Asks engines too.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the gate hands over what it guards
        self,
        settings: Settings,
        policies: Policies,
        banks: Banks,
        bank_sets: BankSets,
        pipeline: ExplainPipeline,
        check: Validator,
        relevance: Relevance,
        multi_bank: MultiBankPipeline,
        hybrid: Hybrid,
    ) -> None:
        self._relevance = relevance
        self._hybrid = hybrid
        self._several = SeveralExplaining(
            policies, bank_sets, pipeline, multi_bank, hybrid, settings.limits.max_results
        )
        self._policies = policies
        self._banks = banks
        self._bank_sets = bank_sets
        self._pipeline = pipeline
        self._check = check
        self._most_results = settings.limits.max_results
        self._overfetch = settings.recall.overfetch
        self._remarks = (BY_TIERS,) if settings.tiered_retrieval.enabled else ()

    async def run(self, caller: Caller, asked: ExplainQuery) -> ExplainResult:
        """Tell of each memory where it fell out of the recall, and what would have kept it."""
        banks = self._bank_sets.resolve(caller, asked.query)
        self._banks.require_each(caller, OPERATION, banks)
        await self._policies.limits.admit_each(caller.tenant, banks.bank_ids, Operation.RECALL)
        self._check.explain(asked)
        handles = tuple([self._banks.handle(caller, OPERATION, bank_id) for bank_id in banks.bank_ids])
        beside = self._relevance.beside(caller, handles)
        query, warnings = await self._policies.barriers.query(OPERATION, asked.query, banks.bank_ids)
        screened = replace(asked, query=query)
        if banks.strategy is None and not beside and not self._hybrid.concerns(handles):
            return await self._told(handles[0], screened, asked, warnings)
        if banks.strategy is not None and asked.position:
            raise ValidationError("is of one bank; several have one each", field="position")
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
        )

    def _most_tokens(self, bank_id: str) -> int:
        return self._policies.overrides.of(bank_id).homeostasis.recall_max_tokens

    async def _told(
        self, bank: Bank, screened: ExplainQuery, asked: ExplainQuery, warnings: tuple[str, ...]
    ) -> ExplainResult:
        pipeline, passes = self._pipeline, self._passes((bank.bank_id,))
        plan = await pipeline.plan(bank, screened.query, self._most_tokens(bank.bank_id))
        subjects = pipeline.subjects(bank, asked.memory_ids)
        look = await pipeline.look(plan, plan.query, subjects)
        told = []
        for subject in subjects:
            one = pipeline.explain(look, subject, passes)
            if one.rank == 0:
                search = CounterfactualSearch(pipeline, plan, subject, passes, self._most_results, self._overfetch)
                one = replace(one, counterfactual=await search.find(asked.query, look, one))
            told.append(one)
        return ExplainResult(
            tuple(told),
            look.position,
            moved=bool(asked.position) and asked.position != look.position,
            returned=len(look.answer.hits),
            candidates=look.answer.total_available,
            warnings=(*warnings, *self._remarks),
        )

    def _passes(self, bank_ids: Sequence[str]) -> Callable[[MemoryHit], MemoryHit | None]:
        """A hit as it may leave its bank, or None."""

        def passes(hit: MemoryHit) -> MemoryHit | None:
            alone = RecallResult((hit,), 1, truncated=False)
            left = self._policies.barriers.output(bank_ids, OPERATION, alone).hits
            return left[0] if left else None

        return passes
