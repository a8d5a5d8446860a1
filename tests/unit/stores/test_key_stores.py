"""The keys of banks: where they are kept, behind a master key, and in the memory of a server."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from astrocyte.errors import BankNotFound, ConfigError, FailedPrecondition, StoreError
from astrocyte.stores.sealing.cipher import SECRET_BYTES
from astrocyte.stores.sealing.columns import BY_NAME
from astrocyte.stores.sealing.key_stores import FIRST_PLACE, KeyDirectory, WrappedKeys, checked, master_key, place_of
from astrocyte.stores.sealing.keyring import Keyring
from astrocyte.stores.sealing.values import packed, row_of

CONTENT = BY_NAME["contents", "content"]
ROW = row_of((7,))


def test_a_directory_keeps_keys_for_its_owner_alone(tmp_path: Path) -> None:
    keys = KeyDirectory(tmp_path / "keys")
    keys.create("a1", b"secret")
    (path,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert (keys.read("a1"), keys.read("b2")) == (b"secret", None)
    with pytest.raises(StoreError, match="File exists"):
        keys.create("a1", b"other")
    # The bytes of the file are gone, not its name alone.
    other = tmp_path / "other"
    os.link(path, other)
    keys.destroy("a1")
    assert b"secret" not in other.read_bytes()
    assert list((tmp_path / "keys").iterdir()) == []
    keys.destroy("a1")
    for wrong in ("../a1", "A", ""):
        with pytest.raises(StoreError, match="no key"):
            keys.read(wrong)


def test_a_directory_that_others_may_change_is_told(tmp_path: Path) -> None:
    told = []
    for mode in (0o700, 0o770, 0o705):
        tmp_path.chmod(mode)
        with capture_logs() as logs:
            KeyDirectory(tmp_path)
        told += [(log["event"], log["mode"]) for log in logs]
    assert told == [("key_directory_open_to_others", "070"), ("key_directory_open_to_others", "005")]


def test_a_directory_that_is_not_mounted_has_lost_no_key(tmp_path: Path) -> None:
    keys = KeyDirectory(tmp_path / "keys")
    (tmp_path / "keys").rmdir()
    with pytest.raises(StoreError, match="mount it"):
        keys.read("a1")
    with pytest.raises(StoreError, match="failed"):
        keys.destroy("a1")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be used"):
        KeyDirectory(tmp_path / "file")


def test_a_master_key_wraps_the_keys(tmp_path: Path) -> None:
    inner = KeyDirectory(tmp_path)
    keys = checked(inner, master_key("ab" * SECRET_BYTES))
    keys.create("a1", b"secret")
    assert keys.read("a1") == b"secret"
    assert b"secret" not in (inner.read("a1") or b"")
    assert checked(inner, master_key(f"{'AB' * SECRET_BYTES}\n")).read("a1") == b"secret"
    for wrong in (None, bytes(32)):
        with pytest.raises(ConfigError, match="does not fit"):
            checked(inner, wrong)
    # A value belongs to its id.
    inner.create("b2", inner.read("a1") or b"")
    with pytest.raises(FailedPrecondition, match=r"damaged \(key b2\)"):
        keys.read("b2")
    for text in ("", "ab", "zz" * SECRET_BYTES, "ab" * 33):
        with pytest.raises(ConfigError, match="64 hexadecimal digits"):
            master_key(text)
    assert isinstance(keys, WrappedKeys)


def test_a_keyring_finds_keys_and_forgets_them_for_good(tmp_path: Path) -> None:
    keyring = Keyring(checked(KeyDirectory(tmp_path), None))
    key = keyring.new()
    keyring.give(3, key)
    known = {3: key.key_id, 4: "", 5: "0" * 32}
    other = Keyring(KeyDirectory(tmp_path))
    other.use(known.get)
    own, found = keyring.cipher(3), other.cipher(3)
    assert own is not None
    assert found is not None
    assert found.open(packed(own.seal(CONTENT, ROW, "text")) or b"") == b"text"
    assert other.cipher(4) is None
    with pytest.raises(FailedPrecondition, match="the key of this bank is lost"):
        other.cipher(5)
    with pytest.raises(BankNotFound):
        other.cipher(6)
    other.revoke(3)
    with pytest.raises(BankNotFound):
        other.cipher(3)
    keyring.destroy(key.key_id)
    assert [path.name for path in tmp_path.iterdir()] == ["check.key"]
    keyring.close()


def test_a_key_with_a_changed_byte_is_damaged(tmp_path: Path) -> None:
    keyring = Keyring(checked(KeyDirectory(tmp_path), None))
    key = keyring.new()
    path = tmp_path / f"{key.key_id}.key"
    kept = path.read_bytes()
    values = [kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :] for place in range(len(kept))]
    other = Keyring(KeyDirectory(tmp_path))
    other.use({3: key.key_id}.get)
    for value in (*values, b"", kept[: SECRET_BYTES - 1], kept[:-1], kept + b"\0"):
        path.write_bytes(value)
        with pytest.raises(FailedPrecondition, match=f"damaged .key {key.key_id}"):
            other.cipher(3)
    # That of an earlier version.
    path.write_bytes(key.secret)
    assert other.cipher(3) is not None


def test_an_empty_directory_has_lost_no_key(tmp_path: Path) -> None:
    """As of a volume that is not mounted any more."""
    folder, elsewhere = tmp_path / "keys", tmp_path / "elsewhere"
    keyring = Keyring(checked(KeyDirectory(folder), None))
    key = keyring.new()
    keyring.use({3: key.key_id}.get)
    folder.rename(elsewhere)
    folder.mkdir()
    with pytest.raises(StoreError, match="not where they were"):
        keyring.cipher(3)
    with pytest.raises(StoreError, match="not where they were"):
        keyring.destroy(key.key_id)
    folder.rmdir()
    elsewhere.rename(folder)
    assert keyring.cipher(3) is not None


def test_where_the_check_is_damaged_no_key_is_lost_or_destroyed(tmp_path: Path) -> None:
    """As of a volume with other keys that is mounted meanwhile."""
    keyring = Keyring(checked(KeyDirectory(tmp_path), bytes(32)))
    key = keyring.new()
    keyring.use({3: key.key_id, 4: "0" * 32}.get)
    (tmp_path / "check.key").write_bytes(bytes(64))
    with pytest.raises(StoreError, match="not where they were"):
        keyring.cipher(4)
    with pytest.raises(StoreError, match="not where they were"):
        keyring.destroy(key.key_id)
    assert keyring.cipher(3) is not None


def test_places_of_keys_are_told_apart(tmp_path: Path) -> None:
    places = [place_of(checked(KeyDirectory(tmp_path / name), None)) for name in ("a", "b", "a")]
    assert places[0] == places[2] != places[1]
    assert all(FIRST_PLACE < place < 2**63 for place in places)
    assert place_of(checked(KeyDirectory(tmp_path / "w"), bytes(32))) > FIRST_PLACE
    old = KeyDirectory(tmp_path / "old")
    old.create("check", b"astrocyte keys of banks")
    assert place_of(checked(old, None)) == FIRST_PLACE


def test_a_key_that_is_read_while_its_bank_goes_is_not_kept(tmp_path: Path) -> None:
    keyring = Keyring(KeyDirectory(tmp_path))
    key = keyring.new()

    def find(bank_key: int) -> str:
        # Another thread hears of the deletion between the look-up and the reading of the key.
        keyring.revoke(bank_key)
        return key.key_id

    keyring.use(find)
    with pytest.raises(BankNotFound):
        keyring.cipher(3)
    assert keyring._ciphers == {}
