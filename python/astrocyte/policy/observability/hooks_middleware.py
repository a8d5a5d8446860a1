"""Where hooks hear of calls: around a backend, whichever it is, once a hook is registered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from astrocyte.config import HookSettings
from astrocyte.errors import CapabilityNotSupported
from astrocyte.model import (
    POLICY_KINDS,
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
from astrocyte.policy.backend import Backend
from astrocyte.policy.observability.hooks import Handler, Hooks
from astrocyte.policy.observability.method_proxy import STREAMS, Wrap, argument, front, stepped

Method = Callable[..., Any]
Data = dict[str, HookValue]
# A call's arguments by name, and its result, to the bank and what is told, for each event of it.
Tell = Callable[[Callable[[str], Any], Any], Iterable[tuple[str, Data]]]


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
            self._backend = hooked(self._backend, self._hooks)
        return self._hooks.on(event, handler)


def hooked(backend: Backend, hooks: Hooks) -> Backend:
    """The backend, whose calls the hooks hear of."""
    wrappers: dict[str, Wrap] = {name: _heard(name, kind, hooks, tell) for name, (kind, tell) in CALLS.items()}
    return front(backend, {**wrappers, "close": lambda method: _closing(method, hooks)})


def _closing(method: Method, hooks: Hooks) -> Method:
    async def close() -> None:
        await method()
        await asyncio.get_running_loop().run_in_executor(None, hooks.close)

    return close


def _heard(name: str, kind: HookKind, hooks: Hooks, tell: Tell) -> Wrap:
    def fire(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: object) -> None:
        if hooks.wants(kind):
            for bank_id, data in tell(lambda wanted: argument(name, wanted, args, kwargs), result):
                hooks.fire(kind, bank_id or None, args[0], data)

    def whole(method: Method) -> Method:
        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
            with hooks.within(args[0]):
                result = await method(*args, **kwargs)
            fire(args, kwargs, result)
            return result

        return call

    def in_pieces(method: Method) -> Method:
        async def stream(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - as above
            async with aclosing(stepped(method(*args, **kwargs), lambda: hooks.within(args[0]))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ReflectResult):
                        fire(args, kwargs, piece)
                    yield piece

        return stream

    return in_pieces if name in STREAMS else whole


Given = Callable[[str], Any]


def _retained(given: Given, result: RetainResult | Sequence[object]) -> Iterable[tuple[str, Data]]:
    if given("validate_only"):
        return
    for one in [result] if isinstance(result, RetainResult) else result:
        # The place of an item that failed holds its error, which its caller has.
        if isinstance(one, RetainResult):
            yield (
                given("bank_id"),
                {
                    "memory_id": one.memory_id,
                    "stored": one.stored,
                    "retention_action": one.retention_action,
                    "deduplicated": one.deduplicated,
                    "position": one.position,
                },
            )


def _updated(given: Given, memory: Memory) -> Iterable[tuple[str, Data]]:
    if not given("validate_only"):
        yield given("bank_id"), {"memory_id": memory.memory_id, "version": memory.version}


def _recalled(
    given: Given, result: RecallResult | HistoryResult | Sequence[RecallResult]
) -> Iterable[tuple[str, Data]]:
    queries: Sequence[RecallQuery] = given("queries") or [given("query")]
    results = [result] if isinstance(result, (RecallResult, HistoryResult)) else result
    for query, one in zip(queries, results, strict=True):
        yield query.bank_id, {**_banks(query), "memory_ids": ids_of(one.hits), "truncated": one.truncated}


def _reflected(given: Given, result: ReflectResult) -> Iterable[tuple[str, Data]]:
    query: ReflectQuery = given("query")
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


def _forgot(given: Given, result: ForgetResult) -> Iterable[tuple[str, Data]]:
    if not result.dry_run:
        data: Data = {
            "count": result.deleted_count,
            "memory_ids": result.memory_ids,
            "compliance": bool(given("compliance")),
        }
        yield given("bank_id"), data


def _undeleted(given: Given, memory: Memory) -> Iterable[tuple[str, Data]]:
    yield given("bank_id"), {"memory_id": memory.memory_id}


def _bank_deleted(given: Given, count: int) -> Iterable[tuple[str, Data]]:
    yield given("bank_id"), {"count": count}


def _banks(query: RecallQuery | ReflectQuery) -> Data:
    """The banks of a query that names several."""
    return {"banks": tuple(query.banks)} if query.banks else {}


CALLS: Mapping[str, tuple[HookKind, Tell]] = {
    "retain": (HookKind.RETAIN, _retained),
    "retain_batch": (HookKind.RETAIN, _retained),
    "retain_many": (HookKind.RETAIN, _retained),
    "update_memory": (HookKind.UPDATE, _updated),
    "recall": (HookKind.RECALL, _recalled),
    "recall_batch": (HookKind.RECALL, _recalled),
    "history": (HookKind.RECALL, _recalled),
    "reflect": (HookKind.REFLECT, _reflected),
    "reflect_stream": (HookKind.REFLECT, _reflected),
    "forget": (HookKind.FORGET, _forgot),
    "undelete": (HookKind.UNDELETE, _undeleted),
    "delete_bank": (HookKind.BANK_DELETED, _bank_deleted),
}
