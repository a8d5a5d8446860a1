"""Private memories of agents, and the canonical terms that agents share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from astrocyte.model.memory import Metadata


class SourceTag(StrEnum):
    """The origin of a hit: the agent's own memory, or a shared bank."""

    PRIVATE = "private"
    CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """A memory of one agent.

    Attributes:
        topic: The canonical term of ``topic_raw``, or ``topic_raw`` where there is none.
        access_count: Recalls that returned it, and updates.
        deleted_at: Time of forgetting; None where it is not forgotten.
    """

    memory_id: str
    agent_id: str
    user_id: str | None
    topic: str
    topic_raw: str
    is_canonical: bool
    content: str
    source: Metadata
    access_count: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of a Remember. ``proposed_term_id`` names the term that was proposed for an unknown topic."""

    memory_id: str
    was_update: bool
    topic: str
    is_canonical: bool
    proposed_term_id: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentMemoryHit:
    """A hit of a blended recall.

    Attributes:
        similarity: Cosine of query and memory, in [-1, 1].
        score: ``similarity`` times ``recency_score``.
        topic, topic_raw: Of a private memory; "" of a canonical one.
        bank_id: The bank of a canonical hit.
        updated_at: Last update of a private memory; time of storage of a canonical one.
        recency_score: exp(-age / ``decay_days``) of a private memory, in (0, 1]; 1 of a canonical one.
    """

    memory_id: str
    content: str
    source_tag: SourceTag
    similarity: float
    score: float
    topic: str = ""
    topic_raw: str = ""
    source: Metadata = field(default_factory=dict)
    bank_id: str | None = None
    updated_at: datetime | None = None
    recency_score: float = 1.0


@dataclass(frozen=True, slots=True)
class AgentRecall:
    """The answer of a blended recall, best hit first. ``query_canonical`` is the canonical term of the query."""

    hits: tuple[AgentMemoryHit, ...]
    query_canonical: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentMemoryPage:
    """A page of an agent's memories; an empty token ends the list."""

    memories: tuple[AgentMemory, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """An agent that has memories.

    Attributes:
        memory_count: Memories that are not forgotten.
        updated_at: Last update of one of them; None where all are forgotten.
    """

    agent_id: str
    memory_count: int
    forgotten_count: int
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentPage:
    """A page of agents; an empty token ends the list."""

    agents: tuple[AgentSummary, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Recanonicalised:
    """The outcome of a call that resolves topics again; an empty token: all memories were examined.

    Attributes:
        changed: Memories with another topic now, or with one that is canonical now.
        merged: Those of them that were merged with a memory of their new topic; 0 in a dry run.
    """

    examined: int
    changed: int
    merged: int
    next_page_token: str


class TermStatus(StrEnum):
    """The state of a term."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    MERGED = "merged"


class TermMatch(StrEnum):
    """The rule by which a term was found."""

    NAME = "name"
    ALIAS = "alias"
    STEM = "stem"
    SPELLING = "spelling"


class TermDecision(StrEnum):
    """The decision of a review."""

    APPROVE = "approve"
    REJECT = "reject"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the shared vocabulary.

    Attributes:
        memory_ids: Agent memories for which it was proposed, the first ones.
        proposals: Number of proposals.
        merged_into: The term that it is an alias of.
    """

    term_id: str
    name: str
    aliases: tuple[str, ...]
    definition: str
    status: TermStatus
    memory_ids: tuple[str, ...]
    proposals: int
    proposed_by: str
    created_at: datetime
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class TermLookup:
    """The canonical term of a text. ``similarity`` is 1 but for a match by spelling, and 0 where none was found."""

    found: bool
    term: Term | None = None
    match: TermMatch | None = None
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class TermPage:
    """A page of terms; an empty token ends the list."""

    terms: tuple[Term, ...]
    next_page_token: str
