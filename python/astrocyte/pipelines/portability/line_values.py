"""Typed access to the values of a line of an archive."""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from astrocyte.errors import ValidationError
from astrocyte.model import Entity
from astrocyte.pipelines.index.rows import ID_BYTES, bytes_to_id, id_to_bytes
from astrocyte.pipelines.query.time_windows import to_ms

SHOWN_CHARS = 64
E = TypeVar("E", bound=StrEnum)


class ArchivedChunk(NamedTuple):
    """A chunk with its vector; None where it has no direction."""

    text: str
    vector: bytes | None


def own_id(given: str) -> str:
    """The memory id of an id of an archive: the same if a server made it, else one derived from it.

    Another system's ids are of other forms; the same one gives the same id each time.
    """
    identity = id_to_bytes(given)
    if identity is not None and bytes_to_id(identity) == given:
        return given
    return bytes_to_id(hashlib.sha256(given.encode()).digest()[:ID_BYTES])


class LineValues:
    """Typed access to the values of a line."""

    def __init__(self, values: Mapping[str, Any], known: frozenset[str]) -> None:
        unknown = next((key for key in values if key not in known), None)
        if unknown is not None:
            raise ValidationError("is not a key of this line", field=ascii(unknown)[:SHOWN_CHARS])
        self._values = values

    def text(self, key: str) -> str:
        """A required text."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise _mistyped(key, "text", value)
        _check_whole(value, key)
        return value

    def identity(self) -> tuple[str, dict[str, Any]]:
        """The memory id, and the metadata, which keep an id of another system."""
        given, metadata = self.text("id"), self.metadata("metadata")
        memory_id = own_id(given)
        return memory_id, metadata if memory_id == given else {"id": given, **metadata}

    def optional(self, key: str) -> str | None:
        """A text, or None."""
        return None if self._values.get(key) is None else self.text(key)

    def integer(self, key: str, least: int) -> int:
        """A whole number."""
        value = self._values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
            raise _mistyped(key, f"a whole number from {least}", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise _mistyped(key, "a list of texts", value)
        for one in value:
            _check_whole(one, key)
        return tuple(value)

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not value - value == 0.0:
            raise _mistyped(key, "a number", value)
        return float(value)

    def truth(self, key: str) -> bool:
        """True or false."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise _mistyped(key, "true or false", value)
        return value

    def word(self, key: str, kind: type[E]) -> E:
        """A member of an enum."""
        value = self.text(key)
        try:
            return kind(value)
        except ValueError:
            raise ValidationError(
                f"expected one of {', '.join(kind)}, got {ascii(value)[:SHOWN_CHARS]}", field=key
            ) from None

    def moment(self, key: str) -> int:
        """A required instant in milliseconds since the epoch."""
        value = self.milliseconds(key)
        if value is None:
            raise _mistyped(key, "an ISO 8601 time", None)
        return value

    def objects(self, key: str, known: frozenset[str]) -> list[LineValues]:
        """A list of objects with these keys."""
        value = self._values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise _mistyped(key, "a list of objects", value)
        return [LineValues(one, known) for one in value]

    def object(self, key: str, known: frozenset[str]) -> LineValues | None:
        """An object with these keys, or None."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _mistyped(key, "an object", value)
        return LineValues(value, known)

    def has(self, key: str) -> bool:
        """True if the key is there."""
        return key in self._values

    def metadata(self, key: str) -> dict[str, Any]:
        """A mapping of scalars."""
        value = self._values.get(key) or {}
        if not isinstance(value, dict):
            raise _mistyped(key, "an object", value)
        return value

    def time(self, key: str) -> datetime | None:
        """An instant with a time zone, or None."""
        value = self.optional(key)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValidationError("expected an ISO 8601 time", field=key) from None
        if moment.tzinfo is None:
            raise ValidationError("has no time zone", field=key)
        return moment

    def milliseconds(self, key: str) -> int | None:
        """An instant in milliseconds since the epoch, or None."""
        moment = self.time(key)
        return None if moment is None else to_ms(moment)

    def entities(self, key: str) -> tuple[Entity, ...] | None:
        """Names with types; None where the key is missing."""
        if key not in self._values:
            return None
        value = self._values[key]
        if not isinstance(value, list):
            raise _mistyped(key, "a list", value)
        return tuple(_entity(one, key) for one in value)

    def vector(self, key: str) -> bytes | None:
        """Little-endian f32 from base64, finite; None for text without a direction."""
        return _vector(self._values.get(key), key)

    def chunks(self, key: str) -> tuple[ArchivedChunk, ...]:
        """Chunks with their vectors."""
        value = self._values.get(key) or []
        if not isinstance(value, list):
            raise _mistyped(key, "a list", value)
        return tuple(_chunk(one, key) for one in value)


def _check_whole(text: str, key: str) -> None:
    """Check that a text can be written as UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValidationError("holds half of a surrogate pair", field=key) from None


def _entity(value: object, key: str) -> Entity:
    if isinstance(value, dict) and isinstance(name := value.get("name"), str) and name:
        kind = value.get("type", value.get("entity_type"))
        if kind is None:
            return Entity(name)
        if isinstance(kind, str) and kind:
            return Entity(name, kind)
    raise ValidationError('expected objects like {"name": "Mara", "type": "PERSON"}', field=key)


def _chunk(value: object, key: str) -> ArchivedChunk:
    if isinstance(value, dict) and value.keys() == {"text", "embedding"} and isinstance(value["text"], str):
        return ArchivedChunk(value["text"], _vector(value["embedding"], f"{key}.embedding"))
    raise ValidationError('expected objects like {"text": "...", "embedding": "..."}', field=key)


def _vector(value: object, key: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _mistyped(key, "base64", value)
    try:
        vector = b64decode(value, validate=True)
    except (Base64Error, ValueError):
        raise ValidationError("expected base64", field=key) from None
    if len(vector) % 4 or not vector:
        raise ValidationError("expected little-endian f32", field=key)
    # A sum is finite if all parts are, but for an overflow, which no vector of unit length has.
    total = sum(struct.unpack(f"<{len(vector) // 4}f", vector))
    if total - total != 0.0:
        raise ValidationError("holds a NaN or an infinity", field=key)
    return vector


def _mistyped(key: str, expected: str, value: object) -> ValidationError:
    came = "nothing" if value is None else type(value).__name__
    return ValidationError(f"expected {expected}, got {came}", field=key)
