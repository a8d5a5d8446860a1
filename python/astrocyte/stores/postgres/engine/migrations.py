"""The schema in PostgreSQL: the numbered files of the SQLite store, translated, and what these cannot say.

Tables and indexes have one text. Triggers, functions and changes of rows are written for PostgreSQL in files of the
same number beside this package; a file is applied after the tables of its number. Servers that start at once migrate
one after the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import psycopg

from astrocyte.errors import SchemaTooNew, StoreError
from astrocyte.stores.sqlite.engine.migrations import Migration, load_migrations

# Any number that nobody else takes.
MIGRATING_LOCK = 0x6173_7472_0002

_COMMENT = re.compile(r"--[^\n]*")
_TYPES = {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"', "BLOB": "bytea", "REAL": "double precision"}
_COLUMN_TYPE = re.compile(r"\b(INTEGER|TEXT|BLOB|REAL)\b")
# Statements that a file of this package's own says.
_OWN = re.compile(r"(CREATE TRIGGER|CREATE VIEW|UPDATE|INSERT)\b")
_FILE_NAME = re.compile(r"(\d{4})_\w+\.sql")


def load_postgres_migrations() -> list[Migration]:
    """The steps that this version knows, in order.

    Raises:
        StoreError: A step of the SQLite store has statements that need a file of their own here, and there is none.
    """
    own: dict[int, str] = {}
    for entry in resources.files("astrocyte.stores.postgres").joinpath("schema").iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            own[int(match[1])] = entry.read_text(encoding="utf-8")
    steps = []
    for migration in load_migrations():
        statements = _statements(migration.sql)
        tables = [_translated(one) for one in statements if not _OWN.match(one)]
        if len(tables) < len(statements) and migration.version not in own:
            raise StoreError(f"migration {migration.version} needs a file in stores/postgres/schema")
        text = ";\n".join([*tables, own.get(migration.version, "")])
        steps.append(Migration(migration.version, migration.name, text))
    return steps


def migrate_postgres(driver: psycopg.Connection[Any], schema: str, migrations: Sequence[Migration], now: int) -> int:
    """Bring the schema up to date; returns its version. A step that is interrupted leaves no trace and is taken again.

    Raises:
        SchemaTooNew: A newer version wrote it.
        StoreError: An applied step has another text than ours.
    """
    newest = max((migration.version for migration in migrations), default=0)
    with driver.transaction():
        driver.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING_LOCK,))
        # Even IF NOT EXISTS needs the privilege to create, which a server's role need not have.
        if _missing(driver, "to_regnamespace", f'"{schema}"'):
            driver.execute(f'CREATE SCHEMA "{schema}"')
        if _missing(driver, "to_regclass", f'"{schema}".schema_migrations'):
            driver.execute(
                "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, name text NOT NULL,"
                " checksum text NOT NULL, applied_at bigint NOT NULL)"
            )
        applied = dict(driver.execute("SELECT version, checksum FROM schema_migrations").fetchall())
        if applied and max(applied) > newest:
            raise SchemaTooNew(
                f"the database has schema {max(applied)}, this version knows up to {newest}; upgrade Astrocyte",
                metadata={"found": str(max(applied)), "supported": str(newest)},
            )
        for migration in migrations:
            known = applied.get(migration.version)
            if known is None:
                # Without values, so that several statements may come at once.
                driver.execute(migration.sql.encode())
                driver.execute(
                    "INSERT INTO schema_migrations VALUES (%s, %s, %s, %s)",
                    (migration.version, migration.name, _checksum(migration), now),
                )
            elif known != _checksum(migration):
                raise StoreError(
                    f"migration {migration.version} differs from the one that was applied to the database; "
                    "install the version that wrote the database",
                    metadata={"migration": str(migration.version)},
                )
    return newest


def _missing(driver: psycopg.Connection[Any], function: str, name: str) -> bool:
    ((found,),) = driver.execute(f"SELECT {function}(%s) IS NOT NULL".encode(), (name,)).fetchall()
    return not found


def _checksum(migration: Migration) -> str:
    return hashlib.sha256(migration.sql.encode()).hexdigest()


def _statements(sql: str) -> list[str]:
    """The statements of a file without comments; the body of a trigger belongs to it."""
    found: list[str] = []
    parts: list[str] = []
    for part in _COMMENT.sub("", sql).split(";"):
        parts.append(part)
        text = ";".join(parts).strip()
        if text.startswith("CREATE TRIGGER") and not re.search(r"\bEND\s*$", text):
            continue
        if text:
            found.append(text)
        parts = []
    return found


def _translated(statement: str) -> str:
    text = re.sub(r"\)\s*STRICT(, WITHOUT ROWID)?$", ")", statement)
    text = re.sub(
        r"(\w+)(\s+)INTEGER PRIMARY KEY AUTOINCREMENT", r"\1\2bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", text
    )
    return _COLUMN_TYPE.sub(lambda match: _TYPES[match[1]], text)
