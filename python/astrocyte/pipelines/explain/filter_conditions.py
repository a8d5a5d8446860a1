"""The conditions of a query that a memory does not meet, and the least change of each that lets it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from astrocyte.core import holds_phrases
from astrocyte.model import Memory, RecallQuery, TagMatch, TimeRange
from astrocyte.pipelines.index.rows import id_to_bytes, metadata_pairs
from astrocyte.pipelines.query.phrases import phrases_of
from astrocyte.pipelines.query.time_windows import to_ms

# Fields of a query and what they would have to be.
Changes = Mapping[str, Any]
# Tags of the memory that are tried one by one: each lets in other memories too.
TRIED_TAGS = 4


class Failed(NamedTuple):
    """A condition that is not met. ``changes`` are ways to meet it, the smallest first."""

    field: str
    changes: tuple[Changes, ...]


def failing(query: RecallQuery, versions: Sequence[Memory]) -> list[Failed]:
    """The conditions that exclude a memory, given its versions, oldest first."""
    if query.as_of is not None and to_ms(query.as_of) < to_ms(versions[0].updated_at):
        # Nothing was known of it; what its first version meets is another question.
        known = [Failed("as_of", ({"as_of": versions[0].updated_at}, {"as_of": None}))]
        return known + list(_failing(query, versions[0]))
    return list(_failing(query, _seen(query, versions)))


def _seen(query: RecallQuery, versions: Sequence[Memory]) -> Memory:
    """The version that the query looks at."""
    if query.as_of is None:
        return versions[-1]
    instant = to_ms(query.as_of)
    return [version for version in versions if to_ms(version.updated_at) <= instant][-1]


def _failing(query: RecallQuery, memory: Memory) -> Iterator[Failed]:
    for check in _CHECKS:
        failed = check(query, memory)
        if failed is not None:
            yield failed


def _tags(query: RecallQuery, memory: Memory) -> Failed | None:
    held = [tag for tag in query.tags if tag in memory.tags]
    missing = [tag for tag in query.tags if tag not in memory.tags]
    dropped: Changes = {"tags": (), "tag_match": TagMatch.ANY}
    match query.tag_match:
        case _ if not query.tags:
            return None
        case TagMatch.NONE:
            changes = [{"tags": tuple(missing)}] if missing else []
            return Failed("tags", (*changes, dropped)) if held else None
        case TagMatch.ALL:
            changes = [{"tags": tuple(held)}] if held else []
            return Failed("tags", (*changes, dropped)) if missing else None
        case _:
            added = [{"tags": (*query.tags, tag)} for tag in memory.tags[:TRIED_TAGS]]
            return None if held else Failed("tags", (*added, {"tags": ()}))


def _fact_types(query: RecallQuery, memory: Memory) -> Failed | None:
    if not query.fact_types or memory.fact_type in query.fact_types:
        return None
    return Failed("fact_types", ({"fact_types": (*query.fact_types, memory.fact_type)}, {"fact_types": ()}))


def _memory_ids(query: RecallQuery, memory: Memory) -> Failed | None:
    if not query.memory_ids or id_to_bytes(memory.memory_id) in map(id_to_bytes, query.memory_ids):
        return None
    return Failed("memory_ids", ({"memory_ids": (*query.memory_ids, memory.memory_id)}, {"memory_ids": ()}))


def _metadata(query: RecallQuery, memory: Memory) -> Failed | None:
    held = frozenset(metadata_pairs(memory.metadata))
    kept = {key: value for key, value in query.metadata.items() if held.issuperset(metadata_pairs({key: value}))}
    return None if len(kept) == len(query.metadata) else Failed("metadata", ({"metadata": kept},))


def _session(query: RecallQuery, memory: Memory) -> Failed | None:
    if query.session_id is None or query.session_id == memory.session_id:
        return None
    return Failed("session_id", ({"session_id": None}, {"session_id": memory.session_id}))


def _time_range(query: RecallQuery, memory: Memory) -> Failed | None:
    return _ranged("time_range", query.time_range, memory.occurred_at or memory.retained_at)


def _retained_range(query: RecallQuery, memory: Memory) -> Failed | None:
    return _ranged("retained_range", query.retained_range, memory.retained_at)


def _ranged(field: str, wanted: TimeRange | None, time: datetime) -> Failed | None:
    if wanted is None:
        return None
    start, end = wanted.start, wanted.end
    if start is not None and to_ms(time) < to_ms(start):
        return Failed(field, ({field: TimeRange(time, end)}, {field: None}))
    if end is not None and to_ms(time) > to_ms(end):
        return Failed(field, ({field: TimeRange(start, time)}, {field: None}))
    return None


def _valid_at(query: RecallQuery, memory: Memory) -> Failed | None:
    instant = query.valid_at
    if instant is None:
        return None
    start, end = memory.valid_from, memory.valid_until
    if start is not None and to_ms(instant) < to_ms(start):
        return Failed("valid_at", ({"valid_at": start}, {"valid_at": None}))
    if end is not None and to_ms(instant) > to_ms(end):
        return Failed("valid_at", ({"valid_at": end}, {"valid_at": None}))
    return None


def _archived(query: RecallQuery, memory: Memory) -> Failed | None:
    if memory.archived_at is None or query.as_of is not None or query.include_archived:
        return None
    return Failed("include_archived", ({"include_archived": True},))


def _phrases(query: RecallQuery, memory: Memory) -> Failed | None:
    if not query.require_phrases or all(holds_phrases([memory.content], phrases_of(query.query))):
        return None
    return Failed("require_phrases", ({"require_phrases": False},))


_CHECKS: tuple[Callable[[RecallQuery, Memory], Failed | None], ...] = (
    _tags,
    _fact_types,
    _memory_ids,
    _metadata,
    _session,
    _time_range,
    _retained_range,
    _valid_at,
    _archived,
    _phrases,
)
