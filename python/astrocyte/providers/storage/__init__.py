"""External stores: the protocols, and the implementations that ship with the package."""

from astrocyte.providers.storage.protocols import (
    CURRENT,
    SPI_VERSION,
    Attributes,
    Document,
    DocumentStore,
    EntityLink,
    GraphStore,
    OutsideStore,
    Span,
    StoreFilters,
    StoreHit,
    VectorItem,
    VectorStore,
)

__all__ = [
    "CURRENT",
    "SPI_VERSION",
    "Attributes",
    "Document",
    "DocumentStore",
    "EntityLink",
    "GraphStore",
    "OutsideStore",
    "Span",
    "StoreFilters",
    "StoreHit",
    "VectorItem",
    "VectorStore",
]
