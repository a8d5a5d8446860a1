"""The protocol of the store of agents' private memories: a SQLite file or a PostgreSQL database of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from astrocyte.errors import NotFound
from astrocyte.model import AgentMemory, AgentSummary, Metadata
from astrocyte.stores.records import RequestKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewAgentMemory:
    """A memory ready to be stored. ``vector`` is little-endian f32 in the space of ``model``; empty: no direction."""

    tenant: str
    agent_id: str
    user_id: str | None
    topic: str
    topic_raw: str
    is_canonical: bool
    content: str
    source: Metadata
    model: str
    vector: bytes


class AgentVector(NamedTuple):
    """The part of a memory that an index needs. ``model`` names the space of ``vector``; times are milliseconds."""

    memory_key: int
    memory_id: str
    user_id: str | None
    topic: str
    content: str
    model: str
    vector: bytes
    updated_at: int


class Stored(NamedTuple):
    """The outcome of `AgentMemoryStore.put`. ``is_replay`` is True where an equal request was answered before."""

    memory_key: int
    memory_id: str
    was_update: bool
    updated_at: int
    is_replay: bool = False


class Retopic(NamedTuple):
    """A memory with the topic that it is to have, and its vector there. ``is_canonical`` as of `AgentMemory`."""

    memory_key: int
    topic: str
    is_canonical: bool
    model: str
    vector: bytes


class Deletion(NamedTuple):
    """A soft deletion that the audit log does not record yet: one by a version that recorded them afterwards."""

    memory_key: int
    tenant: str
    agent_id: str
    memory_id: str
    deleted_by: str
    reason: str


class AgentMemoryStore(Protocol):
    """Memories by tenant and agent. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`.

    ``executor`` runs reads that wait for a network. None: all but `vectors`, `agents` and pages of many rows are short
    enough for the event loop.
    """

    @property
    def executor(self) -> Executor | None:
        """Threads for reads."""

    def find_response(self, tenant: str, request: RequestKey) -> Stored | None:
        """The answer to an earlier equal `put`, or None.

        Raises:
            RequestIdReused: The id was used by another request.
        """

    async def put(self, new: NewAgentMemory, updates: str | None, *, request: RequestKey | None = None) -> Stored:
        """Insert a memory, or update the one that ``updates`` names where the agent still has it."""

    def is_forgotten_by(self, tenant: str, agent_id: str, memory_id: str, request: RequestKey | None) -> bool:
        """True if an equal request forgot the memory; False if it is there to be forgotten.

        Raises:
            NotFound: The agent has no such memory, or it is forgotten and the request is a new one.
            RequestIdReused: The id was used by another request.
        """

    async def forget(
        self, tenant: str, agent_id: str, memory_id: str, *, by: str, reason: str, request: RequestKey | None = None
    ) -> tuple[int, AgentMemory]:
        """Mark a memory as forgotten, which the audit log records already, and return it with its key.

        Raises:
            NotFound: As `is_forgotten_by`.
        """

    async def retopic(self, change: Retopic) -> None:
        """Give a memory another topic. A memory that is forgotten stays as it is."""

    async def merge(self, kept: Retopic, gone: int, *, by: str, reason: str) -> AgentVector:
        """Merge two memories of an agent, of which the audit log records that ``gone`` is forgotten.

        ``kept`` gets the content, the origin and ``topic_raw`` of the one that was updated last, its time, and the
        counts of access of both and of an update. Its vector is that of this content. Returns it for an index.

        Raises:
            NotFound: One of them is forgotten.
        """

    def find_outcome(self, tenant: str, request: RequestKey) -> bytes | None:
        """The outcome that `keep_outcome` kept for an equal request, or None.

        Raises:
            RequestIdReused: The id was used by another request.
        """

    async def keep_outcome(self, tenant: str, request: RequestKey, outcome: bytes) -> None:
        """Keep the outcome of a request; it holds no content. One that is kept already stays."""

    def unaudited(self, limit: int) -> list[Deletion]:
        """Deletions that `set_audited` was not called for, oldest first."""

    async def set_audited(self, memory_keys: Sequence[int]) -> None:
        """Note that the audit log records these deletions."""

    async def count_access(self, memory_ids: Sequence[str]) -> None:
        """Add one to the access count of each."""

    async def set_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Replace the vectors of memories by those of another model."""

    def vectors(self, tenant: str, agent_id: str) -> list[AgentVector]:
        """All memories of an agent that are not forgotten."""

    def read(self, memory_keys: Sequence[int]) -> dict[int, AgentMemory]:
        """Memories by key, without forgotten ones."""

    def listed(
        self, tenant: str, agent_id: str | None, *, forgotten: bool, after: int, limit: int
    ) -> list[tuple[int, AgentMemory]]:
        """Memories of an agent, or of all, with their keys, oldest first."""

    def agents(self, tenant: str, agent_id: str | None, *, after: int, limit: int) -> list[tuple[int, AgentSummary]]:
        """Agents, or the one, with the key of their first memory, in its order."""

    def count_topics(self) -> tuple[int, int]:
        """The number of memories of all tenants, and of those among them whose topic is no canonical term."""

    def close(self) -> None:
        """Finish the writes that wait, and release the file."""


async def reading(store: AgentMemoryStore, work: Callable[[], T]) -> T:
    """Run work that reads the store, where it holds up no event loop."""
    if store.executor is None:
        return work()
    return await asyncio.get_running_loop().run_in_executor(store.executor, work)


def missing(agent_id: str, memory_id: str) -> NotFound:
    """The error of a memory that an agent does not have."""
    return NotFound(
        f"agent {agent_id!r} has no memory {memory_id!r}, or forgot it; ListAgentMemories has the ids",
        metadata={"memory_id": memory_id, "agent_id": agent_id},
    )


def encode_answer(stored: Stored) -> bytes:
    """The answer to a request, as it is kept."""
    return json.dumps(stored[:4]).encode()


def decode_answer(response: bytes) -> Stored:
    """The inverse of `encode_answer`, as a replay."""
    memory_key, memory_id, was_update, updated_at = json.loads(response)
    return Stored(memory_key, memory_id, was_update, updated_at, is_replay=True)
