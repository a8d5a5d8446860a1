"""Agents' private memories in a PostgreSQL database of their own, apart from the data directory of the banks."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from psycopg.rows import TupleRow

from astrocyte.config import StoreSettings
from astrocyte.errors import FailedPrecondition, NotFound, RateLimited
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
from astrocyte.stores.agent_postgres.session import Connection, Session
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.rows import decode_metadata, encode_metadata, to_datetime, to_milliseconds
from astrocyte.stores.sqlite.tables import idempotency

T = TypeVar("T")

COLUMNS = (
    "memory_key, memory_id, agent_id, user_id, topic, topic_raw, is_canonical, content, source::text, access_count,"
    " created_at, updated_at, deleted_at"
)
VECTOR_COLUMNS = "memory_key, memory_id, user_id, topic, content, model, vector, updated_at"
HOUR_MILLISECONDS = 3_600_000
# After which a caller who was refused may come again.
RETRY_SECONDS = 0.1
_LIVE = "tenant = %s AND agent_id = %s AND deleted_at IS NULL"
_FIND = "SELECT operation, fingerprint, response FROM agent_memory_requests WHERE tenant = %s AND request_id = %s"
_INSERT = (
    "INSERT INTO agent_memories (memory_id, tenant, agent_id, user_id, topic, topic_raw, is_canonical, content, source,"
    " model, vector, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " RETURNING memory_key"
)
_UPDATE = (
    "UPDATE agent_memories SET topic_raw = %s, is_canonical = %s, content = %s, source = %s, model = %s, vector = %s,"
    f" updated_at = %s, access_count = access_count + 1 WHERE {_LIVE} AND memory_id = %s RETURNING memory_key"
)
_RETOPIC = (
    "UPDATE agent_memories SET topic = %s, is_canonical = %s, model = %s, vector = %s"
    " WHERE memory_key = %s AND deleted_at IS NULL"
)
_MERGE = (
    "UPDATE agent_memories SET (topic_raw, content, source, updated_at) ="
    " (SELECT topic_raw, content, source, updated_at FROM agent_memories WHERE memory_key = ANY(%(keys)s)"
    " ORDER BY updated_at DESC, memory_key DESC LIMIT 1),"
    " access_count = access_count + 1 + (SELECT access_count FROM agent_memories WHERE memory_key = %(gone)s)"
    " WHERE memory_key = %(kept)s"
)
_FORGET = "UPDATE agent_memories SET deleted_at = %s, deleted_by = %s, reason = %s WHERE"
_AGENTS = (
    "SELECT MIN(memory_key), agent_id, COUNT(*) - COUNT(deleted_at), COUNT(deleted_at),"
    " MAX(updated_at) FILTER (WHERE deleted_at IS NULL) FROM agent_memories"
    " WHERE tenant = %(tenant)s AND (%(agent)s::text IS NULL OR agent_id = %(agent)s) GROUP BY agent_id"
    " HAVING MIN(memory_key) > %(after)s ORDER BY MIN(memory_key) LIMIT %(limit)s"
)


class PostgresAgentMemory:
    """Implements `astrocyte.stores.agent_memory.AgentMemoryStore`; see there for what each method does and raises.

    Args:
        dsn: Address of the database, as libpq takes it. The first schema of its search path has the tables.
        clock: Milliseconds since the epoch.
        settings: How many writes wait, and how long answers to request ids are kept.
        read_only: Write nothing; several servers may do so beside each other.

    Raises:
        ConfigError, StoreError: As `Session`.
    """

    def __init__(self, dsn: str, *, clock: Callable[[], int], settings: StoreSettings, read_only: bool = False) -> None:
        self.session = Session(dsn, read_only=read_only)
        self._clock = clock
        self._keep_requests = round(settings.request_keep_hours * HOUR_MILLISECONDS)
        self._waiting_limit = settings.waiting_limit
        self._waiting = 0
        self._read_only = read_only
        # One: the session does one thing after the other, and what waits for it must hold up no search.
        self.executor = ThreadPoolExecutor(1, "astrocyte-agent-memory")

    def find_response(self, tenant: str, request: RequestKey) -> Stored | None:
        """The answer to an earlier equal request."""
        response = self.find_outcome(tenant, request)
        return None if response is None else decode_answer(response)

    async def put(self, new: NewAgentMemory, updates: str | None, *, request: RequestKey | None = None) -> Stored:
        """Insert or update a memory."""
        return await self._write(lambda connection: self._put(connection, new, updates, request))

    def is_forgotten_by(self, tenant: str, agent_id: str, memory_id: str, request: RequestKey | None) -> bool:
        """Look for the memory, and for an equal request."""

        def run(connection: Connection) -> bool:
            if _earlier(connection, tenant, request) is not None:
                return True
            sql = f"SELECT 1 FROM agent_memories WHERE {_LIVE} AND memory_id = %s"
            if connection.execute(sql, (tenant, agent_id, memory_id)).fetchone() is None:
                raise missing(agent_id, memory_id)
            return False

        return self.session.transact(run)

    async def forget(
        self, tenant: str, agent_id: str, memory_id: str, *, by: str, reason: str, request: RequestKey | None = None
    ) -> tuple[int, AgentMemory]:
        """Mark a memory as forgotten."""

        def run(connection: Connection) -> tuple[int, AgentMemory]:
            if _earlier(connection, tenant, request) is None:
                values = (self._now(), by, reason, tenant, agent_id, memory_id)
                if not connection.execute(f"{_FORGET} {_LIVE} AND memory_id = %s", values).rowcount:
                    raise missing(agent_id, memory_id)
                self._answer(connection, tenant, request, b"[]")
            sql = f"SELECT {COLUMNS} FROM agent_memories WHERE tenant = %s AND memory_id = %s"
            (row,) = connection.execute(sql, (tenant, memory_id)).fetchall()
            return row[0], _decode(row)

        return await self._write(run)

    async def retopic(self, change: Retopic) -> None:
        """Replace the topic."""
        await self._change_each(_RETOPIC, [(*change[1:], change.memory_key)])

    async def merge(self, kept: Retopic, gone: int, *, by: str, reason: str) -> AgentVector:
        """Merge two memories."""

        def run(connection: Connection) -> AgentVector:
            keys = [kept.memory_key, gone]
            live = "SELECT COUNT(*) FROM agent_memories WHERE deleted_at IS NULL AND memory_key = ANY(%s)"
            if connection.execute(live, (keys,)).fetchone() != (len(keys),):
                raise NotFound("one of the two memories of a merge is forgotten")
            connection.execute(_MERGE, {"keys": keys, "kept": kept.memory_key, "gone": gone})
            connection.execute(_RETOPIC, (*kept[1:], kept.memory_key))
            connection.execute(f"{_FORGET} memory_key = %s", (self._now(), by, reason, gone))
            sql = f"SELECT {VECTOR_COLUMNS} FROM agent_memories WHERE memory_key = %s"
            (row,) = connection.execute(sql, (kept.memory_key,)).fetchall()
            return _vector(row)

        return await self._write(run)

    def find_outcome(self, tenant: str, request: RequestKey) -> bytes | None:
        """The outcome of an earlier equal request."""
        return self.session.transact(lambda connection: _earlier(connection, tenant, request))

    async def keep_outcome(self, tenant: str, request: RequestKey, outcome: bytes) -> None:
        """Keep the outcome of a request."""

        def run(connection: Connection) -> None:
            if _earlier(connection, tenant, request) is None:
                self._answer(connection, tenant, request, outcome)

        await self._write(run)

    def unaudited(self, limit: int) -> list[Deletion]:
        """None: no version has deleted here before the audit log had it."""
        del limit
        return []

    async def set_audited(self, memory_keys: Sequence[int]) -> None:
        """Change nothing: all deletions are recorded."""
        del memory_keys

    async def count_access(self, memory_ids: Sequence[str]) -> None:
        """Count a recall."""
        sql = "UPDATE agent_memories SET access_count = access_count + 1 WHERE memory_id = %s"
        await self._change_each(sql, [(memory_id,) for memory_id in memory_ids])

    async def set_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Replace vectors."""
        sql = "UPDATE agent_memories SET model = %s, vector = %s WHERE memory_key = %s"
        await self._change_each(sql, [(model, vector, key) for key, vector in vectors])

    def vectors(self, tenant: str, agent_id: str) -> list[AgentVector]:
        """All memories of an agent."""
        sql = f"SELECT {VECTOR_COLUMNS} FROM agent_memories WHERE {_LIVE} ORDER BY memory_key"
        return [_vector(row) for row in self._query(sql, (tenant, agent_id))]

    def read(self, memory_keys: Sequence[int]) -> dict[int, AgentMemory]:
        """Memories by key."""
        sql = f"SELECT {COLUMNS} FROM agent_memories WHERE deleted_at IS NULL AND memory_key = ANY(%s)"
        return {row[0]: _decode(row) for row in self._query(sql, (list(memory_keys),))}

    def listed(
        self, tenant: str, agent_id: str | None, *, forgotten: bool, after: int, limit: int
    ) -> list[tuple[int, AgentMemory]]:
        """Memories with their keys."""
        which = ("" if agent_id is None else " AND agent_id = %s") + ("" if forgotten else " AND deleted_at IS NULL")
        sql = f"SELECT {COLUMNS} FROM agent_memories WHERE tenant = %s AND memory_key > %s{which}"
        values = (tenant, after, *(() if agent_id is None else (agent_id,)), limit)
        return [(row[0], _decode(row)) for row in self._query(f"{sql} ORDER BY memory_key LIMIT %s", values)]

    def agents(self, tenant: str, agent_id: str | None, *, after: int, limit: int) -> list[tuple[int, AgentSummary]]:
        """Agents with the keys of their first memories."""
        values = {"tenant": tenant, "agent": agent_id, "after": after, "limit": limit}
        return [(first, AgentSummary(*rest)) for first, *rest in self._query(_AGENTS, values)]

    def count_topics(self) -> tuple[int, int]:
        """Memories, and those without a canonical topic."""
        sql = "SELECT COUNT(*), COUNT(*) FILTER (WHERE NOT is_canonical) FROM agent_memories WHERE deleted_at IS NULL"
        ((memories, others),) = self._query(sql, ())
        return memories, others

    def close(self) -> None:
        """Finish the writes that wait, and release the database."""
        self.executor.shutdown(wait=True)
        self.session.close()

    def _put(
        self, connection: Connection, new: NewAgentMemory, updates: str | None, request: RequestKey | None
    ) -> Stored:
        earlier = _earlier(connection, new.tenant, request)
        if earlier is not None:
            return decode_answer(earlier)
        milliseconds = self._clock()
        now, source = to_datetime(milliseconds), encode_metadata(new.source)
        found = None
        if updates is not None:
            texts = (new.topic_raw, new.is_canonical, new.content, source, new.model, new.vector, now)
            found = connection.execute(_UPDATE, (*texts, new.tenant, new.agent_id, updates)).fetchone()
        was_update = found is not None
        memory_id = updates if updates is not None and was_update else f"agm_{uuid.uuid4().hex}"
        if found is None:
            ids = (memory_id, new.tenant, new.agent_id, new.user_id, new.topic)
            texts = (new.topic_raw, new.is_canonical, new.content, source, new.model, new.vector, now)
            (found,) = connection.execute(_INSERT, (*ids, *texts, now)).fetchall()
        stored = Stored(found[0], memory_id, was_update, milliseconds)
        self._answer(connection, new.tenant, request, encode_answer(stored))
        return stored

    def _answer(self, connection: Connection, tenant: str, request: RequestKey | None, response: bytes) -> None:
        """Keep the answer to a request, and drop those that are too old."""
        if request is None:
            return
        oldest = to_datetime(self._clock() - self._keep_requests)
        connection.execute("DELETE FROM agent_memory_requests WHERE created_at < %s", (oldest,))
        row = (tenant, request.request_id, request.operation, request.fingerprint, response, self._now())
        connection.execute("INSERT INTO agent_memory_requests VALUES (%s, %s, %s, %s, %s, %s)", row)

    def _now(self) -> datetime:
        return to_datetime(self._clock())

    async def _change_each(self, sql: str, values: Sequence[Sequence[object]]) -> None:
        def run(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(sql, values)

        if values:
            await self._write(run)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        if self._read_only:
            raise FailedPrecondition("the server is read-only; nothing was changed; start without read_only")
        if self._waiting >= self._waiting_limit:
            raise RateLimited(
                f"{self._waiting} writes are queued, the limit is {self._waiting_limit}; try again",
                retry_after=RETRY_SECONDS,
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.executor, self.session.transact, work)
        finally:
            self._waiting -= 1

    def _query(self, sql: str, values: Any) -> list[TupleRow]:  # noqa: ANN401 - as psycopg takes them
        return self.session.transact(lambda connection: connection.execute(sql, values).fetchall())


def _earlier(connection: Connection, tenant: str, request: RequestKey | None) -> bytes | None:
    if request is None:
        return None
    return idempotency.matching(connection.execute(_FIND, (tenant, request.request_id)).fetchall(), request)


def _vector(row: TupleRow) -> AgentVector:
    """A vector from `VECTOR_COLUMNS`."""
    return AgentVector._make((*row[:-1], to_milliseconds(row[-1])))


def _decode(row: TupleRow) -> AgentMemory:
    """A memory from `COLUMNS`."""
    _, memory_id, agent_id, user_id, topic, topic_raw, is_canonical, content, source, count, *times = row
    source = decode_metadata(source)
    made, changed, gone = times
    return AgentMemory(
        memory_id, agent_id, user_id, topic, topic_raw, is_canonical, content, source, count, made, changed, gone
    )
