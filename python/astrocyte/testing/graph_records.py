"""The contract of graph stores on records of entities and links of callers."""

from __future__ import annotations

from astrocyte.providers.storage import GRAPH_SPI_VERSION, GraphStore, StoreFilters
from astrocyte.testing.contract import ALL, BANK, OTHER, OutsideContract, attributes, scenario
from astrocyte.testing.graph_items import between, link, record


class GraphRecordsContract(OutsideContract[GraphStore]):
    """The clauses on records and links; `GraphStoreContract` adds those on mentions."""

    SPI_VERSION = GRAPH_SPI_VERSION

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
