"""Checks of requests about the entity graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from astrocyte.config import LimitSettings
from astrocyte.errors import ValidationError
from astrocyte.model import NewEntityLink
from astrocyte.policy.requests import field_checks
from astrocyte.stores.graph.entity_graph import CO_OCCURS

# Type and slug; a name has up to 128 characters, each of up to three in the slug.
ENTITY_ID_CHARS = 512
NAME_CHARS = 128
LINK_ID_CHARS = 64
# Entities at which a search begins, and that one call merges.
MOST_SEEDS = 32
MOST_MERGED = 64
MOST_ALIASES = 64
MOST_TYPES = 32
MOST_DEPTH = 6
MOST_PATHS = 20
_ENTITY_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,31}")
_LINK_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")


def entity_id(value: str, path: str) -> None:
    """The id of an entity, such as ``person:alice-smith``."""
    field_checks.label(value, path, ENTITY_ID_CHARS)


def entity_ids(values: Sequence[str], path: str, most: int) -> None:
    """One to ``most`` ids of entities."""
    field_checks.labels(values, path, most, ENTITY_ID_CHARS)
    if not values:
        raise ValidationError("is empty; name at least one entity", field=path)


def entity_types(values: Sequence[str], path: str) -> None:
    """Types of entities."""
    field_checks.count(values, path, MOST_TYPES)
    for index, value in enumerate(values):
        entity_type(value, f"{path}[{index}]")


def entity_type(value: object, path: str) -> None:
    """A type of entities, such as ``PERSON``."""
    if not isinstance(value, str) or not _ENTITY_TYPE.fullmatch(value):
        shown = ascii(value)[: field_checks.SHOWN_CHARS]
        raise ValidationError(f"expected 1 to 32 of A-Z 0-9 _ with a letter first, got {shown}", field=path)


def link_types(values: Sequence[str], path: str = "link_types") -> None:
    """Types of links."""
    field_checks.count(values, path, MOST_TYPES)
    for index, value in enumerate(values):
        _link_type(value, f"{path}[{index}]")


def times(as_of: datetime | None, valid_at: datetime | None = None) -> None:
    """The times of a view."""
    if as_of is not None:
        field_checks.instant(as_of, "as_of")
    if valid_at is not None:
        field_checks.instant(valid_at, "valid_at")


def number(value: int, path: str, usual: int, most: int) -> int:
    """A number from 1 to ``most``; 0 stands for the usual one."""
    field_checks.integer(value, path, 0, most)
    return value or min(usual, most)


def new_links(links: Sequence[NewEntityLink], limits: LimitSettings) -> None:
    """Links to store: as many as allowed, each from one entity to another, none twice."""
    field_checks.count(links, "links", limits.batch_items)
    if not links:
        raise ValidationError("is empty; send at least one link", field="links")
    seen: set[tuple[object, ...]] = set()
    for index, link in enumerate(links):
        at = f"links[{index}]"
        if not isinstance(link, NewEntityLink):
            raise ValidationError(f"expected a NewEntityLink, got {type(link).__name__}", field=at)
        new_link(link, at, limits)
        same = (link.entity_a, link.entity_b, link.link_type, link.valid_from, link.valid_until)
        if same in seen:
            raise ValidationError("repeats another link of this call; leave it out", field=at)
        seen.add(same)


def new_link(link: NewEntityLink, at: str, limits: LimitSettings) -> None:
    """A link to store."""
    entity_id(link.entity_a, f"{at}.entity_a")
    entity_id(link.entity_b, f"{at}.entity_b")
    if link.entity_a == link.entity_b:
        raise ValidationError("links an entity with itself; name two entities", field=f"{at}.entity_b")
    _link_type(link.link_type, f"{at}.link_type")
    if link.link_type == CO_OCCURS:
        raise ValidationError(f"{CO_OCCURS} is computed from memories; use another type", field=f"{at}.link_type")
    if link.evidence:
        field_checks.label(link.evidence, f"{at}.evidence", limits.text_chars)
    field_checks.number(link.confidence, f"{at}.confidence", 0.0, 1.0)
    field_checks.metadata(link.metadata, f"{at}.metadata", limits)
    for name in ("valid_from", "valid_until"):
        value = getattr(link, name)
        if value is not None:
            field_checks.instant(value, f"{at}.{name}")
    if link.valid_from is not None and link.valid_until is not None and link.valid_from > link.valid_until:
        raise ValidationError("is before valid_from; swap the two", field=f"{at}.valid_until")


def _link_type(value: object, path: str) -> None:
    if not isinstance(value, str) or not _LINK_TYPE.fullmatch(value):
        shown = ascii(value)[: field_checks.SHOWN_CHARS]
        raise ValidationError(f"expected 1 to 64 of a-z 0-9 _ with a letter first, got {shown}", field=path)
