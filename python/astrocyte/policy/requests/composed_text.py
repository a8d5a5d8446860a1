"""Names and values of requests in canonical composition (NFC): what looks the same is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar
from unicodedata import is_normalized, normalize

from astrocyte.model import ForgetSelector, MemoryUpdate, RecallQuery, ReflectQuery, RetainItem

T = TypeVar("T", RetainItem, MemoryUpdate, RecallQuery, ReflectQuery, ForgetSelector)
# Fields that memories are found by, of any of these requests.
NAMES = ("session_id", "speaker", "source")


def composed_name(name: str) -> str:
    """One name."""
    return name if name.isascii() or is_normalized("NFC", name) else normalize("NFC", name)


def composed(request: T) -> T:
    """A checked request with its tags, metadata and names composed; the same object where they are."""
    changed: dict[str, Any] = {}
    if request.tags and (tags := tuple(map(composed_name, request.tags))) != request.tags:
        changed["tags"] = tags
    metadata: Mapping[str, Any] | None = getattr(request, "metadata", None)
    if metadata:
        found = {composed_name(key): _value(value) for key, value in metadata.items()}
        if found != metadata:
            changed["metadata"] = found
    for field in NAMES:
        name: str | None = getattr(request, field, None)
        if name is not None and (other := composed_name(name)) is not name:
            changed[field] = other
    return replace(request, **changed) if changed else request


def _value(value: object) -> object:
    return composed_name(value) if isinstance(value, str) else value
