"""Copies the private memories of a data directory to a PostgreSQL database that has none yet."""

from __future__ import annotations

from pathlib import Path

import apsw
import structlog

from astrocyte.errors import StoreError
from astrocyte.stores.agent_postgres.session import Connection
from astrocyte.stores.agent_postgres.store import PostgresAgentMemory
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime

log = structlog.get_logger(__name__)

COLUMNS = (
    "memory_key, memory_id, tenant, agent_id, user_id, topic, topic_raw, is_canonical, content, source, model, vector,"
    " access_count, deleted_by, reason, created_at, updated_at, deleted_at"
)
_PLACES = ", ".join(["%s"] * 18)
_INSERT = f"INSERT INTO agent_memories ({COLUMNS}) OVERRIDING SYSTEM VALUE VALUES ({_PLACES})"
_KEYS = (
    "SELECT setval(pg_get_serial_sequence('agent_memories', 'memory_key'),"
    " (SELECT MAX(memory_key) FROM agent_memories))"
)
_REQUESTS = "tenant, request_id, operation, fingerprint, response, created_at"


def copy_file(path: Path, store: PostgresAgentMemory) -> int:
    """Copy all memories of a SQLite file, forgotten ones and answers to requests included; returns their number.

    A database that has memories gets none: it was copied to, or used, before. The file stays as it is.

    Raises:
        StoreError: The file cannot be read, or has deletions that the audit log lacks; nothing was copied.
    """
    try:
        with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as file:
            missing = fetch(file, "SELECT 1 FROM agent_memories WHERE deleted_at IS NOT NULL AND audited = 0 LIMIT 1")
            memories = fetch(file, f"SELECT {COLUMNS} FROM agent_memories ORDER BY memory_key")
            requests = fetch(file, f"SELECT {_REQUESTS} FROM requests")
    except apsw.Error as error:
        raise StoreError(
            f"{path.name} cannot be copied to the database of agent memories ({error}); nothing was copied",
            metadata={"path": str(path)},
        ) from error
    if not memories:
        return 0

    def run(connection: Connection) -> int:
        if connection.execute("SELECT 1 FROM agent_memories LIMIT 1").fetchone() is not None:
            return 0
        if missing:
            raise StoreError(f"{path.name} has deletions without an audit event; start once without agent_memory.dsn")
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, [_memory(row) for row in memories])
            cursor.executemany(
                f"INSERT INTO agent_memory_requests ({_REQUESTS}) VALUES (%s, %s, %s, %s, %s, %s)",
                [(*row[:-1], to_datetime(row[-1])) for row in requests],
            )
        connection.execute(_KEYS)
        return len(memories)

    copied = store.session.transact(run)
    if copied:
        log.info("agent_memories_copied", memories=copied)
    return copied


def _memory(row: Row) -> Row:
    values = list(row)
    values[7] = bool(row[7])
    values[-3:] = [None if value is None else to_datetime(value) for value in row[-3:]]
    return tuple(values)
