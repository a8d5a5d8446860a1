"""The gate with its calls counted and timed. Without metrics the plain gate is built, and a call costs nothing more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from time import perf_counter

from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Caller,
    HistoryResult,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability.metrics import Metrics
from astrocyte.policy.operations.parts import GateParts


class ObservedGate(Gate):
    """A gate that tells the metrics.

    Args:
        metrics: Who is told.
        parts: Those of `Gate`.
    """

    def __init__(self, metrics: Metrics, parts: GateParts) -> None:
        super().__init__(parts)
        self._metrics = metrics

    async def retain(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory."""
        began = perf_counter()
        try:
            result = await super().retain(caller, bank_id, item, request_id=request_id, validate_only=validate_only)
        except AstrocyteError:
            self._metrics.retain_failed(bank_id)
            raise
        self._metrics.retained(bank_id, result)
        self._metrics.retain_took(bank_id, perf_counter() - began)
        return result

    async def retain_batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items, or none."""
        began = perf_counter()
        try:
            results = await super().retain_batch(
                caller, bank_id, items, request_id=request_id, validate_only=validate_only
            )
        except AstrocyteError:
            self._metrics.retain_failed(bank_id)
            raise
        for result in results:
            self._metrics.retained(bank_id, result)
        self._metrics.retain_took(bank_id, perf_counter() - began)
        return results

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored."""
        began = perf_counter()
        results = await super().retain_many(caller, bank_id, items, request_ids=request_ids)
        for result in results:
            if isinstance(result, AstrocyteError):
                self._metrics.retain_failed(bank_id)
            else:
                self._metrics.retained(bank_id, result)
        self._metrics.retain_took(bank_id, perf_counter() - began)
        return results

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        began = perf_counter()
        try:
            result = await super().recall(caller, query)
        except AstrocyteError:
            self._metrics.recall_failed(query.bank_id)
            raise
        self._metrics.recalled(query.bank_id, result, "recall")
        self._metrics.recall_took(query.bank_id, perf_counter() - began)
        return result

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries, or fail with the first that cannot be answered; its time is nobody's."""
        try:
            results = await super().recall_batch(caller, queries)
        except AstrocyteError:
            self._metrics.recall_failed("")
            raise
        for query, result in zip(queries, results, strict=True):
            self._metrics.recalled(query.bank_id, result, "recall")
        return results

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall as of an instant."""
        began = perf_counter()
        try:
            result = await super().history(caller, query)
        except AstrocyteError:
            self._metrics.recall_failed(query.bank_id)
            raise
        found = RecallResult(result.hits, result.total_available, truncated=result.truncated)
        self._metrics.recalled(query.bank_id, found, "history")
        self._metrics.recall_took(query.bank_id, perf_counter() - began)
        return result

    async def reflect(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question from memory."""
        result = await super().reflect(caller, query)
        self._metrics.reflected(query.bank_id, result)
        return result

    async def reflect_stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """Answer a question from memory, in pieces."""
        async with aclosing(super().reflect_stream(caller, query)) as parts:  # type: ignore[type-var]  # a generator
            async for part in parts:
                if isinstance(part, ReflectResult):
                    self._metrics.reflected(query.bank_id, part)
                yield part
