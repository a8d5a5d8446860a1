"""Arguments of the tools on the entity graph."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Sized


class GraphSearchArguments(Sized):
    """Arguments of memory_graph_search."""

    query: str = Field(description="A name, or the beginning of one.")
    entity_types: list[str] = Field(
        default_factory=list, description="Only entities of these types, such as PERSON, ORG or PLACE."
    )


class GraphNeighborsArguments(Sized):
    """Arguments of memory_graph_neighbors."""

    entity_ids: list[str] = Field(min_length=1, description="Ids that memory_graph_search returned.")
    max_depth: int = Field(2, ge=1, description="Maximum number of links between an entity and its neighbour.")
    link_types: list[str] = Field(
        default_factory=list, description="Only links of these types, such as works_at. Empty for all."
    )
