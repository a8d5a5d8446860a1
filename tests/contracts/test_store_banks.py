"""Contract of memory stores on banks, on disk and in memory."""

from datetime import UTC, datetime

import pytest

from astrocyte.errors import (
    AlreadyExists,
    BankNotFound,
    Conflict,
)
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.protocols import MemoryStore
from samples.memories import (
    DIMENSIONS,
    MODEL,
    RICH,
    Clock,
    current,
    forget,
    insert,
    listed,
    make_bank,
    memory,
    memory_id,
    replace,
    seen,
)


class TestBanks:
    async def test_a_bank_is_what_it_was_made(self, store: MemoryStore, clock: Clock) -> None:
        made = await make_bank(store, "notes", display_name="Notes", description="Of the day")
        assert (made.tenant, made.bank_id, made.display_name, made.description) == (
            "default", "notes", "Notes", "Of the day",
        )  # fmt: skip
        assert (made.embedding_model, made.dimensions, made.position) == (MODEL, DIMENSIONS, 0)
        assert made.created_at == made.updated_at == datetime.fromtimestamp(clock.now / 1_000, UTC)
        assert store.get_bank("default", "notes") == made

    async def test_a_name_is_taken_once_per_tenant(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(AlreadyExists, match="bank"):
            await make_bank(store)
        other = await make_bank(store, tenant="other")
        assert other.key != bank.key
        assert store.get_bank("nobody", "bank") is None

    async def test_listing_goes_by_id_prefix_and_page(self, store: MemoryStore) -> None:
        for bank_id in ("b", "a", "a%", "a_c", "ab", "A"):
            await make_bank(store, bank_id)
        await make_bank(store, "a", tenant="other")
        ids = [one.bank_id for one in store.list_banks("default", prefix="", after="", limit=100)]
        assert ids == sorted(ids)
        assert len(ids) == 6
        assert [one.bank_id for one in store.list_banks("default", prefix="a", after="a", limit=2)] == ["a%", "a_c"]
        assert [one.bank_id for one in store.list_banks("default", prefix="a_", after="", limit=9)] == ["a_c"]

    async def test_an_update_keeps_what_is_not_named(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        clock.now += 5
        updated = await store.update_bank(bank, display_name="New", description=None, expected_etag=bank.etag)
        assert (updated.display_name, updated.description) == ("New", "")
        assert updated.etag != bank.etag
        assert updated.updated_at > updated.created_at
        with pytest.raises(Conflict):
            await store.update_bank(bank, display_name="Again", description=None, expected_etag=bank.etag)
        await insert(store, bank, memory(1))
        assert current(store, bank).etag == updated.etag

    async def test_deleting_takes_everything(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, *[memory(number) for number in range(2, 40)])
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        with pytest.raises(Conflict):
            await store.delete_bank(bank, expected_etag="other")
        assert await store.delete_bank(bank, expected_etag=current(store, bank).etag) == 38
        assert store.get_bank("default", "bank") is None
        assert seen(store, bank) == []
        assert store.changes(bank, after=0, limit=10) == []
        assert store.memory(bank, memory_id(1)) is None
        with pytest.raises(BankNotFound):
            await insert(store, bank, memory(100))
        with pytest.raises(BankNotFound):
            await store.delete_bank(bank, expected_etag=None)

    async def test_a_bank_made_again_is_another(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        await store.delete_bank(bank, expected_etag=None)
        again = await make_bank(store)
        assert again.key != bank.key
        assert again.position == 0
        assert listed(store, again) == []
        await insert(store, again, memory(1))
        assert seen(store, again) == [memory_id(1)]
        assert seen(store, bank) == []

    async def test_statistics_count_what_is_visible(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, memory(2, "two words"), memory(3, "three more words"))
        await replace(store, bank, memory(2, "now three words"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(3),)))
        stats = store.bank_stats(bank)
        assert (stats.memory_count, stats.chunk_count, stats.forgotten_count) == (2, 3, 1)
        assert stats.token_count == RICH.token_count + 3
        assert (stats.position, stats.indexed_position, stats.index_bytes) == (5, -1, 0)

    async def test_references_are_those_of_current_memories_in_words(self, store: MemoryStore, bank: Bank) -> None:
        named = {"also_relevant_to": "team,org"}
        await insert(
            store,
            bank,
            memory(1, metadata=named),
            memory(2),
            memory(3, metadata=named),
            memory(4, metadata=named),
            memory(5, metadata={"also_relevant_to": 7}),
        )
        await replace(store, bank, memory(3, "other words"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(4),)))
        (reference,) = store.references()
        assert (reference.tenant, reference.bank_id, reference.memory_id) == (bank.tenant, "bank", memory_id(1))
        assert reference.targets == ("team", "org")
        await store.delete_bank(bank, expected_etag=None)
        assert store.references() == []
