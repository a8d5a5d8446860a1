"""Hooks on calls: events of retains, recalls and other calls, from the first registered function on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from astrocyte.api import Backend, requests
from astrocyte.config import HookSettings
from astrocyte.errors import CapabilityNotSupported
from astrocyte.model import (
    POLICY_KINDS,
    Caller,
    ForgetResult,
    HistoryResult,
    HookKind,
    HookValue,
    Memory,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainResult,
)
from astrocyte.pipelines.recall.hits import ids_of
from astrocyte.policy.observability.hooks import Handler, Hooks
from astrocyte.policy.observability.middleware import MiddlewareBackend, Proceed, ProceedStream, stepped

Data = dict[str, HookValue]
# The kind of a call's events; and, from its request and response, the bank and the data of each event.
Event = tuple[HookKind, Callable[[Any, Any], Iterable[tuple[str, Data]]]]


class Hookable:
    """The part of the Python API that registers hooks.

    Attributes:
        _backend: What does the work.
        _hook_settings: How hooks are called; None where policies are applied in another process.
    """

    _backend: Backend
    _hook_settings: HookSettings | None
    _hooks: Hooks | None = None

    def on(self, event: str, handler: Handler) -> Callable[[], None]:
        """Call a function with each event of a kind from now on, apart from the call that it happened in.

        Args:
            event: on_retain, on_update, on_recall, on_reflect, on_forget, on_undelete, on_bank_deleted; and, where
                memory is in this process, on_pii_detected, on_rate_limited, on_degraded, on_circuit_changed.
            handler: Takes a `HookEvent`; may be ``async``. It runs on a thread for hooks, which has a loop of its own.
                What it raises is logged and counted, and changes nothing.

        Returns:
            A function that ends it.

        Raises:
            ValidationError: There is no such event.
            CapabilityNotSupported: The event is one that only the server's process knows of.
        """
        if self._hook_settings is None and event in POLICY_KINDS:
            raise CapabilityNotSupported(
                f"{event} happens in the server; register it there, as an entry point of the group astrocyte.hooks",
                metadata={"parameter": "event"},
            )
        if self._hooks is None:
            self._hooks = Hooks(self._hook_settings or HookSettings())
            self._backend = MiddlewareBackend(self._backend, HooksMiddleware(self._hooks))
        return self._hooks.on(event, handler)

    async def close(self) -> None:
        """Finish pending writes and release all resources."""
        await self._backend.close()
        if self._hooks is not None:
            # It waits for functions that still run.
            await asyncio.get_running_loop().run_in_executor(None, self._hooks.close)


class HooksMiddleware:
    """Fires the events of calls, after their responses.

    Args:
        hooks: The registered functions.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def call(self, caller: Caller, request: Any, proceed: Proceed) -> Coroutine[Any, Any, Any]:  # noqa: ANN401 - any request
        """Fire the events of the call, if it has any."""
        event = EVENTS.get(type(request))
        return proceed(caller, request) if event is None else self._call(caller, request, proceed, event)

    async def _call(self, caller: Caller, request: Any, proceed: Proceed, event: Event) -> Any:  # noqa: ANN401 - any request and its response
        with self._hooks.within(caller):
            response = await proceed(caller, request)
        self._fire(caller, request, response, event)
        return response

    async def stream(self, caller: Caller, request: Any, proceed: ProceedStream) -> AsyncIterator[Any]:  # noqa: ANN401 - any request and its responses
        """Fire the event of a reflect with its result."""
        event = EVENTS.get(type(request))
        async with aclosing(stepped(proceed(caller, request), lambda: self._hooks.within(caller))) as pieces:
            async for piece in pieces:
                if event is not None and isinstance(piece, ReflectResult):
                    self._fire(caller, request, piece, event)
                yield piece

    def _fire(self, caller: Caller, request: object, response: object, event: Event) -> None:
        kind, tell = event
        if self._hooks.wants(kind):
            for bank_id, data in tell(request, response):
                self._hooks.fire(kind, bank_id or None, caller, data)


def _retained(request: Any, result: RetainResult | Sequence[object]) -> Iterable[tuple[str, Data]]:  # noqa: ANN401 - a retain of any kind
    if getattr(request, "validate_only", False):
        return
    for one in [result] if isinstance(result, RetainResult) else result:
        # The place of an item that failed holds its error, which its caller has.
        if isinstance(one, RetainResult):
            yield (
                request.bank_id,
                {
                    "memory_id": one.memory_id,
                    "stored": one.stored,
                    "retention_action": one.retention_action,
                    "deduplicated": one.deduplicated,
                    "position": one.position,
                },
            )


def _updated(request: requests.UpdateMemory, memory: Memory) -> Iterable[tuple[str, Data]]:
    if not request.validate_only:
        yield request.bank_id, {"memory_id": memory.memory_id, "version": memory.version}


def _recalled(
    request: requests.Recall | requests.History | requests.BatchRecall,
    result: RecallResult | HistoryResult | Sequence[RecallResult],
) -> Iterable[tuple[str, Data]]:
    queries = request.queries if isinstance(request, requests.BatchRecall) else [request.query]
    results = [result] if isinstance(result, (RecallResult, HistoryResult)) else result
    for query, one in zip(queries, results, strict=True):
        yield query.bank_id, {**_banks(query), "memory_ids": ids_of(one.hits), "truncated": one.truncated}


def _reflected(request: requests.Reflect | requests.StreamReflect, result: ReflectResult) -> Iterable[tuple[str, Data]]:
    query = request.query
    data: Data = {
        **_banks(query),
        "memory_ids": tuple(dict.fromkeys(citation.memory_id for citation in result.citations)),
        "mode": None if result.mode is None else str(result.mode),
        "confidence": result.confidence,
        "abstained": result.abstained,
        "fallback_used": result.fallback_used,
        "tokens_used": result.tokens_used,
    }
    yield query.bank_id, data


def _forgot(request: requests.Forget, result: ForgetResult) -> Iterable[tuple[str, Data]]:
    if not result.dry_run:
        data: Data = {
            "count": result.deleted_count,
            "memory_ids": result.memory_ids,
            "compliance": request.compliance,
        }
        yield request.bank_id, data


def _undeleted(request: requests.UndeleteMemory, memory: Memory) -> Iterable[tuple[str, Data]]:
    yield request.bank_id, {"memory_id": memory.memory_id}


def _bank_deleted(request: requests.DeleteBank, count: int) -> Iterable[tuple[str, Data]]:
    yield request.bank_id, {"count": count}


def _banks(query: RecallQuery | ReflectQuery) -> Data:
    """The banks of a query that names several."""
    return {"banks": tuple(query.banks)} if query.banks else {}


EVENTS: Mapping[type[Any], Event] = {
    requests.Retain: (HookKind.RETAIN, _retained),
    requests.BatchRetain: (HookKind.RETAIN, _retained),
    requests.StreamRetain: (HookKind.RETAIN, _retained),
    requests.UpdateMemory: (HookKind.UPDATE, _updated),
    requests.Recall: (HookKind.RECALL, _recalled),
    requests.BatchRecall: (HookKind.RECALL, _recalled),
    requests.History: (HookKind.RECALL, _recalled),
    requests.Reflect: (HookKind.REFLECT, _reflected),
    requests.StreamReflect: (HookKind.REFLECT, _reflected),
    requests.Forget: (HookKind.FORGET, _forgot),
    requests.UndeleteMemory: (HookKind.UNDELETE, _undeleted),
    requests.DeleteBank: (HookKind.BANK_DELETED, _bank_deleted),
}
