"""The RPCs on agents' private memories."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from astrocyte.api import LimitKind
from astrocyte.api.requests import (
    ForgetAgentMemory,
    ListAgentMemories,
    ListAgents,
    RecallAgentMemory,
    Remember,
)
from astrocyte.errors import AccessDenied, ValidationError
from astrocyte.model import (
    AgentMemory,
    AgentMemoryHit,
    AgentMemoryPage,
    AgentPage,
    AgentRecall,
    AuditEventKind,
    Caller,
    MemoryHit,
    Metadata,
    RecallQuery,
    RecallResult,
    Remembered,
    RetainItem,
    SourceTag,
    TermLookup,
)
from astrocyte.pipelines.agent_memory import ranking
from astrocyte.pipelines.agent_memory.index import (
    AgentIndex,
    AgentIndexes,
    embed,
    text_to_embed,
    user_tag,
)
from astrocyte.policy.events import emit
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.agents.shared_banks import SharedBanks
from astrocyte.policy.operations.agents.terms import MOST_NAME_CHARS, Terms
from astrocyte.policy.operations.parts import GateParts, OperationParts
from astrocyte.policy.operations.recall import Recalling
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of, request_key
from astrocyte.stores.agent_memory import AgentVector, NewAgentMemory, Stored, reading
from astrocyte.stores.records import RequestKey

log = structlog.get_logger(__name__)

T = TypeVar("T")
DEFAULT_RESULTS = 10
# Agents reason over a short list; the limit of banks is for their callers.
MOST_RESULTS = 100
# Read beyond the hits that are asked for, in place of those that were forgotten while they were ranked.
SPARE = 8
# Deletions that are written to the audit log in one round.
AUDITED_AT_ONCE = 100
# Between two writes of counts: each makes the next reads of the file slower.
COUNT_SECONDS = 0.5
# The settings of the whole server hold for private memories: they are in no bank.
WHOLE_SERVER = ""


class AgentMemories:
    """Handlers of the RPCs on agents' memories.

    Args:
        gate: The parts of the gate.
        parts: Shared by the operations.
        terms: Finds canonical terms.
        recalling: Recalls from the shared banks.
    """

    def __init__(self, gate: GateParts, parts: OperationParts, terms: Terms, recalling: Recalling) -> None:
        self._store = gate.agent_memory
        self._audit = gate.audit
        self._executor: Executor = gate.executor
        self._clock: Callable[[], int] = gate.clock
        self._embedder = parts.spaces.default
        # Shared with whatever changes memories besides: writes of one agent wait for each other there.
        self.indexes = AgentIndexes(self._store, gate.core, self._embedder, gate.executor)
        self._access = parts.access
        self._check = parts.check
        self._barriers = parts.policies.barriers
        self._rates = parts.policies.limits
        self._limits = parts.settings.limits
        self._most_bytes = parts.settings.homeostasis.retain_max_content_bytes
        self._settings = parts.settings.agent_memory
        # As for banks: searching so few vectors is faster than another thread begins.
        self._inline_rows = parts.settings.recall.inline_rows
        self._terms = terms
        self._shared_banks = SharedBanks(parts, recalling)
        self._read_only = parts.settings.read_only
        self._auditing = asyncio.Lock()
        # Ids of memories whose access is to be counted, and the task that does it.
        self._uncounted: list[str] = []
        self._counting: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def remember(self, caller: Caller, request: Remember) -> Remembered:
        """Insert a memory, or update the nearest one of its topic."""
        agent = self._agent(caller, "Remember", request.agent_id, "write")
        await self._rates.admit((Demand(caller.tenant, WHOLE_SERVER, LimitKind.RETAIN),))
        item = self._checked(request)
        key = key_of(
            request.request_id, "remember", agent, request.topic, request.content, request.user_id, request.source
        )
        item, warnings = await self._screened(item)
        topic_raw = item.source or request.topic
        term = self._terms.find(caller.tenant, topic_raw)
        topic = topic_raw if term.term is None else term.term.name
        stored = None if key is None else await self._read(partial(self._store.find_response, caller.tenant, key))
        if stored is None:
            (vector,) = await embed(self._embedder, [text_to_embed(topic, item.content)])
            new = NewAgentMemory(
                caller.tenant,
                agent,
                request.user_id,
                topic,
                topic_raw,
                term.found,
                item.content,
                item.metadata,
                self._embedder.model_id,
                vector,
            )
            index = await self.indexes.get(caller.tenant, agent)
            # Two writes of one topic must not both find nothing to update.
            async with index.lock:
                updates = await self._run(partial(self._nearest_of_topic, index, new))
                stored = await self._put(index, new, updates, key)
        proposed = None
        if not term.found:
            again = request.request_id
            request_of_term = None if again is None else request_key(f"remember:{again}", "propose_term", topic_raw)
            proposed = await self._terms.queue(caller, topic_raw, stored.memory_id, request_of_term)
        term_id = None if proposed is None else proposed.term_id
        return Remembered(stored.memory_id, stored.was_update, topic, term.found, term_id, warnings)

    async def recall(self, caller: Caller, request: RecallAgentMemory) -> AgentRecall:
        """Rank private and canonical memories in one list."""
        agent = self._agent(caller, "RecallAgentMemory", request.agent_id, "read")
        await self._rates.admit((Demand(caller.tenant, WHOLE_SERVER, LimitKind.RECALL),))
        query = RecallQuery(request.query)
        self._check.query(query)
        field_checks.integer(request.max_results, "max_results", 0, min(MOST_RESULTS, self._limits.max_results))
        self._check_user(request.user_id)
        query, warnings = await self._barriers.query("RecallAgentMemory", query, [WHOLE_SERVER])
        count = request.max_results or DEFAULT_RESULTS
        term = self._terms.find_in(caller.tenant, query.query)
        private = await self._private(caller.tenant, agent, request.user_id, _asked(query.query, term), count)
        private, warnings = self._leaving(private, warnings)
        canonical, of_banks = await self._canonical(caller, query.query, count)
        warnings = tuple(dict.fromkeys((*warnings, *of_banks)))
        hits = ranking.blended([*private, *canonical], count, self._settings.min_similarity)
        self._count(hits)
        name = None if term.term is None else term.term.name
        if not hits:
            emit("agent_memory_zero_hits", operation="RecallAgentMemory", agent_id=agent, topic=name or "")
            if request.expected:
                emit("agent_memory_silent", operation="RecallAgentMemory", agent_id=agent, topic=name or "")
        return AgentRecall(hits, name, warnings)

    async def forget(self, caller: Caller, request: ForgetAgentMemory) -> AgentMemory:
        """Delete softly, and record it."""
        agent = self._agent(caller, "ForgetAgentMemory", request.agent_id, "forget")
        self._check.memory_id(request.memory_id)
        if request.reason:
            field_checks.label(request.reason, "reason", self._limits.text_chars)
        self._check.request_id(request.request_id)
        key = key_of(request.request_id, "forget_agent_memory", agent, request.memory_id, request.reason)
        by = self._access.name(caller)
        # Two requests about one memory must not both record its deletion.
        async with self._auditing:
            asked = partial(self._store.is_forgotten_by, caller.tenant, agent, request.memory_id, key)
            if not await self._read(asked):
                # First, so that nothing is forgotten without a record. A crash here leaves a record of a deletion that
                # the caller, who has no answer, asks for again.
                await self.record_deletion(caller.tenant, agent, request.memory_id, by, request.reason)
            memory_key, forgotten = await self._store.forget(
                caller.tenant, agent, request.memory_id, by=by, reason=request.reason, request=key
            )
        (await self.indexes.get(caller.tenant, agent)).remove(memory_key)
        return forgotten

    async def list_memories(self, caller: Caller, request: ListAgentMemories) -> AgentMemoryPage:
        """A page of an agent's memories."""
        audits = self._access.name(caller) in self._settings.auditors
        agent = self._agent(caller, "ListAgentMemories", request.agent_id, "read", any_agent=audits)
        limit = self._check.page_limit(request.page_size)
        scope = ("agent_memories", caller.tenant, agent, request.include_forgotten)
        after = decode_place(request.page_token, scope)
        listed = partial(self._store.listed, forgotten=request.include_forgotten, after=after, limit=limit.entries + 1)
        rows = await self._read(partial(listed, caller.tenant, agent))
        memories, last = cut_page(rows, limit)
        return AgentMemoryPage(memories, "" if last is None else encode_token(scope, [last]))

    async def list_agents(self, caller: Caller, request: ListAgents) -> AgentPage:
        """A page of the agents that have memories."""
        self._access.require_name(caller, "ListAgents")
        own = self._access.name(caller)
        sees_all = not self._access.enabled or caller.operator or own in self._settings.auditors
        agent = None if sees_all else own
        limit = self._check.page_limit(request.page_size)
        scope = ("agents", caller.tenant, agent)
        after = decode_place(request.page_token, scope)
        found = partial(self._store.agents, caller.tenant, agent, after=after, limit=limit.entries + 1)
        rows = await self._run(found, self._store.executor)
        agents, last = cut_page(rows, limit)
        return AgentPage(agents, "" if last is None else encode_token(scope, [last]))

    async def record_deletion(self, tenant: str, agent_id: str, memory_id: str, by: str, reason: str) -> None:
        """Write that a memory is forgotten to the audit log."""
        details = {"agent_id": agent_id, "memory_id": memory_id, "reason": reason}
        await self._audit.append(tenant, AuditEventKind.AGENT_MEMORY_FORGOTTEN, by, details=details)

    async def audit_deletions(self) -> None:
        """Record deletions that an earlier version left without a record. Each is recorded at least once."""
        async with self._auditing:
            while deletions := await self._read(partial(self._store.unaudited, AUDITED_AT_ONCE)):
                for one in deletions:
                    await self.record_deletion(one.tenant, one.agent_id, one.memory_id, one.deleted_by, one.reason)
                await self._store.set_audited([one.memory_key for one in deletions])

    async def close(self) -> None:
        """Finish the counts of access that are being written."""
        self._closing.set()
        if self._counting is not None:
            await self._counting

    def _agent(self, caller: Caller, operation: str, agent_id: str, permission: str, *, any_agent: bool = False) -> str:
        """The agent of a request: with access control, the caller itself or nobody."""
        self._access.require_name(caller, operation)
        own = self._access.name(caller)
        agent = agent_id or own
        field_checks.name(agent, "agent_id")
        if self._access.enabled and not caller.operator and not any_agent and own != agent:
            raise AccessDenied(own, agent, permission, holder="the memory of agent")
        return agent

    def _checked(self, request: Remember) -> RetainItem:
        """The texts of a request as an item, whose ``source`` is the topic and whose metadata is the origin."""
        field_checks.label(request.topic, "topic", MOST_NAME_CHARS)
        self._check_user(request.user_id)
        field_checks.metadata(request.source, "source", self._limits)
        self._check.request_id(request.request_id)
        item = RetainItem(request.content, metadata=request.source, source=request.topic)
        self._check.item(item, self._most_bytes)
        return item

    def _check_user(self, user_id: str | None) -> None:
        if user_id is not None:
            field_checks.label(user_id, "user_id", MOST_NAME_CHARS)

    async def _screened(self, item: RetainItem) -> tuple[RetainItem, tuple[str, ...]]:
        try:
            return await self._barriers.item(WHOLE_SERVER, "Remember", item, "")
        except ValidationError as error:
            names = {"source": "topic", "metadata": "source"}
            raise ValidationError(str(error), field=names.get(error.field or "", error.field)) from error

    async def _put(
        self, index: AgentIndex, new: NewAgentMemory, updates: str | None, request: RequestKey | None
    ) -> Stored:
        """Store a memory, then index it; an index that may lack a stored memory is dropped."""
        indexed = False
        try:
            stored = await self._store.put(new, updates, request=request)
            if not stored.is_replay:
                await self._run(partial(index.put, [_vector(new, stored)]))
            indexed = self.indexes.has(new.tenant, new.agent_id, index)
        finally:
            # A caller that gives up does not stop a write that has begun.
            if not indexed:
                self.indexes.drop(new.tenant, new.agent_id)
        return stored

    def _leaving(
        self, hits: Sequence[AgentMemoryHit], warnings: tuple[str, ...]
    ) -> tuple[list[AgentMemoryHit], tuple[str, ...]]:
        """Private hits after the policy of the whole server about answers, and what the caller is to be told."""
        shown = [MemoryHit(hit.content, hit.score, hit.memory_id, metadata=hit.source) for hit in hits]
        result = RecallResult(tuple(shown), len(shown), truncated=False)
        left = self._barriers.output([WHOLE_SERVER], "RecallAgentMemory", result, warnings)
        told = {hit.memory_id: (hit.text, hit.metadata or {}) for hit in left.hits}
        return [
            hit if told[hit.memory_id] == (hit.content, hit.source) else _told(hit, *told[hit.memory_id])
            for hit in hits
            if hit.memory_id in told
        ], left.warnings

    def _nearest_of_topic(self, index: AgentIndex, new: NewAgentMemory) -> str | None:
        """The memory that a new one updates: of its topic and user, and more similar than the setting says."""
        if not new.vector:
            return None
        nearest = index.nearest(new.vector, 1, topic=new.topic, users=[user_tag(new.user_id)])
        found = nearest and nearest[0].cosine > self._settings.update_similarity
        return nearest[0].memory_id if found else None

    async def _private(
        self, tenant: str, agent: str, user_id: str | None, text: str, count: int
    ) -> list[AgentMemoryHit]:
        (vector,) = await embed(self._embedder, [text])
        if not vector:
            return []
        users = () if user_id is None else (user_tag(None), user_tag(user_id))
        index = await self.indexes.get(tenant, agent)
        now, days = self._clock(), self._settings.decay_days

        search = partial(ranking.best_memories, index, vector, users, now, days, count + SPARE)
        best = search() if len(index) <= self._inline_rows else await self._run(search)
        hits: list[AgentMemoryHit] = []
        # The spare ones only in place of those that were forgotten meanwhile.
        for part in (best[:count], best[count:]):
            if part and len(hits) < count:
                memories = await self._read(partial(self._store.read, [one.memory_key for one in part]))
                hits += ranking.private_hits(part, memories, now, days)
        return hits[:count]

    async def _canonical(self, caller: Caller, query: str, count: int) -> tuple[list[AgentMemoryHit], tuple[str, ...]]:
        """The best hits of the shared banks, and what is to be told of them."""
        banks = self._shared_banks.readable(caller)
        most = min(count, self._limits.max_results)
        asked = RecallQuery(query, max_results=most, include_trace=False)
        results, warnings = await self._shared_banks.recall(caller, banks, asked)
        return [hit for _, result in results for hit in ranking.canonical_hits(result.hits)], warnings

    def _count(self, hits: Sequence[AgentMemoryHit]) -> None:
        """Count the access in the background: an answer does not wait for the disk."""
        if self._read_only:
            return
        self._uncounted += [hit.memory_id for hit in hits if hit.source_tag is SourceTag.PRIVATE]
        if self._uncounted and self._counting is None:
            self._counting = asyncio.create_task(self._write_counts(), name="astrocyte-agent-memory-access")

    async def _write_counts(self) -> None:
        """Write counts, those of a while in one transaction."""
        try:
            while self._uncounted:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), COUNT_SECONDS)
                counted, self._uncounted = self._uncounted, []
                await self._store.count_access(counted)
        except Exception as error:  # noqa: BLE001 - a count is no promise: the memories themselves are unharmed
            log.warning("agent_memory_access_not_counted", error=type(error).__name__)
        finally:
            self._counting = None

    async def _run(self, work: Callable[[], T], executor: Executor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor or self._executor, work)

    async def _read(self, work: Callable[[], T]) -> T:
        return await reading(self._store, work)


def _told(hit: AgentMemoryHit, content: str, source: Metadata) -> AgentMemoryHit:
    return replace(hit, content=content, source=source)


def _asked(query: str, term: TermLookup) -> str:
    return query if term.term is None else text_to_embed(term.term.name, query)


def _vector(new: NewAgentMemory, stored: Stored) -> AgentVector:
    ids = (stored.memory_key, stored.memory_id, new.user_id)
    return AgentVector(*ids, new.topic, new.content, new.model, new.vector, stored.updated_at)
