"""Codecs between domain classes and messages, compiled from the fields that both have.

    codec_of(Bank, admin_pb2.Bank).encode(bank)

A field is converted by its type on the wire: instants, durations, ranges of times and enums to their Python types,
messages to the domain class of the annotation. ``None`` is unset or empty on the wire. Each pair of classes is compiled
once. Where the shapes differ, a codec is registered for the domain class: a subclass, or a `Codec` with other names.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from astrocyte import model
from astrocyte.errors import ValidationError
from astrocyte.services.convert.values import (
    EPOCH,
    Refused,
    decode_duration,
    decode_instant,
    decode_metadata,
    encode_duration,
    encode_instant,
    encode_metadata,
)

T = TypeVar("T")
M = TypeVar("M", bound=StrEnum)
Convert = Callable[[Any], Any]

_EMPTY_SCALARS: Mapping[int, Any] = {
    FieldDescriptor.CPPTYPE_STRING: "",
    FieldDescriptor.CPPTYPE_BOOL: False,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.0,
    FieldDescriptor.CPPTYPE_FLOAT: 0.0,
}
# Types of values that nobody can change.
_SHARED = (str, int, float, bytes, tuple, frozenset, datetime, types.NoneType)


class Unset(Enum):
    """The meaning of an unset field, where the wire does not distinguish unset from empty.

    NONE: None where the annotation allows it, else empty; repeated fields are empty. NULL: None where the annotation
    allows it, for repeated fields too. EMPTY: empty always. DEFAULT: the default of the class.
    """

    NONE = "none"
    NULL = "null"
    EMPTY = "empty"
    DEFAULT = "default"


class Choices(Generic[M]):
    """A closed set of names here, an enum on the wire.

    Args:
        members: Its names here; each must be on the wire as prefix + NAME.
        numbers: The numbers of the names on the wire.
        prefix: Of the names on the wire.
    """

    def __init__(self, members: type[M], numbers: Mapping[str, int], prefix: str) -> None:
        self._numbers: dict[str, Any] = {member.value: numbers[prefix + member.name] for member in members}
        self._members: dict[int, M] = {self._numbers[member.value]: member for member in members}

    def encode(self, value: str) -> Any:  # noqa: ANN401 - each generated enum has a number type of its own
        """The number of a name.

        Raises:
            Refused: There is no such name.
        """
        try:
            return self._numbers[value]
        except (KeyError, TypeError):
            raise Refused("", f"must be one of {', '.join(self._numbers)}, got {value!r:.64}") from None

    def decode(self, number: int) -> M:
        """The name of a number.

        Raises:
            Refused: There is no such number.
        """
        try:
            return self._members[number]
        except KeyError:
            known = ", ".join(f"{key} ({member})" for key, member in sorted(self._members.items()))
            raise Refused("", f"must be one of {known}, got {number}") from None


class Field(NamedTuple):
    """The conversion of one field.

    ``read`` and ``write`` are None for values that are alike on both sides. ``empty`` makes the value of an unset field
    and is None where that is the default of the class. ``always`` marks fields whose empty value is written too.
    """

    name: str
    wire: str
    read: Convert | None
    write: Convert | None
    empty: Callable[[], Any] | None
    always: bool


class Codec(Generic[T]):
    """Converts values of one domain class to messages of one class, and back.

    Args:
        kind: A dataclass or a NamedTuple.
        message: The class of the messages.
        names: Names on the wire of fields that have another one there.
        unset: Meaning of a field that is unset on the wire.
        omit: Fields that are not converted.

    Raises:
        TypeError: A field is not on the wire.
    """

    def __init__(
        self,
        kind: type[T],
        message: type[Message],
        *,
        names: Mapping[str, str] = types.MappingProxyType({}),
        unset: Unset = Unset.NONE,
        omit: Collection[str] = (),
    ) -> None:
        self.kind = kind
        self.message: Any = message
        descriptor: Any = message.DESCRIPTOR
        plan = [
            _field(name, annotation, default, _wire_field(kind, names.get(name, name), descriptor), unset)
            for name, annotation, default in _parts(kind)
            if name not in omit
        ]
        named = {field.wire for field in plan}
        # Computed values, such as `Operation.done`, are written and not read.
        plan_of_writes = plan + [
            Field(one.name, one.name, None, None, None, always=False)
            for one in descriptor.fields
            if one.name not in named and isinstance(getattr(kind, one.name, None), property)
        ]
        self._reads = {field.wire: (field.name, field.read) for field in plan}
        empty = {field.name: field.empty for field in plan if field.empty is not None}
        # Values that can be shared are made once.
        self._empty = {name: made for name, make in empty.items() if isinstance(made := make(), _SHARED)}
        self._made = [(name, make) for name, make in empty.items() if name not in self._empty]
        self._writes = [(field.name, field.wire, field.write, field.always) for field in plan_of_writes]

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields of the domain value by name.

        Raises:
            Refused: A field cannot be read; ``at`` is its path.
        """
        values = self._empty.copy()
        for name, make in self._made:
            values[name] = make()
        reads = self._reads
        # Only set fields are visited, because most fields of most requests are not.
        for field, value in message.ListFields():
            known = reads.get(field.name)
            if known is not None:
                name, read = known
                try:
                    values[name] = value if read is None else read(value)
                except Refused as error:
                    raise Refused(f".{field.name}{error.at}", error.description) from None
        return values

    def read(self, message: Any) -> T:  # noqa: ANN401 - a message
        """The domain value of a message inside another one.

        Raises:
            Refused: A field cannot be read; ``at`` is its path.
        """
        return self.kind(**self.values(message))

    def decode(self, message: Any, path: str = "") -> T:  # noqa: ANN401 - a message
        """The domain value of a message.

        Raises:
            ValidationError: A field cannot be read; its name is preceded by ``path``.
        """
        try:
            return self.read(message)
        except Refused as error:
            raise ValidationError(error.description, field=path + error.at.removeprefix(".")) from None

    def write(self, value: T) -> dict[str, Any]:
        """The fields of the message by name, as its constructor takes them.

        Raises:
            Refused: A field cannot be written; ``at`` is its path.
        """
        made = {}
        wire = ""
        try:
            for name, wire, write, always in self._writes:
                given = getattr(value, name)
                if given or (always and given is not None):
                    made[wire] = given if write is None else write(given)
        except Refused as error:
            raise Refused(f".{wire}{error.at}", error.description) from None
        return made

    def encode(self, value: T) -> Any:  # noqa: ANN401 - a message
        """The message of a domain value; raises what `write` does, or what protobuf raises for a wrong type."""
        return self.message(**self.write(value))


class SpreadCodec(Codec[T]):
    """Codec of a class with a field whose own fields are fields of the message.

    Args:
        kind: A dataclass.
        message: The class of the messages.
        name: The field.
        held: The class of its values.
    """

    def __init__(self, kind: type[T], message: Any, name: str, held: Any) -> None:  # noqa: ANN401 - classes
        super().__init__(kind, message, omit={name})
        self._name = name
        self._held: Codec[Any] = codec_of(held, message)

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields, with the value that is spread."""
        values = super().values(message)
        values[self._name] = self._held.read(message)
        return values

    def write(self, value: T) -> dict[str, Any]:
        """The fields, and those of the value that is spread."""
        return {**self._held.write(getattr(value, self._name)), **super().write(value)}


# Makes the codec of a domain class for a class of messages.
Make = Callable[[Any, Any], Codec[Any]]
_registered: dict[type, Make] = {}


def register(kind: type, make: Make | None = None, **options: Any) -> None:  # noqa: ANN401 - keywords of Codec
    """Register a custom codec for a domain class.

    Args:
        kind: The domain class.
        make: Makes its codec for a class of messages; None takes `Codec` with the options.
        **options: Keywords of `Codec`.
    """
    _registered[kind] = make or (lambda kind, message: Codec(kind, message, **options))


@cache
def codec_of(kind: type[T], message: Any) -> Codec[T]:  # noqa: ANN401 - a class of messages
    """The codec of a domain class for a class of messages, compiled at first use."""
    return _registered.get(kind, Codec)(kind, message)


@cache
def choices_of(enum: EnumDescriptor) -> Choices[StrEnum]:
    """The names of a wire enum: those of the enumeration of the same name in `astrocyte.model`."""
    prefix = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in enum.name)[1:] + "_"
    return Choices(getattr(model, enum.name), {value.name: value.number for value in enum.values}, prefix)


def _parts(kind: type) -> list[tuple[str, Any, Any]]:
    """Name, annotation and default of each field of a domain class; `MISSING` where there is no default."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return [
            (one.name, hints[one.name], None if one.default_factory is not MISSING else one.default)
            for one in dataclass_fields(kind)
        ]
    defaults: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]  # a NamedTuple
    return [(name, hints[name], defaults.get(name, MISSING)) for name in kind._fields]  # type: ignore[attr-defined]


def _wire_field(kind: type, name: str, descriptor: Any) -> FieldDescriptor:  # noqa: ANN401 - a descriptor of a message
    field: FieldDescriptor | None = descriptor.fields_by_name.get(name)
    if field is None:
        raise TypeError(f"{descriptor.full_name} has no field {name!r}, which {kind.__name__} needs")
    return field


def _field(name: str, annotation: Any, default: Any, wire: FieldDescriptor, unset: Unset) -> Field:  # noqa: ANN401 - types and values
    optional, kind = _bare(annotation)
    read, write, empty = converters(kind, wire)
    # A zero below zero is false and not empty.
    always = wire.has_presence or wire.enum_type is not None or wire.type == FieldDescriptor.TYPE_DOUBLE
    if unset is Unset.DEFAULT and default is not MISSING:
        return Field(name, wire.name, read, write, None, always)
    if unset is Unset.NULL and optional:
        return Field(name, wire.name, read, write, _none, always)
    if wire.is_repeated or not optional or (unset is Unset.EMPTY and not wire.has_presence):
        # The empty value of an enum is no name; its class has a default, or an unset field fails.
        return Field(name, wire.name, read, write, empty, always)
    return Field(name, wire.name, read, write, _none, always)


def _none() -> None:
    return None


def _bare(annotation: Any) -> tuple[bool, Any]:  # noqa: ANN401 - types
    """True if None is allowed, and the annotation without it; of a union with names, its enumeration."""
    if get_origin(annotation) not in {Union, types.UnionType}:
        return False, annotation
    kinds = [kind for kind in get_args(annotation) if kind is not types.NoneType]
    enums = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum)]
    return len(kinds) < len(get_args(annotation)), (enums or kinds)[0]


def converters(kind: Any, wire: FieldDescriptor) -> tuple[Convert | None, Convert | None, Callable[[], Any] | None]:  # noqa: ANN401 - a type
    """Reads and writes values of a type at a field of the wire, and makes the value of an empty one."""
    if wire.message_type is not None and wire.message_type.GetOptions().map_entry:
        of_metadata = wire.message_type.fields_by_name["value"].message_type is not None
        return (decode_metadata, encode_metadata, dict) if of_metadata else (dict, dict, dict)
    if not wire.is_repeated:
        return _single(kind, wire)
    shape = get_origin(kind) or kind
    container: Any = shape if shape in {list, frozenset} else tuple
    read, write, _ = _single((get_args(kind) or (str,))[0], wire)
    if wire.enum_type is not None and wire.enum_type.name == model.Permission.__name__:
        return _reads_each(read, container), _writes_permissions(choices_of(wire.enum_type)), container
    return _reads_each(read, container), None if write is None else _writes_each(write), container


def _single(kind: Any, wire: FieldDescriptor) -> tuple[Convert | None, Convert | None, Callable[[], Any] | None]:  # noqa: ANN401 - a type
    if wire.enum_type is not None:
        choices = choices_of(wire.enum_type)
        return choices.decode, choices.encode, None
    if wire.message_type is None:
        empty = _EMPTY_SCALARS.get(wire.cpp_type, 0)
        if wire.type == FieldDescriptor.TYPE_BYTES:
            empty = b""
        named = isinstance(kind, type) and issubclass(kind, StrEnum)
        return kind if named else None, None, None if named else lambda: empty
    if kind is datetime:
        return decode_instant, encode_instant, lambda: EPOCH
    if kind is float:
        return decode_duration, encode_duration, None
    message: Any = GetMessageClass(wire.message_type)
    codec = codec_of(kind, message)
    return codec.read, codec.write, lambda: codec.read(message())


def _reads_each(read: Convert | None, container: Callable[[Any], Any]) -> Convert:
    if read is None:
        return container
    return lambda values: container([_read_at(read, index, value) for index, value in enumerate(values)])


def _read_at(read: Convert, index: int, value: Any) -> Any:  # noqa: ANN401 - an element
    try:
        return read(value)
    except Refused as error:
        raise Refused(f"[{index}]{error.at}", error.description) from None


def _writes_each(write: Convert) -> Convert:
    def each(values: Any) -> list[Any]:  # noqa: ANN401 - elements
        made = []
        try:
            for value in values:
                made.append(write(value))  # noqa: PERF401 - its length is the place of what fails
        except Refused as error:
            raise Refused(f"[{len(made)}]{error.at}", error.description) from None
        return made

    return each


def _writes_permissions(choices: Choices[StrEnum]) -> Convert:
    def write(names: Collection[str]) -> list[int]:
        """Permissions in their own order; ``*`` is all of them."""
        chosen: set[str] = set()
        for name in names:
            chosen |= model.ALL_PERMISSIONS if name == "*" else {name}
        return sorted(map(choices.encode, chosen))

    return write
