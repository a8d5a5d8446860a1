"""A vector store over Qdrant. By default a search reads every vector of the bank that passes the filter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

from qdrant_client import models

from astrocyte.core import vector_values
from astrocyte.providers.storage.protocols import SPI_VERSION, StoreFilters, StoreHit, VectorItem
from astrocyte.providers.storage.qdrant.collections import Collections
from astrocyte.providers.storage.qdrant.points import (
    any_of,
    condition,
    direction,
    item_of,
    of_bank,
    point_id,
    point_of,
)

# Components of one write: some 6 MB of JSON, where Qdrant's default limit is 32.
_COMPONENTS = 262_144


class QdrantVectorStore:
    """Implements `astrocyte.providers.storage.VectorStore`.

    A bank is a field of its points; those of one length share a collection. A bank with points is registered before
    them, because a list of all values of a field would have to be bounded.

    Args:
        collections: Where they are.
    """

    SPI_VERSION: ClassVar[int] = SPI_VERSION

    def __init__(self, collections: Collections) -> None:
        self._collections = collections
        self._client = collections.client

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the store is current."""
        found = await self._client.retrieve(await self._collections.banks(), [point_id("position", bank_id)])
        return int((found[0].payload or {})["position"]) if found else 0

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the store is current."""
        await self._note(point_id("position", bank_id), {"bank_id": bank_id, "position": position})

    async def store_vectors(self, items: Sequence[VectorItem]) -> list[str]:
        """Store the items, replacing those of the same id."""
        for bank_id in {item.bank_id for item in items}:
            await self._note(point_id("bank", bank_id), {"bank_id": bank_id})
        for length, of_length in groupby(items, lambda item: len(vector_values(item.vector))):
            collection = await self._collections.of_length(length)
            points = [point_of(item) for item in of_length]
            batch = max(1, _COMPONENTS // length)
            for first in range(0, len(points), batch):
                await self._client.upsert(collection, points[first : first + batch], wait=True)
        return [item.id for item in items]

    async def search_similar(
        self, query_vector: bytes, bank_id: str, limit: int = 10, filters: StoreFilters | None = None
    ) -> list[StoreHit]:
        """The items nearest by cosine. Of equal scores at the limit, Qdrant chooses those that are returned."""
        wanted = direction(query_vector)
        found = await self._client.query_points(
            await self._collections.of_length(len(wanted)),
            query=wanted,
            query_filter=condition(bank_id, filters),
            search_params=self._collections.search_params,
            limit=limit,
            with_payload=["item_id", "memory_id"],
        )
        hits = [
            StoreHit(payload["item_id"], payload["memory_id"], min(1.0, max(0.0, (1.0 + point.score) / 2.0)))
            for point in found.points
            if (payload := point.payload)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    async def list_vectors(self, bank_id: str, offset: int = 0, limit: int = 100) -> list[VectorItem]:
        """All items by id. Reads the ids of the whole bank, because Qdrant orders points by their own ids."""
        ids: list[tuple[str, str, str]] = []
        for collection in await self._collections.of_vectors():
            found = self._collections.payloads(collection, of_bank(bank_id), ["item_id"])
            ids += [(payload["item_id"], collection, point) async for point, payload in found]
        items: list[VectorItem] = []
        for collection, page in groupby(sorted(ids)[offset : offset + limit], lambda place: place[1]):
            points = await self._client.retrieve(collection, [point for _, _, point in page])
            items += [item_of(point.payload or {}) for point in points]
        return sorted(items, key=lambda item: item.id)

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all items of these memories in the bank."""
        if not ids:
            return 0
        return await self._delete(of_bank(bank_id, any_of("memory_id", list(ids))))

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        found = self._collections.payloads(await self._collections.banks(), None, ["bank_id"])
        return sorted({payload["bank_id"] async for _, payload in found if payload["bank_id"].startswith(prefix)})

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it; its registration last, so that a drop that fails is repeated."""
        await self._delete(of_bank(bank_id))
        await self._client.delete(await self._collections.banks(), of_bank(bank_id), wait=True)

    async def health(self) -> bool:
        """True if the server answers."""
        try:
            await self._collections.of_vectors()
        except Exception:  # noqa: BLE001 - whatever it is, the store cannot be used
            return False
        return True

    async def close(self) -> None:
        """Release the connections."""
        await self._collections.close()

    async def _note(self, point: str, payload: models.Payload) -> None:
        collection = await self._collections.banks()
        await self._client.upsert(collection, [models.PointStruct(id=point, vector=[1.0], payload=payload)], wait=True)

    async def _delete(self, going: models.Filter) -> int:
        deleted = 0
        for collection in await self._collections.of_vectors():
            there = await self._client.count(collection, going, exact=True)
            if there.count:
                await self._client.delete(collection, going, wait=True)
                deleted += there.count
        return deleted
