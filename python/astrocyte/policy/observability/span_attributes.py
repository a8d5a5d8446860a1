"""Attributes of the span of a request: well-formed bank ids, numbers, true or false."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from astrocyte.api import RPCS
from astrocyte.api.requests import BatchRecall, Retain
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
from astrocyte.policy.requests.field_checks import BANK_ID

Value = str | bool | int | float | Sequence[str]
Told = dict[str, Value]


class Taken(list[str]):
    """The events of an operation, in order; ``native`` says whether an engine answered it by itself."""

    native = False


def given(request: object, provider: str) -> Told:
    """The attributes that are known before the operation, when nothing was checked yet.

    Args:
        request: A request of the API.
        provider: The memory provider.
    """
    made: Told = {"astrocyte.provider": provider}
    query = getattr(request, "query", None)
    bank_id = RPCS[type(request)].bank_id(request)
    if isinstance(query, (RecallQuery, ReflectQuery)):
        banks = [bank for bank in map(str, query.banks) if BANK_ID.fullmatch(bank)]
        if banks:
            made["astrocyte.banks"] = banks
    if BANK_ID.fullmatch(bank_id):
        made["astrocyte.bank_id"] = bank_id
    items = (request.item,) if isinstance(request, Retain) else getattr(request, "items", None)
    if isinstance(items, Sequence):
        contents = [one.content for one in items if isinstance(one, RetainItem) and isinstance(one.content, str)]
        made["astrocyte.content_bytes"] = sum(len(content.encode(errors="replace")) for content in contents)
    return made


def told(request: object, result: object, taken: Taken) -> Told:
    """The attributes that are known after it.

    Args:
        request: A request of the API.
        result: Its response, or one piece of it.
        taken: Actions of the policies.
    """
    results = result if isinstance(result, list) else [result]
    known = next((kind for one in results for kind in READERS if isinstance(one, kind)), None)
    if known is None:
        return {}
    queries = request.queries if isinstance(request, BatchRecall) else [getattr(request, "query", None)]
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
