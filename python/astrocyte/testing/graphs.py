"""The contract of graph stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from astrocyte.providers.storage import Attributes, EntityLink, GraphStore, StoreFilters, StoreHit
from astrocyte.testing.contract import ALL, BANK, OTHER, attributes, scenario
from astrocyte.testing.graph_items import link
from astrocyte.testing.graph_records import GraphRecordsContract

LANTERN = "thing:lantern"


class GraphStoreContract(GraphRecordsContract):
    """Subclass it, and give `open`."""

    async def put(self, store: GraphStore, bank_id: str, items: Mapping[str, Attributes]) -> None:
        """Store each item as a link to the entity of `find`."""
        stored = await store.link_memories_to_entities(
            [
                EntityLink(item_id, bank_id, LANTERN, "Lantern", "lantern", "THING", item)
                for item_id, item in items.items()
            ]
        )
        assert stored == list(items)

    async def find(
        self, store: GraphStore, bank_id: str, filters: StoreFilters | None = None, limit: int = ALL
    ) -> Sequence[StoreHit]:
        """Ask for the links of the entity that all name."""
        return await store.query_neighbors([LANTERN], bank_id, 1, limit, filters)

    @scenario
    async def test_entities_are_found_by_their_names(self, store: GraphStore) -> None:
        """Whole names, in the bank alone, each entity once, as long as a memory names it."""
        await store.link_memories_to_entities(
            [
                link("1", 1, "mara silva"),
                link("2", 2, "mara silva"),
                link("3", 2, "oslo"),
                link("4", 3, "o'hara; --"),
                link("1", 1, "bergen", OTHER),
            ]
        )
        assert await store.query_entities(["mara silva", "oslo", "bergen"], BANK) == ["thing:mara silva", "thing:oslo"]
        assert await store.query_entities(["mara", "silva", "%", ""], BANK) == []
        assert await store.query_entities(["o'hara; --"], BANK) == ["thing:o'hara; --"]
        assert await store.query_entities([], BANK) == []
        assert await store.query_entities(["mara silva", "oslo"], BANK, limit=1) == ["thing:mara silva"]
        await store.delete([attributes(2).memory_id], BANK)
        assert await store.query_entities(["mara silva", "oslo"], BANK) == ["thing:mara silva"]

    @scenario
    async def test_a_walk_goes_from_name_to_name(self, store: GraphStore) -> None:
        """By what a memory names together; each link at its least distance, nearest first."""
        await store.link_memories_to_entities(
            [
                link("a1", 1, "mara"),
                link("a2", 1, "oslo"),
                link("b1", 2, "oslo"),
                link("b2", 2, "fjord"),
                link("c1", 3, "fjord"),
                link("d1", 4, "elsewhere"),
            ]
        )
        found = [await store.query_neighbors(["thing:mara"], BANK, depth, ALL) for depth in (1, 2, 3, 9)]
        assert [[hit.id for hit in hits] for hits in found] == [
            ["a1"],
            ["a1", "a2", "b1"],
            ["a1", "a2", "b1", "b2", "c1"],
            ["a1", "a2", "b1", "b2", "c1"],
        ]
        assert [hit.score for hit in found[1]] == [1.0, 0.5, 0.5]
        assert [hit.memory_id for hit in found[0]] == [attributes(1).memory_id]
        assert await store.query_neighbors([], BANK, 2) == []
        assert [hit.id for hit in await store.query_neighbors(["thing:mara"], BANK, 3, 2)] == ["a1", "a2"]

    @scenario
    async def test_a_walk_does_not_pass_through_what_the_filter_hides(self, store: GraphStore) -> None:
        """Neither through a version of the past, nor through a memory without the tag."""
        await store.link_memories_to_entities(
            [
                link("a1", 1, "mara", tags=("x",)),
                link("a2", 1, "oslo", tags=("x",), known_until=2_000),
                link("b1", 2, "oslo", tags=("x",)),
            ]
        )
        now, then = (StoreFilters(tags=("x",), as_of=as_of) for as_of in (None, 1_500))
        assert [hit.id for hit in await store.query_neighbors(["thing:mara"], BANK, 2, ALL, now)] == ["a1"]
        assert [hit.id for hit in await store.query_neighbors(["thing:mara"], BANK, 2, ALL, then)] == ["a1", "a2", "b1"]
