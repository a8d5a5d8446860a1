"""Entities and links as rows of the reader's statements tell them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from astrocyte.model import EntityLink, GraphEntity, LinkOrigin
from astrocyte.stores.sqlite.rows import Row, decode_metadata, to_datetime


def etag(key: int, revision: int) -> str:
    """The etag of an entity: changes with what a caller changes."""
    return f"{key:x}-{revision:x}"


def link_id(key: int) -> str:
    """The id of a stored link."""
    return f"link-{key:x}"


def _name(row: Row) -> str:
    """A caller's name, that of the first mention, or the words of the id."""
    return str(row[3] or row[8] or row[1].partition(":")[2].replace("-", " "))


def entity_of(rows: Sequence[Row]) -> GraphEntity:
    """An entity from its own row of the reader's details and those of merged entities."""
    own = rows[0]
    name = _name(own)
    if len(rows) == 1 and own[4] == "[]":
        return GraphEntity(
            id=own[1],
            name=name,
            entity_type=own[2],
            metadata=decode_metadata(own[5]),
            mention_count=own[7],
            first_seen=None if own[9] is None else to_datetime(own[9]),
            last_seen=None if own[10] is None else to_datetime(own[10]),
            etag=etag(own[0], own[6]),
        )
    names = [*json.loads(own[4])]
    for row in rows[1:]:
        names += [_name(row), *json.loads(row[4])]
    seen = [row[9] for row in rows if row[9] is not None]
    last = [row[10] for row in rows if row[10] is not None]
    return GraphEntity(
        id=own[1],
        name=name,
        entity_type=own[2],
        aliases=tuple(dict.fromkeys(one for one in names if one != name)),
        metadata=decode_metadata(own[5]),
        mention_count=sum(row[7] for row in rows),
        first_seen=to_datetime(min(seen)) if seen else None,
        last_seen=to_datetime(max(last)) if last else None,
        merged_ids=tuple(sorted(row[1] for row in rows[1:])),
        etag=etag(own[0], own[6]),
    )


def link_of(row: Row) -> EntityLink:
    """A link from a row of the reader's columns of links."""
    key, source, target, kind, origin, evidence, confidence, created, metadata, memory_id, *validity = row
    valid_from, valid_until = validity
    return EntityLink(
        entity_a=source,
        entity_b=target,
        link_type=kind,
        evidence=evidence,
        confidence=confidence,
        created_at=to_datetime(created),
        metadata=decode_metadata(metadata) or None,
        link_id=link_id(key),
        origin=LinkOrigin(origin),
        memory_id=memory_id,
        valid_from=None if valid_from is None else to_datetime(valid_from),
        valid_until=None if valid_until is None else to_datetime(valid_until),
    )
