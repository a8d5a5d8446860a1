"""Memories and what retaining, updating and forgetting them answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from astrocyte.model.curation import Curation
from astrocyte.model.derived.entity import Entity
from astrocyte.model.engines import EngineForget
from astrocyte.model.media import ContentPart

MetadataValue = str | int | float | bool | None
Metadata = Mapping[str, MetadataValue]


class ContentType(StrEnum):
    """Format of the content; it chooses the normaliser and the chunker."""

    TEXT = "text"
    CONVERSATION = "conversation"
    TRANSCRIPT = "transcript"
    DOCUMENT = "document"
    EMAIL = "email"
    EVENT = "event"


class RetentionAction(StrEnum):
    """The action of a retain on an item."""

    CREATED = "created"
    MERGED = "merged"
    UPDATED = "updated"
    SKIPPED = "skipped"
    QUEUED = "queued"
    REJECTED = "rejected"


class DedupAction(StrEnum):
    """The action on a near duplicate: keep the old one, store and flag the new one, or replace the old content."""

    SKIP = "skip"
    WARN = "warn"
    UPDATE = "update"


class MemoryState(StrEnum):
    """Where a memory is in its life."""

    ACTIVE = "active"
    FORGOTTEN = "forgotten"
    ARCHIVED = "archived"


class ArchiveReason(StrEnum):
    """Why a memory was archived: nobody recalled it, its time was up, or another memory says the same."""

    UNUSED = "unused"
    EXPIRED = "expired"
    MERGED = "merged"


# Layers of memories: what happened, what is known, and what curation makes of them.
MEMORY_LAYERS = ("episodic", "semantic", "fact", "observation", "model")


@dataclass(frozen=True, slots=True)
class Embedding:
    """A vector from the caller: little-endian f32, and the model that made it."""

    model: str
    dimensions: int
    values: bytes


@dataclass(frozen=True, slots=True)
class RetainItem:
    """One thing to remember. Fields are checked by the gate, not here.

    ``parts`` come after ``content``, which may be empty beside them: a provider makes text of them.
    """

    content: str
    content_type: str = "text"
    metadata: Metadata = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    source: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    fact_type: str | None = None
    extraction_profile: str | None = None
    pii_detected: bool = False
    embedding: Embedding | None = None
    dedup_action: DedupAction | None = None
    dedup_threshold: float | None = None
    parts: tuple[ContentPart, ...] = ()


@dataclass(frozen=True, slots=True)
class RetainResult:
    """The result of one item. ``memory_id`` is the kept memory's when the item was a duplicate.

    ``near_duplicate_of`` is set when the action ``warn`` stored a near duplicate. ``position`` is the bank's position
    that holds the write; give it to recall as ``min_position`` to read it on any server. 0 when nothing was stored.
    ``warnings`` say what was changed, found or could not be done. ``curation`` is the language model's decision, where
    one was asked; ``curated`` says that it was followed.
    """

    stored: bool
    memory_id: str | None = None
    deduplicated: bool = False
    error: str | None = None
    retention_action: str | None = None
    curated: bool = False
    memory_layer: str | None = None
    position: int = 0
    chunk_count: int = 0
    token_count: int = 0
    was_update: bool = False
    near_duplicate_of: str | None = None
    similarity: float | None = None
    warnings: tuple[str, ...] = ()
    curation: Curation | None = None


@dataclass(slots=True)
class Memory:
    """A stored memory: the current version, unless history was asked for.

    ``version`` counts from 1. ``retained_at`` is when version 1 was stored, ``updated_at`` when this version was.
    ``entities`` are what the content names, as far as the server looked for them. ``archived_at`` and
    ``archive_reason`` are set while the memory is archived; ``merged_into`` is the memory that one archived as a
    duplicate is part of.
    """

    memory_id: str
    bank_id: str
    version: int
    content: str
    content_type: str
    fact_type: str
    memory_layer: str
    tags: tuple[str, ...]
    metadata: Metadata
    source: str | None
    session_id: str | None
    speaker: str | None
    principal: str
    occurred_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    retained_at: datetime
    updated_at: datetime
    forgotten_at: datetime | None
    purge_after: datetime | None
    chunk_count: int
    token_count: int
    position: int
    etag: str
    state: MemoryState = MemoryState.ACTIVE
    entities: tuple[Entity, ...] = ()
    archived_at: datetime | None = None
    archive_reason: ArchiveReason | None = None
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of memories at one position; an empty token ends the list."""

    memories: tuple[Memory, ...]
    next_page_token: str
    position: int
    total_size: int


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """New values for the fields named in ``fields``; the others are left alone.

    ``fields`` holds any of content, tags, metadata, source, occurred_at, valid_from, valid_until.
    """

    memory_id: str
    fields: frozenset[str]
    content: str = ""
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    source: str | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    embedding: Embedding | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class ForgetSelector:
    """Selects the memories to forget: the given parts combine with AND; none at all is refused.

    ``scope`` is empty or ``all``. ``before_date`` compares occurred_at, or retained_at where there is none.
    """

    memory_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    scope: str | None = None
    before_date: datetime | None = None


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Proof of an erasure: how many rows went from each store, and the salted ids of the memories.

    ``salted_ids`` are SHA-256 of salt and memory id, hex. The root hashes are SHA-256 over the sorted salted ids of all
    memories of the bank before, and of those of them that are left after; what came meanwhile is in neither.
    """

    counts: Mapping[str, int]
    salt: str
    salted_ids: tuple[str, ...]
    root_hash_before: str
    root_hash_after: str
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The result of a forget, or of its dry run. ``memory_ids`` holds the first 1,000.

    ``archived_count`` is the number of the memories that the lifecycle had archived; ``deleted_count`` includes them.

    The numbers are those of this server, and of an engine that keeps memories of its own; copies count once.
    ``engines`` says what an engine beside the bank did.
    """

    deleted_count: int
    archived_count: int = 0
    memory_ids: tuple[str, ...] = ()
    dry_run: bool = False
    position: int = 0
    receipt: ErasureReceipt | None = None
    engines: tuple[EngineForget, ...] = ()


class ChangeKind(StrEnum):
    """The kind of a change of a memory, or, as the last, of the bank as a whole."""

    CREATED = "created"
    UPDATED = "updated"
    FORGOTTEN = "forgotten"
    UNDELETED = "undeleted"
    ERASED = "erased"
    ARCHIVED = "archived"
    RESTORED = "restored"
    REINDEXED = "reindexed"


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a bank's change log. Positions ascend by 1 within a bank.

    ``memory_id`` is empty where the bank moved to another embedding model, which changes no memory.
    """

    position: int
    kind: ChangeKind
    memory_id: str
    changed_at: datetime
