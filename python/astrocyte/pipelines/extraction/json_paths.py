"""Metadata from JSON content by paths such as ``$.issue.labels[0].name``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from astrocyte.config.extraction import PATH_START, value_at
from astrocyte.model import MetadataValue

# SQLite and the wire hold signed 64-bit integers.
INT64 = range(-(2**63), 2**63)


def mapped(
    mapping: Mapping[str, str | int | float | bool], content: str, most_bytes: int
) -> tuple[dict[str, MetadataValue], list[str]]:
    """The metadata that a mapping extracts from content, and warnings that quote no content.

    A path that leads nowhere is passed over; one that leads to something else than a short plain value is told of.

    Args:
        mapping: By metadata key, a path that begins with ``$.``, or the value itself.
        content: JSON, where the mapping has paths.
        most_bytes: Of a value, in UTF-8.
    """
    found: dict[str, MetadataValue] = {}
    told: list[str] = []
    document: object = None
    paths = any(isinstance(value, str) and value.startswith(PATH_START) for value in mapping.values())
    if paths:
        try:
            document = json.loads(content.lstrip("\ufeff"))
        except (ValueError, RecursionError):
            told.append("profile: the content is no JSON, so nothing was read from it for metadata")
    for key, value in mapping.items():
        if not (isinstance(value, str) and value.startswith(PATH_START)):
            found[key] = value
            continue
        there, reached = value_at(document, value)
        if not there:
            continue
        if _plain(reached, most_bytes):
            found[key] = reached  # type: ignore[assignment]  # just looked at
        else:
            told.append(f"profile: left out the metadata key {key!a}: what its path leads to is no short plain value")
    return found, told


def _plain(value: object, most_bytes: int) -> bool:
    match value:
        case None | bool():
            return True
        case int():
            return value in INT64
        case float():
            return math.isfinite(value)
        case str():
            return len(value.encode(errors="surrogatepass")) <= most_bytes and "\x00" not in value
        case _:
            return False
