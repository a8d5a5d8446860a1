"""What the span of an operation is told: ids of banks that can be such, numbers, yes or no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from astrocyte.core import count_tokens
from astrocyte.model import (
    ForgetResult,
    HistoryResult,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)
from astrocyte.pipelines.recall.hits import count_of, tokens_of
from astrocyte.policy.events import PII_EVENTS
from astrocyte.policy.observability.method_proxy import argument
from astrocyte.policy.requests.field_checks import BANK_ID

Value = str | bool | int | float | Sequence[str]
Told = dict[str, Value]


class Taken(list[str]):
    """What policies did in an operation, in order; ``native`` says whether an engine answered it by itself."""

    native = False


def given(operation: str, provider: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Told:
    """What is known before the operation, when nothing was checked yet.

    Args:
        operation: Name of the backend's method.
        provider: The memory provider.
        args: Those of the call.
        kwargs: As above.
    """
    made: Told = {"astrocyte.provider": provider}
    query = argument(operation, "query", args, kwargs)
    bank_id = argument(operation, "bank_id", args, kwargs)
    if isinstance(query, (RecallQuery, ReflectQuery)):
        bank_id = query.bank_id
        banks = [bank for bank in map(str, query.banks) if BANK_ID.fullmatch(bank)]
        if banks:
            made["astrocyte.banks"] = banks
    if isinstance(bank_id, str) and BANK_ID.fullmatch(bank_id):
        made["astrocyte.bank_id"] = bank_id
    item = argument(operation, "item", args, kwargs)
    items = argument(operation, "items", args, kwargs) if item is None else (item,)
    if isinstance(items, Sequence):
        contents = [one.content for one in items if isinstance(one, RetainItem) and isinstance(one.content, str)]
        made["astrocyte.content_bytes"] = sum(len(content.encode(errors="replace")) for content in contents)
    return made


def told(operation: str, result: object, taken: Taken, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Told:
    """What is known after it.

    Args:
        operation: Name of the backend's method.
        result: What it returned, or one piece of it.
        taken: What policies did in it.
        args: Those of the call.
        kwargs: As above.
    """
    results = result if isinstance(result, list) else [result]
    known = next((kind for one in results for kind in READERS if isinstance(one, kind)), None)
    if known is None:
        return {}
    queries = argument(operation, "queries", args, kwargs) or [argument(operation, "query", args, kwargs)]
    return READERS[known]([one for one in results if isinstance(one, known)], taken, queries)


def _of_retain(results: Sequence[RetainResult], taken: Taken, _: object) -> Told:
    return {
        "astrocyte.pii_detected": not PII_EVENTS.isdisjoint(taken),
        "astrocyte.dedup_hit": any(result.deduplicated for result in results),
    }


def _of_recall(results: Sequence[RecallResult | HistoryResult], taken: Taken, queries: Sequence[RecallQuery]) -> Told:
    return {
        "astrocyte.query_tokens": sum(count_tokens(query.query) for query in queries),
        "astrocyte.result_count": sum(count_of(result.hits) for result in results),
        "astrocyte.result_tokens": sum(tokens_of(result.hits) for result in results),
        "astrocyte.truncated": any(result.truncated for result in results),
        "astrocyte.fallback_used": "degraded" in taken,
    }


def _of_reflect(results: Sequence[ReflectResult], taken: Taken, _: object) -> Told:
    return {
        "astrocyte.native_reflect": taken.native,
        "astrocyte.llm_tokens_used": sum(result.tokens_used for result in results),
        "astrocyte.fallback_used": any(result.fallback_used for result in results),
    }


def _of_forget(results: Sequence[ForgetResult], _: object, __: object) -> Told:
    return {"astrocyte.forgotten_count": sum(result.deleted_count for result in results)}


READERS: Mapping[type, Callable[[Any, Taken, Any], Told]] = {
    RetainResult: _of_retain,
    RecallResult: _of_recall,
    HistoryResult: _of_recall,
    ReflectResult: _of_reflect,
    ForgetResult: _of_forget,
}
