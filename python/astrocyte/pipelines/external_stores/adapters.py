"""The kinds of external stores behind one interface for replication and search."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from astrocyte.errors import ProviderUnavailable
from astrocyte.pipelines.external_stores.items import Naming, documents_of, links_of, vectors_of
from astrocyte.pipelines.search.entity_arm import phrases
from astrocyte.providers.circuit_breaker import Breaker
from astrocyte.providers.storage import (
    Document,
    DocumentStore,
    EntityLink,
    GraphStore,
    OutsideStore,
    StoreFilters,
    StoreHit,
    VectorItem,
    VectorStore,
)
from astrocyte.stores.records import VersionRecord

T = TypeVar("T")

# Of a question.
MOST_ENTITIES = 16


class Kind(Protocol):
    """An external store behind the operations of its kind."""

    @property
    def name(self) -> str:
        """The name of its setting, and of its arm."""

    @property
    def weight(self) -> float:
        """Of its arm."""

    @property
    def store(self) -> OutsideStore:
        """The store."""

    def items(self, versions: Sequence[VersionRecord], name: str) -> Sequence[Any]:
        """The stored items of versions of a bank of that name. Takes long; called in a thread."""

    async def put(self, items: Sequence[Any]) -> None:
        """Store items, at least one."""

    async def ask(
        self, text: str, vector: bytes | None, name: str, limit: int, filters: StoreFilters
    ) -> Sequence[StoreHit]:
        """The store's proposals; none if the query lacks the vector, words or entities that it searches by."""


class Vectors:
    """`Kind` of a vector store."""

    name = "vector_store"

    def __init__(self, store: VectorStore, weight: float) -> None:
        self.store = store
        self.weight = weight

    def items(self, versions: Sequence[VersionRecord], name: str) -> list[VectorItem]:
        """The vectors of versions."""
        return vectors_of(versions, name)

    async def put(self, items: Sequence[VectorItem]) -> None:
        """Store vectors."""
        await self.store.store_vectors(items)

    async def ask(
        self, text: str, vector: bytes | None, name: str, limit: int, filters: StoreFilters
    ) -> Sequence[StoreHit]:
        """Passages near the vector of the query."""
        del text
        if vector is None:
            return []
        hits = await self.store.search_similar(vector, name, limit, filters)
        # Cosines again: of these, unlike of the scores, nothing is near 0.
        return [replace(hit, score=2.0 * hit.score - 1.0) for hit in hits]


class Documents:
    """`Kind` of a document store."""

    name = "document_store"

    def __init__(self, store: DocumentStore, weight: float) -> None:
        self.store = store
        self.weight = weight

    def items(self, versions: Sequence[VersionRecord], name: str) -> list[Document]:
        """The texts of versions."""
        return documents_of(versions, name)

    async def put(self, items: Sequence[Document]) -> None:
        """Store texts."""
        await self.store.store_documents(items)

    async def ask(
        self, text: str, vector: bytes | None, name: str, limit: int, filters: StoreFilters
    ) -> Sequence[StoreHit]:
        """Passages with words of the query."""
        del vector
        return await self.store.search_fulltext(text, name, limit, filters) if text else []


class Graph:
    """`Kind` of a graph store.

    Args:
        store: Who is asked.
        weight: Of its arm.
        named: Tells the entities of a version.
        depth: How many names apart a walk goes; further, everything is beside everything.
        most: How many memories it may propose; None for as many as any store.
    """

    name = "graph_store"

    def __init__(
        self, store: GraphStore, weight: float, named: Naming, depth: int = 2, most: int | None = None
    ) -> None:
        self.store = store
        self.weight = weight
        self._named = named
        self._depth = depth
        self._most = most

    def items(self, versions: Sequence[VersionRecord], name: str) -> list[EntityLink]:
        """The entity links of versions."""
        return links_of(versions, name, self._named)

    async def put(self, items: Sequence[EntityLink]) -> None:
        """Store entity links."""
        await self.store.link_memories_to_entities(items)

    async def ask(
        self, text: str, vector: bytes | None, name: str, limit: int, filters: StoreFilters
    ) -> Sequence[StoreHit]:
        """Memories that name entities of the query, or entities that are named together with these."""
        del vector
        entities = await self.store.query_entities(phrases(text), name, MOST_ENTITIES) if text else []
        most = limit if self._most is None else min(limit, self._most)
        return await self.store.query_neighbors(entities, name, self._depth, most, filters) if entities else []


class Guarded:
    """A store with a deadline for each call, and a circuit breaker.

    Args:
        kind: The store.
        breaker: Its own.
    """

    def __init__(self, kind: Kind, breaker: Breaker) -> None:
        self.kind = kind
        self._breaker = breaker

    async def call(self, work: Callable[[], Awaitable[T]], seconds: float) -> T:
        """The result of one call to the store.

        Raises:
            CircuitOpen: It failed so often that it was not asked.
            ProviderUnavailable: It failed, or did not answer in time.
        """
        with self._breaker.call():
            try:
                async with asyncio.timeout(seconds):
                    return await work()
            except TimeoutError as error:
                raise self._failure(f"did not answer in {seconds:g} s") from error
            except Exception as error:
                # Without its message, which could hold what was sent.
                raise self._failure(f"failed ({type(error).__name__})") from error

    def _failure(self, problem: str) -> ProviderUnavailable:
        return ProviderUnavailable(f"{self.kind.name} {problem}", metadata={"provider": self.kind.name})
