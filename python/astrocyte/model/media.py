"""Pieces of a content that is not all text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PartKind(StrEnum):
    """The kind of a part."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A part: ``text``; or an image or a recording, as ``data`` with its ``media_type``, or as its ``url``."""

    kind: PartKind
    text: str = ""
    data: bytes = b""
    url: str = ""
    media_type: str = ""


# What providers take, by kind.
MEDIA_TYPES = {
    PartKind.IMAGE: frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    PartKind.AUDIO: frozenset({"audio/wav", "audio/mpeg"}),
}
