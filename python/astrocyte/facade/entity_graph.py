"""The part of the Python API that reads and changes the entity graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from astrocyte.api import Backend, requests
from astrocyte.errors import ValidationError
from astrocyte.facade import keywords
from astrocyte.facade.keywords import GivenMetadata, Texts
from astrocyte.model import (
    AstrocyteContext,
    EntityLink,
    EntityPage,
    GraphEntity,
    GraphFormat,
    GraphHit,
    GraphNeighbors,
    GraphPaths,
    GraphStats,
    NewEntityLink,
)

# `Astrocyte.list` hides the name in the class body.
Entities = list[GraphEntity]
Hits = list[GraphHit]
Links = list[EntityLink]


class EntityGraph:
    """The calls of `Astrocyte` about the entity graph. ``context`` names the caller, the local user by default."""

    _backend: Backend

    async def graph_search(
        self,
        query: str,
        bank_id: str,
        limit: int = 10,
        *,
        entity_types: Texts | None = None,
        as_of: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> Entities:
        """The entities whose names match, best first."""
        kinds = keywords.texts(entity_types, "entity_types")
        request = requests.SearchEntities(bank_id, query, limit, kinds, as_of)
        return await self._backend.call(keywords.caller_of(context), request)

    async def graph_neighbors(  # noqa: PLR0913 - what bounds the search
        self,
        entity_ids: Texts,
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        *,
        link_types: Texts | None = None,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> Hits:
        """Memories that mention entities or their neighbours, best first."""
        found = await self.graph_neighborhood(
            entity_ids,
            bank_id,
            max_depth,
            limit,
            link_types=link_types,
            as_of=as_of,
            valid_at=valid_at,
            context=context,
        )
        return list(found.memories)

    async def graph_neighborhood(  # noqa: PLR0913 - what bounds the search
        self,
        entity_ids: Texts,
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        *,
        link_types: Texts | None = None,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphNeighbors:
        """Entities around entities with the links that lead there, and memories that mention them."""
        request = requests.Neighbors(
            bank_id,
            keywords.texts(entity_ids, "entity_ids"),
            max_depth,
            limit,
            keywords.texts(link_types, "link_types"),
            as_of,
            valid_at,
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def find_path(  # noqa: PLR0913 - what bounds the search
        self,
        source_id: str,
        target_id: str,
        bank_id: str,
        *,
        max_depth: int = 4,
        max_paths: int = 1,
        link_types: Texts | None = None,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphPaths:
        """The shortest paths between two entities; links are followed in both directions."""
        kinds = keywords.texts(link_types, "link_types")
        request = requests.FindPath(bank_id, source_id, target_id, max_depth, max_paths, kinds, as_of, valid_at)
        return await self._backend.call(keywords.caller_of(context), request)

    async def get_entity(
        self,
        entity_id: str,
        bank_id: str,
        *,
        as_of: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphEntity:
        """One entity, or the one that it is merged into."""
        return await self._backend.call(keywords.caller_of(context), requests.GetEntity(bank_id, entity_id, as_of))

    async def list_entities(
        self,
        bank_id: str,
        *,
        entity_type: str = "",
        page_size: int = 0,
        page_token: str = "",
        as_of: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> EntityPage:
        """A page of entities by id."""
        request = requests.ListEntities(bank_id, entity_type, page_size, page_token, as_of)
        return await self._backend.call(keywords.caller_of(context), request)

    async def create_entity_link(
        self,
        link: EntityLink | NewEntityLink,
        bank_id: str,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> EntityLink:
        """Store one link; returns it with its id and time."""
        made = await self.create_entity_links([link], bank_id, request_id=request_id, context=context)
        return made[0]

    async def create_entity_links(
        self,
        links: Sequence[EntityLink | NewEntityLink],
        bank_id: str,
        *,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> Links:
        """Store links, all or none."""
        new = [_new(link, index) for index, link in enumerate(links)]
        request = requests.CreateEntityLink(bank_id, new, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def delete_entity_link(
        self, link_id: str, bank_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> str:
        """Delete a link that a caller created; returns its id."""
        request = requests.DeleteEntityLink(bank_id, link_id, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def update_entity(  # noqa: PLR0913 - the fields of an entity
        self,
        entity_id: str,
        bank_id: str,
        *,
        name: str | None = None,
        aliases: Texts | None = None,
        metadata: GivenMetadata | None = None,
        etag: str | None = None,
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphEntity:
        """Change the fields that are not None."""
        request = requests.UpdateEntity(
            bank_id,
            entity_id,
            name,
            None if aliases is None else keywords.texts(aliases, "aliases"),
            None if metadata is None else keywords.joined(metadata),
            etag,
            request_id,
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def merge_entities(
        self,
        entity_ids: Texts,
        into_id: str,
        bank_id: str,
        *,
        reason: str = "",
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphEntity:
        """Make entities aliases of another one; returns that. `split_entity` undoes it."""
        ids = keywords.texts(entity_ids, "entity_ids")
        request = requests.MergeEntities(bank_id, ids, into_id, reason, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def split_entity(
        self,
        entity_id: str,
        bank_id: str,
        *,
        reason: str = "",
        request_id: str | None = None,
        context: AstrocyteContext | None = None,
    ) -> GraphEntity:
        """Separate an entity from those that it is merged with, and keep it apart."""
        request = requests.SplitEntity(bank_id, entity_id, reason, request_id)
        return await self._backend.call(keywords.caller_of(context), request)

    async def graph_stats(self, bank_id: str, *, context: AstrocyteContext | None = None) -> GraphStats:
        """Counts of the graph, and the work in progress."""
        return await self._backend.call(keywords.caller_of(context), requests.GetGraphStats(bank_id))

    def export_graph(
        self,
        bank_id: str,
        *,
        format: GraphFormat | str = GraphFormat.JSON_LINES,  # noqa: A002 - the name of the protocol's field
        as_of: datetime | None = None,
        context: AstrocyteContext | None = None,
    ) -> AsyncIterator[str]:
        """The graph as text, in pieces: ``json_lines`` or ``graphml``."""
        request = requests.ExportGraph(bank_id, format, as_of)  # type: ignore[arg-type]  # the gate takes the bare name
        return self._backend.stream(keywords.caller_of(context), request)

    async def rebuild_graph(
        self, bank_id: str, *, request_id: str | None = None, context: AstrocyteContext | None = None
    ) -> GraphStats:
        """Derive the graph again from the memories, in the background; `graph_stats` has the progress."""
        return await self._backend.call(keywords.caller_of(context), requests.RebuildGraph(bank_id, request_id))


def _new(link: EntityLink | NewEntityLink, index: int) -> NewEntityLink:
    """A link to store, of a link as it is read.

    Raises:
        ValidationError: It is stored already, or is none.
    """
    if isinstance(link, NewEntityLink):
        return link
    if not isinstance(link, EntityLink):
        raise ValidationError(f"expected an EntityLink, got {type(link).__name__}", field=f"links[{index}]")
    for name in ("created_at", "link_id", "memory_id"):
        if getattr(link, name):
            raise ValidationError("is set by the server; leave it out", field=f"links[{index}].{name}")
    return NewEntityLink(
        link.entity_a,
        link.entity_b,
        link.link_type,
        link.evidence,
        link.confidence,
        link.metadata or {},
        link.valid_from,
        link.valid_until,
    )
