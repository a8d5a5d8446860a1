"""The vectors of each agent's memories in the retrieval core, derived from the store when the agent is first asked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from astrocyte.core import Bank, Core, RecallRequest, Row, translated_errors
from astrocyte.pipelines.index.embedding_spaces import usable
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.agent_memory import AgentMemoryStore, AgentVector

# Agents whose vectors are kept in memory; the one that was asked longest ago is read anew when it is asked again.
MOST_AGENTS = 256
# Texts of one call of the embedder, when an agent's vectors move to another model.
EMBED_BATCH = 64
TOPIC = "topic"


class Nearest(NamedTuple):
    """A memory and its cosine with a query. ``updated_at`` is in milliseconds since the epoch."""

    memory_key: int
    memory_id: str
    updated_at: int
    cosine: float


def text_to_embed(topic: str, content: str) -> str:
    """The text whose vector stands for a memory: the canonical topic takes part in retrieval."""
    return f"{topic}\n{content}"


async def embed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Vectors of texts; empty for a text without direction.

    Raises:
        ProviderUnavailable: The embedder failed.
    """
    vectors = embedder.embed_now(texts) if embedder.local else await embedder.embed(texts)
    return [usable(vector) or b"" for vector in vectors]


class AgentIndex:
    """The vectors of one agent. ``lock`` is held by whoever decides between an update and an insert."""

    def __init__(self, bank: Bank) -> None:
        self.lock = asyncio.Lock()
        self._bank = bank
        self._known: dict[int, tuple[str, int]] = {}
        # Not before the last update of any memory, in milliseconds.
        self.newest = 0

    def __len__(self) -> int:
        """The number of memories."""
        return len(self._known)

    def put(self, memories: Sequence[AgentVector]) -> None:
        """Add memories, each in the place of the one with its key."""
        self._known.update((one.memory_key, (one.memory_id, one.updated_at)) for one in memories)
        self.newest = max([self.newest, *(one.updated_at for one in memories)])
        self._bank.apply(self._bank.position + 1, list(map(_row, memories)))

    def remove(self, memory_key: int) -> None:
        """Never return a memory again."""
        self._known.pop(memory_key, None)
        self._bank.apply(self._bank.position + 1, removed=[memory_key])

    def nearest(
        self, vector: bytes, count: int, *, topic: str | None = None, users: Sequence[str] = ()
    ) -> list[Nearest]:
        """The nearest memories, best first, of a topic and of some users (`user_tag`), where these are given."""
        with translated_errors():
            request = RecallRequest(
                vector=vector,
                k=count,
                depth=count,
                tags=users,
                metadata=() if topic is None else ((TOPIC, topic),),
                context_windows=False,
            )
        found = [(hit.key, score) for hit in self._bank.recall(request).hits for _, _, score in hit.arms]
        return [Nearest(key, *self._known[key], cosine) for key, cosine in found if key in self._known]


class AgentIndexes:
    """The indexes of all agents.

    Args:
        store: The memories.
        core: Makes indexes.
        embedder: Makes vectors; memories with vectors of another model are embedded anew when their agent is asked.
        executor: Threads for reading and searching.
    """

    def __init__(self, store: AgentMemoryStore, core: Core, embedder: Embedder, executor: Executor) -> None:
        self._store = store
        self._core = core
        self._embedder = embedder
        self._executor = executor
        self._loaded: OrderedDict[tuple[str, str], asyncio.Future[AgentIndex]] = OrderedDict()

    async def get(self, tenant: str, agent_id: str) -> AgentIndex:
        """The index of an agent, read from the store where it is not in memory.

        Raises:
            ProviderUnavailable: Vectors of another model could not be replaced.
        """
        key = (tenant, agent_id)
        loading = self._loaded.get(key)
        if loading is None:
            loading = self._loaded[key] = asyncio.ensure_future(self._load(tenant, agent_id))
        self._loaded.move_to_end(key)
        self._evict()
        try:
            # A caller that gives up does not end the load for the others.
            return await asyncio.shield(loading)
        except Exception:
            if self._loaded.get(key) is loading:
                del self._loaded[key]
            raise

    def drop(self, tenant: str, agent_id: str) -> None:
        """Read the agent anew at its next call: a write may be in the store that its index does not have."""
        self._loaded.pop((tenant, agent_id), None)

    def has(self, tenant: str, agent_id: str, index: AgentIndex) -> bool:
        """True if this is the index that the next call of the agent gets."""
        loading = self._loaded.get((tenant, agent_id))
        return loading is not None and loading.done() and not loading.exception() and loading.result() is index

    def _evict(self) -> None:
        """Drop the indexes that were asked longest ago, but for those that are being loaded or written."""
        for key, loading in list(self._loaded.items()):
            if len(self._loaded) <= MOST_AGENTS:
                return
            if loading.done() and (loading.exception() or not loading.result().lock.locked()):
                del self._loaded[key]

    async def _load(self, tenant: str, agent_id: str) -> AgentIndex:
        run = asyncio.get_running_loop().run_in_executor
        memories = await run(self._store.executor or self._executor, self._store.vectors, tenant, agent_id)
        foreign = [one for one in memories if one.model != self._embedder.model_id]
        moved: dict[int, bytes] = {}
        for first in range(0, len(foreign), EMBED_BATCH):
            part = foreign[first : first + EMBED_BATCH]
            vectors = await embed(self._embedder, [text_to_embed(one.topic, one.content) for one in part])
            moved.update(zip((one.memory_key for one in part), vectors, strict=True))
        if moved:
            await self._store.set_vectors(self._embedder.model_id, list(moved.items()))
        index = AgentIndex(self._core.bank(self._embedder.dimensions))
        current = [one._replace(vector=moved.get(one.memory_key, one.vector)) for one in memories]
        await run(self._executor, index.put, current)
        return index


def user_tag(user_id: str | None) -> str:
    """The label of memories about a user, or about any."""
    return "any" if user_id is None else f"user:{user_id}"


def _row(memory: AgentVector) -> Row:
    memory_id = bytes.fromhex(memory.memory_id.rpartition("_")[2])
    with translated_errors():
        # Memories of equal content are told apart by their ids: the core would fold them.
        return Row(
            memory.memory_key,
            memory_id,
            memory_id,
            "",
            memory.vector or None,
            tokens=0,
            known_from=0,
            tags=(user_tag(memory.user_id),),
            metadata=((TOPIC, memory.topic),),
        )
