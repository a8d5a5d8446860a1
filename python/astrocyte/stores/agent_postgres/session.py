"""The connection of a server to the database of agents' private memories, and its right to write there."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

from astrocyte.errors import ConfigError, SchemaTooNew, StoreError, StoreLocked
from astrocyte.stores.postgres.engine.dsn import checked_dsn

Connection = psycopg.Connection[TupleRow]
T = TypeVar("T")

# Each further one is a new version; a released one never changes.
MIGRATIONS = (
    """
    CREATE TABLE agent_memories (
        memory_key   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        memory_id    text        NOT NULL UNIQUE,
        tenant       text        NOT NULL,
        agent_id     text        NOT NULL,
        user_id      text,
        topic        text        NOT NULL,
        topic_raw    text        NOT NULL,
        is_canonical boolean     NOT NULL,
        content      text        NOT NULL,
        source       json        NOT NULL,
        model        text        NOT NULL,
        vector       bytea       NOT NULL,
        access_count bigint      NOT NULL DEFAULT 0,
        created_at   timestamptz NOT NULL,
        updated_at   timestamptz NOT NULL,
        deleted_at   timestamptz,
        deleted_by   text,
        reason       text        NOT NULL DEFAULT ''
    );
    CREATE INDEX agent_memories_of_agent ON agent_memories (tenant, agent_id, memory_key);
    CREATE INDEX agent_memories_canonical ON agent_memories (is_canonical) WHERE deleted_at IS NULL;
    CREATE TABLE agent_memory_requests (
        tenant      text        NOT NULL,
        request_id  text        NOT NULL,
        operation   text        NOT NULL,
        fingerprint bytea       NOT NULL,
        response    bytea       NOT NULL,
        created_at  timestamptz NOT NULL,
        PRIMARY KEY (tenant, request_id)
    );
    CREATE INDEX agent_memory_requests_by_age ON agent_memory_requests (created_at);
    """,
)
# The first name is of all locks of this kind, the second one of the schema: two schemas are two memories.
_LOCK = "SELECT {}(hashtext('astrocyte agent memory'), hashtext(current_schema()))"
_STATE = "CREATE TABLE IF NOT EXISTS agent_memory_state (version integer NOT NULL, owner uuid NOT NULL)"
# Severities after which the server ends the session: the client may read the message before it sees the end.
_ENDING = frozenset({"FATAL", "PANIC"})
# Of an attempt to connect, and of a server that no longer acknowledges packets.
CONNECT_SECONDS, SILENCE_SECONDS = 5, 15


class Session:
    """One connection, which holds an advisory lock while it is open.

    The vectors that a server keeps in memory are those of the database only while no other server writes to it. After
    a lost connection the server goes on, unless another one had the database meanwhile.

    Args:
        dsn: Address of the database, as libpq takes it. The first schema of its search path has the tables.
        read_only: Write nothing; several servers may do so beside each other.

    Raises:
        ConfigError: The address is none, or its search path has no schema.
        StoreError: It cannot be opened; `StoreLocked` where another server has it, `SchemaTooNew` where a newer
            version made its tables.
    """

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        usual = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": SILENCE_SECONDS * 1_000}
        given = checked_dsn(dsn, "agent_memory.dsn")
        self._address: dict[str, Any] = {**usual, "application_name": "astrocyte", **given}
        self._read_only = read_only
        self._owner: uuid.UUID | None = None
        self._lock = threading.Lock()
        self._connection = self._connect()

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction; once more where the connection was lost before its commit.

        Raises:
            StoreError: It failed; the message says whether it may be committed.
        """
        with self._lock:
            try:
                return self._attempt(work)
            except _LostError:
                return self._attempt(work)

    def close(self) -> None:
        """Release the database."""
        with self._lock:
            _end(self._connection)

    def _attempt(self, work: Callable[[Connection], T]) -> T:
        if self._connection.closed:
            self._connection = self._connect()
        connection, committing = self._connection, False
        try:
            with connection.transaction():
                result = work(connection)
                committing = True
        except psycopg.Error as error:
            ended = connection.closed or error.diag.severity_nonlocalized in _ENDING
            if ended:
                connection.close()
            if ended and not committing:
                raise _LostError(_failure(error, "nothing was changed")) from error
            outcome = "it may be committed" if ended else "nothing was changed"
            raise StoreError(_failure(error, outcome)) from error
        return result

    def _connect(self) -> Connection:
        """A new connection that owns the tables."""
        try:
            connection = psycopg.connect(**self._address, autocommit=True)
        except psycopg.Error as error:
            raise StoreError(_failure(error, "it cannot be reached")) from error
        try:
            connection.execute("SET TIME ZONE 'UTC'")
            with connection.transaction():
                self._own(connection)
        except BaseException as error:
            _end(connection)
            if isinstance(error, psycopg.Error):
                raise StoreError(_failure(error, "it cannot be opened")) from error
            raise
        return connection

    def _own(self, connection: Connection) -> None:
        """Take the lock, then make the tables and own them; at a later connection, see that nobody else owned them."""
        if connection.execute("SELECT current_schema()").fetchone() == (None,):
            raise ConfigError(
                "agent_memory.dsn: the search_path of its role has no schema that exists and that it may use;"
                " create one, or name one in the dsn: options=-csearch_path=agents",
                metadata={"key": "agent_memory.dsn"},
            )
        function = "pg_try_advisory_lock_shared" if self._read_only else "pg_try_advisory_lock"
        if connection.execute(_LOCK.format(function)).fetchone() != (True,):
            raise StoreLocked("another server uses the database of agent memories; give each server its own")
        if not self._read_only:
            connection.execute(_STATE)
        row = connection.execute("SELECT version, owner FROM agent_memory_state").fetchone()
        version, owner = (0, None) if row is None else row
        if version > len(MIGRATIONS):
            raise SchemaTooNew("the database of agent memories was made by a newer version; upgrade Astrocyte")
        if self._owner not in {None, owner}:
            raise StoreError("another server had the database of agent memories meanwhile; restart this one")
        if self._read_only:
            if version < len(MIGRATIONS):
                raise StoreError("the database of agent memories has older tables; start a server that writes first")
            self._owner = owner
        elif self._owner is None:
            for statements in MIGRATIONS[version:]:
                connection.execute(statements)
            self._owner = uuid.uuid4()
            connection.execute("DELETE FROM agent_memory_state")
            connection.execute("INSERT INTO agent_memory_state VALUES (%s, %s)", (len(MIGRATIONS), self._owner))


class _LostError(StoreError):
    """The connection was lost before anything was committed."""


def _end(connection: Connection) -> None:
    """Release the lock, then close: the other end notices a closed connection later, and holds its lock until then."""
    with contextlib.suppress(psycopg.Error):
        connection.execute("SELECT pg_advisory_unlock_all()")
    connection.close()


def _failure(error: psycopg.Error, outcome: str) -> str:
    # The server's text may hold values of rows, and addresses.
    code = f" {error.sqlstate}" if error.sqlstate else ""
    return f"the database of agent memories failed ({type(error).__name__}{code}); {outcome}"
