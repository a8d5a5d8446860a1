"""The index of the core, and the names in the database, behind the protocols of external stores.

Each item is a memory of its own to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from astrocyte.core import Bank, Core, RecallRequest, Row
from astrocyte.model import Bank as StoredBank
from astrocyte.model import Entity, ForgetSelector
from astrocyte.pipelines.index.embedding_spaces import usable
from astrocyte.providers.storage import CURRENT, Document, EntityLink, StoreFilters, StoreHit, VectorItem
from astrocyte.providers.storage.in_memory import InMemoryDocumentStore, InMemoryGraphStore, InMemoryVectorStore
from astrocyte.stores.sqlite import open_store
from samples.memories import insert, make_bank, memory, memory_id

# More than any bank of the contract holds.
ALL = 4_096
# What all links say, so that one question finds those that pass.
LINK = "link"


Item = VectorItem | Document | EntityLink


class _Index:
    """The core's bank of one bank, and its items by their keys there."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.keys: dict[str, int] = {}
        self.items: dict[int, Item] = {}
        self.position = 0

    def put(self, item: Item, text: str, vector: bytes | None) -> None:
        self.remove([item.id])
        self.position += 1
        key = self.position
        self.keys[item.id] = key
        self.items[key] = item
        own = item.attributes
        self.bank.apply(
            self.position,
            [
                Row(
                    key,
                    _identity(item.id),
                    _identity(item.id),
                    text,
                    vector,
                    tokens=1,
                    known_from=own.known_from,
                    retained_at=own.retained_at,
                    known_until=own.known_until,
                    occurred_at=own.occurred_at,
                    valid_from=own.valid_from,
                    valid_until=own.valid_until,
                    fact_type=own.fact_type,
                    tags=own.tags,
                    metadata=list(own.metadata.items()),
                    session=own.session_id,
                )
            ],
        )

    def remove(self, item_ids: Sequence[str]) -> None:
        gone = [self.keys.pop(item_id) for item_id in item_ids if item_id in self.keys]
        for key in gone:
            del self.items[key]
        if gone:
            self.position += 1
            self.bank.apply(self.position, removed=gone)

    def find(self, filters: StoreFilters | None, **asked: Any) -> list[tuple[Item, float]]:
        wanted = filters or CURRENT
        memory_ids = None
        if wanted.memory_ids:
            memory_ids = [
                _identity(item.id) for item in self.items.values() if item.attributes.memory_id in wanted.memory_ids
            ]
        request = RecallRequest(
            k=ALL,
            depth=ALL,
            tags=wanted.tags,
            tag_match=wanted.tag_match,
            fact_types=wanted.fact_types,
            metadata=list(wanted.metadata.items()),
            session=wanted.session_id,
            occurred=wanted.time_range,
            retained=wanted.retained_range,
            as_of=wanted.as_of,
            valid_at=wanted.valid_at,
            memory_ids=memory_ids,
            context_windows=False,
            **asked,
        )
        return [(self.items[hit.key], score) for hit in self.bank.recall(request).hits for _, _, score in hit.arms]


class CoreVectorStore(InMemoryVectorStore):
    """Searches by the core's dense arm; a vector of zeros has no direction there, and is answered for here."""

    def __init__(self) -> None:
        super().__init__()
        self._core = Core()
        self._indexes: dict[str, _Index] = {}

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        for item in items:
            index = self._indexes.setdefault(item.bank_id, _Index(self._core.bank(len(item.vector) // 4)))
            index.put(item, "", usable(item.vector))
        return await super().store_vectors(items)

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        _forget(self._indexes.get(bank_id), ids)
        return await super().delete(ids, bank_id)

    async def drop_bank(self, bank_id: str) -> None:
        self._indexes.pop(bank_id, None)
        await super().drop_bank(bank_id)

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        index = self._indexes.get(bank_id)
        if index is None:
            return []
        asked = usable(query_vector)
        found = [] if asked is None else index.find(filters, vector=asked, weights=(1.0, 0.0, 0.0))
        hits = [(item.id, item.attributes, (1.0 + max(-1.0, min(1.0, cosine))) / 2.0) for item, cosine in found]
        near = {item_id for item_id, _, _ in hits}
        admit = (filters or CURRENT).admit
        hits += [
            (item.id, item.attributes, 0.5)
            for item in index.items.values()
            if item.id not in near and (asked is None or usable(_vector(item)) is None) and admit(item.attributes)
        ]
        return _best([StoreHit(item_id, own.memory_id, score) for item_id, own, score in hits], limit)


class CoreDocumentStore(InMemoryDocumentStore):
    """Searches by the core's keyword arm."""

    def __init__(self) -> None:
        super().__init__()
        self._core = Core()
        self._indexes: dict[str, _Index] = {}

    async def store_documents(self, documents: Sequence[Document]) -> list[str]:
        for document in documents:
            index = self._indexes.setdefault(document.bank_id, _Index(self._core.bank(1)))
            index.put(document, document.text, None)
        return await super().store_documents(documents)

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        _forget(self._indexes.get(bank_id), ids)
        return await super().delete(ids, bank_id)

    async def drop_bank(self, bank_id: str) -> None:
        self._indexes.pop(bank_id, None)
        await super().drop_bank(bank_id)

    async def search_fulltext(
        self, query: str, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        index = self._indexes.get(bank_id)
        if index is None or not query:
            return []
        found = index.find(filters, text=query, weights=(0.0, 1.0, 0.0))
        return _best(
            [StoreHit(item.id, item.attributes.memory_id, score / (1.0 + score)) for item, score in found], limit
        )


class CoreGraphStore(InMemoryGraphStore):
    """Looks names up in the table in which memories have theirs, and filters by the core's columns."""

    def __init__(self) -> None:
        super().__init__()
        self._core = Core()
        self._indexes: dict[str, _Index] = {}
        self._names = open_store(None)
        self._named: dict[str, StoredBank] = {}

    async def close(self) -> None:
        self._names.close()

    async def link_memories_to_entities(self, links: Sequence[EntityLink]) -> list[str]:
        for bank_id in dict.fromkeys(link.bank_id for link in links):
            if bank_id not in self._named:
                self._indexes[bank_id] = _Index(self._core.bank(1))
                self._named[bank_id] = await make_bank(self._names, bank_id, dimensions=1)
            fresh = {link.id: link for link in links if link.bank_id == bank_id}
            await self._unname(bank_id, fresh)
            for link in fresh.values():
                self._indexes[bank_id].put(link, LINK, None)
            keys = self._indexes[bank_id].keys
            named = [
                memory(keys[link.id], vector=None, entities=(Entity(link.folded, link.entity_type),))
                for link in fresh.values()
            ]
            await insert(self._names, self._named[bank_id], *named)
        return await super().link_memories_to_entities(links)

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        index = self._indexes.get(bank_id)
        if index is not None:
            gone = [item.id for item in index.items.values() if item.attributes.memory_id in ids]
            await self._unname(bank_id, gone)
            index.remove(gone)
        return await super().delete(ids, bank_id)

    async def drop_bank(self, bank_id: str) -> None:
        if bank_id in self._named:
            await self._names.delete_bank(self._named.pop(bank_id), expected_etag=None)
            del self._indexes[bank_id]
        await super().drop_bank(bank_id)

    async def query_entities(self, names: Sequence[str], bank_id: str, limit: int = 10) -> list[str]:
        return sorted({link.entity_id for link in self._naming(names, bank_id)} | self.recorded(names, bank_id))[:limit]

    async def query_neighbors(
        self,
        entity_ids: Sequence[str],
        bank_id: str,
        max_depth: int = 2,
        limit: int = 20,
        filters: StoreFilters | None = None,
    ) -> list[StoreHit]:
        index = self._indexes.get(bank_id)
        if index is None:
            return []
        found = index.find(filters, text=LINK, weights=(0.0, 1.0, 0.0))
        passing = {item.id: item for item, _ in found if isinstance(item, EntityLink)}
        folded = {link.entity_id: link.folded for link in passing.values()}
        seen: set[str] = set()
        frontier = set(entity_ids)
        hits: list[StoreHit] = []
        for depth in range(1, max_depth + 1):
            frontier = self.joined(frontier, bank_id) - seen
            seen |= frontier
            there = self._naming([folded[one] for one in frontier if one in folded], bank_id)
            reached = [link for link in there if link.id in passing and link.entity_id in frontier]
            hits += [StoreHit(link.id, link.attributes.memory_id, 1.0 / depth) for link in reached]
            memories = {link.attributes.memory_id for link in reached}
            beside = {link.entity_id for link in passing.values() if link.attributes.memory_id in memories}
            frontier = (beside | self.linked(frontier, bank_id, filters)) - seen
        return _best(hits, limit)

    def _naming(self, names: Sequence[str], bank_id: str) -> list[EntityLink]:
        """The links to entities of these names."""
        if bank_id not in self._named:
            return []
        found = self._names.naming(self._named[bank_id], names, as_of=None, most=ALL)
        items = self._indexes[bank_id].items
        links = {memory_id(key): item for key, item in items.items() if isinstance(item, EntityLink)}
        return [links[one] for one in dict.fromkeys(one for ids in found.values() for one in ids)]

    async def _unname(self, bank_id: str, link_ids: Iterable[str]) -> None:
        """Forget what links of before named."""
        keys = self._indexes[bank_id].keys
        gone = tuple(memory_id(keys[one]) for one in link_ids if one in keys)
        if gone:
            selector = ForgetSelector(memory_ids=gone)
            await self._names.erase(self._named[bank_id], selector, reason="", principal="me")


def _forget(index: _Index | None, memory_ids: Sequence[str]) -> None:
    if index is not None:
        index.remove([item.id for item in index.items.values() if item.attributes.memory_id in memory_ids])


def _vector(item: Item) -> bytes:
    assert isinstance(item, VectorItem)
    return item.vector


def _identity(item_id: str) -> bytes:
    return hashlib.blake2b(item_id.encode(), digest_size=16).digest()


def _best(hits: list[StoreHit], limit: int) -> list[StoreHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
