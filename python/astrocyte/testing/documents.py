"""The contract of document stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from astrocyte.providers.storage import Attributes, Document, DocumentStore, StoreFilters, StoreHit
from astrocyte.testing.contract import ALL, BANK, OTHER, OutsideContract, attributes, scenario

# What a store's query language could take for something else than words.
ODD_QUERIES = (
    "lantern & | ! ( ) :* <-> '",
    'lantern "',
    "-lantern OR AND NOT",
    "lantern\\",
    "lantern; DROP TABLE documents",
    "%lantern_",
)


class DocumentStoreContract(OutsideContract[DocumentStore]):
    """Subclass it, and give `open`."""

    async def put(self, store: DocumentStore, bank_id: str, items: Mapping[str, Attributes]) -> None:
        """Store each item with a text that has the word of `find`."""
        stored = await store.store_documents(
            [Document(item_id, bank_id, f"lantern {item_id}", item) for item_id, item in items.items()]
        )
        assert stored == list(items)

    async def find(
        self, store: DocumentStore, bank_id: str, filters: StoreFilters | None = None, limit: int = ALL
    ) -> Sequence[StoreHit]:
        """Search for the word that all have."""
        return await store.search_fulltext("lantern", bank_id, limit, filters)

    async def _texts(self, store: DocumentStore, texts: Mapping[str, str]) -> None:
        await store.store_documents([Document(name, BANK, text, attributes()) for name, text in texts.items()])

    @scenario
    async def test_any_word_of_the_query_will_do(self, store: DocumentStore) -> None:
        """A question is not a phrase; what has none of its words is not found."""
        await self._texts(
            store, {"1": "The lantern is green.", "2": "A kettle in the kitchen", "3": "nothing of the kind"}
        )
        hits = await store.search_fulltext("where is the green kettle?", BANK)
        assert {"1", "2"} <= {hit.id for hit in hits}
        assert [hit.id for hit in await store.search_fulltext("kettle", BANK)] == ["2"]
        assert await store.search_fulltext("umbrella", BANK) == []

    @scenario
    async def test_more_words_of_the_query_count_no_less(self, store: DocumentStore) -> None:
        """In texts of the same length."""
        await self._texts(store, {"1": "lantern kettle harbour", "2": "lantern copper harbour"})
        scores = {hit.id: hit.score for hit in await store.search_fulltext("lantern kettle", BANK)}
        assert scores["1"] >= scores["2"]

    @scenario
    async def test_case_does_not_matter(self, store: DocumentStore) -> None:
        """Case does not matter, also beyond ASCII."""
        await self._texts(store, {"1": "LANTERN", "2": "Über Grüße"})
        assert [hit.id for hit in await store.search_fulltext("lantern", BANK)] == ["1"]
        assert [hit.id for hit in await store.search_fulltext("GRÜßE", BANK)] == ["2"]

    @scenario
    async def test_a_query_without_words_finds_nothing(self, store: DocumentStore) -> None:
        """A query without words is not an error."""
        await self._texts(store, {"1": "lantern"})
        for query in ("", " ", "?!", "'", "&|"):
            assert await store.search_fulltext(query, BANK) == [], query

    @scenario
    async def test_queries_are_text(self, store: DocumentStore) -> None:
        """Operators of the store's query language have no effect."""
        await self._texts(store, {"1": "lantern"})
        for query in ODD_QUERIES:
            assert "1" in [hit.id for hit in await store.search_fulltext(query, BANK)], query

    @scenario
    async def test_a_replaced_text_is_not_found_any_more(self, store: DocumentStore) -> None:
        """A replaced document is no longer found by its old words."""
        await self._texts(store, {"1": "lantern"})
        await self._texts(store, {"1": "kettle"})
        assert await store.search_fulltext("lantern", BANK) == []
        assert [hit.id for hit in await store.search_fulltext("kettle", BANK)] == ["1"]

    @scenario
    async def test_a_document_is_read_back_as_it_was_put(self, store: DocumentStore) -> None:
        """With its attributes, from its own bank."""
        document = Document(
            "1",
            BANK,
            "Grüße aus Zürich 👋\n— second line",
            attributes(1, known_until=5_000, tags=("b", "a"), metadata={"k": "sv"}, session_id="s"),
        )
        await store.store_documents([document])
        assert await store.get_document("1", BANK) == document
        assert await store.get_document("2", BANK) is None
        assert await store.get_document("1", OTHER) is None

    @scenario
    async def test_a_deleted_document_is_gone(self, store: DocumentStore) -> None:
        """A deleted document can be neither read nor found."""
        await self._texts(store, {"1": "lantern"})
        assert await store.delete([attributes().memory_id], BANK) == 1
        assert await store.get_document("1", BANK) is None
