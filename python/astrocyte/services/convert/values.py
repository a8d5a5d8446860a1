"""Values that messages are made of: instants, metadata, closed sets of names, vectors; and the table-driven reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from astrocyte.errors import ValidationError
from astrocyte.model import Embedding, Metadata, MetadataValue, TimeRange
from astrocyte.v1 import types_pb2

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86_400
NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_MICRO = 1_000
# What int64 holds; the wire has no larger number.
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Enough of a key to find it; keys come from callers and may be long.
SHOWN_KEY_CHARS = 64

Reader = Callable[[Any], Any]
M = TypeVar("M", bound=StrEnum)


class Refused(ValueError):  # noqa: N818 - named as the tree of errors.py is
    """A value that cannot cross; ``at`` is its path below the field that is being converted."""

    def __init__(self, at: str, description: str) -> None:
        super().__init__(description)
        self.at, self.description = at, description


def same(value: Any) -> Any:  # noqa: ANN401 - whatever the field holds
    """The reader of fields that are alike on both sides."""
    return value


def read(message: Message, readers: Mapping[str, Reader], path: str) -> dict[str, Any]:
    """The fields that are set, by name, each through its reader; fields without a reader are left out.

    Only what is set is looked at, because most fields of most requests are not.

    Raises:
        ValidationError: A reader refused; ``path`` goes before the field's name.
    """
    values = {}
    for field, value in message.ListFields():
        reader = readers.get(field.name)
        if reader is not None:
            try:
                values[field.name] = reader(value)
            except Refused as error:
                raise ValidationError(error.description, field=f"{path}{field.name}{error.at}") from error
    return values


def encode_instant(value: datetime | None) -> Any:  # noqa: ANN401 - a dictionary that protobuf takes for a Timestamp
    """Seconds and nanoseconds since the epoch; four times faster than building the Timestamp in Python."""
    if value is None:
        return None
    since = value - EPOCH
    return {"seconds": since.days * SECONDS_PER_DAY + since.seconds, "nanos": since.microseconds * NANOS_PER_MICRO}


def set_instant(message: Timestamp, value: datetime) -> None:
    """Fill a Timestamp in its place."""
    since = value - EPOCH
    message.seconds = since.days * SECONDS_PER_DAY + since.seconds
    message.nanos = since.microseconds * NANOS_PER_MICRO


def decode_instant(value: Timestamp) -> datetime:
    """The instant in UTC, to the microsecond.

    Raises:
        Refused: Not a time that a calendar of years 1 to 9999 holds.
    """
    if not 0 <= value.nanos < NANOS_PER_SECOND:
        raise Refused("", f"nanos must be from 0 to 999,999,999, got {value.nanos}")
    try:
        return EPOCH + timedelta(0, value.seconds, value.nanos // NANOS_PER_MICRO)
    except OverflowError:
        raise Refused("", f"must be in the years 1 to 9999, got {value.seconds} seconds since 1970") from None


def optional_instant(message: Message, field: str) -> datetime | None:
    """The instant of a field, or None where it is unset."""
    return decode_instant(getattr(message, field)) if message.HasField(field) else None


def encode_range(value: TimeRange | None) -> Any:  # noqa: ANN401 - a dictionary that protobuf takes for a TimeRange
    """A range with its open ends left out."""
    if value is None:
        return None
    return {"start": encode_instant(value.start), "end": encode_instant(value.end)}


def decode_range(value: types_pb2.TimeRange) -> TimeRange:
    """A range; an end that is not set is open."""
    ends: dict[str, datetime] = {}
    for name in ("start", "end"):
        if value.HasField(name):
            try:
                ends[name] = decode_instant(getattr(value, name))
            except Refused as error:
                raise Refused(f".{name}", error.description) from None
    return TimeRange(**ends)


def encode_metadata(values: Metadata | None) -> dict[str, types_pb2.MetadataValue]:
    """Metadata by key."""
    return {key: _encode_value(key, value) for key, value in values.items()} if values else {}


def _encode_value(key: str, value: MetadataValue) -> types_pb2.MetadataValue:
    if isinstance(value, str):
        return types_pb2.MetadataValue(string_value=value)
    if isinstance(value, bool):
        return types_pb2.MetadataValue(bool_value=value)
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            raise Refused(f"metadata[{key[:SHOWN_KEY_CHARS]}]", "a whole number must fit in 64 bits; send it as text")
        return types_pb2.MetadataValue(int_value=value)
    if isinstance(value, float):
        return types_pb2.MetadataValue(double_value=value)
    if value is None:
        return types_pb2.MetadataValue(null_value=0)  # type: ignore[arg-type]  # NULL_VALUE, the only one
    kind = type(value).__name__
    raise Refused(f"metadata[{key[:SHOWN_KEY_CHARS]}]", f"must be a str, int, float, bool or None, got {kind}")


def decode_metadata(values: Mapping[str, types_pb2.MetadataValue]) -> dict[str, MetadataValue]:
    """Metadata by key.

    Raises:
        Refused: A value has no kind.
    """
    decoded: dict[str, MetadataValue] = {}
    for key, value in values.items():
        kind = value.WhichOneof("kind")
        if kind is None:
            raise Refused(f"[{key[:SHOWN_KEY_CHARS]}]", "has no value; set exactly one kind, null_value for none")
        decoded[key] = None if kind == "null_value" else getattr(value, kind)
    return decoded


def encode_embedding(value: Embedding | None) -> types_pb2.Embedding | None:
    """A vector with its model."""
    if value is None:
        return None
    return types_pb2.Embedding(model=value.model, dimensions=value.dimensions, values=value.values)


def decode_embedding(value: types_pb2.Embedding) -> Embedding:
    """A vector with its model; sizes are the gate's to check."""
    return Embedding(value.model, value.dimensions, value.values)


class WireEnum(Protocol):
    """What protobuf calls an enum: names to numbers."""

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names with numbers."""


class Choices(Generic[M]):
    """A closed set of names here, an enum on the wire.

    Args:
        field: The request field that holds it, for messages.
        members: Its names here; each must be on the wire as prefix + NAME.
        wire: The generated enum.
        prefix: Of the names on the wire.
    """

    def __init__(self, field: str, members: type[M], wire: WireEnum, prefix: str) -> None:
        numbers = dict(wire.items())
        self.field = field
        self._numbers: dict[str, Any] = {member.value: numbers[prefix + member.name] for member in members}
        self._members: dict[int, M] = {self._numbers[member.value]: member for member in members}

    def encode(self, value: str | None) -> Any:  # noqa: ANN401 - each generated enum has a number type of its own
        """The number of a name; 0 (unspecified) for None."""
        if value is None:
            return 0
        try:
            return self._numbers[value]
        except (KeyError, TypeError):
            raise Refused(self.field, f"must be one of {', '.join(self._numbers)}, got {value!r:.64}") from None

    def decode(self, number: int) -> M:
        """The name of a number other than 0."""
        try:
            return self._members[number]
        except KeyError:
            known = ", ".join(f"{key} ({member})" for key, member in sorted(self._members.items()))
            raise Refused("", f"must be one of {known}, got {number}") from None


def refuse(error: Exception, values: Mapping[str, object], path: str = "") -> ValidationError:
    """What to raise when ``values`` could not be put on the wire because of ``error``.

    Args:
        error: What the encoder or protobuf raised.
        values: What was being encoded, by the name of its field; "" for one whose fields stand at the top.
        path: Goes before the name.
    """
    if isinstance(error, Refused):
        return ValidationError(error.description, field=path + error.at)
    for name, value in values.items():
        fault = _fault(value)
        if fault is not None:
            return ValidationError(fault[1], field=(path + name + fault[0]).removeprefix("."))
    return ValidationError(
        f"cannot be sent: {type(error).__name__}: a value has the wrong type", field=path or "request"
    )


def _fault(value: object) -> tuple[str, str] | None:
    """Path below ``value`` and description of the first thing that no message can carry, or None."""
    if is_dataclass(value) and not isinstance(value, type):
        return _first_fault((f".{field.name}", getattr(value, field.name)) for field in dataclass_fields(value))
    if isinstance(value, Mapping):
        keys = ((f"[{key!r:.64}]", key) for key in value)
        return _first_fault(keys) or _first_fault(
            (f"[{str(key)[:SHOWN_KEY_CHARS]}]", item) for key, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        return _first_fault((f"[{index}]", item) for index, item in enumerate(value))
    description = _scalar_fault(value)
    return ("", description) if description else None


def _first_fault(parts: Iterable[tuple[str, object]]) -> tuple[str, str] | None:
    for name, part in parts:
        fault = _fault(part)
        if fault is not None:
            return name + fault[0], fault[1]
    return None


def _scalar_fault(value: object) -> str:
    if isinstance(value, datetime):
        return "must carry a time zone, such as datetime.now(UTC)" if value.utcoffset() is None else ""
    if isinstance(value, bool) or value is None or isinstance(value, (float, bytes, frozenset)):
        return ""
    if isinstance(value, int):
        # The smaller of the two integer sizes of the protocol: the larger ones are counters that nobody types in.
        return f"must fit in 32 bits, got {value}" if not -(2**31) <= value < 2**31 else ""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"must be valid Unicode; character {error.start} is a lone surrogate"
        return ""
    return f"must be text, a number, a time or None, got {type(value).__name__}"
