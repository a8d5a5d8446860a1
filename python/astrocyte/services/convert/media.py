"""Pieces of a content that is not all text."""

from __future__ import annotations

from collections.abc import Iterable

from astrocyte.model import ContentPart, PartKind
from astrocyte.services.convert.values import Refused
from astrocyte.v1 import memory_pb2


def decode_parts(messages: Iterable[memory_pb2.ContentPart]) -> tuple[ContentPart, ...]:
    """Parts in order.

    Raises:
        Refused: One has no kind.
    """
    return tuple(_decode(message, f"[{index}]") for index, message in enumerate(messages))


def _decode(message: memory_pb2.ContentPart, at: str) -> ContentPart:
    kind = message.WhichOneof("kind")
    if kind is None:
        raise Refused(at, "has no kind; set one of text, image and audio")
    if kind == "text":
        return ContentPart(PartKind.TEXT, message.text)
    media = getattr(message, kind)
    return ContentPart(PartKind(kind), data=media.data, url=media.url, media_type=media.media_type)


def encode_parts(parts: Iterable[ContentPart]) -> list[memory_pb2.ContentPart]:
    """Parts in order."""
    return [_encode(part) for part in parts]


def _encode(part: ContentPart) -> memory_pb2.ContentPart:
    if part.kind is PartKind.TEXT:
        return memory_pb2.ContentPart(text=part.text)
    media = memory_pb2.Media(data=part.data, url=part.url, media_type=part.media_type)
    if part.kind is PartKind.IMAGE:
        return memory_pb2.ContentPart(image=media)
    return memory_pb2.ContentPart(audio=media)
