"""A query's filter once more, over what the database says of a row.

The index filters before it ranks; this is the second look, so that an index which took a change wrongly can show
nothing that the query excludes. Forgetting, the bank and both clocks are checked by the store itself, in SQL.
"""

from __future__ import annotations

from collections.abc import Callable

from astrocyte.core import holds_phrases
from astrocyte.model import Metadata, RecallQuery, TagMatch, TimeRange
from astrocyte.pipelines.index.rows import id_to_bytes, metadata_pairs
from astrocyte.pipelines.query.phrases import phrases_of
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.stores.records import HydratedRow

Predicate = Callable[[HydratedRow], bool]


def compile_filter(query: RecallQuery) -> Predicate | None:
    """The predicate that rows must meet; None where the query asks for nothing that a row could fail."""
    parts: list[Predicate] = []
    if query.tags:
        parts.append(_tags(frozenset(query.tags), query.tag_match))
    if query.fact_types:
        fact_types = frozenset(query.fact_types)
        parts.append(lambda row: row.fact_type in fact_types)
    if query.memory_ids:
        # Compared as the index does it, in bytes: hex digits have two cases.
        identities = frozenset(map(id_to_bytes, query.memory_ids)) - {None}
        parts.append(lambda row: id_to_bytes(row.memory_id) in identities)
    if query.metadata:
        parts.append(_metadata(query.metadata))
    if query.session_id is not None:
        session = query.session_id
        parts.append(lambda row: row.session_id == session)
    if query.time_range is not None:
        happened = _within(query.time_range)
        parts.append(lambda row: happened(row.retained_at if row.occurred_at is None else row.occurred_at))
    if query.retained_range is not None:
        retained = _within(query.retained_range)
        parts.append(lambda row: retained(row.retained_at))
    if query.require_phrases:
        phrases = phrases_of(query.query)
        parts.append(lambda row: holds_phrases([row.content], phrases)[0])
    if len(parts) < 2:  # noqa: PLR2004 - one part needs no other around it
        return parts[0] if parts else None
    return lambda row: all(part(row) for part in parts)


def _tags(wanted: frozenset[str], match: TagMatch) -> Predicate:
    if match is TagMatch.ALL:
        return lambda row: wanted.issubset(row.tags)
    if match is TagMatch.NONE:
        return lambda row: wanted.isdisjoint(row.tags)
    return lambda row: not wanted.isdisjoint(row.tags)


def _metadata(metadata: Metadata) -> Predicate:
    wanted = frozenset(metadata_pairs(metadata))
    return lambda row: wanted.issubset(metadata_pairs(row.metadata))


def _within(wanted: TimeRange) -> Callable[[int], bool]:
    """In milliseconds, as times are stored: a finer end would exclude what it includes."""
    first = None if wanted.start is None else to_ms(wanted.start)
    last = None if wanted.end is None else to_ms(wanted.end)

    def holds(time: int) -> bool:
        return (first is None or first <= time) and (last is None or time <= last)

    return holds
