"""Counts and times of retains, recalls and reflects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from time import perf_counter
from typing import Any

from astrocyte.api import RPCS, requests
from astrocyte.errors import AstrocyteError
from astrocyte.model import Caller, HistoryResult, RecallResult, ReflectResult, RetainResult
from astrocyte.policy.observability.method_proxy import front
from astrocyte.policy.observability.metrics import Metrics
from astrocyte.policy.observability.middleware import Proceed, ProceedStream
from astrocyte.providers.engines import EngineProvider

Observe = Callable[[Caller, Any, Proceed], Coroutine[Any, Any, Any]]


class MetricsMiddleware:
    """Records calls in the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._observers: Mapping[type[Any], Observe] = {
            requests.Retain: self._retain,
            requests.BatchRetain: self._retain,
            requests.StreamRetain: self._retain,
            requests.Recall: self._recall,
            requests.History: self._recall,
            requests.BatchRecall: self._batch_recall,
            requests.Reflect: self._reflect,
        }

    def call(self, caller: Caller, request: Any, proceed: Proceed) -> Coroutine[Any, Any, Any]:  # noqa: ANN401 - any request
        """Record the call where there is a metric of its kind."""
        observe = self._observers.get(type(request))
        return proceed(caller, request) if observe is None else observe(caller, request, proceed)

    async def stream(self, caller: Caller, request: Any, proceed: ProceedStream) -> AsyncIterator[Any]:  # noqa: ANN401 - any request
        """Record the result at the end of a reflect."""
        async with aclosing(proceed(caller, request)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, ReflectResult):
                    self._metrics.reflected(request.query.bank_id, piece)
                yield piece

    async def _retain(self, caller: Caller, request: Any, proceed: Proceed) -> Any:  # noqa: ANN401 - a retain of any kind
        began = perf_counter()
        try:
            response = await proceed(caller, request)
        except AstrocyteError:
            if not isinstance(request, requests.StreamRetain):
                self._metrics.retain_failed(request.bank_id)
            raise
        for result in [response] if isinstance(response, RetainResult) else response:
            if isinstance(result, AstrocyteError):
                self._metrics.retain_failed(request.bank_id)
            else:
                self._metrics.retained(request.bank_id, result)
        self._metrics.retain_took(request.bank_id, perf_counter() - began)
        return response

    async def _recall(self, caller: Caller, request: Any, proceed: Proceed) -> Any:  # noqa: ANN401 - a recall or a history
        began = perf_counter()
        bank_id = RPCS[type(request)].bank_id(request)
        try:
            result = await proceed(caller, request)
        except AstrocyteError:
            self._metrics.recall_failed(bank_id)
            raise
        if isinstance(result, HistoryResult):
            found = RecallResult(result.hits, result.total_available, truncated=result.truncated)
            self._metrics.recalled(bank_id, found, "history")
        else:
            self._metrics.recalled(bank_id, result, "recall")
        self._metrics.recall_took(bank_id, perf_counter() - began)
        return result

    async def _batch_recall(self, caller: Caller, request: requests.BatchRecall, proceed: Proceed) -> Any:  # noqa: ANN401 - results
        """Count the queries of a batch; its time belongs to no single one."""
        try:
            results = await proceed(caller, request)
        except AstrocyteError:
            self._metrics.recall_failed("")
            raise
        for query, result in zip(request.queries, results, strict=True):
            self._metrics.recalled(query.bank_id, result, "recall")
        return results

    async def _reflect(self, caller: Caller, request: requests.Reflect, proceed: Proceed) -> Any:  # noqa: ANN401 - a result
        result = await proceed(caller, request)
        self._metrics.reflected(request.query.bank_id, result)
        return result


def measured_engine(name: str, engine: EngineProvider, metrics: Metrics) -> EngineProvider:
    """The engine with each recall counted."""

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        async def recall(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
            began, outcome = perf_counter(), "failed"
            try:
                result = await method(*args, **kwargs)
                outcome = "answered"
            except asyncio.CancelledError:
                outcome = "cancelled"
                raise
            else:
                return result
            finally:
                metrics.engine_recalled(name, outcome, perf_counter() - began)

        return recall

    return front(engine, {"recall": wrap})
