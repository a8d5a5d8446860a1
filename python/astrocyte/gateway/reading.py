"""JSON to messages, by a plan that is compiled once for each type of message.

A value of the wrong type, an unknown field and two fields of which only one may be set are refused with the path of the
field. No message of an error has a value in it, because values are content.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import re
import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from astrocyte.errors import ValidationError
from astrocyte.gateway.names import choices, short_names
from astrocyte.services.convert import Refused

Read = Callable[[Any], Any]

INTEGERS: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
# Digits of the longest integer, with its sign.
INTEGER_CHARS = 20
# Of a number in decimal notation, and of a date.
NUMBER_CHARS = 64
SHOWN_NAME_CHARS = 64
DURATION = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?s")


# Other names of fields in JSON, by type.
SYNONYMS: Mapping[str, Mapping[str, str]] = {"astrocyte.v1.CreateMentalModelRequest": {"title": "name"}}


class Reader:
    """Reads messages of one type.

    Args:
        kind: The type.
    """

    def __init__(self, kind: Descriptor) -> None:
        self._reads: dict[str, tuple[str, Read]] = {}
        self._oneofs: dict[str, str] = {}
        for field in kind.fields:
            read = _read(field)
            self._reads[field.name] = self._reads[field.json_name] = (field.name, read)
            oneof = field.containing_oneof
            if oneof is not None and not oneof.name.startswith("_"):
                self._oneofs[field.name] = oneof.name
        for other, name in SYNONYMS.get(kind.full_name, {}).items():
            self._reads[other] = self._reads[name]

    def __call__(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - a value of JSON
        """The fields of a message, as its constructor takes them.

        Raises:
            Refused: A value cannot be read; ``at`` is its path.
        """
        if not isinstance(value, dict):
            raise Refused("", f"must be an object, got {_kind(value)}")
        made: dict[str, Any] = {}
        chosen: dict[str, str] = {}
        for key, given in value.items():
            known = self._reads.get(key)
            if known is None:
                raise self._unknown(key)
            if given is None:
                continue
            name, read = known
            if name in made:
                raise Refused(f".{name}", "is given twice, under two names; send it once")
            oneof = self._oneofs.get(name)
            if oneof is not None and chosen.setdefault(oneof, name) != name:
                raise Refused(f".{name}", f"excludes {chosen[oneof]}; send one of them")
            try:
                made[name] = read(given)
            except Refused as error:
                raise Refused(f".{name}{error.at}", error.description) from None
        return made

    def _unknown(self, key: str) -> Refused:
        names = sorted({name for name, _ in self._reads.values()})
        near = difflib.get_close_matches(key[:SHOWN_NAME_CHARS], names, 1)
        known = f"did you mean {near[0]}?" if near else f"known are {', '.join(names) or 'none'}"
        return Refused(f".{key[:SHOWN_NAME_CHARS]}", f"is no field here; {known}")


@cache
def reader(kind: Descriptor) -> Read:
    """The reader of a type of messages."""
    return _PLAIN.get(kind.full_name) or Reader(kind)


def read_message(kind: Descriptor, value: Any) -> Message:  # noqa: ANN401 - a value of JSON
    """The message of an object.

    Raises:
        ValidationError: A value cannot be read.
    """
    try:
        return GetMessageClass(kind)(**reader(kind)(value))
    except Refused as error:
        raise ValidationError(error.description, field=error.at.removeprefix(".") or "request") from None


def _read(field: FieldDescriptor) -> Read:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field.message_type.fields_by_name["value"])
    one = _one(field)
    return _repeated(one) if field.is_repeated else one


def _repeated(one: Read) -> Read:
    def read(value: Any) -> list[Any]:  # noqa: ANN401 - a value of JSON
        if not isinstance(value, list):
            raise Refused("", f"must be a list, got {_kind(value)}")
        made = []
        for index, item in enumerate(value):
            try:
                made.append(one(item))
            except Refused as error:
                raise Refused(f"[{index}]{error.at}", error.description) from None
        return made

    return read


def _map(field: FieldDescriptor) -> Read:
    one = _one(field)
    # A map takes messages, and no dictionaries in their place.
    held = None if field.message_type is None else GetMessageClass(field.message_type)

    def read(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a value of JSON
        if not isinstance(value, dict):
            raise Refused("", f"must be an object, got {_kind(value)}")
        made = {}
        for key, item in value.items():
            try:
                made[key] = one(item) if held is None else held(**one(item))
            except Refused as error:
                raise Refused(f"[{key[:SHOWN_NAME_CHARS]}]{error.at}", error.description) from None
        return made

    return read


def _one(field: FieldDescriptor) -> Read:
    if field.message_type is not None:
        kind = field.message_type

        def read(value: Any) -> Any:  # noqa: ANN401 - a value of JSON, and the fields of a message
            # Compiled at the first use, because types may hold each other.
            return reader(kind)(value)

        return read
    if field.enum_type is not None:
        return _choice(field.enum_type)
    if field.cpp_type in INTEGERS:
        return _integer(*INTEGERS[field.cpp_type])
    return {
        FieldDescriptor.CPPTYPE_BOOL: _boolean,
        FieldDescriptor.CPPTYPE_DOUBLE: _number,
        FieldDescriptor.CPPTYPE_FLOAT: _number,
        FieldDescriptor.CPPTYPE_STRING: _bytes if field.type == FieldDescriptor.TYPE_BYTES else _text,
    }[field.cpp_type]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _text(value: Any) -> str:  # noqa: ANN401 - a value of JSON, as below
    if not isinstance(value, str):
        raise Refused("", f"must be text, got {_kind(value)}")
    return value


def _boolean(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, bool):
        return value
    # As parameters of a query have them.
    if isinstance(value, str) and value in {"true", "false"}:
        return value == "true"
    raise Refused("", f"must be true or false, got {_kind(value)}")


def _number(value: Any) -> float:  # noqa: ANN401
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and len(value) <= NUMBER_CHARS and value.isascii() and "_" not in value:
        try:
            return float(value)
        except ValueError:
            pass
    raise Refused("", f"must be a number, got {_kind(value)}")


def _integer(least: int, most: int) -> Read:
    def read(value: Any) -> int:  # noqa: ANN401
        whole: int | None = None
        if isinstance(value, int) and not isinstance(value, bool):
            whole = value
        elif isinstance(value, float) and value.is_integer():
            whole = int(value)
        elif isinstance(value, str) and len(value) <= INTEGER_CHARS:
            digits = value.removeprefix("-")
            whole = int(value) if digits.isascii() and digits.isdigit() else None
        if whole is None:
            raise Refused("", f"must be a whole number, got {_kind(value)}")
        if not least <= whole <= most:
            raise Refused("", f"must be from {least} to {most}")
        return whole

    return read


def _bytes(value: Any) -> bytes:  # noqa: ANN401
    text = _text(value).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Refused("", "must be bytes in base64") from None


def _choice(enum: EnumDescriptor) -> Read:
    numbers = {name: number for number, name in short_names(enum).items()}
    numbers |= {value.name: value.number for value in enum.values}
    expected = f"must be one of {', '.join(choices(enum))}"

    def read(value: Any) -> int:  # noqa: ANN401
        number = numbers.get(value) if isinstance(value, str) else None
        if number is None:
            raise Refused("", expected)
        return number

    return read


def _instant(value: Any) -> dict[str, int]:  # noqa: ANN401
    text = _text(value)
    try:
        moment = datetime.fromisoformat(text[:NUMBER_CHARS])
    except ValueError:
        raise Refused("", "must be an instant of RFC 3339, such as 2025-01-31T09:30:00Z") from None
    if moment.utcoffset() is None:
        raise Refused("", "has no offset from UTC; append Z, or an offset such as +01:00")
    # Not `timestamp()`, which is a float and loses microseconds.
    since = moment - _EPOCH
    return {"seconds": since.days * 86_400 + since.seconds, "nanos": since.microseconds * 1_000}


def _duration(value: Any) -> dict[str, int]:  # noqa: ANN401
    text = _text(value)
    if not DURATION.fullmatch(text):
        raise Refused("", 'must be seconds with the unit, such as "2.5s"')
    micros = round(float(text[:-1]) * 1_000_000)
    if abs(micros) > _MOST_DURATION * 1_000_000:
        raise Refused("", "is longer than 10,000 years")
    sign = -1 if micros < 0 else 1
    seconds, rest = divmod(abs(micros), 1_000_000)
    return {"seconds": sign * seconds, "nanos": sign * rest * 1_000}


def _mask(value: Any) -> dict[str, list[str]]:  # noqa: ANN401
    if isinstance(value, list):
        return {"paths": [_text(name) for name in value]}
    return {"paths": [name.strip() for name in _text(value).split(",") if name.strip()]}


def _metadata(value: Any) -> dict[str, Any]:  # noqa: ANN401
    if isinstance(value, str):
        return {"string_value": value}
    if isinstance(value, bool):
        return {"bool_value": value}
    if isinstance(value, int):
        return {"int_value": _integer(*INTEGERS[FieldDescriptor.CPPTYPE_INT64])(value)}
    if isinstance(value, float):
        return {"double_value": value}
    if value is None:
        return {"null_value": 0}
    raise Refused("", f"must be text, a number, true, false or null, got {_kind(value)}")


def _strategy(value: Any) -> Any:  # noqa: ANN401
    return _reader_of("astrocyte.v1.MultiBankStrategy")({"mode": value} if isinstance(value, str) else value)


def _embedding(value: Any) -> Any:  # noqa: ANN401
    """A vector, whose values may be a list of numbers in place of their bytes."""
    values = value.get("values") if isinstance(value, dict) else None
    if not isinstance(values, list):
        return _reader_of("astrocyte.v1.Embedding")(value)
    try:
        packed = struct.pack(f"<{len(values)}f", *(_number(one) for one in values))
    except OverflowError:
        raise Refused(".values", "has a number beyond the range of binary32") from None
    except Refused as error:
        raise Refused(".values", error.description) from None
    rest = {name: given for name, given in value.items() if name != "values"}
    return {"dimensions": len(values), **_reader_of("astrocyte.v1.Embedding")(rest), "values": packed}


@cache
def _reader_of(name: str) -> Read:
    return Reader(Default().FindMessageTypeByName(name))


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
# What a Duration holds.
_MOST_DURATION = 315_576_000_000
_PLAIN: Mapping[str, Read] = {
    "google.protobuf.Timestamp": _instant,
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": _mask,
    "astrocyte.v1.MetadataValue": _metadata,
    "astrocyte.v1.MultiBankStrategy": _strategy,
    "astrocyte.v1.Embedding": _embedding,
}
