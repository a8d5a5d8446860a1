"""The schema: numbered SQL files, each applied once; those that lack, and the notes of them, in one transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import apsw

from astrocyte.errors import SchemaTooNew, StoreError
from astrocyte.stores.sqlite.rows import fetch

# "ASTR": tells other programs, and a later Astrocyte, whose file this is.
APPLICATION_ID = 0x41535452

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text: a step that was applied must never be edited."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(folder: str = "schema") -> list[Migration]:
    """The steps of a database that this version knows, in order; ``folder`` holds their files."""
    found = []
    for entry in resources.files("astrocyte.stores.sqlite").joinpath(folder).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def migrate(connection: apsw.Connection, migrations: Sequence[Migration], now: int, *, read_only: bool = False) -> int:
    """Bring the schema up to date; returns its version. After a failure or an interruption it is as it was before.

    Raises:
        SchemaTooNew: The file was written by a newer version.
        StoreError: It is not this program's file, or an applied step has another text than ours; or it is to be read
            only, and has an older schema.
    """
    applied = _applied(connection)
    known = {migration.version: migration for migration in migrations}
    newest = max(known, default=0)
    if applied and max(applied) > newest:
        raise SchemaTooNew(
            f"the database has schema {max(applied)}, this version knows up to {newest}; "
            "upgrade Astrocyte, or restore a backup that this version made",
            metadata={"found": str(max(applied)), "supported": str(newest)},
        )
    for version, checksum in applied.items():
        if known[version].checksum != checksum:
            raise StoreError(
                f"migration {version} differs from the one that was applied to the database; "
                "install the version that wrote the database",
                metadata={"migration": str(version)},
            )
    if read_only and len(applied) < len(migrations):
        raise StoreError(
            f"the database has schema {max(applied, default=0)}, reading needs {newest}; "
            "open it once without read_only",
            metadata={"found": str(max(applied, default=0)), "needed": str(newest)},
        )
    lacking = [migration for migration in migrations if migration.version not in applied]
    if lacking:
        _apply(connection, lacking, now)
    return newest


def _applied(connection: apsw.Connection) -> dict[int, str]:
    """Checksums by version; none in a new file."""
    owner = connection.pragma("application_id")
    tables = fetch(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    if owner != APPLICATION_ID:
        if tables:
            raise StoreError(
                f"the database belongs to another program (application_id {owner}); use another data_dir",
                metadata={"application_id": str(owner)},
            )
        return {}
    return dict(fetch(connection, "SELECT version, checksum FROM schema_migrations"))


def _apply(connection: apsw.Connection, migrations: Sequence[Migration], now: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL,"
            " checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
        )
        connection.pragma("application_id", APPLICATION_ID)
        for migration in migrations:
            connection.execute(migration.sql)
            connection.execute(
                "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
                (migration.version, migration.name, migration.checksum, now),
            )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
