"""The keys of banks in the memory of a server."""

from __future__ import annotations

import os
import secrets
import threading
from hashlib import blake2b

from astrocyte.errors import BankNotFound, FailedPrecondition, StoreError
from astrocyte.stores.sealing.cipher import SECRET_BYTES, BankCipher
from astrocyte.stores.sealing.key_stores import CHECK, FIRST_PLACE, KeyStore, damaged
from astrocyte.stores.sealing.values import FindKeyId, NewKey

# Of the digest behind a key that is kept. What a server writes with a key of which a bit has changed, nobody can read
# once the right one is restored.
DIGEST_BYTES = 8


class Keyring:
    """Implements `astrocyte.stores.sealing.values.BankKeys`; see there for what each method does.

    Args:
        keys: Where they are kept.
        is_new: Nothing was kept there before.
        place: Number of the place where they are kept.
    """

    def __init__(self, keys: KeyStore, *, is_new: bool = False, place: int = FIRST_PLACE) -> None:
        self._keys = keys
        self.is_new = is_new
        self.place = place
        self._lock = threading.Lock()
        self._ciphers: dict[int, BankCipher | None] = {}
        # Banks that were deleted; no other bank gets their number.
        self._revoked: set[int] = set()
        self._find: FindKeyId | None = None

    def use(self, find: FindKeyId) -> None:
        """Look up the ids of keys in a store."""
        self._find = find

    def abandon(self) -> None:
        """Leave a new place as it was found."""
        if self.is_new:
            self._keys.destroy(CHECK)

    def new(self) -> NewKey:
        """Make a key for a bank that is to be made; it is kept when this returns."""
        key = NewKey(secrets.token_hex(16), os.urandom(SECRET_BYTES))
        self._keys.create(key.key_id, key.secret + _digest(key.key_id, key.secret))
        return key

    def give(self, bank_key: int, key: NewKey) -> None:
        """Use a new key for a bank that is being made."""
        with self._lock:
            self._ciphers[bank_key] = BankCipher(bank_key, key.secret)

    def cipher(self, bank_key: int) -> BankCipher | None:
        """The cipher of a bank; None if it is not sealed.

        Raises:
            FailedPrecondition: Its key is lost.
            BankNotFound: It was deleted.
            StoreError, Unavailable: The key cannot be read.
        """
        try:
            return self._ciphers[bank_key]
        except KeyError:
            pass
        found = self._read(bank_key)
        with self._lock:
            if bank_key in self._revoked:
                raise BankNotFound(str(bank_key))
            return self._ciphers.setdefault(bank_key, found)

    def revoke(self, bank_key: int) -> None:
        """Forget the key of a bank that was deleted, for good."""
        with self._lock:
            self._revoked.add(bank_key)
            self._ciphers.pop(bank_key, None)

    def destroy(self, key_id: str) -> None:
        """Destroy a key where it is kept."""
        self._check_there()
        self._keys.destroy(key_id)

    def close(self) -> None:
        """Forget all keys."""
        with self._lock:
            self._ciphers.clear()
        self._keys.close()

    def _read(self, bank_key: int) -> BankCipher | None:
        key_id = None if self._find is None or bank_key in self._revoked else self._find(bank_key)
        if key_id is None:
            raise BankNotFound(str(bank_key))
        if not key_id:
            return None
        kept = self._keys.read(key_id)
        if kept is None:
            self._check_there()
            raise FailedPrecondition(
                "the key of this bank is lost, so that its content cannot be read; restore the keys of the banks from"
                f" their backup (key {key_id}), or delete the bank",
                metadata={"key_id": key_id},
            )
        return BankCipher(bank_key, _secret(key_id, kept))

    def _check_there(self) -> None:
        """Make sure that a key that is not there is lost: the directory of a volume that is not mounted is empty."""
        try:
            there = self._keys.read(CHECK) is not None
        except FailedPrecondition:
            # That of other keys, or damaged: then nothing here tells that a key is lost.
            there = False
        if not there:
            raise StoreError("the keys of the banks are not where they were at the start; mount them, and try again")


def _secret(key_id: str, kept: bytes) -> bytes:
    """The key that is kept under an id.

    Raises:
        FailedPrecondition: It is damaged.
    """
    secret, digest = kept[:SECRET_BYTES], kept[SECRET_BYTES:]
    # Keys of earlier versions have no digest.
    if len(secret) < SECRET_BYTES or digest not in (b"", _digest(key_id, secret)):
        raise damaged(key_id)
    return secret


def _digest(key_id: str, secret: bytes) -> bytes:
    return blake2b(key_id.encode(), key=secret, digest_size=DIGEST_BYTES).digest()
