"""Requests about the entity graph of a bank.

The id of an entity that is merged into another one stands for that other one, except in `SplitEntity`. ``as_of`` shows
what was known at a time, ``valid_at`` only links and memories that were valid at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from astrocyte.api.requests.base import Request, StreamRequest
from astrocyte.model import (
    EntityLink,
    EntityPage,
    GraphEntity,
    GraphFormat,
    GraphNeighbors,
    GraphPaths,
    GraphStats,
    Metadata,
    NewEntityLink,
)


@dataclass(slots=True)
class SearchEntities(Request[list[GraphEntity]]):
    """The entities whose names match, best first. A ``limit`` of 0 asks for 10."""

    bank_id: str
    query: str
    limit: int = 0
    entity_types: Sequence[str] = ()
    as_of: datetime | None = None


@dataclass(slots=True)
class GetEntity(Request[GraphEntity]):
    """One entity.

    Raises:
        NotFound: The bank has no such entity.
    """

    bank_id: str
    entity_id: str
    as_of: datetime | None = None


@dataclass(slots=True)
class ListEntities(Request[EntityPage]):
    """A page of entities by id; merged entities are listed once. An empty ``entity_type`` lists all types."""

    bank_id: str
    entity_type: str = ""
    page_size: int = 0
    page_token: str = ""
    as_of: datetime | None = None


@dataclass(slots=True)
class Neighbors(Request[GraphNeighbors]):
    """Entities around entities, and the memories that mention them.

    A ``max_depth`` of 0 asks for 2 links, a ``limit`` of 0 for 20 entities and 20 memories. Empty ``link_types`` follow
    all links.

    Raises:
        NotFound: The bank has no such entity.
    """

    bank_id: str
    entity_ids: Sequence[str]
    max_depth: int = 0
    limit: int = 0
    link_types: Sequence[str] = ()
    as_of: datetime | None = None
    valid_at: datetime | None = None


@dataclass(slots=True)
class FindPath(Request[GraphPaths]):
    """The shortest paths between two entities; none if they are not connected within ``max_depth`` links.

    A ``max_depth`` of 0 asks for 4 links, a ``max_paths`` of 0 for one path.

    Raises:
        NotFound: The bank has no such entity.
    """

    bank_id: str
    source_id: str
    target_id: str
    max_depth: int = 0
    max_paths: int = 0
    link_types: Sequence[str] = ()
    as_of: datetime | None = None
    valid_at: datetime | None = None


@dataclass(slots=True)
class CreateEntityLink(Request[list[EntityLink]]):
    """Store links, all or none. With ``validate_only`` the answer is empty.

    Raises:
        NotFound: The bank has no such entity.
        AlreadyExists: An equal link, with the same validity, is stored.
        FailedPrecondition: A link ``alias_of`` would make an entity an alias of itself.
    """

    bank_id: str
    links: Sequence[NewEntityLink]
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class DeleteEntityLink(Request[str]):
    """Delete a link that a caller created, at every ``as_of``; returns its id.

    Raises:
        NotFound: The bank has no such link.
        FailedPrecondition: A memory states it, or it follows from names.
        LegalHoldActive: A hold covers the whole bank.
    """

    bank_id: str
    link_id: str
    request_id: str | None = None


@dataclass(slots=True)
class UpdateEntity(Request[GraphEntity]):
    """Change the fields that are not None; an empty one is cleared.

    Raises:
        NotFound: The bank has no such entity.
        Conflict: ``etag`` is not the entity's.
    """

    bank_id: str
    entity_id: str
    name: str | None = None
    aliases: Sequence[str] | None = None
    metadata: Metadata | None = None
    etag: str | None = None
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class MergeEntities(Request[GraphEntity]):
    """Make entities aliases of another one; returns that. Nothing is lost: `SplitEntity` undoes it.

    Raises:
        NotFound: The bank has no such entity.
        FailedPrecondition: ``into_id`` is an alias of one of them.
    """

    bank_id: str
    entity_ids: Sequence[str]
    into_id: str
    reason: str = ""
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class SplitEntity(Request[GraphEntity]):
    """Separate an entity from those that it is merged with, and keep it apart.

    Raises:
        NotFound: The bank has no such entity.
        FailedPrecondition: It is not merged.
        LegalHoldActive: A hold covers the whole bank.
    """

    bank_id: str
    entity_id: str
    reason: str = ""
    request_id: str | None = None


@dataclass(slots=True)
class GetGraphStats(Request[GraphStats]):
    """Counts of the graph."""

    bank_id: str


@dataclass(slots=True)
class ExportGraph(StreamRequest[str]):
    """The graph as text, in pieces: JSON lines or GraphML."""

    bank_id: str
    format: GraphFormat = GraphFormat.JSON_LINES
    as_of: datetime | None = None


@dataclass(slots=True)
class RebuildGraph(Request[GraphStats]):
    """Derive the graph again from the memories, in the background; `GetGraphStats` has the progress."""

    bank_id: str
    request_id: str | None = None
