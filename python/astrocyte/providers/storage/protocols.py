"""Protocols of external stores for vectors and documents, and what those for entities share with them.

Stores are found by their entry points. The SQLite store is the primary store. An external store holds a copy of it,
made from the change log, and proposes memories in a recall. Each proposal is read back from the primary store before it
leaves, so that a store which is stale, or which forgets a filter, can cost recall but never shows a memory that it
should not.

All methods are coroutines, called from one event loop, several at a time. Writes are upserts by (bank, id): doing one
twice does it once. A name of a bank is opaque, up to 600 characters, and never used again for another bank. Times are
integer milliseconds since the epoch, UTC. Any exception is a failure: what was written is written again, and a recall
goes on without the store. `astrocyte.testing` has the tests that every implementation must pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

# The version of the protocols of vector and document stores. A store says which one it was written for.
SPI_VERSION = 1

# A first and a last instant, both included; None is open.
Span = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Attributes:
    """The filtered attributes of a version of a memory, as in the primary store.

    ``metadata`` holds values with their type, as one text (``s`` before a string, ``i`` an integer, ``d`` a number;
    ``t``, ``f`` and ``n`` for true, false and null): equal texts are equal values. ``known_from`` and ``known_until``
    bound when the version was the current one, the end not included; ``valid_from`` and ``valid_until`` when it was
    true, both included.
    """

    memory_id: str
    retained_at: int
    known_from: int
    known_until: int | None = None
    occurred_at: int | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    fact_type: str = ""
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VectorItem:
    """A passage of a version of a memory, as a vector of little-endian f32. ``id`` is unique in the bank."""

    id: str
    bank_id: str
    vector: bytes
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Document:
    """A passage of a version of a memory, as text. ``id`` is unique in the bank."""

    id: str
    bank_id: str
    text: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class StoreHit:
    """A proposal: an item, its memory, and a score from 0 to 1, higher for better."""

    id: str
    memory_id: str
    score: float


@dataclass(frozen=True, slots=True)
class StoreFilters:
    """The conditions on an item. Parts combine with AND; of several fact types or memory ids, any one is enough.

    Without ``as_of`` the current versions alone pass. ``time_range`` is about when it happened, or was retained where
    that is not known.
    """

    tags: tuple[str, ...] = ()
    tag_match: Literal["any", "all", "none"] = "any"
    fact_types: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    session_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    time_range: Span | None = None
    retained_range: Span | None = None
    as_of: int | None = None
    valid_at: int | None = None

    def admit(self, item: Attributes) -> bool:
        """True if the item passes. This is the definition; a store may call it for filters that it cannot evaluate."""
        happened = item.retained_at if item.occurred_at is None else item.occurred_at
        return (
            self._known(item)
            and self._tagged(item.tags)
            and (not self.fact_types or item.fact_type in self.fact_types)
            and (not self.memory_ids or item.memory_id in self.memory_ids)
            and self.session_id in {None, item.session_id}
            and self.metadata.items() <= item.metadata.items()
            and _within(happened, self.time_range)
            and _within(item.retained_at, self.retained_range)
            and self.holds((item.valid_from, item.valid_until))
        )

    def holds(self, validity: Span) -> bool:
        """True if ``valid_at`` is within, or not given."""
        return self.valid_at is None or _within(self.valid_at, validity)

    def _known(self, item: Attributes) -> bool:
        if self.as_of is None:
            return item.known_until is None
        return item.known_from <= self.as_of and (item.known_until is None or self.as_of < item.known_until)

    def _tagged(self, tags: Sequence[str]) -> bool:
        if not self.tags:
            return True
        match self.tag_match:
            case "all":
                return set(self.tags) <= set(tags)
            case "none":
                return set(self.tags).isdisjoint(tags)
            case "any":
                return not set(self.tags).isdisjoint(tags)


def _within(time: int, span: Span | None) -> bool:
    if span is None:
        return True
    first, last = span
    return (first is None or first <= time) and (last is None or time <= last)


# The filter of a search that names none: what is current.
CURRENT = StoreFilters()


class OutsideStore(Protocol):
    """The common base of the three kinds: a copy of the banks of one server, each up to a position."""

    SPI_VERSION: ClassVar[int]

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the store is current; 0 for an unknown bank."""

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the store is current, as durably as the earlier writes."""

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all items of these memories in the bank; returns their number. Without ids nothing changes."""

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks with items or a position whose names have the prefix, in ascending order."""

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with all its items and its position. An unknown bank is not an error."""

    async def health(self) -> bool:
        """True if the store can be written and searched now. Never raises."""

    async def close(self) -> None:
        """Release connections; nothing is called afterwards."""


class VectorStore(OutsideStore, Protocol):
    """Finds passages by the direction of their vectors. Vectors of one bank have one length, up to 4,096."""

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        """Store the items, replacing those of the same bank and id; returns their ids, in order."""

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """The items nearest by cosine that pass the filter, best first, equal scores by id.

        The score is (1 + cosine) / 2. A vector of zeros is near nothing: its cosine is 0. None filters as
        `StoreFilters()` does.
        """

    async def list_vectors(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[VectorItem]:
        """All items of the bank by id, versions of the past included, from an offset on."""


class DocumentStore(OutsideStore, Protocol):
    """Finds passages by their words."""

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store the documents, replacing those of the same bank and id; returns their ids, in order."""

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """Documents that pass the filter and have any word of the query, best first, equal scores by id.

        How words are told apart and what each counts is the store's own matter; more of the query's words make no lower
        a score. A query without words finds nothing.
        """

    async def get_document(self, document_id: str, bank_id: str) -> Document | None:
        """The document of that id, or None."""
