"""Agents' private memories in a SQLite database of their own, beside that of the banks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import apsw

from astrocyte.config import StoreSettings
from astrocyte.errors import NotFound, StoreError
from astrocyte.model import AgentMemory, AgentSummary
from astrocyte.stores.agent_memory import (
    AgentVector,
    Deletion,
    NewAgentMemory,
    Retopic,
    Stored,
    decode_answer,
    encode_answer,
    missing,
)
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.agent_verification import AgentVerification, verify_agent_memory
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.data_directory import Ballast, create_private
from astrocyte.stores.sqlite.engine.migrations import load_migrations, migrate
from astrocyte.stores.sqlite.engine.transaction import Clock, Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, decode_metadata, encode_metadata, fetch, to_datetime
from astrocyte.stores.sqlite.tables import idempotency

SCHEMA = "agent_schema"
COLUMNS = (
    "memory_key, memory_id, agent_id, user_id, topic, topic_raw, is_canonical, content, source, access_count,"
    " created_at, updated_at, deleted_at"
)
VECTOR_COLUMNS = "memory_key, memory_id, user_id, topic, content, model, vector, updated_at"
HOUR_MILLISECONDS = 3_600_000
_LIVE = "tenant = ? AND agent_id = ? AND deleted_at IS NULL"
_FIND = "SELECT operation, fingerprint, response FROM requests WHERE tenant = ? AND request_id = ?"
_INSERT = (
    "INSERT INTO agent_memories (memory_id, tenant, agent_id, user_id, topic, topic_raw, is_canonical, content, source,"
    " model, vector, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING memory_key"
)
_UPDATE = (
    "UPDATE agent_memories SET topic_raw = ?, is_canonical = ?, content = ?, source = ?, model = ?, vector = ?,"
    " updated_at = ?, access_count = access_count + 1 WHERE memory_key = ?"
)
_RETOPIC = (
    "UPDATE agent_memories SET topic = ?, is_canonical = ?, model = ?, vector = ?"
    " WHERE memory_key = ? AND deleted_at IS NULL"
)
# The second memory of a merge is read by its key, ?2; ?1 is the key of the one that is kept.
_MERGE = (
    "UPDATE agent_memories SET (topic_raw, content, source, updated_at) ="
    " (SELECT topic_raw, content, source, updated_at FROM agent_memories WHERE memory_key IN (?1, ?2)"
    " ORDER BY updated_at DESC, memory_key DESC LIMIT 1),"
    " access_count = access_count + 1 + (SELECT access_count FROM agent_memories WHERE memory_key = ?2)"
    " WHERE memory_key = ?1"
)
_FORGET = "UPDATE agent_memories SET deleted_at = ?, deleted_by = ?, reason = ?, audited = 1 WHERE"
_AGENTS = (
    "SELECT MIN(memory_key), agent_id, COUNT(*) - COUNT(deleted_at), COUNT(deleted_at),"
    " MAX(CASE WHEN deleted_at IS NULL THEN updated_at END) FROM agent_memories"
    " WHERE tenant = ?1 AND (?2 IS NULL OR agent_id = ?2) GROUP BY agent_id HAVING MIN(memory_key) > ?3"
    " ORDER BY MIN(memory_key) LIMIT ?4"
)
# A file of this kind is small: what it may hold back for a full disk is the other database's.
_NO_BALLAST = Ballast(None, 0)


class SqliteAgentMemory:
    """Implements `astrocyte.stores.agent_memory.AgentMemoryStore`; see there for what each method does and raises.

    Args:
        path: The file, made if it is not there; None keeps the memories in memory.
        clock: Milliseconds since the epoch.
        settings: Limits of the writer, and how long answers to request ids are kept.
        read_only: Write nothing.

    Raises:
        StoreError: It cannot be opened; `SchemaTooNew` where a newer version wrote it.
    """

    executor = None

    def __init__(self, path: Path | None, *, clock: Clock, settings: StoreSettings, read_only: bool = False) -> None:
        self._clock = clock
        self._keep_requests = round(settings.request_keep_hours * HOUR_MILLISECONDS)
        try:
            if path is not None and not read_only:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                create_private(path)
            self._connections = Connections(path, busy_seconds=settings.busy_seconds, read_only=read_only)
            migrate(self._connections.writer, load_migrations(SCHEMA), clock(), read_only=read_only)
        except (apsw.Error, OSError) as error:
            raise StoreError(
                f"the database of agent memories {str(path)!r} cannot be opened ({error})",
                metadata={"path": str(path)},
            ) from error
        self._writer = Writer(
            self._connections, _NO_BALLAST, clock=clock, waiting_limit=settings.waiting_limit, read_only=read_only
        )

    def find_response(self, tenant: str, request: RequestKey) -> Stored | None:
        """The answer to an earlier equal request."""
        response = idempotency.matching(self._connections.query(_FIND, (tenant, request.request_id)), request)
        return None if response is None else decode_answer(response)

    async def put(self, new: NewAgentMemory, updates: str | None, *, request: RequestKey | None = None) -> Stored:
        """Insert or update a memory."""
        return await self._writer.submit(lambda transaction: self._put(transaction, new, updates, request))

    def is_forgotten_by(self, tenant: str, agent_id: str, memory_id: str, request: RequestKey | None) -> bool:
        """Look for the memory, and for an equal request."""
        with self._connections.snapshot() as connection:
            if _earlier(connection, tenant, request) is not None:
                return True
            sql = f"SELECT 1 FROM agent_memories WHERE {_LIVE} AND memory_id = ?"
            if not fetch(connection, sql, (tenant, agent_id, memory_id)):
                raise missing(agent_id, memory_id)
        return False

    async def forget(
        self, tenant: str, agent_id: str, memory_id: str, *, by: str, reason: str, request: RequestKey | None = None
    ) -> tuple[int, AgentMemory]:
        """Mark a memory as forgotten."""

        def run(transaction: Transaction) -> tuple[int, AgentMemory]:
            connection = transaction.connection
            if _earlier(connection, tenant, request) is None:
                connection.execute(
                    f"{_FORGET} {_LIVE} AND memory_id = ?",
                    (transaction.clock(), by, reason, tenant, agent_id, memory_id),
                )
                if not connection.changes():
                    raise missing(agent_id, memory_id)
                self._answer(transaction, tenant, request, b"[]")
            sql = f"SELECT {COLUMNS} FROM agent_memories WHERE tenant = ? AND memory_id = ?"
            (row,) = fetch(connection, sql, (tenant, memory_id))
            return row[0], _decode(row)

        return await self._writer.submit(run)

    async def retopic(self, change: Retopic) -> None:
        """Replace the topic."""
        await self._change_each(_RETOPIC, [(*change[1:], change.memory_key)])

    async def merge(self, kept: Retopic, gone: int, *, by: str, reason: str) -> AgentVector:
        """Merge two memories."""

        def run(transaction: Transaction) -> AgentVector:
            connection, keys = transaction.connection, (kept.memory_key, gone)
            live = "SELECT memory_key, agent_id, memory_id FROM agent_memories WHERE deleted_at IS NULL AND memory_key"
            found = fetch(connection, f"{live} IN (?, ?)", keys)
            if len(found) < len(keys):
                raise NotFound("one of the two memories of a merge is forgotten")
            connection.execute(_MERGE, keys)
            connection.execute(_RETOPIC, (*kept[1:], kept.memory_key))
            connection.execute(f"{_FORGET} memory_key = ?", (transaction.clock(), by, reason, gone))
            (row,) = fetch(connection, f"SELECT {VECTOR_COLUMNS} FROM agent_memories WHERE memory_key = ?", keys[:1])
            return AgentVector(*row)

        return await self._writer.submit(run)

    def find_outcome(self, tenant: str, request: RequestKey) -> bytes | None:
        """The outcome of an earlier equal request."""
        return idempotency.matching(self._connections.query(_FIND, (tenant, request.request_id)), request)

    async def keep_outcome(self, tenant: str, request: RequestKey, outcome: bytes) -> None:
        """Keep the outcome of a request."""

        def run(transaction: Transaction) -> None:
            if _earlier(transaction.connection, tenant, request) is None:
                self._answer(transaction, tenant, request, outcome)

        await self._writer.submit(run)

    def unaudited(self, limit: int) -> list[Deletion]:
        """Deletions without an audit event."""
        rows = self._connections.query(
            "SELECT memory_key, tenant, agent_id, memory_id, deleted_by, reason FROM agent_memories"
            " WHERE deleted_at IS NOT NULL AND audited = 0 ORDER BY memory_key LIMIT ?",
            (limit,),
        )
        return [Deletion(*row) for row in rows]

    async def set_audited(self, memory_keys: Sequence[int]) -> None:
        """Note the audit events."""
        await self._change_each(
            "UPDATE agent_memories SET audited = 1 WHERE memory_key = ?", [(k,) for k in memory_keys]
        )

    async def count_access(self, memory_ids: Sequence[str]) -> None:
        """Count a recall."""
        sql = "UPDATE agent_memories SET access_count = access_count + 1 WHERE memory_id = ?"
        await self._change_each(sql, [(memory_id,) for memory_id in memory_ids])

    async def set_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Replace vectors."""
        sql = "UPDATE agent_memories SET model = ?, vector = ? WHERE memory_key = ?"
        await self._change_each(sql, [(model, vector, key) for key, vector in vectors])

    def vectors(self, tenant: str, agent_id: str) -> list[AgentVector]:
        """All memories of an agent."""
        sql = f"SELECT {VECTOR_COLUMNS} FROM agent_memories WHERE {_LIVE} ORDER BY memory_key"
        return [AgentVector(*row) for row in self._connections.query(sql, (tenant, agent_id))]

    def read(self, memory_keys: Sequence[int]) -> dict[int, AgentMemory]:
        """Memories by key."""
        sql = (
            f"SELECT {COLUMNS} FROM agent_memories WHERE deleted_at IS NULL"
            " AND memory_key IN (SELECT value FROM json_each(?))"
        )
        rows = self._connections.query(sql, (json.dumps(list(memory_keys)),))
        return {row[0]: _decode(row) for row in rows}

    def listed(
        self, tenant: str, agent_id: str | None, *, forgotten: bool, after: int, limit: int
    ) -> list[tuple[int, AgentMemory]]:
        """Memories with their keys."""
        which = ("" if agent_id is None else " AND agent_id = ?") + ("" if forgotten else " AND deleted_at IS NULL")
        sql = f"SELECT {COLUMNS} FROM agent_memories WHERE tenant = ? AND memory_key > ?{which}"
        bindings = (tenant, after, *(() if agent_id is None else (agent_id,)), limit)
        rows = self._connections.query(f"{sql} ORDER BY memory_key LIMIT ?", bindings)
        return [(row[0], _decode(row)) for row in rows]

    def agents(self, tenant: str, agent_id: str | None, *, after: int, limit: int) -> list[tuple[int, AgentSummary]]:
        """Agents with the keys of their first memories."""
        rows = self._connections.query(_AGENTS, (tenant, agent_id, after, limit))
        return [
            (first, AgentSummary(agent, live, gone, None if updated is None else to_datetime(updated)))
            for first, agent, live, gone, updated in rows
        ]

    def count_topics(self) -> tuple[int, int]:
        """Memories, and those without a canonical topic."""
        sql = "SELECT COUNT(*), COUNT(*) FILTER (WHERE NOT is_canonical) FROM agent_memories WHERE deleted_at IS NULL"
        ((memories, others),) = self._connections.query(sql)
        return memories, others

    def verify(self) -> AgentVerification:
        """Read every row, and check the file."""
        return verify_agent_memory(self._connections)

    def close(self) -> None:
        """Release the file."""
        self._writer.close()
        self._connections.close(checkpoint=self._writer.fault is None)

    def _put(
        self, transaction: Transaction, new: NewAgentMemory, updates: str | None, request: RequestKey | None
    ) -> Stored:
        connection, now = transaction.connection, transaction.clock()
        earlier = _earlier(connection, new.tenant, request)
        if earlier is not None:
            return decode_answer(earlier)
        source = encode_metadata(new.source)
        found = []
        if updates is not None:
            sql = f"SELECT memory_key FROM agent_memories WHERE {_LIVE} AND memory_id = ?"
            found = fetch(connection, sql, (new.tenant, new.agent_id, updates))
        if updates is not None and found:
            key, memory_id = found[0][0], updates
            texts = (new.topic_raw, new.is_canonical, new.content, source)
            connection.execute(_UPDATE, (*texts, new.model, new.vector, now, key))
        else:
            memory_id = f"agm_{uuid.uuid4().hex}"
            ids = (memory_id, new.tenant, new.agent_id, new.user_id)
            topic = (new.topic, new.topic_raw, new.is_canonical)
            row = (*ids, *topic, new.content, source, new.model, new.vector, now, now)
            ((key,),) = fetch(connection, _INSERT, row)
        stored = Stored(key, memory_id, bool(found), now)
        self._answer(transaction, new.tenant, request, encode_answer(stored))
        return stored

    def _answer(self, transaction: Transaction, tenant: str, request: RequestKey | None, response: bytes) -> None:
        """Keep the answer to a request, and drop those that are too old."""
        if request is None:
            return
        now = transaction.clock()
        transaction.connection.execute("DELETE FROM requests WHERE created_at < ?", (now - self._keep_requests,))
        row = (tenant, request.request_id, request.operation, request.fingerprint, response, now)
        transaction.connection.execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)", row)

    async def _change_each(self, sql: str, bindings: Sequence[tuple[object, ...]]) -> None:
        if bindings:
            await self._writer.submit(lambda transaction: _execute_each(transaction.connection, sql, bindings))


def _execute_each(connection: apsw.Connection, sql: str, bindings: Sequence[tuple[object, ...]]) -> None:
    connection.executemany(sql, bindings)


def _earlier(connection: apsw.Connection, tenant: str, request: RequestKey | None) -> bytes | None:
    if request is None:
        return None
    return idempotency.matching(fetch(connection, _FIND, (tenant, request.request_id)), request)


def _decode(row: Row) -> AgentMemory:
    """A memory from `COLUMNS`."""
    _, memory_id, agent_id, user_id, topic, topic_raw, is_canonical, content, source, count, made, changed, gone = row
    return AgentMemory(
        memory_id,
        agent_id,
        user_id,
        topic,
        topic_raw,
        bool(is_canonical),
        content,
        decode_metadata(source),
        count,
        to_datetime(made),
        to_datetime(changed),
        None if gone is None else to_datetime(gone),
    )
