"""Sealed values: AES-256-GCM, bound to bank, table, column and row; AES-SIV for values that SQL compares.

The key of a bank is never used itself: each table, and each range of its rows, has a key that is derived from it
(HKDF-Expand of RFC 5869), so that random nonces stay far below the 2**32 values that NIST SP 800-38D allows for a key.
Digests are deterministic (RFC 5297): equal values have equal sealed ones, and nobody without the key can make them.
"""

from __future__ import annotations

import hmac
import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from astrocyte.stores.sealing.columns import BY_NUMBER, PASSAGES, Column
from astrocyte.stores.sealing.values import EMPTY, HEADER, MAGIC, NO_ROW, as_text, header

SECRET_BYTES = 32
_NONCE_BYTES = 12
# Rows whose keys differ above these bits have other keys of the cipher: 16 million versions, or the passages of those.
_ROW_BITS, _PASSAGE_BITS = 24, 40
# Ciphers of a bank that are kept.
MOST_CIPHERS = 256


class BankCipher:
    """Seals and opens the values of a bank.

    Args:
        bank_key: Key of the bank in the database.
        secret: 32 random bytes.
    """

    def __init__(self, bank_key: int, secret: bytes) -> None:
        self.bank_key = bank_key
        self._secret = secret
        self._gcm = lru_cache(MOST_CIPHERS)(self._make_gcm)
        self._siv = lru_cache(MOST_CIPHERS)(self._make_siv)

    def seal(self, column: Column, row: bytes, value: str | bytes) -> str | bytes:
        """Seal a value; an empty one is returned as it is."""
        if not value or value in EMPTY:
            return value
        data = value.encode() if isinstance(value, str) else value
        head = HEADER.pack(MAGIC, column.number, self.bank_key, NO_ROW if column.is_digest else row)
        if column.is_digest:
            sealed = head + self._siv(column).encrypt(data, [head, column.label])
        else:
            nonce = os.urandom(_NONCE_BYTES)
            cipher = self._gcm(column.table, _range(column, row))
            sealed = head + nonce + cipher.encrypt(nonce, data, head + column.label)
        return sealed if isinstance(value, bytes) else as_text(column, value, sealed)

    def open(self, data: bytes) -> bytes:
        """Open the bytes of a sealed value.

        Raises:
            ValueError: They are not what was sealed.
        """
        _, number, bank_key, row = header(data)
        column = BY_NUMBER.get(number)
        head, body = data[: HEADER.size], data[HEADER.size :]
        if column is None or bank_key != self.bank_key or len(body) <= _NONCE_BYTES:
            raise ValueError("a sealed value is damaged")
        try:
            if column.is_digest:
                return self._siv(column).decrypt(body, [head, column.label])
            cipher = self._gcm(column.table, _range(column, row))
            return cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], head + column.label)
        except InvalidTag:
            raise ValueError("a sealed value is damaged") from None

    def _make_gcm(self, table: str, part: bytes) -> AESGCM:
        return AESGCM(_expanded(self._secret, b"gcm\0" + table.encode() + b"\0" + part, 1))

    def _make_siv(self, column: Column) -> AESSIV:
        return AESSIV(_expanded(self._secret, b"siv\0" + column.label, 2))


def _range(column: Column, row: bytes) -> bytes:
    if row[0]:
        # A digest of what tells the row apart.
        return row[1:2]
    number = int.from_bytes(row, "big") >> (_PASSAGE_BITS if column.table in PASSAGES else _ROW_BITS)
    return number.to_bytes(16, "big")


def _expanded(secret: bytes, info: bytes, blocks: int) -> bytes:
    """HKDF-Expand of RFC 5869 with SHA-256: so many blocks of 32 bytes."""
    made, block = b"", b""
    for number in range(1, blocks + 1):
        block = hmac.digest(secret, block + info + bytes([number]), "sha256")
        made += block
    return made
