"""External stores: the protocols, and the implementations that ship with the package."""

from astrocyte.providers.storage.graph_protocol import (
    GRAPH_SPI_VERSION,
    EntityLink,
    EntityRecord,
    GraphStore,
    LinkRecord,
)
from astrocyte.providers.storage.protocols import (
    CURRENT,
    SPI_VERSION,
    Attributes,
    Document,
    DocumentStore,
    OutsideStore,
    Span,
    StoreFilters,
    StoreHit,
    VectorItem,
    VectorStore,
)

__all__ = [
    "CURRENT",
    "GRAPH_SPI_VERSION",
    "SPI_VERSION",
    "Attributes",
    "Document",
    "DocumentStore",
    "EntityLink",
    "EntityRecord",
    "GraphStore",
    "LinkRecord",
    "OutsideStore",
    "Span",
    "StoreFilters",
    "StoreHit",
    "VectorItem",
    "VectorStore",
]
