"""Filters of stores as queries of Elasticsearch, by the definition `StoreFilters.admit`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from astrocyte.providers.storage.fields import NEVER, pair_of
from astrocyte.providers.storage.protocols import CURRENT, Span, StoreFilters

Query = dict[str, Any]


def digest(*parts: str) -> str:
    """A name of any parts that fits wherever the server takes a name."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def pair_digest(pair: str) -> str:
    """The field of a pair of metadata: a keyword is bounded in bytes, and a value may be longer."""
    return digest(pair)


def of_bank(bank_id: str, *conditions: Query, excluded: tuple[Query, ...] = ()) -> Query:
    """The documents of a bank that meet all conditions and none of the excluded ones."""
    return {"bool": {"filter": [{"term": {"bank_id": bank_id}}, *conditions], "must_not": list(excluded)}}


def condition(bank_id: str, filters: StoreFilters | None) -> Query:
    """The documents of a bank that pass a filter."""
    wanted = filters or CURRENT
    tagged = {"terms": {"tags": list(wanted.tags)}}
    every = [{"term": {"tags": tag}} for tag in wanted.tags] if wanted.tag_match == "all" else []
    some = [tagged] if wanted.tags and wanted.tag_match == "any" else []
    none = (tagged,) if wanted.tags and wanted.tag_match == "none" else ()
    return of_bank(bank_id, *_conditions(wanted), *every, *some, excluded=none)


def _conditions(wanted: StoreFilters) -> Iterator[Query]:
    if wanted.as_of is None:
        yield {"term": {"known_until": NEVER}}
    else:
        yield {"range": {"known_from": {"lte": wanted.as_of}}}
        yield {"range": {"known_until": {"gt": wanted.as_of}}}
    if wanted.fact_types:
        yield {"terms": {"fact_type": list(wanted.fact_types)}}
    if wanted.memory_ids:
        yield {"terms": {"memory_id": list(wanted.memory_ids)}}
    if wanted.session_id is not None:
        yield {"term": {"session_id": wanted.session_id}}
    for pair in wanted.metadata.items():
        yield {"term": {"pairs": pair_digest(pair_of(pair))}}
    yield from _within("happened_at", wanted.time_range)
    yield from _within("retained_at", wanted.retained_range)
    if wanted.valid_at is not None:
        yield {"range": {"valid_from": {"lte": wanted.valid_at}}}
        yield {"range": {"valid_until": {"gte": wanted.valid_at}}}


def _within(field: str, span: Span | None) -> Iterator[Query]:
    first, last = span or (None, None)
    bounds = {name: value for name, value in (("gte", first), ("lte", last)) if value is not None}
    if bounds:
        yield {"range": {field: bounds}}
