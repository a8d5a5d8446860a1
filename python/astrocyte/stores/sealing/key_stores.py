"""Where the keys of banks are kept: apart from the database, so that its log and its backups have none."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Protocol

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from astrocyte.errors import ConfigError, FailedPrecondition, StoreError
from astrocyte.stores.sealing.cipher import SECRET_BYTES

log = structlog.get_logger(__name__)

# Of the value that tells whether a key store and its master key belong together.
CHECK = "check"
_CHECKED = b"astrocyte keys of banks"
# It ends in a random number, by which a database knows where its keys are.
_PLACE_BYTES = 8
# That of key stores whose value has none.
FIRST_PLACE = 1
_NONCE_BYTES = 12
# Who may list, add or replace files beside the owner: a replaced key is a lost bank. A volume may need it for a group.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY_ID = re.compile(r"[a-z0-9]{1,64}")


class KeyStore(Protocol):
    """Keys by id. Methods block, and may be called from several threads."""

    def read(self, key_id: str) -> bytes | None:
        """The value of a key; None where there is none, or no more.

        Raises:
            StoreError, Unavailable: It cannot be told.
        """

    def create(self, key_id: str, value: bytes) -> None:
        """Keep a value; it is durable when this returns.

        Raises:
            StoreError, Unavailable: It may not be kept.
        """

    def destroy(self, key_id: str) -> None:
        """Keep a value no longer; nothing can read it when this returns. Of an unknown id, nothing is done.

        Raises:
            StoreError, Unavailable: It may still be there.
        """

    def close(self) -> None:
        """Release files and connections."""


class KeyDirectory:
    """A directory with a file for each key.

    Args:
        folder: Made if it is missing. All servers of the database have the same one.

    Raises:
        ConfigError: It cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            others = stat.S_IMODE(folder.stat().st_mode) & _OTHERS
            _sync(folder)
        except OSError as error:
            raise ConfigError(
                f"store.encryption.directory {str(folder)!r} cannot be used ({error.strerror})",
                metadata={"key": "store.encryption.directory"},
            ) from error
        if others:
            log.warning("key_directory_open_to_others", directory=str(folder), mode=f"{others:03o}")

    def read(self, key_id: str) -> bytes | None:
        """See `KeyStore`."""
        try:
            return self._path(key_id).read_bytes()
        except FileNotFoundError:
            if not self._folder.is_dir():
                # A volume that is not mounted has lost no key.
                raise StoreError("the directory of the keys is not there; mount it, and try again") from None
            return None
        except OSError as error:
            raise _failed(error) from error

    def create(self, key_id: str, value: bytes) -> None:
        """See `KeyStore`."""
        path = self._path(key_id)
        partial = path.with_suffix(f".{secrets.token_hex(8)}")
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _write(descriptor, value)
            finally:
                os.close(descriptor)
            try:
                # Unlike a rename, it replaces no key.
                os.link(partial, path)
            finally:
                partial.unlink()
            _sync(self._folder)
        except OSError as error:
            raise _failed(error) from error

    def destroy(self, key_id: str) -> None:
        """See `KeyStore`: the file is overwritten, and removed."""
        path = self._path(key_id)
        try:
            try:
                descriptor = os.open(path, os.O_WRONLY)
            except FileNotFoundError:
                if not self._folder.is_dir():
                    raise
                return
            try:
                _write(descriptor, os.urandom(os.fstat(descriptor).st_size))
            finally:
                os.close(descriptor)
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            _sync(self._folder)
        except OSError as error:
            raise _failed(error) from error

    def close(self) -> None:
        """Nothing is left open."""

    def _path(self, key_id: str) -> Path:
        if not _KEY_ID.fullmatch(key_id):
            raise StoreError("the database names a key that is no key; nothing was changed")
        return self._folder / f"{key_id}.key"


class WrappedKeys:
    """A key store whose values are sealed by a master key.

    Args:
        keys: Has the sealed values.
        master: 32 bytes.
    """

    def __init__(self, keys: KeyStore, master: bytes) -> None:
        self._keys = keys
        self._cipher = AESGCM(master)

    def read(self, key_id: str) -> bytes | None:
        """See `KeyStore`.

        Raises:
            FailedPrecondition: The value is not what was sealed.
        """
        value = self._keys.read(key_id)
        if value is None:
            return None
        try:
            return self._cipher.decrypt(value[:_NONCE_BYTES], value[_NONCE_BYTES:], key_id.encode())
        except (InvalidTag, ValueError):
            raise damaged(key_id) from None

    def create(self, key_id: str, value: bytes) -> None:
        """See `KeyStore`."""
        nonce = os.urandom(_NONCE_BYTES)
        self._keys.create(key_id, nonce + self._cipher.encrypt(nonce, value, key_id.encode()))

    def destroy(self, key_id: str) -> None:
        """See `KeyStore`."""
        self._keys.destroy(key_id)

    def close(self) -> None:
        """See `KeyStore`."""
        self._keys.close()


def damaged(key_id: str) -> FailedPrecondition:
    """The error of a key that is not what was kept. As of a lost one: waiting does not help."""
    return FailedPrecondition(
        f"the key of this bank is damaged (key {key_id}); restore it from the backup of the keys, or delete the bank",
        metadata={"key_id": key_id},
    )


def checked(keys: KeyStore, master: bytes | None) -> KeyStore:
    """The key store behind its master key, if it has one.

    Raises:
        ConfigError: It was made with another master key, or without one.
    """
    wrapped = keys if master is None else WrappedKeys(keys, master)
    if keys.read(CHECK) is None:
        try:
            wrapped.create(CHECK, _CHECKED + os.urandom(_PLACE_BYTES))
        except StoreError:
            # Another server made it meanwhile.
            if keys.read(CHECK) is None:
                raise
    try:
        fits = (wrapped.read(CHECK) or b"").startswith(_CHECKED)
    except FailedPrecondition:
        fits = False
    if not fits:
        what = "it has none now" if master is None else "this is another one, or there was none"
        raise ConfigError(
            f"the keys of the banks were made with a master key that does not fit ({what}); set"
            " store.encryption.master_key_file or master_key to that with which they were made",
            metadata={"key": "store.encryption.master_key_file"},
        )
    return wrapped


def place_of(keys: KeyStore) -> int:
    """The number of a key store that `checked` returned; other places have other numbers."""
    number = (keys.read(CHECK) or b"")[len(_CHECKED) :]
    return int.from_bytes(number, "big") >> 1 | (FIRST_PLACE + 1) if number else FIRST_PLACE


def master_key(text: str) -> bytes:
    """A master key from 64 hexadecimal digits.

    Raises:
        ConfigError: It is something else.
    """
    try:
        value = bytes.fromhex(text.strip())
    except ValueError:
        value = b""
    if len(value) != SECRET_BYTES:
        # The text is none that may be told.
        raise ConfigError(
            "the master key is not 64 hexadecimal digits; make one with: openssl rand -hex 32",
            metadata={"key": "store.encryption.master_key_file"},
        )
    return value


def _write(descriptor: int, value: bytes) -> None:
    view = memoryview(value)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(error: OSError) -> StoreError:
    return StoreError(f"the directory of the keys failed ({error.strerror}); try again")
