"""The contract of graph stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from astrocyte.providers.storage import (
    GRAPH_SPI_VERSION,
    Attributes,
    EntityLink,
    EntityRecord,
    GraphStore,
    LinkRecord,
    StoreFilters,
    StoreHit,
)
from astrocyte.testing.contract import ALL, BANK, OTHER, OutsideContract, attributes, scenario

LANTERN = "thing:lantern"


def link(link_id: str, memory: int, name: str, bank_id: str = BANK, **fields: object) -> EntityLink:
    """A link from the memory of that number to an entity."""
    return EntityLink(link_id, bank_id, f"thing:{name}", name.title(), name, "THING", attributes(memory, **fields))


def record(record_id: str, word: str, bank_id: str = BANK, **fields: Any) -> EntityRecord:
    """A record of an entity."""
    return replace(EntityRecord(record_id, bank_id, f"thing:{word}", "THING"), **fields)


def between(link_id: str, source: str, target: str, bank_id: str = BANK, **fields: Any) -> LinkRecord:
    """A link of a caller between two entities."""
    made = LinkRecord(link_id, bank_id, f"thing:{source}", f"thing:{target}", "beside", "seen", 0.5, 1_000)
    return replace(made, **fields)


class GraphStoreContract(OutsideContract[GraphStore]):
    """Subclass it, and give `open`."""

    SPI_VERSION = GRAPH_SPI_VERSION

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

    @scenario
    async def test_records_and_links_are_listed_as_they_were_stored(self, store: GraphStore) -> None:
        """With every field, by id, in their bank alone; the last write of an id holds; deleting goes by id."""
        odd = {"k": "sit's", "ünï": "i1"}
        records = [
            record("2", "oslo", name='Ös"lo', aliases=("Kristiania", "it's"), folded=('ös"lo', "kristiania", "it's")),
            record("1", "mara", alias_of=("thing:fjord", "thing:oslo"), metadata=odd),
        ]
        links = [
            between("2", "mara", "oslo", evidence="'; --", valid_from=-5, valid_until=2**41, metadata=odd),
            between("1", "oslo", "mara", link_type="alias_of", walked=False, confidence=0.125, created_at=2**41),
        ]
        for _ in range(2):
            assert await store.store_entities(records) == ["2", "1"]
            assert await store.store_links(links) == ["2", "1"]
        await store.store_entities([record("1", "mara", OTHER)])
        await store.store_links([between("1", "mara", "oslo", OTHER)])
        assert await store.list_entities(BANK) == records[::-1]
        assert await store.list_links(BANK) == links[::-1]
        assert await store.list_entities(BANK, 1, 1) == records[:1]
        assert await store.list_links(BANK, 1, 1) == links[:1]
        changed = record("1", "mara", aliases=("Mara S",), folded=("mara s",))
        moved = between("2", "mara", "fjord")
        await store.store_entities([changed])
        await store.store_links([moved])
        assert await store.list_entities(BANK) == [changed, records[0]]
        assert await store.list_links(BANK) == [links[1], moved]
        assert (await store.delete_entities(["1", "9"], BANK), await store.delete_links(["2", "9"], BANK)) == (1, 1)
        assert (await store.delete_entities(["1"], BANK), await store.delete_links(["2"], BANK)) == (0, 0)
        assert (await store.delete_entities([], BANK), await store.delete_links([], BANK)) == (0, 0)
        assert await store.list_entities(BANK) == [records[0]]
        assert await store.list_links(BANK) == [links[1]]
        assert (await store.list_entities(OTHER), await store.list_links(OTHER)) == (
            [record("1", "mara", OTHER)],
            [between("1", "mara", "oslo", OTHER)],
        )

    @scenario
    async def test_names_of_records_are_found(self, store: GraphStore) -> None:
        """As those of mentions are, whether a memory names the entity or not, as long as the record has them."""
        await store.link_memories_to_entities([link("1", 1, "oslo")])
        names = ("kristiania", "the capital")
        await store.store_entities([record("1", "oslo", folded=names), record("2", "mara", folded=("m. silva",))])
        await store.store_entities([record("1", "bergen", OTHER, folded=names)])
        assert await store.query_entities(["kristiania", "m. silva", "oslo"], BANK) == ["thing:mara", "thing:oslo"]
        assert await store.query_entities(["kristiania", "m. silva"], BANK, limit=1) == ["thing:mara"]
        assert await store.query_entities(["m. silva", "capital"], OTHER) == []
        await store.store_entities([record("1", "oslo", folded=("the capital",))])
        assert await store.query_entities(["kristiania"], BANK) == []
        await store.delete_entities(["1"], BANK)
        assert await store.query_entities(["the capital"], BANK) == []
        assert await store.query_entities(["oslo"], BANK) == ["thing:oslo"]

    @scenario
    async def test_a_walk_goes_along_links(self, store: GraphStore) -> None:
        """In both directions, a depth further, over entities that no memory names; not along those that are no walk."""
        mentions = [link(name[0], number, name) for number, name in enumerate(("mara", "oslo", "fjord"))]
        await store.link_memories_to_entities(mentions)
        await store.store_links(
            [
                between("1", "oslo", "mara"),
                between("2", "oslo", "between"),
                between("3", "between", "fjord"),
                between("4", "mara", "fjord", link_type="alias_of", walked=False),
            ]
        )
        await store.store_links([between("1", "mara", "fjord", OTHER)])
        await store.link_memories_to_entities([link("m", 1, "mara", OTHER)])
        found = [await store.query_neighbors(["thing:mara"], BANK, depth, ALL) for depth in (1, 2, 3, 4)]
        assert [[(hit.id, hit.score) for hit in hits] for hits in found] == [
            [("m", 1.0)],
            [("m", 1.0), ("o", 0.5)],
            [("m", 1.0), ("o", 0.5)],
            [("m", 1.0), ("o", 0.5), ("f", 0.25)],
        ]
        assert [hit.id for hit in await store.query_neighbors(["thing:between"], BANK, 2, ALL)] == ["f", "o"]
        await store.delete_links(["3"], BANK)
        assert [hit.id for hit in await store.query_neighbors(["thing:mara"], BANK, 4, ALL)] == ["m", "o"]

    @scenario
    async def test_links_pass_as_their_definition_says(self, store: GraphStore) -> None:
        """By the instant at which they were made, and the bounds of their validity."""
        spans = [(None, None), (None, 50), (20, None), (20, 50), (60, 70)]
        links = [
            between(f"{number}", "mara", f"place {number}", created_at=made, valid_from=first, valid_until=last)
            for number, (made, (first, last)) in enumerate((made, span) for made in (5, 40) for span in spans)
        ]
        await store.store_links(links)
        await store.link_memories_to_entities(
            [link(f"{number}", number, f"place {number}", known_from=0, retained_at=0) for number in range(len(links))]
        )
        for as_of in (None, 4, 5, 39, 40):
            for valid_at in (None, 19, 20, 50, 51, 65):
                filters = StoreFilters(as_of=as_of, valid_at=valid_at)
                hits = await store.query_neighbors(["thing:mara"], BANK, 2, ALL, filters)
                assert [hit.id for hit in hits] == sorted(one.id for one in links if one.passes(filters)), filters

    @scenario
    async def test_aliases_are_one_entity_to_a_walk(self, store: GraphStore) -> None:
        """From either side, at any distance, without a depth of their own, until the records say otherwise."""
        names = ("mara", "m silva", "silva", "oslo", "fjord")
        await store.link_memories_to_entities([link(f"{place}", place, name) for place, name in enumerate(names)])
        await store.store_links([between("1", "silva", "oslo")])
        chain = [record("1", "m silva", alias_of=("thing:mara",)), record("2", "silva", alias_of=("thing:m silva",))]
        await store.store_entities([*chain, record("3", "mara", alias_of=("thing:silva",))])
        await store.store_entities([record("1", "fjord", OTHER, alias_of=("thing:mara",))])
        for name in names[:3]:
            hits = await store.query_neighbors([f"thing:{name}"], BANK, 2, ALL)
            assert [(hit.id, hit.score) for hit in hits] == [("0", 1.0), ("1", 1.0), ("2", 1.0), ("3", 0.5)]
        await store.delete_entities(["3"], BANK)
        await store.store_entities([record("2", "silva", aliases=("S",), folded=("s",))])
        assert [hit.id for hit in await store.query_neighbors(["thing:mara"], BANK, 2, ALL)] == ["0", "1"]
        await store.delete([attributes(1).memory_id], BANK)
        assert [hit.id for hit in await store.query_neighbors(["thing:m silva"], BANK, 1, ALL)] == ["0"]

    @scenario
    async def test_records_and_links_are_of_their_bank(self, store: GraphStore) -> None:
        """A bank is listed by any of them, or by a position of its graph alone, and dropped with all of them."""
        await store.store_entities([record("1", "mara", folded=("mara",))])
        await store.store_links([between("1", "mara", "oslo", OTHER)])
        await store.advance_graph("third/1", 2**40)
        assert await store.list_banks("") == sorted((BANK, OTHER, "third/1"))
        assert await store.list_banks("third") == ["third/1"]
        await store.advance(BANK, 5)
        await store.advance_graph(BANK, 7)
        assert (await store.position(BANK), await store.graph_position(BANK)) == (5, 7)
        assert (await store.position(OTHER), await store.graph_position(OTHER)) == (0, 0)
        assert await store.graph_position("third/1") == 2**40
        for _ in range(2):
            for bank_id in (BANK, OTHER):
                await store.drop_bank(bank_id)
        assert await store.list_banks("") == ["third/1"]
        assert (await store.position(BANK), await store.graph_position(BANK)) == (0, 0)
        assert (await store.list_entities(BANK), await store.list_links(OTHER)) == ([], [])
        assert await store.query_entities(["mara"], BANK) == []

    @scenario
    async def test_mentions_and_records_do_not_depend_on_each_other(self, store: GraphStore) -> None:
        """A record stays when the last memory that names the entity goes, and a mention when the record goes."""
        await store.link_memories_to_entities([link("1", 1, "mara"), link("2", 2, "oslo"), link("3", 1, "kite")])
        records = [record("1", "mara", folded=("m",)), record("2", "oslo", folded=("o",)), record("3", "kite")]
        await store.store_entities(records)
        links = [between("1", "mara", "fjord")]
        await store.store_links(links)
        assert await store.delete([attributes(1).memory_id], BANK) == 2
        assert (await store.list_entities(BANK), await store.list_links(BANK)) == (records, links)
        assert await store.query_entities(["mara", "m"], BANK) == ["thing:mara"]
        assert await store.delete_entities(["1", "2", "3"], BANK) == 3
        await store.delete_links(["1"], BANK)
        assert await store.query_entities(["mara", "m", "o"], BANK) == []
        assert [hit.id for hit in await store.query_neighbors(["thing:oslo"], BANK, 1, ALL)] == ["2"]
