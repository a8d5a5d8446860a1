"""The format of sealed values, and what seals and opens them.

A value has a magic number that ends in the version of the format, the number of its column, the key of its bank, its
row, and what the cipher made. In a text it is the base64 of that, in an object of JSON, beside the keys that SQL reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from astrocyte.stores.sealing.columns import Column

# The last byte is the version.
MAGIC = b"\x00sealed\x01"
_TEXT = '{"~sealed1":"'
HEADER = struct.Struct(">8sBQ16s")
NO_ROW = bytes(16)
# Values that say nothing, and that SQL or the decoders look for.
EMPTY = frozenset({"", "[]", "{}"})


class Header(NamedTuple):
    """The header of a sealed value; the cipher has proved it once the value is open."""

    magic: bytes
    column: int
    bank_key: int
    row: bytes


class Cipher(Protocol):
    """Seals and opens the values of a bank."""

    def seal(self, column: Column, row: bytes, value: str | bytes) -> str | bytes:
        """Seal a value; an empty one is returned as it is."""

    def open(self, data: bytes) -> bytes:
        """Open the bytes of a sealed value.

        Raises:
            ValueError: They are not what was sealed.
        """


class Ciphers(Protocol):
    """The ciphers of banks."""

    def cipher(self, bank_key: int) -> Cipher | None:
        """The cipher of a bank; None if it is not sealed.

        Raises:
            FailedPrecondition: Its key is lost.
            BankNotFound: It was deleted.
            StoreError, Unavailable: The key cannot be read.
        """


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that is kept, and that no bank has yet."""

    key_id: str
    secret: bytes


# The id of a bank's key by the bank's key in the database: "" of a bank that is not sealed, None of one that is gone.
FindKeyId = Callable[[int], str | None]


class BankKeys(Ciphers, Protocol):
    """The keys of banks, as the store uses them."""

    @property
    def is_new(self) -> bool:
        """True if nothing was kept there before."""

    @property
    def place(self) -> int:
        """The number of the place where they are kept."""

    def abandon(self) -> None:
        """Leave a new place as it was found."""

    def use(self, find: FindKeyId) -> None:
        """Look up the ids of keys in a store."""

    def new(self) -> NewKey:
        """Make a key for a bank that is to be made; it is kept when this returns."""

    def give(self, bank_key: int, key: NewKey) -> None:
        """Use a new key for a bank that is being made."""

    def revoke(self, bank_key: int) -> None:
        """Forget the key of a bank that was deleted, for good."""

    def destroy(self, key_id: str) -> None:
        """Destroy a key where it is kept.

        Raises:
            StoreError, Unavailable: It may still be there.
        """

    def close(self) -> None:
        """Forget all keys."""


def row_of(values: Sequence[object]) -> bytes:
    """The row that a value is bound to, by the values that tell it apart."""
    if len(values) == 1 and isinstance(values[0], int):
        return values[0].to_bytes(16, "big")
    return b"\xff" + hashlib.sha256(json.dumps(values).encode()).digest()[:15]


def packed(value: object) -> bytes | None:
    """The bytes of a sealed value; None of one that is not sealed."""
    if isinstance(value, str):
        if not value.startswith(_TEXT):
            return None
        text = value[len(_TEXT) : value.index('"', len(_TEXT))]
        data = base64.b64decode(text, validate=True)
    elif isinstance(value, bytes):
        data = value
    else:
        return None
    return data if data.startswith(MAGIC) and len(data) > HEADER.size else None


def header(data: bytes) -> Header:
    """The header of the bytes of a sealed value."""
    return Header(*HEADER.unpack_from(data))


def as_text(column: Column, value: str, sealed: bytes) -> str:
    """A sealed value as JSON, with the keys of the value that stay readable."""
    rest = ""
    if column.readable:
        fields = json.loads(value)
        kept = {key: fields[key] for key in column.readable if key in fields}
        rest = "".join(f",{json.dumps(key)}:{json.dumps(one)}" for key, one in kept.items())
    return f'{_TEXT}{base64.b64encode(sealed).decode()}"{rest}}}'
