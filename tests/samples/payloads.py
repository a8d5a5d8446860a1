"""Payloads for the wire fuzzer: random bytes, broken messages, and well-formed messages with hostile values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Field = FieldDescriptor
INT32 = (0, 1, -1, 2, 10, 200, 201, 10**6, 2**31 - 1, -(2**31))
INT64 = (*INT32, 2**53, 2**63 - 1, -(2**63), 253_402_300_799, 253_402_300_800, -62_135_596_801)
DOUBLES = (0.0, -0.0, 1.0, 0.95, -1.0, 1.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    " ",
    "family",
    "nowhere",
    "a/b",
    "..",
    "a\x00b",
    "\u202eevil",
    "\ufeff",
    "e\u0301" * 50,
    "漢字" * 20,
    "👩‍👩‍👧" * 10,
    "' OR 1=1 --",
    "%s%n{0}",
    "semantic",
    "content",
    "all",
    "yesterday and last week in May 2023",
    "mem_" + "0" * 32,
    "mem_" + "f" * 31 + "G",
    "x" * 300,
    "y" * 9_000,
)
BYTES = (b"", b"\x00", b"\x00" * 16, b"\xff" * 16, b"\x00\x00\x80?" * 4, b"\x00\x00\xc0\x7f" * 4, b"z" * 1_023)
LARGEST_BYTES = 1_000_000
# Deep enough for every message of the protocol.
DEPTH = 4


def payloads(seed: int, valid: list[Message], fill: list[str], count: int) -> Iterator[bytes]:
    """``count`` payloads of one request type, the same for the same seed.

    Args:
        seed: Of the random choices.
        valid: Requests that the server takes; at least one.
        fill: Texts that mean something to the server, such as ids of memories; mixed with hostile ones.
        count: How many.
    """
    chance = random.Random(seed)
    makers: list[Callable[[], bytes]] = [
        lambda: chance.randbytes(chance.choice((0, 1, 2, 5, 20, 100, 400))),
        lambda: mutated(chance, chance.choice(valid).SerializeToString()),
        lambda: hostile(chance, type(valid[0]), fill).SerializeToString(),
        lambda: mutated(chance, hostile(chance, type(valid[0]), fill).SerializeToString()),
        lambda: overwritten(chance, chance.choice(valid), fill).SerializeToString(),
    ]
    made = 0
    while made < count:
        payload = chance.choice(makers)()
        # Larger ones never reach the server's code: grpc refuses them.
        if len(payload) < LARGEST_BYTES:
            made += 1
            yield payload


def mutated(chance: random.Random, data: bytes) -> bytes:
    """``data`` with one to four wounds: flipped bits, cuts, doublings, insertions, lies about lengths."""
    wounded = bytearray(data or b"\x0a\x00")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(wounded) or 1)
        end = at + chance.randint(1, 12)
        match chance.randrange(6):
            case 0 if wounded:
                wounded[at] ^= 1 << chance.randrange(8)
            case 1:
                del wounded[at:end]
            case 2:
                wounded[at:at] = wounded[at:end]
            case 3:
                wounded[at:at] = chance.randbytes(chance.randint(1, 8))
            case 4 if wounded:
                wounded[at] = chance.choice((0x7F, 0x80, 0xFF, 0x00))
            case _:
                del wounded[at:]
    return bytes(wounded)


def hostile(chance: random.Random, kind: type[Message], fill: list[str], depth: int = DEPTH) -> Message:
    """A well-formed message with each field set or not, and values from the edges."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if chance.random() < 0.4:
            _set(chance, message, field, fill, depth)
    return message


def overwritten(chance: random.Random, valid: Message, fill: list[str]) -> Message:
    """A valid message with one field replaced, so that it comes past the first checks."""
    message = type(valid)()
    message.CopyFrom(valid)
    fields: list[Any] = list(message.DESCRIPTOR.fields)
    for field in chance.sample(fields, k=min(1, len(fields))):
        message.ClearField(field.name)
        _set(chance, message, field, fill, DEPTH)
    return message


def _set(chance: random.Random, message: Message, field: Any, fill: list[str], depth: int) -> None:
    if field.message_type is not None and depth == 0:
        return
    if not field.is_repeated:
        if field.message_type is not None:
            getattr(message, field.name).CopyFrom(_nested(chance, field, fill, depth))
        else:
            setattr(message, field.name, _scalar(chance, field, fill))
        return
    values = getattr(message, field.name)
    size = chance.choice((1, 2, 5) if field.message_type is not None else (1, 2, 5, 70, 300))
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        for _ in range(size):
            name = _scalar(chance, key, fill)
            if value.message_type is None:
                values[name] = _scalar(chance, value, fill)
            else:
                values[name].CopyFrom(_nested(chance, value, fill, depth))
    else:
        made = [_nested(chance, field, fill, depth) if field.message_type else _scalar(chance, field, fill)]
        values.extend(made * size)


def _nested(chance: random.Random, field: Any, fill: list[str], depth: int) -> Message:
    return hostile(chance, field.message_type._concrete_class, fill, depth - 1)


def _scalar(chance: random.Random, field: Any, fill: list[str]) -> Any:
    if field.type == Field.TYPE_STRING:
        return chance.choice(fill) if chance.random() < 0.5 else chance.choice(TEXTS)
    if field.type == Field.TYPE_BYTES:
        return chance.choice(BYTES)
    if field.type == Field.TYPE_BOOL:
        return chance.random() < 0.5
    if field.type in {Field.TYPE_DOUBLE, Field.TYPE_FLOAT}:
        return chance.choice(DOUBLES)
    if field.type == Field.TYPE_ENUM:
        return chance.choice((0, 1, 2, 3, 4, 99, -1))
    return chance.choice(INT64 if field.type == Field.TYPE_INT64 else INT32)
