"""Stores in plain Python, exact and slow: the reference implementation of the protocols.

Nothing outlives the process, so at each start the change log is followed from its beginning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from astrocyte.core import vector_values
from astrocyte.providers.options import read_options
from astrocyte.providers.storage.protocols import (
    CURRENT,
    SPI_VERSION,
    Attributes,
    Document,
    EntityLink,
    StoreFilters,
    StoreHit,
    VectorItem,
)

_WORD = re.compile(r"[^\W_]+")


class _Item(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def bank_id(self) -> str: ...
    @property
    def attributes(self) -> Attributes: ...


I = TypeVar("I", bound=_Item)  # noqa: E741 - an item


class InMemoryOptions(BaseModel):
    """No options."""

    model_config = ConfigDict(extra="forbid")


class _Shelf(Generic[I]):
    """Items and positions by bank."""

    SPI_VERSION: ClassVar[int] = SPI_VERSION

    def __init__(self) -> None:
        self._banks: dict[str, dict[str, I]] = {}
        self._positions: dict[str, int] = {}

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the store is current."""
        return self._positions.get(bank_id, 0)

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the store is current."""
        self._positions[bank_id] = position

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all items of these memories in the bank."""
        items = self._banks.get(bank_id, {})
        going = [item.id for item in items.values() if item.attributes.memory_id in set(ids)]
        for item_id in going:
            del items[item_id]
        return len(going)

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        there = {bank_id for bank_id, items in self._banks.items() if items} | self._positions.keys()
        return sorted(bank_id for bank_id in there if bank_id.startswith(prefix))

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it."""
        self._banks.pop(bank_id, None)
        self._positions.pop(bank_id, None)

    async def health(self) -> bool:
        """Always true: a store in memory cannot be unreachable."""
        return True

    async def close(self) -> None:
        """Nothing to release."""

    def _put(self, items: Sequence[I]) -> list[str]:
        for item in items:
            self._banks.setdefault(item.bank_id, {})[item.id] = item
        return [item.id for item in items]

    def _passing(self, bank_id: str, filters: StoreFilters | None) -> list[I]:
        admit = (filters or CURRENT).admit
        return [item for item in self._banks.get(bank_id, {}).values() if admit(item.attributes)]


class InMemoryVectorStore(_Shelf[VectorItem]):
    """Implements `astrocyte.providers.storage.VectorStore`."""

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        """Store the items, replacing those of the same id."""
        return self._put(items)

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """The items nearest by cosine."""
        wanted = vector_values(query_vector)
        hits = [
            StoreHit(item.id, item.attributes.memory_id, (1.0 + _cosine(wanted, vector_values(item.vector))) / 2.0)
            for item in self._passing(bank_id, filters)
        ]
        return _best(hits, limit)

    async def list_vectors(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[VectorItem]:
        """All items by id."""
        return sorted(self._banks.get(bank_id, {}).values(), key=lambda item: item.id)[offset : offset + limit]


class InMemoryDocumentStore(_Shelf[Document]):
    """Implements `astrocyte.providers.storage.DocumentStore`; a score is the share of words that are there."""

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store the documents, replacing those of the same id."""
        return self._put(documents)

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """Documents that contain a word of the query."""
        wanted = _words(query)
        hits = [
            StoreHit(document.id, document.attributes.memory_id, len(common) / len(wanted))
            for document in self._passing(bank_id, filters)
            if (common := wanted & _words(document.text))
        ]
        return _best(hits, limit)

    async def get_document(self, document_id: str, bank_id: str) -> Document | None:
        """The document of that id."""
        return self._banks.get(bank_id, {}).get(document_id)


class InMemoryGraphStore(_Shelf[EntityLink]):
    """Implements `astrocyte.providers.storage.GraphStore`."""

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        """Store the links, replacing those of the same id."""
        return self._put(links)

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        """The entities of any of these names."""
        links = self._banks.get(bank_id, {}).values()
        return sorted({link.entity_id for link in links if link.folded in names})[:limit]

    async def query_neighbors(
        self,
        entity_ids: Sequence[str],
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        filters: StoreFilters | None = None,
    ) -> list[StoreHit]:
        """Links of the entities, and of those named together with them."""
        links = self._passing(bank_id, filters)
        seen, frontier = set(entity_ids), set(entity_ids)
        hits: list[StoreHit] = []
        for depth in range(1, max_depth + 1):
            reached = [link for link in links if link.entity_id in frontier]
            hits += [StoreHit(link.id, link.attributes.memory_id, 1.0 / depth) for link in reached]
            memories = {link.attributes.memory_id for link in reached}
            frontier = {link.entity_id for link in links if link.attributes.memory_id in memories} - seen
            seen |= frontier
        return _best(hits, limit)


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


def _best(hits: list[StoreHit], limit: int) -> list[StoreHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    scale = math.hypot(*one) * math.hypot(*other)
    return sum(map(float.__mul__, one, other)) / scale if scale else 0.0
