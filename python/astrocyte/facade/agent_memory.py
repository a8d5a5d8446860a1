"""The part of the Python API about agents' private memory and canonical terms."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.api import Backend, requests
from astrocyte.facade import keywords
from astrocyte.model import (
    AgentMemory,
    AgentMemoryPage,
    AgentPage,
    AgentRecall,
    AstrocyteContext,
    Metadata,
    Recanonicalised,
    Remembered,
    Term,
    TermDecision,
    TermLookup,
    TermPage,
    TermStatus,
)


class AgentMemories:
    """The calls of `Astrocyte` for agents. ``agent_id`` is the caller's principal by default."""

    _backend: Backend

    async def agent_memory_remember(  # noqa: PLR0913 - what a memory is made of, and the request's key
        self,
        topic_raw: str,
        content: str,
        *,
        agent_id: str = "",
        user_id: str | None = None,
        source: Metadata | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Remembered:
        """Store a memory about a topic as it was encountered, or update the agent's nearest memory of that topic."""
        return await self._backend.call(
            keywords.caller_of(context),
            requests.Remember(topic_raw, content, agent_id, user_id, source or {}, request_id),
        )

    async def agent_memory_recall(
        self,
        query: str,
        k: int = 10,
        *,
        agent_id: str = "",
        user_id: str | None = None,
        expected: bool = False,
        context: AstrocyteContext | None = None,
    ) -> AgentRecall:
        """Rank the agent's memories and those of the shared banks in one list of at most ``k``."""
        return await self._backend.call(
            keywords.caller_of(context), requests.RecallAgentMemory(query, k, agent_id, user_id, expected)
        )

    async def agent_memory_forget(
        self,
        memory_id: str,
        *,
        agent_id: str = "",
        reason: str = "",
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> AgentMemory:
        """Remove a memory from recalls and lists; returns it."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ForgetAgentMemory(memory_id, agent_id, reason, request_id)
        )

    async def agent_memory_list(
        self,
        agent_id: str = "",
        *,
        include_forgotten: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> AgentMemoryPage:
        """A page of an agent's memories, oldest first."""
        return await self._backend.call(
            keywords.caller_of(context),
            requests.ListAgentMemories(agent_id, include_forgotten, page_size, page_token),
        )

    async def agent_memory_agents(
        self, *, page_size: int = 0, page_token: str = "", context: AstrocyteContext | None = None
    ) -> AgentPage:
        """A page of the agents that have memories: all of the tenant for an auditor, else the caller alone."""
        return await self._backend.call(keywords.caller_of(context), requests.ListAgents(page_size, page_token))

    async def agent_memory_recanonicalise(
        self,
        agent_id: str = "",
        *,
        dry_run: bool = False,
        page_size: int = 0,
        page_token: str = "",
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Recanonicalised:
        """Resolve the topics of one page of stored memories again, of one agent or of all of the tenant.

        Call it after terms were approved or merged, with the token of the last result, until a result has none.
        """
        request = requests.RecanonicaliseAgentMemories(agent_id, dry_run, page_size, page_token, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def canonical_terms_lookup(self, text: str, *, context: AstrocyteContext | None = None) -> TermLookup:
        """The canonical term of a text."""
        return await self._backend.call(keywords.caller_of(context), requests.LookupTerm(text))

    async def canonical_terms_propose(
        self,
        name: str,
        *,
        aliases: Sequence[str] = (),
        definition: str = "",
        memory_id: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Term:
        """Queue a term for review."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ProposeTerm(name, aliases, definition, memory_id, request_id)
        )

    async def canonical_terms_list(
        self,
        status: TermStatus | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> TermPage:
        """A page of terms, oldest first."""
        return await self._backend.call(keywords.caller_of(context), requests.ListTerms(status, page_size, page_token))

    async def canonical_terms_review(
        self,
        term_id: str,
        decision: TermDecision,
        merge_into: str | None = None,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Term:
        """Approve or reject a proposed term, or merge it into an approved one."""
        return await self._backend.call(
            keywords.caller_of(context), requests.ReviewTerm(term_id, decision, merge_into, request_id)
        )
