"""Hits from the response of a proxy source.

A row without a text is no hit. A field of another form than its own is left out, because services differ; a row is then
held to the query's filter by the fields that are left. Whatever is here is screened once more as the answer of an
engine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from astrocyte.config.extraction import PATH_START, value_at
from astrocyte.config.sources.proxies import ROOT, ProxyMapping
from astrocyte.model import MemoryHit, MetadataValue

# Names that services give the list, where the settings have no path.
USUAL_HITS = (f"{PATH_START}hits", f"{PATH_START}results")


def hits(mapping: ProxyMapping, body: bytes, most: int) -> list[MemoryHit] | None:
    """At most ``most`` hits, in the order of the response; None where it is no JSON with a list of hits."""
    try:
        document = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    rows = _rows(mapping.hits, document)
    if rows is None:
        return None
    return [hit for place, row in enumerate(rows[:most]) if (hit := _hit(mapping, row, place)) is not None]


def _rows(path: str | None, document: object) -> list[object] | None:
    """The list at a path, or at the first of the usual ones where there is a list."""
    for one in USUAL_HITS if path is None else (path,):
        there, rows = (True, document) if one == ROOT else value_at(document, one)
        if there and isinstance(rows, list):
            return rows
    return None


def _hit(mapping: ProxyMapping, row: object, place: int) -> MemoryHit | None:
    text = _text(row, mapping.text)
    if text is None:
        return None
    score = _number(_value(row, mapping.score))
    named = _value(row, mapping.memory_id)
    tags = _value(row, mapping.tags)
    return MemoryHit(
        text=text,
        # Without scores the order is all that the service says.
        score=1.0 / (1 + place) if score is None else score,
        memory_id=str(named) if isinstance(named, str | int) and not isinstance(named, bool) else None,
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else None,
        fact_type=_text(row, mapping.fact_type),
        occurred_at=_instant(_value(row, mapping.occurred_at)),
        retained_at=_instant(_value(row, mapping.retained_at)),
        session_id=_text(row, mapping.session_id),
        speaker=_text(row, mapping.speaker),
        source=_text(row, mapping.source),
        metadata=dict(_metadata(row, mapping.metadata)),
    )


def _metadata(row: object, mapping: str | Mapping[str, str] | None) -> Iterator[tuple[str, MetadataValue]]:
    if isinstance(mapping, Mapping):
        found = {key: _value(row, path) for key, path in mapping.items()}
    else:
        reached = _value(row, mapping)
        found = reached if isinstance(reached, dict) else {}
    for key, value in found.items():
        if value is None or isinstance(value, str | int | float):
            yield key, value


def _value(row: object, path: str | None) -> object:
    return None if path is None else value_at(row, path)[1]


def _text(row: object, path: str | None) -> str | None:
    value = _value(row, path)
    return value if isinstance(value, str) and value.strip() else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _instant(value: object) -> datetime | None:
    """A time with its zone, or of seconds since 1970."""
    try:
        if isinstance(value, str):
            instant = datetime.fromisoformat(value)
            return None if instant.tzinfo is None else instant.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _no_number(_: str) -> float:
    raise ValueError("NaN and infinity are no JSON")
