"""Stores in plain Python, exact and slow: the reference implementation of the protocols.

Nothing outlives the process, so at each start the change log is followed from its beginning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from astrocyte.core import vector_values
from astrocyte.providers.options import read_options
from astrocyte.providers.storage.in_memory_graph import InMemoryGraphStore
from astrocyte.providers.storage.in_memory_shelf import Shelf, best
from astrocyte.providers.storage.protocols import Document, StoreFilters, StoreHit, VectorItem

__all__ = [
    "InMemoryDocumentStore",
    "InMemoryGraphStore",
    "InMemoryVectorStore",
    "create_document_store",
    "create_graph_store",
    "create_vector_store",
]

_WORD = re.compile(r"[^\W_]+")


class InMemoryOptions(BaseModel):
    """No options."""

    model_config = ConfigDict(extra="forbid")


class InMemoryVectorStore(Shelf[VectorItem]):
    """Implements `astrocyte.providers.storage.VectorStore`."""

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        """Store the items, replacing those of the same id."""
        return self.put(items)

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """The items nearest by cosine."""
        wanted = vector_values(query_vector)
        hits = [
            StoreHit(item.id, item.attributes.memory_id, (1.0 + _cosine(wanted, vector_values(item.vector))) / 2.0)
            for item in self.passing(bank_id, filters)
        ]
        return best(hits, limit)

    async def list_vectors(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[VectorItem]:
        """All items by id."""
        return sorted(self._banks.get(bank_id, {}).values(), key=lambda item: item.id)[offset : offset + limit]


class InMemoryDocumentStore(Shelf[Document]):
    """Implements `astrocyte.providers.storage.DocumentStore`; a score is the share of words that are there."""

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store the documents, replacing those of the same id."""
        return self.put(documents)

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """Documents that contain a word of the query."""
        wanted = _words(query)
        hits = [
            StoreHit(document.id, document.attributes.memory_id, len(common) / len(wanted))
            for document in self.passing(bank_id, filters)
            if (common := wanted & _words(document.text))
        ]
        return best(hits, limit)

    async def get_document(self, document_id: str, bank_id: str) -> Document | None:
        """The document of that id."""
        return self._banks.get(bank_id, {}).get(document_id)


def create_vector_store(options: Mapping[str, Any]) -> InMemoryVectorStore:
    """A vector store; it has no options."""
    read_options(InMemoryOptions, options, "vector_store_config")
    return InMemoryVectorStore()


def create_document_store(options: Mapping[str, Any]) -> InMemoryDocumentStore:
    """A document store; it has no options."""
    read_options(InMemoryOptions, options, "document_store_config")
    return InMemoryDocumentStore()


def create_graph_store(options: Mapping[str, Any]) -> InMemoryGraphStore:
    """A graph store; it has no options."""
    read_options(InMemoryOptions, options, "graph_store_config")
    return InMemoryGraphStore()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    scale = math.hypot(*one) * math.hypot(*other)
    return sum(map(float.__mul__, one, other)) / scale if scale else 0.0
