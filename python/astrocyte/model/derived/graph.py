"""The entity graph of a bank: entities, their mentions in memories, links, and the results of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from astrocyte.model.memory import Metadata


class Mention(NamedTuple):
    """A name at a place of a text.

    Attributes:
        name: The name as it is shown, which may be longer than the words at the place ("she" is no mention).
        entity_type: A word for its kind, such as ``PERSON``; ``NAME`` where nothing tells the kind.
        start: First character of the words in the text; -1 where the text does not hold them, as with a speaker.
        end: The character after the words; -1 with ``start`` -1.
        confidence: 0..1.
    """

    name: str
    entity_type: str
    start: int
    end: int
    confidence: float


class Relation(NamedTuple):
    """A directed relation that a text states between two names that it mentions.

    Attributes:
        source_name: Name of a mention of the same text, exactly.
        target_name: Name of another mention of the same text, exactly.
        link_type: In lower case with underscores, such as ``works_at``, ``sister_of``, ``alias_of``.
        start: First character of the passage that states it.
        end: The character after the passage.
        confidence: 0..1.
    """

    source_name: str
    target_name: str
    link_type: str
    start: int
    end: int
    confidence: float


class GraphExtraction(NamedTuple):
    """The mentions and relations of a text."""

    mentions: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()


class ReadName(NamedTuple):
    """A name that a language model read in a text: its type, and the first and last character of its places.

    Without a place it is that of the speaker.
    """

    entity_type: str
    places: tuple[tuple[int, int], ...] = ()


class ReadLink(NamedTuple):
    """A relation that a language model read between two names, by their numbers, with the passage that states it."""

    source: int
    target: int
    link_type: str
    start: int
    end: int
    confidence: float


class GraphReading(NamedTuple):
    """Names and relations that a language model read in a text: places in it, types and confidences."""

    names: tuple[ReadName, ...] = ()
    links: tuple[ReadLink, ...] = ()


class KnownEntity(NamedTuple):
    """An entity as the resolution of names compares it."""

    id: str
    name: str
    entity_type: str
    aliases: tuple[str, ...] = ()


class Resolution(NamedTuple):
    """A decision that two entities are the same.

    Attributes:
        entity: Id of the entity that is the alias.
        alias_of: Id of the entity that it stands for.
        reason: Rule that decided, in words for a reader.
        confidence: 0..1.
    """

    entity: str
    alias_of: str
    reason: str
    confidence: float


class GraphFormat(StrEnum):
    """Formats of an exported graph."""

    JSON_LINES = "json_lines"
    GRAPHML = "graphml"


class LinkOrigin(StrEnum):
    """The source of a link: a memory, rules on names, a language model, a caller, or memories that mention both."""

    MEMORY = "memory"
    RESOLUTION = "resolution"
    MODEL = "model"
    CALLER = "caller"
    CO_OCCURRENCE = "co_occurrence"


@dataclass(frozen=True, slots=True)
class GraphEntity:
    """An entity of a bank's graph, with the entities that are merged into it.

    Attributes:
        id: Type and normalised name, such as ``person:alice-smith``; unique within the bank.
        name: The name as it is shown: a caller's, or that of the first mention.
        entity_type: Such as ``PERSON`` or ``ORG``; ``NAME`` if unknown.
        aliases: Other names: a caller's, and those of the merged entities.
        metadata: The caller's.
        mention_count: Mentions in current memories, those of merged entities included.
        first_seen: When the first memory that mentions it was stored; None without mentions.
        last_seen: When the last one was stored.
        merged_ids: Ids of the entities that are merged into it.
        etag: Changes with the caller's names, aliases and metadata.
    """

    id: str
    name: str
    entity_type: str
    aliases: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    mention_count: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    merged_ids: tuple[str, ...] = ()
    etag: str = ""


@dataclass(frozen=True, slots=True)
class EntityPage:
    """A page of entities; an empty token ends the list."""

    entities: tuple[GraphEntity, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class EntityLink:
    """A directed relationship between two entities.

    Attributes:
        entity_a: Id of the source.
        entity_b: Id of the target.
        link_type: Lower case, such as ``works_at``; ``alias_of`` merges the source into the target.
        evidence: Passage that supports it.
        confidence: 0..1.
        created_at: When it was stored, or the memory that states it.
        metadata: The caller's; None for none.
        link_id: Id; empty for a link that is not stored.
        origin: Who made it.
        memory_id: Memory that states it.
        valid_from: When it begins to hold; None if open.
        valid_until: When it ceases to hold; None if open.
    """

    entity_a: str
    entity_b: str
    link_type: str
    evidence: str = ""
    confidence: float = 1.0
    created_at: datetime | None = None
    metadata: Metadata | None = None
    link_id: str = ""
    origin: LinkOrigin = LinkOrigin.CALLER
    memory_id: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewEntityLink:
    """A link to store; the fields are those of `EntityLink`."""

    entity_a: str
    entity_b: str
    link_type: str
    evidence: str = ""
    confidence: float = 1.0
    metadata: Metadata = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EntityNeighbor:
    """An entity that was reached from the entities of a request.

    Attributes:
        entity: The entity.
        depth: Number of links from the nearest of the request's entities; 0 for these.
        score: Activation, 0..1.
        via: The last link of the path by which it was reached; None at depth 0.
    """

    entity: GraphEntity
    depth: int
    score: float
    via: EntityLink | None = None


@dataclass(frozen=True, slots=True)
class GraphHit:
    """A memory that mentions an entity or a neighbour of it.

    Attributes:
        memory_id: The memory.
        text: Its content.
        connected_entities: Ids of the reached entities that it mentions.
        depth: Depth of the nearest of these.
        score: 0..1; higher if it mentions nearer and more of the reached entities.
    """

    memory_id: str
    text: str
    connected_entities: tuple[str, ...]
    depth: int
    score: float


@dataclass(frozen=True, slots=True)
class GraphNeighbors:
    """Entities and memories around the entities of a request, best first; ``truncated`` if a bound cut the search."""

    entities: tuple[EntityNeighbor, ...]
    memories: tuple[GraphHit, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class GraphPath:
    """A path without repeated entities: ``links[i]`` connects ``entities[i]`` and ``entities[i + 1]``."""

    entities: tuple[GraphEntity, ...]
    links: tuple[EntityLink, ...]


@dataclass(frozen=True, slots=True)
class GraphPaths:
    """Paths between two entities, shortest first; ``truncated`` if a bound cut the search."""

    paths: tuple[GraphPath, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class GraphStats:
    """Counts of a bank's graph.

    Attributes:
        entities: Visible entities, merged ones counted once.
        entities_by_type: Visible entities by type, merged ones included.
        mentions: Mentions in current memories.
        links_by_type: Stored links by type.
        merged: Entities that are merged into others.
        pending_memories: Versions of memories that are not in the graph yet.
        rebuilding: Whether the graph is being derived again.
        rebuilt_share: Part of a rebuild that is done, 0..1; 1 without a rebuild.
        unread_memories: Current memories that a language model has yet to read.
    """

    entities: int
    entities_by_type: Mapping[str, int]
    mentions: int
    links_by_type: Mapping[str, int]
    merged: int
    pending_memories: int
    rebuilding: bool = False
    rebuilt_share: float = 1.0
    unread_memories: int = 0
