"""What a reflect must pass: access, rates and quotas, shape, the bank, personal data in the question, in this order.

And what it may say: how much, and of which memories, once personal data in them was dealt with. What a model is shown,
and what it finds by itself, goes through the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from astrocyte.errors import CircuitOpen
from astrocyte.model import Bank, Caller, ReflectQuery, ReflectResult
from astrocyte.pipelines.reflect import Allowance, ReflectPipeline
from astrocyte.policy.banks import Banks
from astrocyte.policy.limits import Demand, Operation
from astrocyte.policy.policies import Policies
from astrocyte.policy.validation import Validator


class Reflecting:
    """The part of the gate that answers from memory; see `astrocyte.policy.backend.Backend`.

    Args:
        policies: How often, and how much.
        banks: Which there are, and who may read them.
        pipeline: Answers.
        check: The limits of requests.
    """

    def __init__(self, policies: Policies, banks: Banks, pipeline: ReflectPipeline, check: Validator) -> None:
        self._policies = policies
        self._banks = banks
        self._pipeline = pipeline
        self._check = check

    async def one(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question."""
        bank, query, allowance, warnings = await self._admitted(caller, "Reflect", query)
        try:
            return _told(await self._pipeline.run(bank, query, allowance), warnings)
        except CircuitOpen as failure:
            return _told(self._policies.escalation.reflect(bank, failure), warnings)

    async def stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """Answer a question in pieces."""
        bank, query, allowance, warnings = await self._admitted(caller, "StreamReflect", query)
        begun = False
        try:
            async with aclosing(self._pipeline.stream(bank, query, allowance)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    begun = True
                    yield piece if isinstance(piece, str) else _told(piece, warnings)
        except CircuitOpen as failure:
            if begun:
                raise
            result = _told(self._policies.escalation.reflect(bank, failure), warnings)
            yield result.answer
            yield result

    async def _admitted(
        self, caller: Caller, operation: str, query: ReflectQuery
    ) -> tuple[Bank, ReflectQuery, Allowance, tuple[str, ...]]:
        bank_id = query.bank_id
        self._banks.require(caller, operation, bank_id)
        await self._policies.limits.admit((Demand(caller.tenant, bank_id, Operation.REFLECT),))
        self._check.reflect(query)
        bank = self._banks.expected(caller, operation, bank_id)
        query, warnings = await self._policies.barriers.query(operation, query, (query.bank_id,))
        bank = await self._banks.ready(caller, operation, bank)
        limits = self._policies.overrides.of(bank_id).homeostasis
        screen = partial(self._policies.barriers.evidence, bank_id, operation)
        return bank, query, Allowance(limits.reflect_max_tokens, limits.recall_max_tokens, screen), warnings


def _told(result: ReflectResult, warnings: tuple[str, ...]) -> ReflectResult:
    return replace(result, observations=(*(result.observations or ()), *warnings)) if warnings else result
