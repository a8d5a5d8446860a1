"""Attributes as the fields of a search engine that has no null in ranges and no objects with keys of any form.

A time without a bound is a number beyond all times, so that a range decides every comparison.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from astrocyte.providers.storage.protocols import Attributes

# Some engines compare f64, whose whole numbers end here; a time of the year 9999 is a thirtieth of it.
NEVER = 2**53
ALWAYS = -(2**53)


def fields_of(item: Attributes) -> dict[str, Any]:
    """The fields of an item's attributes; ``metadata`` is a list of pairs as JSON."""
    return {
        "memory_id": item.memory_id,
        "retained_at": item.retained_at,
        "occurred_at": item.occurred_at,
        "happened_at": item.retained_at if item.occurred_at is None else item.occurred_at,
        "known_from": item.known_from,
        "known_until": NEVER if item.known_until is None else item.known_until,
        "valid_from": ALWAYS if item.valid_from is None else item.valid_from,
        "valid_until": NEVER if item.valid_until is None else item.valid_until,
        "fact_type": item.fact_type,
        "session_id": item.session_id,
        "tags": list(item.tags),
        "metadata": [pair_of(pair) for pair in item.metadata.items()],
    }


def pair_of(pair: tuple[str, str]) -> str:
    """A key of metadata and its value as one text; equal texts are equal pairs."""
    return json.dumps(pair)


def attributes_of(fields: Mapping[str, Any]) -> Attributes:
    """The attributes whose fields these are."""

    def bound(name: str, none: int) -> int | None:
        value = int(fields[name])
        return None if value == none else value

    return Attributes(
        memory_id=fields["memory_id"],
        retained_at=fields["retained_at"],
        known_from=fields["known_from"],
        known_until=bound("known_until", NEVER),
        occurred_at=fields["occurred_at"],
        valid_from=bound("valid_from", ALWAYS),
        valid_until=bound("valid_until", NEVER),
        fact_type=fields["fact_type"],
        session_id=fields["session_id"],
        tags=tuple(fields["tags"]),
        metadata=dict(json.loads(pair) for pair in fields["metadata"]),
    )
