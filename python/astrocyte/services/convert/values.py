"""Values of messages: instants, durations and metadata; and the description of a value that cannot be sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from astrocyte.errors import AstrocyteError, ValidationError
from astrocyte.model import Metadata, MetadataValue
from astrocyte.v1 import types_pb2

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86_400
NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_MICRO = 1_000
MICROS_PER_SECOND = 1_000_000
# What int64 holds; the wire has no larger number.
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Enough of a key to find it; keys come from callers and may be long.
SHOWN_KEY_CHARS = 64


class Refused(ValueError):  # noqa: N818 - named as the tree of errors.py is
    """A value that cannot cross; ``at`` is its path below the field that is being converted."""

    def __init__(self, at: str, description: str) -> None:
        super().__init__(description)
        self.at, self.description = at, description


def encode_instant(value: datetime) -> Any:  # noqa: ANN401 - a dictionary that protobuf takes for a Timestamp
    """Seconds and nanoseconds since the epoch; a dictionary is faster than building the Timestamp in Python."""
    since = value - EPOCH
    return {"seconds": since.days * SECONDS_PER_DAY + since.seconds, "nanos": since.microseconds * NANOS_PER_MICRO}


def offset_of(value: datetime | None) -> str:
    """The zone of a datetime as a name or an offset, which a Timestamp does not keep; empty for UTC."""
    offset = None if value is None else value.utcoffset()
    if value is None or not offset:
        return ""
    return getattr(value.tzinfo, "key", None) or value.strftime("%z")[: len("+HHMM")]


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


def encode_duration(seconds: float) -> Any:  # noqa: ANN401 - a dictionary that protobuf takes for a Duration
    """A span of time, to the microsecond."""
    micros = round(seconds * MICROS_PER_SECOND)
    whole = math.trunc(micros / MICROS_PER_SECOND)
    return {"seconds": whole, "nanos": (micros - whole * MICROS_PER_SECOND) * NANOS_PER_MICRO}


def decode_duration(value: Duration) -> float:
    """Seconds.

    Raises:
        Refused: The nanoseconds are more than a second.
    """
    if not abs(value.nanos) < NANOS_PER_SECOND:
        raise Refused("", "has nanos beyond a second")
    return float(value.seconds) + value.nanos / NANOS_PER_SECOND


def encode_metadata(values: Metadata) -> dict[str, types_pb2.MetadataValue]:
    """Metadata by key.

    Raises:
        Refused: A value has a type that metadata cannot have.
    """
    return {key: _encode_value(key, value) for key, value in values.items()}


def _encode_value(key: str, value: MetadataValue) -> types_pb2.MetadataValue:
    if isinstance(value, str):
        return types_pb2.MetadataValue(string_value=value)
    if isinstance(value, bool):
        return types_pb2.MetadataValue(bool_value=value)
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            raise Refused(f"[{key[:SHOWN_KEY_CHARS]}]", "a whole number must fit in 64 bits; send it as text")
        return types_pb2.MetadataValue(int_value=value)
    if isinstance(value, float):
        return types_pb2.MetadataValue(double_value=value)
    if value is None:
        return types_pb2.MetadataValue(null_value=0)  # type: ignore[arg-type]  # NULL_VALUE, the only one
    kind = type(value).__name__
    raise Refused(f"[{key[:SHOWN_KEY_CHARS]}]", f"must be a str, int, float, bool or None, got {kind}")


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


@contextmanager
def encoding(values: Mapping[str, object], path: str = "") -> Iterator[None]:
    """Convert errors of encoding ``values`` by `refuse`, which has the same arguments."""
    try:
        yield
    except AstrocyteError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise refuse(error, values, path) from error


def refuse(error: Exception, values: Mapping[str, object], path: str = "") -> ValidationError:
    """The error to raise when ``values`` could not be put on the wire because of ``error``.

    Args:
        error: What the encoder or protobuf raised.
        values: What was being encoded, by the name of its field; "" for one whose fields stand at the top.
        path: Goes before the name.
    """
    if isinstance(error, Refused):
        return ValidationError(error.description, field=path + error.at.removeprefix("."))
    for name, value in values.items():
        fault = _fault(value)
        if fault is not None:
            return ValidationError(fault[1], field=(path + name + fault[0]).removeprefix("."))
    return ValidationError(
        f"cannot be sent: {type(error).__name__}: a value has the wrong type", field=path or "request"
    )


def _fault(value: object) -> tuple[str, str] | None:
    """Path below ``value`` and description of the first value that no message can carry, or None."""
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
