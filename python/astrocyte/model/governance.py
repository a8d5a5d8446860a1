"""Legal holds, and the trail of what was done: values, and the one rule by which a trail is chained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

# What the first row of a trail is chained to.
GENESIS = bytes(32)


class AuditEventKind(StrEnum):
    """The kinds of audit events."""

    FORGET = "forget"
    ERASE_BEGUN = "erase_begun"
    ERASE_COMPLETED = "erase_completed"
    PURGED = "purged"
    UNDELETE = "undelete"
    BANK_DELETED = "bank_deleted"
    HOLD_PLACED = "hold_placed"
    HOLD_RELEASED = "hold_released"
    GRANT_CHANGED = "grant_changed"
    KEY_CREATED = "key_created"
    KEY_REVOKED = "key_revoked"
    REINDEX_STARTED = "reindex_started"
    REINDEXED = "reindexed"
    REINDEX_CANCELLED = "reindex_cancelled"
    REINDEX_FAILED = "reindex_failed"
    ENTITY_LINKS_CREATED = "entity_links_created"
    ENTITY_LINK_DELETED = "entity_link_deleted"
    ENTITY_UPDATED = "entity_updated"
    ENTITIES_MERGED = "entities_merged"
    ENTITY_SPLIT = "entity_split"
    GRAPH_EXPORTED = "graph_exported"
    GRAPH_REBUILD_STARTED = "graph_rebuild_started"
    AGENT_MEMORY_FORGOTTEN = "agent_memory_forgotten"
    CONSOLIDATION_STARTED = "consolidation_started"
    CONSOLIDATION_CANCELLED = "consolidation_cancelled"
    CONSOLIDATED = "consolidated"
    CONSOLIDATION_FAILED = "consolidation_failed"
    DIRECTIVE_CREATED = "directive_created"
    KNOWLEDGE_DELETED = "knowledge_deleted"
    BANK_REPAIRED = "bank_repaired"
    KNOWLEDGE_UNDELETED = "knowledge_undeleted"
    BANK_EXPORTED = "bank_exported"
    IMPORT_BEGUN = "import_begun"
    IMPORT_COMPLETED = "import_completed"
    LIFECYCLE_STARTED = "lifecycle_started"
    LIFECYCLE_COMPLETED = "lifecycle_completed"
    LIFECYCLE_CANCELLED = "lifecycle_cancelled"
    LIFECYCLE_FAILED = "lifecycle_failed"
    MEMORIES_ARCHIVED = "memories_archived"
    MEMORIES_RESTORED = "memories_restored"


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: on memories by id or by any of some tags; without both, on all of the bank.

    It stands until it is released; after ``expires_at`` a diagnosis of the bank reports it.
    """

    hold_id: str
    bank_id: str
    memory_ids: tuple[str, ...]
    tags: tuple[str, ...]
    reason: str
    placed_by: str
    placed_at: datetime
    released_by: str | None = None
    released_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HoldPage:
    """A page of holds; an empty token ends the list."""

    holds: tuple[Hold, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A row of a tenant's trail.

    ``sequence`` counts from 1 without gaps. ``bank_key`` is the store's number of the bank, 0 where it is about none.
    """

    tenant: str
    sequence: int
    event: str
    occurred_at: datetime
    actor: str
    bank_key: int
    details: Mapping[str, str]
    hash: bytes


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of a trail, and where the trail ended when it was read; an empty token ends the list."""

    events: tuple[AuditEvent, ...]
    head_sequence: int
    head_hash: bytes
    next_page_token: str


def event_hash(previous: bytes, event: AuditEvent) -> bytes:
    """SHA-256 over the hash before and the row as JSON, in which no two rows read alike, without the row's own hash.

    Args:
        previous: 32 bytes; `GENESIS` before the first row.
        event: The row; its time counts to the millisecond.
    """
    row = [
        event.tenant,
        event.sequence,
        str(event.event),
        round(event.occurred_at.timestamp() * 1_000),
        event.actor,
        event.bank_key,
        dict(event.details),
    ]
    return hashlib.sha256(previous + json.dumps(row, sort_keys=True, separators=(",", ":")).encode()).digest()
