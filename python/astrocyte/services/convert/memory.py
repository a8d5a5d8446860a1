"""Codecs of memories, selectors and updates, where the wire differs from the domain."""

from __future__ import annotations

from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import (
    ContentPart,
    ContentType,
    Dispositions,
    ForgetSelector,
    Memory,
    MemoryUpdate,
    PartKind,
    RetainItem,
)
from astrocyte.services.convert.codec import Codec, T, Unset, choices_of, codec_of, register
from astrocyte.services.convert.values import Refused
from astrocyte.v1 import memory_pb2, types_pb2

CONTENT_TYPES = choices_of(types_pb2.ContentType.DESCRIPTOR)
# Formats that have a number on the wire; others are sent by name.
NUMBERED_TYPES: frozenset[str] = frozenset(ContentType)
# Fields that an update can change.
UPDATE_FIELDS = ("content", "metadata", "occurred_at", "source", "tags", "valid_from", "valid_until")
# Names of ForgetScope by number; 0 is no scope.
SCOPES = {memory_pb2.FORGET_SCOPE_UNSPECIFIED: None, memory_pb2.FORGET_SCOPE_ALL: "all"}
SCOPE_NUMBERS = {"": 0, **{name: number for number, name in SCOPES.items()}}


class ContentCodec(Codec[T]):
    """Codec of a class with a content type, which is a number on the wire, or a name where it has no number."""

    def __init__(self, kind: type[T], message: Any, unset: Unset) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, unset=unset)
        self._without_type = Codec(kind, message, omit={"content_type"})

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields, with the type by its number or its name."""
        values = super().values(message)
        name = message.content_type_name
        if name:
            if message.content_type:
                raise Refused(".content_type_name", "cannot be combined with content_type; set one of them")
            values["content_type"] = name
        return values

    def write(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - a domain value
        """The fields, with the type as a number or a name."""
        kind = value.content_type
        if kind and kind not in NUMBERED_TYPES:
            return {**self._without_type.write(value), "content_type_name": kind}
        return super().write(value)


class UpdateCodec(Codec[MemoryUpdate]):
    """Codec of an update, whose fields are named by a mask."""

    def __init__(self, kind: type[MemoryUpdate], message: Any) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, omit={"fields"})

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields, with the names in the mask."""
        named = list(message.update_mask.paths)
        if not named:
            raise Refused(".update_mask", f"is empty; name any of {', '.join(UPDATE_FIELDS)}")
        unknown = next((path for path in named if path not in UPDATE_FIELDS), None)
        if unknown is not None:
            raise Refused(".update_mask", f"may name {', '.join(UPDATE_FIELDS)}, got {unknown!r:.64}")
        return {**super().values(message), "fields": frozenset(named)}

    def write(self, value: MemoryUpdate) -> dict[str, Any]:
        """The fields, with a mask of the names."""
        return {**super().write(value), "update_mask": {"paths": sorted(value.fields)}}


class SelectorCodec(Codec[ForgetSelector]):
    """Codec of a selector, whose scope is an enum on the wire."""

    def __init__(self, kind: type[ForgetSelector], message: Any) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, omit={"scope"})

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields, with the name of the scope."""
        if message.scope not in SCOPES:
            raise Refused(".scope", f"must be 0 (none) or 1 (all), got {message.scope}")
        return {**super().values(message), "scope": SCOPES[message.scope]}

    def write(self, value: ForgetSelector) -> dict[str, Any]:
        """The fields, with the number of the scope."""
        if value.scope not in SCOPE_NUMBERS:
            raise ValidationError(f"must be 'all' or None, got {value.scope!r:.64}", field="scope")
        return {**super().write(value), "scope": SCOPE_NUMBERS[value.scope]}


class PartCodec(Codec[ContentPart]):
    """Codec of a part of a content: one of several kinds on the wire."""

    def __init__(self, kind: type[ContentPart], message: Any) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, omit=kind.__dataclass_fields__)

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The kind and its fields."""
        kind = message.WhichOneof("kind")
        if kind is None:
            raise Refused("", "has no kind; set one of text, image and audio")
        if kind == "text":
            return {"kind": PartKind.TEXT, "text": message.text}
        media = getattr(message, kind)
        return {"kind": PartKind(kind), "data": media.data, "url": media.url, "media_type": media.media_type}

    def write(self, value: ContentPart) -> dict[str, Any]:
        """The one field that is set."""
        if value.kind is PartKind.TEXT:
            return {"text": value.text}
        kind = "image" if value.kind is PartKind.IMAGE else "audio"
        return {kind: {"data": value.data, "url": value.url, "media_type": value.media_type}}


register(RetainItem, lambda kind, message: ContentCodec(kind, message, Unset.DEFAULT))
register(Memory, lambda kind, message: ContentCodec(kind, message, Unset.NONE))
register(MemoryUpdate, UpdateCodec)
register(ForgetSelector, SelectorCodec)
register(ContentPart, PartCodec)
# Traits that are 0 keep their defaults.
register(Dispositions, unset=Unset.DEFAULT)

ITEMS = codec_of(RetainItem, memory_pb2.RetainItem)
