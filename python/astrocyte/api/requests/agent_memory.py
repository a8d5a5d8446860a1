"""The requests of `AgentMemoryService`.

An empty ``agent_id`` is the caller's principal. With access control, another agent raises `AccessDenied`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from astrocyte.api.requests.base import Request
from astrocyte.model import (
    AgentMemory,
    AgentMemoryPage,
    AgentPage,
    AgentRecall,
    Metadata,
    Recanonicalised,
    Remembered,
    Term,
    TermDecision,
    TermLookup,
    TermPage,
    TermStatus,
)


@dataclass(slots=True)
class Remember(Request[Remembered]):
    """Store a memory about a topic, or update the agent's nearest memory of that topic.

    Raises:
        PiiRejected: The content has personal data that the server's settings refuse.
    """

    topic: str
    content: str
    agent_id: str = ""
    user_id: str | None = None
    source: Metadata = field(default_factory=dict)
    request_id: str | None = None


@dataclass(slots=True)
class RecallAgentMemory(Request[AgentRecall]):
    """Rank the agent's memories by similarity and age, blended with the shared banks that the caller may read.

    ``user_id`` keeps memories about that user or about any. ``expected`` says that a hit is expected: an empty answer
    then emits the event ``agent_memory_silent``.
    """

    query: str
    max_results: int = 0
    agent_id: str = ""
    user_id: str | None = None
    expected: bool = False


@dataclass(slots=True)
class ForgetAgentMemory(Request[AgentMemory]):
    """Remove a memory from recalls and lists; returns it. The row stays, and the audit log records it.

    Raises:
        NotFound: The agent has no such memory, or forgot it.
    """

    memory_id: str
    agent_id: str = ""
    reason: str = ""
    request_id: str | None = None


@dataclass(slots=True)
class ListAgentMemories(Request[AgentMemoryPage]):
    """A page of an agent's memories, oldest first. Principals of ``agent_memory.auditors`` may name any agent."""

    agent_id: str = ""
    include_forgotten: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class ListAgents(Request[AgentPage]):
    """A page of the agents that have memories, in the order of their first one.

    Auditors, and everybody without access control, see all of the tenant. Another caller sees itself alone.
    """

    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class RecanonicaliseAgentMemories(Request[Recanonicalised]):
    """Resolve the topics of stored memories again, one page a call, oldest first.

    A memory that gets another topic is merged with the nearest one of that topic and of the same user, if their cosine
    is above ``agent_memory.update_similarity``: the older one takes the content of the younger, which is forgotten.

    ``agent_id`` names one agent; empty treats all of the tenant. ``dry_run`` counts and changes nothing.
    """

    agent_id: str = ""
    dry_run: bool = False
    page_size: int = 0
    page_token: str = ""
    request_id: str | None = None


@dataclass(slots=True)
class LookupTerm(Request[TermLookup]):
    """The canonical term of a text: by name, alias, word stems or similar spelling, in this order."""

    text: str


@dataclass(slots=True)
class ProposeTerm(Request[Term]):
    """Queue a term for review. A term that exists or waits already is returned, with the new provenance."""

    name: str
    aliases: Sequence[str] = ()
    definition: str = ""
    memory_id: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class ListTerms(Request[TermPage]):
    """A page of the tenant's terms, oldest first; ``status`` None is all that the caller may see.

    Approved and merged terms are seen by all. Proposals may tell what an agent remembers: they, and rejected terms,
    need admin in every bank.
    """

    status: TermStatus | None = None
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class ReviewTerm(Request[Term]):
    """Approve or reject a proposed term, or merge it into an approved one.

    Raises:
        NotFound: There is no such term.
        FailedPrecondition: It was reviewed already, or ``merge_into`` is not approved.
    """

    term_id: str
    decision: TermDecision | None = None
    merge_into: str | None = None
    request_id: str | None = None
