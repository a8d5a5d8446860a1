"""Explain at the gate for an answer of several sides: banks asked together, and engines beside them.

The recall is run as the gate runs it, through engines, judges and strategies, and nothing is told of a bank, or of a
memory, that the caller could not see in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from astrocyte.model import (
    Bank,
    BankStrategy,
    Caller,
    ExplainQuery,
    Explanation,
    MemoryHit,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines.explain.multi_bank import Run, SeveralExplained
from astrocyte.pipelines.explain.multi_bank_counterfactuals import SeveralCounterfactuals
from astrocyte.pipelines.explain.pipeline import Look
from astrocyte.pipelines.multi_bank.bank_answers import Question
from astrocyte.pipelines.multi_bank.pipeline import Inspection
from astrocyte.pipelines.search.plan import Plan
from astrocyte.policy.banks.cross_references import Relevant
from astrocyte.policy.engines.recall import Asking
from astrocyte.policy.operations.knowledge.item_explanations import ItemExplanations, leaving
from astrocyte.policy.operations.parts import OperationParts

Passes = Callable[[MemoryHit], MemoryHit | None]


@dataclass(frozen=True, slots=True)
class Sides:
    """The answer to explain: its caller, its banks, the other banks merged with it, and the token budget."""

    caller: Caller
    operation: str
    banks: Sequence[Bank]
    beside: Mapping[str, tuple[Relevant, ...]]
    most_tokens: int
    passes: Passes


@dataclass(slots=True)
class _Seen:
    look: Look | None = None
    inspection: Inspection | None = None
    fused: Sequence[MemoryHit] | None = None
    asked: bool = False

    def fuse(self, hits: Sequence[MemoryHit]) -> None:
        self.fused = hits


class SeveralExplaining:
    """Runs such recalls again, and tells of the memories in question.

    Args:
        parts: What the operations share.
        items: Adds observations and mental models to an answer, and tells of them.
    """

    def __init__(self, parts: OperationParts, items: ItemExplanations) -> None:
        self._items = items
        self._policies = parts.policies
        self._bank_sets = parts.bank_sets
        self._pipeline = parts.pipelines.explain
        self._explained = SeveralExplained(parts.pipelines.explain)
        self._multi_bank = parts.pipelines.multi_bank
        self._hybrid = parts.hybrid
        self._most_results = parts.settings.limits.max_results

    async def told(self, sides: Sides, screened: ExplainQuery, asked: ExplainQuery) -> tuple[list[Explanation], Run]:
        """The fate of each memory, and the recall.

        Args:
            sides: Whose answer.
            screened: With the query as it may be searched for.
            asked: As the caller asked it.
        """
        query = replace(screened.query, include_trace=True)
        plan = None
        if len(sides.banks) == 1 and not sides.beside:
            plan = await self._pipeline.plan(sides.banks[0], query, sides.most_tokens)
        run = await self._run(sides, plan, query)
        told = []
        for memory_id in asked.memory_ids:
            subject, one = await self._explained.explain(run, memory_id, sides.passes)
            if not subject.versions:
                told.append(self._items.asked(sides.banks, query, run.items, memory_id) or one)
                continue

            async def again(changed: RecallQuery, memory_id: str = memory_id) -> Explanation:
                trial = await self._run(sides, plan, changed)
                return (await self._explained.explain(trial, memory_id, sides.passes))[1]

            if one.rank == 0:
                search = SeveralCounterfactuals(again, subject, query, one, self._most_results, sides.most_tokens)
                one = replace(one, counterfactual=await search.find(asked.query))
            told.append(one)
        return told, run

    async def _run(self, sides: Sides, plan: Plan | None, query: RecallQuery) -> Run:
        """The recall of a query, and what was seen of it; raises what the recall does."""
        strategy, seen = self._bank_sets.resolve(sides.caller, query).strategy, _Seen()

        async def local(query: RecallQuery) -> RecallResult:
            seen.asked = True
            if plan is not None:
                seen.look = await self._pipeline.look(plan, query, ())
                return seen.look.answer
            refuses = self._policies.barriers.refuses
            question = Question(
                query, sides.banks, strategy or BankStrategy(), sides.most_tokens, "", refuses, sides.beside
            )
            seen.inspection = await self._multi_bank.inspect(question)
            return seen.inspection.result

        asking = Asking(
            sides.caller, sides.operation, sides.banks, query, sides.most_tokens, strategy, sides.beside, seen.fuse
        )
        result = await self._hybrid.recall(asking, local)
        failed = seen.asked and seen.look is None and seen.inspection is None
        joined, items = await self._items.joined(sides.banks, query, result, sides.most_tokens)
        items = leaving(items, joined.hits, sides.passes)
        return Run(query, sides.banks, joined, seen.look, seen.inspection, seen.fused, failed, result, items)
