"""Contract of memory stores on forgetting and erasure, on disk and in memory."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from astrocyte.errors import (
    MemoryNotFound,
)
from astrocyte.model import Bank, ForgetSelector, MemoryState
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, RequestKey
from samples.memories import (
    EVERYTHING,
    LATER,
    RICH,
    Clock,
    current,
    forget,
    insert,
    listed,
    memory,
    memory_id,
    replace,
)


class TestForget:
    @pytest.fixture
    async def filled(self, store: MemoryStore, bank: Bank, clock: Clock) -> Bank:
        """1: tag a, 1970; 2: tags a and b, retained now; 3: tag b, 2100; 4: untagged."""
        await insert(
            store,
            bank,
            memory(1, tags=("a",), occurred_at=0),
            memory(2, tags=("a", "b")),
            memory(3, tags=("b",), occurred_at=4_102_444_800_000),
            memory(4),
        )
        return bank

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            (ForgetSelector(memory_ids=(memory_id(1), memory_id(3), memory_id(77))), [1, 3]),
            (ForgetSelector(tags=("a",)), [1, 2]),
            (ForgetSelector(tags=("a", "b")), [1, 2, 3]),
            (ForgetSelector(scope="all"), [1, 2, 3, 4]),
            (ForgetSelector(before_date=datetime(2000, 1, 1, tzinfo=UTC)), [1]),
            (ForgetSelector(before_date=datetime(2050, 1, 1, tzinfo=UTC)), [1, 2, 4]),
            (ForgetSelector(before_date=datetime(1970, 1, 1, tzinfo=UTC)), []),
            (ForgetSelector(memory_ids=(memory_id(1), memory_id(4)), tags=("a",)), [1]),
            (ForgetSelector(tags=("b",), before_date=datetime(2050, 1, 1, tzinfo=UTC), scope="all"), [2]),
        ],
    )
    async def test_selectors_combine_with_and(
        self, store: MemoryStore, filled: Bank, selector: ForgetSelector, expected: list[int]
    ) -> None:
        ids = [memory_id(number) for number in expected]
        assert store.select(filled, selector) == (len(ids), ids)
        before = current(store, filled).position
        answer = await store.forget(filled, selector, reason="", principal="", purge_after=LATER)
        assert answer == (len(ids), ids, before + len(ids), 0)
        assert set(listed(store, filled)) == {memory_id(number) for number in (1, 2, 3, 4)} - set(ids)
        assert store.select(filled, selector) == (0, [])
        assert store.select(filled, selector, include_forgotten=True) == (len(ids), ids)

    async def test_the_latest_version_decides(self, store: MemoryStore, filled: Bank) -> None:
        await replace(store, filled, memory(1, "retagged", tags=("c",)))
        assert store.select(filled, ForgetSelector(tags=("a",)))[1] == [memory_id(2)]
        assert await forget(store, filled, ForgetSelector(tags=("c",))) == [memory_id(1)]

    async def test_only_the_first_thousand_ids_are_told(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 1_201)])
        count, ids = store.select(bank, EVERYTHING)
        assert (count, len(ids)) == (1_200, 1_000)
        count, ids, position, _ = await store.forget(bank, EVERYTHING, reason="", principal="", purge_after=LATER)
        assert (count, len(ids), position) == (1_200, 1_000, 2_400)

    async def test_a_forgotten_memory_is_gone_from_every_read(self, store: MemoryStore, filled: Bank) -> None:
        await forget(store, filled, ForgetSelector(memory_ids=(memory_id(2),)))
        assert store.memory(filled, memory_id(2)) is None
        assert memory_id(2) not in listed(store, filled, tags=("a",))
        assert memory_id(2) not in {row.memory.memory_id for batch in store.iter_versions(filled) for row in batch}
        kept = store.memory(filled, memory_id(2), include_forgotten=True)
        assert kept is not None
        assert kept.state is MemoryState.FORGOTTEN
        assert kept.forgotten_at is not None
        assert kept.purge_after == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=LATER)

    async def test_undelete_brings_every_version_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, RICH)
        clock.now += 1
        await replace(store, bank, memory(1, "new"))
        before = store.versions(bank, RICH.memory_id)
        await forget(store, bank, EVERYTHING)
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        back = await store.undelete(bank, RICH.memory_id)
        assert back == before[-1]
        assert store.versions(bank, RICH.memory_id) == before
        (batch,) = batches
        assert [(one.row_key, one.version, one.known_until) for one in batch.upserts] == [
            (1, 1, clock.now), (2, 2, None),
        ]  # fmt: skip
        assert batch.upserts[0].memory == RICH
        assert await store.undelete(bank, RICH.memory_id) == back
        assert current(store, bank).position == 4

    async def test_what_is_due_cannot_be_brought_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, memory(1), memory(2))
        await forget(store, bank, EVERYTHING, clock.now + 10)
        clock.now += 9
        await store.undelete(bank, memory_id(1))
        clock.now += 1
        key = RequestKey("u", "undelete", b"1")
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(2), request=key)
        assert store.find_response("default", key) is None
        assert listed(store, bank) == [memory_id(1)]

    async def test_what_never_was_cannot_be_brought_back(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(1))


class TestErase:
    async def test_rows_go_for_good_and_a_receipt_comes(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, memory(2), memory(3))
        await replace(store, bank, memory(1, "second version"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        selector = ForgetSelector(memory_ids=(memory_id(1), memory_id(2)))
        ids, position, receipt = await store.erase(bank, selector, reason="", principal="")
        assert ids == [memory_id(2), memory_id(1)]
        assert position == current(store, bank).position
        assert receipt.counts == {"memories": 2, "versions": 3, "chunks": 2, "embeddings": 4}

        def salted(number: int) -> str:
            return hashlib.sha256(f"{receipt.salt}{memory_id(number)}".encode()).hexdigest()

        def root(*numbers: int) -> str:
            return hashlib.sha256("".join(sorted(salted(number) for number in numbers)).encode()).hexdigest()

        assert set(receipt.salted_ids) == {salted(1), salted(2)}
        assert receipt.root_hash_before == root(1, 2, 3)
        assert receipt.root_hash_after == root(3)
        for number in (1, 2):
            assert store.memory(bank, memory_id(number), include_forgotten=True) is None
            with pytest.raises(MemoryNotFound):
                await store.undelete(bank, memory_id(number))
        assert listed(store, bank) == [memory_id(3)]
        assert listed(store, bank, tags=("a",)) == []

    async def test_erasing_nothing_is_no_error(self, store: MemoryStore, bank: Bank) -> None:
        ids, position, receipt = await store.erase(bank, EVERYTHING, reason="", principal="")
        assert (ids, position, receipt.salted_ids) == ([], 0, ())
        assert receipt.root_hash_before == receipt.root_hash_after

    async def test_many_slices_make_one_erasure(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number, f"long {number} " * 200) for number in range(1, 1_301)])
        ids, _, receipt = await store.erase(bank, EVERYTHING, reason="", principal="")
        assert (len(ids), receipt.counts["memories"], len(receipt.salted_ids)) == (1_000, 1_300, 1_300)
        assert listed(store, bank) == []

    async def test_purge_erases_what_is_due(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 702)])
        due = tuple(memory_id(number) for number in range(1, 601))
        await forget(store, bank, ForgetSelector(memory_ids=due), clock.now + 10)
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(700),)), clock.now + 20)
        assert await store.purge(clock.now + 9) == 0
        assert await store.purge(clock.now + 10) == 600
        assert store.bank_stats(bank).forgotten_count == 1
        assert await store.purge(clock.now + 10) == 0
        assert (await store.undelete(bank, memory_id(700))).memory_id == memory_id(700)
