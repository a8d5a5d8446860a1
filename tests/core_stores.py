"""The index of the core behind the protocols of stores from outside: each item is a memory of its own to it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from astrocyte.core import Bank, Core, RecallRequest, Row
from astrocyte.pipelines.preparing import usable
from astrocyte.providers.storage import CURRENT, Document, StoreFilters, StoreHit, VectorItem
from astrocyte.providers.storage.in_memory import InMemoryDocumentStore, InMemoryVectorStore

# More than any bank of the contract holds.
ALL = 4_096


class _Index:
    """The core's bank of one bank, and its items by their keys there."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.keys: dict[str, int] = {}
        self.items: dict[int, VectorItem | Document] = {}
        self.position = 0

    def put(self, item: VectorItem | Document, text: str, vector: bytes | None) -> None:
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

    def find(self, filters: StoreFilters | None, **asked: Any) -> list[tuple[VectorItem | Document, float]]:
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


def _forget(index: _Index | None, memory_ids: Sequence[str]) -> None:
    if index is not None:
        index.remove([item.id for item in index.items.values() if item.attributes.memory_id in memory_ids])


def _vector(item: VectorItem | Document) -> bytes:
    assert isinstance(item, VectorItem)
    return item.vector


def _identity(item_id: str) -> bytes:
    return hashlib.blake2b(item_id.encode(), digest_size=16).digest()


def _best(hits: list[StoreHit], limit: int) -> list[StoreHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
