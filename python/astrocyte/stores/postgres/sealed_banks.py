"""The sealed banks of a database, and the end of their keys."""

from __future__ import annotations

import threading
from typing import Any

import apsw
import psycopg

from astrocyte.errors import ConfigError, FailedPrecondition
from astrocyte.stores.postgres.engine.connection import Connection
from astrocyte.stores.postgres.engine.connections import WRITING_LOCK
from astrocyte.stores.postgres.engine.sharing import NOW
from astrocyte.stores.sealing.values import BankKeys
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.rows import fetch

# A bank without a tenant is being deleted: its key is not used any more.
_KEY_ID = (
    "SELECT coalesce(s.key_id, '') FROM banks b LEFT JOIN sealed_banks s ON s.bank_key = b.bank_key"
    " WHERE b.bank_key = ? AND b.tenant <> ''"
)
_SEALING = "SELECT value FROM store_values WHERE name = 'sealing'"
_SERVERS = f"SELECT count(*) FROM workers WHERE until > ({NOW})".encode()  # noqa: S608 - no value of a caller


class KeyIds:
    """Finds the ids of keys.

    Args:
        connection: For nothing else.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def find(self, bank_key: int) -> str | None:
        """The id of a bank's key: "" if the bank is not sealed, None if it is gone."""
        try:
            with self._lock:
                rows = self._connection.execute(_KEY_ID, (bank_key,)).fetchall()
        except apsw.Error as error:
            raise translate(error) from error
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        """Release the connection."""
        with self._lock:
            self._connection.close()


def begin_sealing(driver: psycopg.Connection[Any], keys: BankKeys, busy_seconds: float) -> None:
    """Note that servers encrypt banks from now on; nothing is done where that is noted.

    Args:
        driver: A connection of its own.
        keys: Those of the banks.
        busy_seconds: How long a writer may take to end.

    Raises:
        ConfigError: There are encrypted banks, and their keys are elsewhere.
        FailedPrecondition: Servers without keys, or with keys elsewhere, may use the database.
    """
    with driver.transaction():
        if driver.execute(_SEALING).fetchall() == [(keys.place,)]:
            return
        # No server registers itself meanwhile; one that does later finds the note.
        driver.execute(f"SET LOCAL lock_timeout = {round(busy_seconds * 1_000)}".encode())
        driver.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING_LOCK,))
        if driver.execute(_SEALING).fetchall() == [(keys.place,)]:
            return
        if driver.execute("SELECT 1 FROM sealed_banks LIMIT 1").fetchall():
            # A volume that is not mounted, or another address: keys would be looked for, and destroyed, where none are.
            keys.abandon()
            what = "there is no key" if keys.is_new else "there are the keys of another database"
            raise ConfigError(
                f"the database has encrypted banks, and {what} where store.encryption says that they are;"
                " mount the directory, or correct the setting",
                metadata={"key": "store.encryption.directory"},
            )
        ((servers,),) = driver.execute(_SERVERS).fetchall()
        if servers:
            raise FailedPrecondition(
                f"{servers} servers without store.encryption, or with keys elsewhere, use the database, or did a moment"
                " ago; stop them, and try again",
                metadata={"servers": str(servers)},
            )
        driver.execute("UPDATE store_values SET value = %s WHERE name = 'sealing'", (keys.place,))


def check_unsealed(connection: Connection) -> None:
    """Refuse a server without keys, which has registered itself, on a database with encrypted banks.

    Raises:
        ConfigError: Servers with keys have used it.
    """
    if connection.pragma("sealing"):
        raise ConfigError(
            "the database has banks that are encrypted; set store.encryption as it was set when they were made",
            metadata={"key": "store.encryption.enabled"},
        )


def shred(connection: apsw.Connection, keys: BankKeys, bank_key: int) -> bool:
    """Destroy the key of a bank that was deleted; False if its id is not there any more."""
    ids = fetch(connection, "SELECT key_id FROM sealed_banks WHERE bank_key = ?", (bank_key,))
    for (key_id,) in ids:
        keys.destroy(key_id)
    return bool(ids)


def check_without_key(connection: apsw.Connection, bank_key: int) -> None:
    """Refuse to drop a bank whose key another server has to destroy: with its rows the id of the key would go.

    Raises:
        FailedPrecondition: It is sealed.
    """
    if fetch(connection, "SELECT 1 FROM sealed_banks WHERE bank_key = ?", (bank_key,)):
        raise FailedPrecondition(
            "the bank is encrypted, and this server has no keys, so that it cannot destroy that of the bank; the bank"
            " is hidden, and a server with store.encryption deletes it"
        )
