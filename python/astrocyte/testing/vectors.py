"""The contract of vector stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from astrocyte.core import vector_bytes
from astrocyte.providers.storage import Attributes, StoreFilters, StoreHit, VectorItem, VectorStore
from astrocyte.testing.contract import ALL, BANK, OTHER, OutsideContract, attributes, scenario

# Stores may compute in single precision.
TOLERANCE = 1e-5


class VectorStoreContract(OutsideContract[VectorStore]):
    """Subclass it, and give `open`."""

    async def put(self, store: VectorStore, bank_id: str, items: Mapping[str, Attributes]) -> None:
        """Store each item with a vector of its own, none of them opposite to what `find` asks for."""
        vectors = [vector_bytes([1.0, 0.5 + number % 7]) for number, _ in enumerate(items)]
        stored = await store.store_vectors(
            [
                VectorItem(item_id, bank_id, vector, item)
                for (item_id, item), vector in zip(items.items(), vectors, strict=True)
            ]
        )
        assert stored == list(items)

    async def find(
        self, store: VectorStore, bank_id: str, filters: StoreFilters | None = None, limit: int = ALL
    ) -> Sequence[StoreHit]:
        """Search in the direction of the first axis."""
        return await store.search_similar(vector_bytes([1.0, 0.0]), bank_id, limit, filters)

    @scenario
    async def test_scores_are_half_of_one_plus_the_cosine(self, store: VectorStore) -> None:
        """Whatever the lengths of the vectors; one of zeros is near nothing."""
        vectors = {
            "same": [3.0, 4.0],
            "scaled": [0.3, 0.4],
            "across": [-4.0, 3.0],
            "opposite": [-3.0, -4.0],
            "zero": [0.0, 0.0],
            "beside": [4.0, 3.0],
        }
        await store.store_vectors(
            [VectorItem(name, BANK, vector_bytes(vector), attributes()) for name, vector in vectors.items()]
        )
        hits = {hit.id: hit.score for hit in await store.search_similar(vector_bytes([6.0, 8.0]), BANK)}
        wanted = {"same": 1.0, "scaled": 1.0, "beside": 0.98, "across": 0.5, "zero": 0.5, "opposite": 0.0}
        assert hits.keys() == wanted.keys()
        assert all(math.isclose(hits[name], wanted[name], abs_tol=TOLERANCE) for name in wanted), hits
        order = [hit.id for hit in await store.search_similar(vector_bytes([6.0, 8.0]), BANK)]
        assert set(order[:2]) == {"same", "scaled"}
        assert (order[2], order[-1]) == ("beside", "opposite")

    @scenario
    async def test_equal_scores_stand_by_id(self, store: VectorStore) -> None:
        """The same vector many times."""
        items = [VectorItem(item_id, BANK, vector_bytes([1.0, 1.0]), attributes()) for item_id in ("b", "B", "a", "10")]
        await store.store_vectors(items)
        assert [hit.id for hit in await self.find(store, BANK)] == ["10", "B", "a", "b"]

    @scenario
    async def test_a_query_of_zeros_is_near_nothing(self, store: VectorStore) -> None:
        """Finite scores, all alike."""
        await self.put(store, BANK, {"1": attributes(1), "2": attributes(2)})
        hits = await store.search_similar(vector_bytes([0.0, 0.0]), BANK)
        assert [(hit.id, hit.score) for hit in hits] == [("1", 0.5), ("2", 0.5)]

    @scenario
    async def test_banks_may_have_spaces_of_their_own(self, store: VectorStore) -> None:
        """Of 1 to 4,096 dimensions."""
        for bank_id, dimensions in ((BANK, 1), (OTHER, 4_096)):
            vector = vector_bytes([0.25] * dimensions)
            await store.store_vectors([VectorItem("1", bank_id, vector, attributes())])
            (hit,) = await store.search_similar(vector, bank_id)
            assert math.isclose(hit.score, 1.0, abs_tol=TOLERANCE)

    @scenario
    async def test_all_items_are_listed_as_they_were_put(self, store: VectorStore) -> None:
        """By id, page by page, bit for bit, versions of the past included."""
        rich = attributes(
            2,
            known_until=9_000,
            occurred_at=-5,
            valid_from=1,
            valid_until=2**41,
            fact_type="world",
            session_id="s",
            tags=("b", "a", "ünï"),
            metadata={"k": "sv", "n": "i1"},
        )
        vectors = ([0.1, -1.5e-30], [3.4e38, 1e-45], [-0.0, 1.0])
        items = [
            VectorItem(item_id, BANK, vector_bytes(vector), rich if item_id == "b" else attributes())
            for item_id, vector in zip(("c", "b", "A"), vectors, strict=True)
        ]
        await store.store_vectors(items)
        assert await store.list_vectors(BANK) == [items[2], items[1], items[0]]
        assert await store.list_vectors(BANK, offset=1, limit=1) == [items[1]]
        assert await store.list_vectors(BANK, offset=3) == []
        assert await store.list_vectors(OTHER) == []
