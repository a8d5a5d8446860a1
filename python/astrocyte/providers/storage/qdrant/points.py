"""Items as points of Qdrant, and filters as its conditions.

The vector of a point has the length 1, as the search needs it; the item's own is in the payload, bit for bit.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid5

from qdrant_client import models

from astrocyte.core import vector_values
from astrocyte.providers.storage.fields import NEVER, attributes_of, fields_of, pair_of
from astrocyte.providers.storage.protocols import CURRENT, Span, StoreFilters, VectorItem

# Any namespace; ids of points are names in it.
_NAMESPACE = UUID("3b0ff4c2-6d0e-5f41-9d0a-6a1f0c5a7e11")

# The fields that filters name, and the index of each. Of a multi-tenant field Qdrant keeps the points together.
INDEXES: Mapping[str, models.PayloadSchemaType | models.KeywordIndexParams] = {
    "bank_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "memory_id": models.PayloadSchemaType.KEYWORD,
    "fact_type": models.PayloadSchemaType.KEYWORD,
    "session_id": models.PayloadSchemaType.KEYWORD,
    "tags": models.PayloadSchemaType.KEYWORD,
    "metadata": models.PayloadSchemaType.KEYWORD,
    "retained_at": models.PayloadSchemaType.INTEGER,
    "happened_at": models.PayloadSchemaType.INTEGER,
    "known_from": models.PayloadSchemaType.INTEGER,
    "known_until": models.PayloadSchemaType.INTEGER,
    "valid_from": models.PayloadSchemaType.INTEGER,
    "valid_until": models.PayloadSchemaType.INTEGER,
}


def point_id(*parts: str) -> str:
    """The id of a point: a UUID, which is all that Qdrant takes beside integers."""
    return str(uuid5(_NAMESPACE, json.dumps(parts)))


def point_of(item: VectorItem) -> models.PointStruct:
    """An item as a point."""
    payload = {
        "bank_id": item.bank_id,
        "item_id": item.id,
        "vector": base64.b64encode(item.vector).decode("ascii"),
        **fields_of(item.attributes),
    }
    return models.PointStruct(id=point_id(item.bank_id, item.id), vector=direction(item.vector), payload=payload)


def item_of(payload: Mapping[str, Any]) -> VectorItem:
    """The item whose point has the payload."""
    vector = base64.b64decode(payload["vector"])
    return VectorItem(payload["item_id"], payload["bank_id"], vector, attributes_of(payload))


def direction(vector: bytes) -> list[float]:
    """The vector at length 1; one of zeros as it is."""
    values = vector_values(vector)
    # Squares of the largest f32 stay within f64.
    length = math.hypot(*values)
    return [value / length for value in values] if length else list(values)


def of_bank(bank_id: str, *conditions: models.Condition) -> models.Filter:
    """The points of a bank that meet all conditions."""
    return models.Filter(must=[_is("bank_id", bank_id), *conditions])


def any_of(field: str, values: list[str]) -> models.FieldCondition:
    """The points with any of the values."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=values))


def condition(bank_id: str, filters: StoreFilters | None) -> models.Filter:
    """A filter over the points of a bank, by the definition `StoreFilters.admit`."""
    wanted = filters or CURRENT
    must = list(_conditions(wanted))
    must_not: list[models.Condition] = []
    if wanted.tags:
        tags = list(wanted.tags)
        match wanted.tag_match:
            case "any":
                must.append(any_of("tags", tags))
            case "all":
                must += [_is("tags", tag) for tag in tags]
            case "none":
                must_not.append(any_of("tags", tags))
    return models.Filter(must=[_is("bank_id", bank_id), *must], must_not=must_not)


def _conditions(wanted: StoreFilters) -> Iterator[models.Condition]:
    if wanted.as_of is None:
        yield models.FieldCondition(key="known_until", range=models.Range(gte=NEVER))
    else:
        yield models.FieldCondition(key="known_from", range=models.Range(lte=wanted.as_of))
        yield models.FieldCondition(key="known_until", range=models.Range(gt=wanted.as_of))
    if wanted.fact_types:
        yield any_of("fact_type", list(wanted.fact_types))
    if wanted.memory_ids:
        yield any_of("memory_id", list(wanted.memory_ids))
    if wanted.session_id is not None:
        yield _is("session_id", wanted.session_id)
    for pair in wanted.metadata.items():
        yield _is("metadata", pair_of(pair))
    yield from _within("happened_at", wanted.time_range)
    yield from _within("retained_at", wanted.retained_range)
    if wanted.valid_at is not None:
        yield models.FieldCondition(key="valid_from", range=models.Range(lte=wanted.valid_at))
        yield models.FieldCondition(key="valid_until", range=models.Range(gte=wanted.valid_at))


def _is(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _within(field: str, span: Span | None) -> Iterator[models.Condition]:
    if span is not None and span != (None, None):
        yield models.FieldCondition(key=field, range=models.Range(gte=span[0], lte=span[1]))
