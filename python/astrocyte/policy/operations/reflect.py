"""Reflect at the gate: access, rates and quotas, shape, the bank, personal data in the question, in this order.

And what it may say: how much, and of which memories, once personal data in them was dealt with. What a model is shown,
and what it finds by itself, goes through the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from astrocyte.api import LimitKind
from astrocyte.api.requests import Reflect, StreamReflect
from astrocyte.errors import CircuitOpen
from astrocyte.model import (
    Bank,
    BankStrategy,
    Caller,
    Directive,
    MemoryHit,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
)
from astrocyte.pipelines.reflect.work import Allowance
from astrocyte.policy.banks.selection import BankSet
from astrocyte.policy.engines.reflect import EngineReflecting
from astrocyte.policy.operations.knowledge.answers import ChosenDirectives, KnowledgeAnswers
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests.composed_text import composed

# Finds the memories of one bank, where there is no strategy, or of several, for a caller by a call.
Recall = Callable[[Caller, str, BankStrategy | None, Sequence[Bank], RecallQuery], Awaitable[RecallResult]]


class _Seen:
    """The memories that an answer is made of, and the directives that apply to it."""

    def __init__(self, chosen: ChosenDirectives) -> None:
        self._chosen = chosen
        self._hits: list[MemoryHit] = []

    def add(self, hits: Sequence[MemoryHit]) -> None:
        """Note what a recall found."""
        self._hits += hits

    def directives(self) -> tuple[Directive, ...]:
        """The directives that apply to all that was found."""
        return self._chosen(self._hits)

    def rules(self) -> tuple[str, ...]:
        """The texts of `directives`."""
        return tuple(one.rule_text for one in self.directives())


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A reflect that may be answered, from these banks, and what its caller is to be told."""

    banks: Sequence[Bank]
    query: ReflectQuery
    allowance: Allowance
    warnings: tuple[str, ...]
    seen: _Seen

    def told(self, result: ReflectResult) -> ReflectResult:
        """The result with the directives and the warnings."""
        directives = self.seen.directives()
        if directives:
            result = replace(result, directives=directives)
        if not self.warnings:
            return result
        return replace(result, observations=(*(result.observations or ()), *self.warnings))


class Reflecting:
    """Handlers of Reflect and StreamReflect.

    Args:
        parts: What the operations share.
        recall: Finds what an answer is made of.
        knowledge: Adds what banks know beside their memories.
    """

    def __init__(self, parts: OperationParts, recall: Recall, knowledge: KnowledgeAnswers) -> None:
        self._store = parts.store
        self._knowledge = knowledge
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
        result = await self._elsewhere(caller, "Reflect", call)
        if result is None:
            try:
                result = await self._pipeline.run(call.query, call.allowance)
            except CircuitOpen as failure:
                result = self._policies.escalation.reflect(call.banks, failure)
        return self._told(call, result)

    async def stream_reflect(self, caller: Caller, request: StreamReflect) -> AsyncIterator[str | ReflectResult]:
        """Answer a question in pieces."""
        call = await self._admitted(caller, "StreamReflect", request.query)
        answer = await self._elsewhere(caller, "StreamReflect", call)
        if answer is not None:
            yield answer.answer
            yield self._told(call, answer)
            return
        begun = False
        try:
            async with aclosing(self._pipeline.stream(call.query, call.allowance)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    begun = True
                    yield piece if isinstance(piece, str) else self._told(call, piece)
        except CircuitOpen as failure:
            if begun:
                raise
            result = self._policies.escalation.reflect(call.banks, failure)
            yield result.answer
            yield self._told(call, result)

    def _told(self, call: _Admitted, result: ReflectResult) -> ReflectResult:
        """The result as it leaves, counted for its bank where there is one alone."""
        if len(call.banks) == 1:
            bank = call.banks[0]
            self._policies.activity.reflected(bank.tenant, bank.bank_id, result)
        return call.told(result)

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
        seen = _Seen(self._knowledge.directives(banks, query))
        return _Admitted(banks, query, self._allowance(caller, operation, asked, banks, seen), warnings, seen)

    def _allowance(
        self, caller: Caller, operation: str, asked: BankSet, banks: Sequence[Bank], seen: _Seen
    ) -> Allowance:
        """The common allowance of the banks: the lowest of their ceilings holds, and each judges its own memories."""
        barriers = self._policies.barriers

        async def recall(query: RecallQuery) -> RecallResult:
            found = await self._recall(caller, operation, asked.strategy, banks, query)
            found = replace(found, hits=tuple(found.hits))
            seen.add(found.hits)
            found = await self._knowledge.evidence(banks, query, found)
            # What is relevant to a bank may be another's, which judges it.
            bank_ids = list(dict.fromkeys([*asked.bank_ids, *(hit.bank_id for hit in found.hits if hit.bank_id)]))
            return self._policies.authority.evidence(barriers.evidence(bank_ids, operation, found))

        most = min(self._policies.overrides.of[bank.bank_id].homeostasis.reflect_max_tokens for bank in banks)
        return Allowance(most, recall, seen.rules, turns_before=partial(self._turns_before, banks))

    def _turns_before(self, banks: Sequence[Bank], hits: Sequence[MemoryHit]) -> dict[str, str]:
        """The ids of the turns before memories of these banks, by their ids; some look-ups in an index."""
        found: dict[str, str] = {}
        for bank in banks:
            memory_ids = [hit.memory_id for hit in hits if hit.bank_id == bank.bank_id and hit.memory_id]
            if memory_ids:
                found |= self._store.turns_before(bank, memory_ids)
        return found
