"""Attributes of a version as properties of a relationship, and filters as conditions on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from astrocyte.providers.storage.protocols import CURRENT, Attributes, StoreFilters

_TAGGED = {
    "any": "any(tag IN $tags WHERE tag IN m.tags)",
    "all": "all(tag IN $tags WHERE tag IN m.tags)",
    "none": "none(tag IN $tags WHERE tag IN m.tags)",
}
_AS_OF = "m.known_from <= $as_of AND (m.known_until IS NULL OR m.known_until > $as_of)"
# By the names of `StoreFilters`: the condition on a mention ``m`` where they are given.
_CONDITIONS = {
    "tags": "",
    "fact_types": "m.fact_type IN $fact_types",
    "memory_ids": "m.memory_id IN $memory_ids",
    "session_id": "m.session_id = $session_id",
    "metadata": "all(pair IN $metadata WHERE pair IN m.metadata)",
    "valid_at": (
        "(m.valid_from IS NULL OR m.valid_from <= $valid_at) AND (m.valid_until IS NULL OR m.valid_until >= $valid_at)"
    ),
}


def properties_of(item: Attributes) -> dict[str, Any]:
    """The properties of an item's attributes, by name; a property that is None does not exist."""
    return {
        "memory_id": item.memory_id,
        "retained_at": item.retained_at,
        "known_from": item.known_from,
        "known_until": item.known_until,
        "occurred_at": item.occurred_at,
        "valid_from": item.valid_from,
        "valid_until": item.valid_until,
        "fact_type": item.fact_type,
        "session_id": item.session_id,
        "tags": list(item.tags),
        "metadata": pairs_of(item.metadata),
    }


def condition(filters: StoreFilters | None) -> tuple[str, dict[str, Any]]:
    """A filter as a condition on a mention ``m``, and its parameters."""
    wanted = filters or CURRENT
    parts = ["m.known_until IS NULL" if wanted.as_of is None else _AS_OF]
    values: dict[str, Any] = {"as_of": wanted.as_of}
    for name, text in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None and value not in ((), {}):
            parts.append(_TAGGED[wanted.tag_match] if name == "tags" else text)
            values[name] = _bound(value)
    for name, time in (("time_range", "coalesce(m.occurred_at, m.retained_at)"), ("retained_range", "m.retained_at")):
        for bound, sign in zip(getattr(wanted, name) or (), (">=", "<="), strict=False):
            if bound is not None:
                key = f"{name}_{len(values)}"
                parts.append(f"{time} {sign} ${key}")
                values[key] = bound
    return " AND ".join(f"({part})" for part in parts), values


def pairs_of(metadata: Mapping[str, str]) -> list[str]:
    """Metadata as a list of texts, since a property of Neo4j is no map: one JSON array for each pair."""
    return [json.dumps(pair, ensure_ascii=False) for pair in metadata.items()]


def metadata_of(pairs: Sequence[str]) -> dict[str, str]:
    """The metadata of such a list."""
    return dict(json.loads(pair) for pair in pairs)


def _bound(value: object) -> object:
    """A value in the form for the driver."""
    match value:
        case tuple():
            return list(value)
        case dict():
            return pairs_of(value)
        case _:
            return value
