"""The protocol of the store of agents' private memories. The SQLite store has a database of its own for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from astrocyte.model import AgentMemory, Metadata
from astrocyte.stores.records import RequestKey


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


class Deletion(NamedTuple):
    """A soft deletion that the audit log does not record yet."""

    memory_key: int
    tenant: str
    agent_id: str
    memory_id: str
    deleted_by: str
    reason: str


class AgentMemoryStore(Protocol):
    """Memories by tenant and agent. Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def find_response(self, tenant: str, request: RequestKey) -> Stored | None:
        """The answer to an earlier equal `put`, or None.

        Raises:
            RequestIdReused: The id was used by another request.
        """

    async def put(self, new: NewAgentMemory, updates: str | None, *, request: RequestKey | None = None) -> Stored:
        """Insert a memory, or update the one that ``updates`` names where the agent still has it."""

    async def forget(
        self, tenant: str, agent_id: str, memory_id: str, *, by: str, reason: str, request: RequestKey | None = None
    ) -> tuple[int, AgentMemory]:
        """Mark a memory as forgotten, and return it with its key.

        Raises:
            NotFound: The agent has no such memory, or it is forgotten and the request is a new one.
        """

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
        self, tenant: str, agent_id: str, *, forgotten: bool, after: int, limit: int
    ) -> list[tuple[int, AgentMemory]]:
        """Memories with their keys, oldest first."""

    def close(self) -> None:
        """Finish the writes that wait, and release the file."""
