"""The RPC that resolves the topics of stored memories again, after terms were approved or merged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from astrocyte.api.requests import RecanonicaliseAgentMemories
from astrocyte.model import AgentMemory, Caller, Recanonicalised
from astrocyte.pipelines.agent_memory.index import AgentIndex, embed, text_to_embed, user_tag
from astrocyte.policy.auth.access_control import NO_BANK
from astrocyte.policy.operations.agents.agent_memories import AgentMemories
from astrocyte.policy.operations.agents.terms import Terms
from astrocyte.policy.operations.parts import GateParts, OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.agent_memory import AgentVector, Retopic, reading

T = TypeVar("T")
# A memory that is moved may itself be the nearest of its topic.
ITSELF_AND_ANOTHER = 2


class Recanonicalisation:
    """Handler of RecanonicaliseAgentMemories. Each memory is changed by itself: a call can be given up and repeated.

    Args:
        gate: The parts of the gate.
        parts: Shared by the operations.
        terms: Finds canonical terms.
        memories: Has the indexes, and records deletions.
    """

    def __init__(self, gate: GateParts, parts: OperationParts, terms: Terms, memories: AgentMemories) -> None:
        self._store = gate.agent_memory
        self._executor: Executor = gate.executor
        self._embedder = parts.spaces.default
        self._access = parts.access
        self._check = parts.check
        self._least = parts.settings.agent_memory.update_similarity
        self._terms = terms
        self._memories = memories

    async def recanonicalise(self, caller: Caller, request: RecanonicaliseAgentMemories) -> Recanonicalised:
        """Treat one page of memories, oldest first."""
        self._access.require_pattern(caller, "RecanonicaliseAgentMemories", NO_BANK)
        if request.agent_id:
            field_checks.name(request.agent_id, "agent_id")
        size = self._check.page_limit(request.page_size).entries
        scope = ("recanonicalise", caller.tenant, request.agent_id)
        after = decode_place(request.page_token, scope)
        self._check.request_id(request.request_id)
        asked = (request.agent_id, request.dry_run, size, request.page_token)
        key = key_of(request.request_id, "recanonicalise_agent_memories", *asked)
        kept = None if key is None else await self._read(partial(self._store.find_outcome, caller.tenant, key))
        if kept is not None:
            return Recanonicalised(*json.loads(kept))
        read = partial(self._store.listed, forgotten=False, after=after, limit=size + 1)
        rows = await self._run(partial(read, caller.tenant, request.agent_id or None), self._store.executor)
        page = rows[:size]
        changed = merged = 0
        for memory_key, memory in page:
            topic, found = self._topic(caller.tenant, memory)
            if (topic, found) == (memory.topic, memory.is_canonical):
                continue
            changed += 1
            if not request.dry_run:
                merged += await self._move(caller, memory_key, memory.agent_id)
        token = encode_token(scope, [page[-1][0]]) if len(rows) > size else ""
        outcome = Recanonicalised(len(page), changed, merged, token)
        if key is not None:
            values = (outcome.examined, outcome.changed, outcome.merged, outcome.next_page_token)
            await self._store.keep_outcome(caller.tenant, key, json.dumps(values).encode())
        return outcome

    def _topic(self, tenant: str, memory: AgentMemory) -> tuple[str, bool]:
        """The topic that a Remember would give the memory now, and whether it is canonical."""
        found = self._terms.find(tenant, memory.topic_raw)
        return (memory.topic_raw if found.term is None else found.term.name), found.found

    async def _move(self, caller: Caller, memory_key: int, agent_id: str) -> bool:
        """Give a memory its topic; True if it was merged with another one of that topic."""
        index = await self._memories.indexes.get(caller.tenant, agent_id)
        done = False
        # A write of the agent must not change the memory, or its nearest, meanwhile.
        async with index.lock:
            memory = (await self._read(partial(self._store.read, [memory_key]))).get(memory_key)
            if memory is None:
                return False
            topic, found = self._topic(caller.tenant, memory)
            (vector,) = await embed(self._embedder, [text_to_embed(topic, memory.content)])
            move = Retopic(memory_key, topic, found, self._embedder.model_id, vector)
            try:
                other_key = await self._run(partial(self._nearest, index, move, memory))
                others = {} if other_key is None else await self._read(partial(self._store.read, [other_key]))
                other = None if other_key is None else others.get(other_key)
                if other_key is not None and other is not None:
                    await self._merge(caller, index, (move, memory), (other_key, other))
                else:
                    await self._store.retopic(move)
                    await self._run(partial(index.put, [_vector(move, memory)]))
                done = self._memories.indexes.has(caller.tenant, agent_id, index)
            finally:
                # A caller that gives up does not stop a write that has begun.
                if not done:
                    self._memories.indexes.drop(caller.tenant, agent_id)
        return other is not None

    def _nearest(self, index: AgentIndex, move: Retopic, memory: AgentMemory) -> int | None:
        """The memory that a Remember of this one would update."""
        if not move.vector or move.topic == memory.topic:
            # Memories of one topic met when they were written.
            return None
        users = [user_tag(memory.user_id)]
        nearest = index.nearest(move.vector, ITSELF_AND_ANOTHER, topic=move.topic, users=users)
        others = [one for one in nearest if one.memory_key != move.memory_key and one.cosine > self._least]
        return others[0].memory_key if others else None

    async def _merge(
        self, caller: Caller, index: AgentIndex, moved: tuple[Retopic, AgentMemory], other: tuple[int, AgentMemory]
    ) -> None:
        """As if both had been remembered under one topic: the older memory is updated, the younger one is forgotten."""
        move, memory = moved
        ends = sorted(
            [(memory.created_at, move.memory_key, memory), (other[1].created_at, *other)], key=lambda e: e[:2]
        )
        (_, kept_key, kept), (_, gone_key, gone) = ends
        # The store takes the content of the one that was updated last.
        latest = max(ends, key=lambda end: (end[2].updated_at, end[1]))[2]
        (vector,) = await embed(self._embedder, [text_to_embed(move.topic, latest.content)])
        by, reason = self._access.name(caller), f"merged into {kept.memory_id}"
        await self._memories.record_deletion(caller.tenant, gone.agent_id, gone.memory_id, by, reason)
        change = move._replace(memory_key=kept_key, vector=vector)
        merged = await self._store.merge(change, gone_key, by=by, reason=reason)
        index.remove(gone_key)
        await self._run(partial(index.put, [merged]))

    async def _run(self, work: Callable[[], T], executor: Executor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor or self._executor, work)

    async def _read(self, work: Callable[[], T]) -> T:
        return await reading(self._store, work)


def _vector(move: Retopic, memory: AgentMemory) -> AgentVector:
    updated_at = round(memory.updated_at.timestamp() * 1_000)
    ids = (move.memory_key, memory.memory_id, memory.user_id)
    return AgentVector(*ids, move.topic, memory.content, move.model, move.vector, updated_at)
