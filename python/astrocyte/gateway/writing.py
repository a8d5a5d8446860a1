"""Messages to JSON, by a plan that is compiled once for each type of message.

The mapping is protobuf's with these differences: names of fields as in the protocol; short names of enum values;
64-bit integers as numbers; metadata as plain values; a status as the error of a failed call. Fields without presence
are always there, except an enum that is unspecified.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from astrocyte.gateway.failures import body_of
from astrocyte.gateway.names import short_names
from astrocyte.services.status import from_status

Write = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC; a zone would cost each instant a copy
NANOS_PER_MICRO = 1_000


class Writer:
    """Writes messages of one type. `writer` makes it, and compiles it once the type can be found by its own fields."""

    def __init__(self) -> None:
        # Fields that are alike on both sides are read in one step; most fields of most messages are.
        self._names: tuple[str, ...] = ()
        self._values: Callable[[Any], tuple[Any, ...]] = _nothing
        self._converted: list[tuple[str, Write]] = []
        self._choices: list[tuple[str, Mapping[int, str]]] = []
        self._repeated: list[tuple[str, Write, Any]] = []
        self._optional: list[tuple[str, Write | None]] = []

    def compile(self, kind: Descriptor) -> None:
        """Sort the fields of a type by how they are written."""
        plain = []
        for field in kind.fields:
            write = _write(field)
            if field.is_repeated:
                # Shared by all answers, and never changed: they are only serialised.
                self._repeated.append((field.name, write or list, [] if _map_value(field) is None else {}))
            elif field.has_presence:
                self._optional.append((field.name, write))
            elif field.enum_type is not None:
                self._choices.append((field.name, short_names(field.enum_type)))
            elif write is not None:
                self._converted.append((field.name, write))
            else:
                plain.append(field.name)
        self._names = tuple(plain)
        self._values = _getter(self._names)

    @property
    def plain(self) -> Write | None:
        """The writer of a type all of whose fields are alike on both sides; None for other types."""
        if self._converted or self._choices or self._repeated or self._optional:
            return None
        names, values = self._names, self._values
        return lambda message: dict(zip(names, values(message), strict=True))

    def __call__(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The object of a message."""
        made = dict(zip(self._names, self._values(message), strict=True))
        for name, write in self._converted:
            made[name] = write(getattr(message, name))
        for name, names in self._choices:
            number = getattr(message, name)
            if number:
                made[name] = names.get(number, number)
        for name, write, none in self._repeated:
            values = getattr(message, name)
            made[name] = write(values) if values else none
        for name, one in self._optional:
            if message.HasField(name):
                value = getattr(message, name)
                made[name] = value if one is None else one(value)
        return made


_WRITERS: dict[str, Write] = {}


def writer(kind: Descriptor) -> Write:
    """The writer of a type of messages."""
    found = _PLAIN.get(kind.full_name) or _WRITERS.get(kind.full_name)
    if found is None:
        made = Writer()
        # Before its fields are compiled, because types may hold each other.
        found = _WRITERS[kind.full_name] = made
        made.compile(kind)
        # Scores by arm are the most frequent messages; others of this kind profit as well.
        found = _WRITERS[kind.full_name] = made.plain or made
    return found


def _nothing(_: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a message
    return ()


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads these attributes; `attrgetter` returns a tuple for two and more only."""
    if not names:
        return _nothing
    if len(names) == 1:
        return lambda message: (getattr(message, names[0]),)
    return attrgetter(*names)


def _map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """The field of a map's values; None for other fields."""
    kind = field.message_type
    return kind.fields_by_name["value"] if kind is not None and kind.GetOptions().map_entry else None


def _write(field: FieldDescriptor) -> Write | None:
    """Converts a field; None where it is alike on both sides."""
    value_field = _map_value(field)
    one = _one(field if value_field is None else value_field)
    if not field.is_repeated:
        return one
    if one is None:
        return list if value_field is None else dict
    return _each(one) if value_field is None else _each_of_map(one)


def _each(one: Write) -> Write:
    return lambda values: [one(value) for value in values]


def _each_of_map(one: Write) -> Write:
    return lambda values: {key: one(value) for key, value in values.items()}


def _one(field: FieldDescriptor) -> Write | None:
    if field.message_type is not None:
        return writer(field.message_type)
    if field.enum_type is not None:
        names = short_names(field.enum_type)
        return lambda number: names.get(number, number)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    return None


def _instant(value: Any) -> str:  # noqa: ANN401 - a Timestamp
    moment = EPOCH + timedelta(0, value.seconds, value.nanos // NANOS_PER_MICRO)
    return moment.isoformat(timespec="milliseconds") + "Z"


def _duration(value: Any) -> str:  # noqa: ANN401 - a Duration
    text: str = value.ToJsonString()
    return text


def _metadata(value: Any) -> Any:  # noqa: ANN401 - a MetadataValue, and a value of JSON
    kind = value.WhichOneof("kind")
    return None if kind in {None, "null_value"} else getattr(value, kind)


def _status(value: Any) -> Any:  # noqa: ANN401 - a Status, and a value of JSON
    return body_of(from_status(value))["error"]


_PLAIN: Mapping[str, Write] = {
    "google.protobuf.Timestamp": _instant,
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": lambda value: ",".join(value.paths),
    "google.rpc.Status": _status,
    "astrocyte.v1.MetadataValue": _metadata,
}
