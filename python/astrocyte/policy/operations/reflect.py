"""Reflect at the gate: access, rates and quotas, shape, the bank, personal data in the question, in this order.

And what it may say: how much, and of which memories, once personal data in them was dealt with. What a model is shown,
and what it finds by itself, goes through the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from astrocyte.api import LimitKind
from astrocyte.api.requests import Reflect, StreamReflect
from astrocyte.errors import CircuitOpen
from astrocyte.model import (
    Bank,
    BankStrategy,
    Caller,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
)
from astrocyte.pipelines.reflect.work import Allowance
from astrocyte.policy.banks.selection import BankSet
from astrocyte.policy.engines.reflect import EngineReflecting
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests.composed_text import composed

# Finds the memories of one bank, where there is no strategy, or of several, for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A reflect that may be answered, from these banks, and what its caller is to be told."""

    banks: Sequence[Bank]
    query: ReflectQuery
    allowance: Allowance
    warnings: tuple[str, ...]

    def told(self, result: ReflectResult) -> ReflectResult:
        """The result with the warnings."""
        if not self.warnings:
            return result
        return replace(result, observations=(*(result.observations or ()), *self.warnings))


class Reflecting:
    """Handlers of Reflect and StreamReflect.

    Args:
        parts: What the operations share.
        recall: Finds what an answer is made of.
    """

    def __init__(self, parts: OperationParts, recall: Recall) -> None:
        self._engines = EngineReflecting(
            parts.policies.engines, parts.engine_results, parts.policies.barriers, parts.access.name
        )
        self._policies = parts.policies
        self._banks = parts.banks
        self._bank_sets = parts.bank_sets
        self._pipeline = parts.pipelines.reflect
        self._recall = recall
        self._check = parts.check

    async def reflect(self, caller: Caller, request: Reflect) -> ReflectResult:
        """Answer a question."""
        call = await self._admitted(caller, "Reflect", request.query)
        answer = await self._elsewhere(caller, "Reflect", call)
        if answer is not None:
            return call.told(answer)
        try:
            return call.told(await self._pipeline.run(call.query, call.allowance))
        except CircuitOpen as failure:
            return call.told(self._policies.escalation.reflect(call.banks, failure))

    async def stream_reflect(self, caller: Caller, request: StreamReflect) -> AsyncIterator[str | ReflectResult]:
        """Answer a question in pieces."""
        call = await self._admitted(caller, "StreamReflect", request.query)
        answer = await self._elsewhere(caller, "StreamReflect", call)
        if answer is not None:
            yield answer.answer
            yield call.told(answer)
            return
        begun = False
        try:
            async with aclosing(self._pipeline.stream(call.query, call.allowance)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    begun = True
                    yield piece if isinstance(piece, str) else call.told(piece)
        except CircuitOpen as failure:
            if begun:
                raise
            result = call.told(self._policies.escalation.reflect(call.banks, failure))
            yield result.answer
            yield result

    async def _elsewhere(self, caller: Caller, operation: str, call: _Admitted) -> ReflectResult | None:
        """The answer of an engine, where one answers for the bank; several banks are the pipeline's."""
        if len(call.banks) != 1:
            return None
        most_tokens = call.allowance.most_tokens
        return await self._engines.answer(caller, operation, call.banks[0], call.query, most_tokens)

    async def _admitted(self, caller: Caller, operation: str, query: ReflectQuery) -> _Admitted:
        asked = self._bank_sets.resolve(caller, query)
        self._banks.require_each(caller, operation, asked)
        await self._policies.limits.admit_each(caller.tenant, asked.bank_ids, LimitKind.REFLECT)
        self._check.reflect(query)
        query = composed(query)
        expected = self._banks.expected_each(caller, operation, asked.bank_ids)
        query, warnings = await self._policies.barriers.query(operation, query, asked.bank_ids)
        banks = await self._banks.ready_each(caller, operation, expected)
        return _Admitted(banks, query, self._allowance(caller, operation, asked, banks), warnings)

    def _allowance(self, caller: Caller, operation: str, asked: BankSet, banks: Sequence[Bank]) -> Allowance:
        """The common allowance of the banks: the lowest of their ceilings holds, and each judges its own memories."""
        barriers = self._policies.barriers

        async def recall(query: RecallQuery) -> RecallResult:
            found = await self._recall(caller, operation, asked.strategy, banks, query)
            found = replace(found, hits=tuple(found.hits))
            # What is relevant to a bank may be another's, which judges it.
            bank_ids = list(dict.fromkeys([*asked.bank_ids, *(hit.bank_id for hit in found.hits if hit.bank_id)]))
            return self._policies.authority.evidence(barriers.evidence(bank_ids, operation, found))

        most = min(self._policies.overrides.of[bank.bank_id].homeostasis.reflect_max_tokens for bank in banks)
        return Allowance(most, recall)
