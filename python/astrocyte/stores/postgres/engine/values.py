"""Values of statements in PostgreSQL's binary format."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from astrocyte.stores.sqlite.rows import Array

# Numbers of types, as in PostgreSQL's catalog; they are the same in every installation.
BOOL, BYTEA, INT8, INT2, INT4, TEXT, FLOAT4, FLOAT8 = 16, 17, 20, 21, 23, 25, 700, 701
BYTEA_ARRAY, TEXT_ARRAY, INT8_ARRAY = 1001, 1009, 1016

_INT8 = struct.Struct(">q").pack
_INT4 = struct.Struct(">i").pack
_INT2 = struct.Struct(">h").pack
_FLOAT8 = struct.Struct(">d").pack
_FLOAT4 = struct.Struct(">f").pack
# Dimensions, whether there are NULLs, type of the elements; length and lowest subscript of the one dimension.
_HEADER = struct.Struct(">iiIii").pack
_EMPTY = struct.Struct(">iiI").pack

Dumper = Callable[[object], bytes]


class WrongTypeError(TypeError):
    """A value is of another type than the database takes it for; the statement has to name the type."""


def _text(value: object) -> bytes:
    # Kinds of content and the like are members of enumerations, which are texts.
    if not isinstance(value, str):
        raise WrongTypeError
    return value.encode()


def _whole(pack: Callable[[int], bytes]) -> Dumper:
    def dump(value: object) -> bytes:
        if not isinstance(value, int):
            raise WrongTypeError
        return pack(value)

    return dump


def _float(pack: Callable[[float], bytes]) -> Dumper:
    def dump(value: object) -> bytes:
        if not isinstance(value, (int, float)):
            raise WrongTypeError
        return pack(value)

    return dump


def _bytes(value: object) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise WrongTypeError
    return bytes(value)


def _bool(value: object) -> bytes:
    if not isinstance(value, int):
        raise WrongTypeError
    return b"\x01" if value else b"\x00"


def _array(element: int, dump: Dumper) -> Dumper:
    def whole(value: object) -> bytes:
        values: Sequence[object] = value.values if isinstance(value, Array) else ()
        if not values:
            return _EMPTY(0, 0, element)
        parts = [_HEADER(1, 0, element, len(values), 1)]
        for one in values:
            data = dump(one)
            parts += (_INT4(len(data)), data)
        return b"".join(parts)

    return whole


def _numbers(value: object) -> bytes:
    values: Sequence[Any] = value.values if isinstance(value, Array) else ()
    count = len(values)
    if not count:
        return _EMPTY(0, 0, INT8)
    flat: list[int] = [8] * (2 * count)
    flat[1::2] = values
    return _HEADER(1, 0, INT8, count, 1) + struct.pack(f">{'iq' * count}", *flat)


DUMPERS: dict[int, Dumper] = {
    BOOL: _bool,
    BYTEA: _bytes,
    INT8: _whole(_INT8),
    INT4: _whole(_INT4),
    INT2: _whole(_INT2),
    TEXT: _text,
    FLOAT4: _float(_FLOAT4),
    FLOAT8: _float(_FLOAT8),
    INT8_ARRAY: _numbers,
    TEXT_ARRAY: _array(TEXT, _text),
    BYTEA_ARRAY: _array(BYTEA, _bytes),
}
