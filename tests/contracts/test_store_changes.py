"""Contract of memory stores on the change log, on disk and in memory."""

import asyncio

from astrocyte.model import Bank, ChangeKind, ForgetSelector
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, Passage, Visibility
from samples.memories import (
    Clock,
    forget,
    insert,
    listed,
    memory,
    memory_id,
    replace,
)


class TestChanges:
    async def test_every_change_is_logged_in_order(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, memory(1), memory(2))
        await replace(store, bank, memory(1, "new"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        await store.undelete(bank, memory_id(1))
        await store.erase(bank, ForgetSelector(memory_ids=(memory_id(2),)), reason="", principal="")
        log = store.changes(bank, after=0, limit=100)
        assert [(one.position, one.kind, one.memory_id) for one in log] == [
            (1, ChangeKind.CREATED, memory_id(1)),
            (2, ChangeKind.CREATED, memory_id(2)),
            (3, ChangeKind.UPDATED, memory_id(1)),
            (4, ChangeKind.FORGOTTEN, memory_id(1)),
            (5, ChangeKind.UNDELETED, memory_id(1)),
            (6, ChangeKind.FORGOTTEN, memory_id(2)),
            (7, ChangeKind.ERASED, memory_id(2)),
        ]
        assert store.changes(bank, after=4, limit=2) == log[4:6]
        assert store.changes(bank, after=7, limit=2) == []

    async def test_times_never_go_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        start = clock.now
        await insert(store, bank, memory(1))
        clock.now = start - 3_600_000
        await replace(store, bank, memory(1, "new"))
        clock.now = start + 5
        await insert(store, bank, memory(2))
        times = [one.changed_at for one in store.changes(bank, after=0, limit=10)]
        assert times == sorted(times)
        first, second = store.versions(bank, memory_id(1))
        assert first.updated_at == second.updated_at == times[0]
        # Both began in the same millisecond: the later one holds from it on.
        assert [row.row_key for row in store.hydrate(bank, [Passage(1, -1), Passage(2, -1)], Visibility(start))] == [2]

    async def test_listeners_hear_each_commit_before_its_caller(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        for number in range(1, 4):
            await insert(store, bank, memory(number))
            assert batches[-1].position == number
        await replace(store, bank, memory(1, "new"))
        batch = batches[-1]
        assert [key for key, _ in batch.ended] == [1]
        assert [one.row_key for one in batch.upserts] == [4]
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        assert sorted(batches[-1].removed) == [1, 4]
        assert [batch.position for batch in batches] == [1, 2, 3, 4, 5]
        assert {batch.bank.key for batch in batches} == {bank.key}

    async def test_listeners_hear_what_is_gone_for_good(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        for number in (1, 2):
            await insert(store, bank, memory(number))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        assert not any(batch.erased for batch in batches)
        await store.purge(2**60)
        assert batches[-1].erased
        count = len(batches)
        selector = ForgetSelector(memory_ids=(memory_id(2),))
        await store.erase(bank, selector, reason="", principal="p", request=None)
        assert any(batch.erased for batch in batches[count:])

    async def test_concurrent_commits_reach_the_listener_in_order(self, store: MemoryStore, bank: Bank) -> None:
        heard: list[str] = []
        positions: list[int] = []

        def listen(batch: IndexBatch) -> None:
            positions.append(batch.position)
            heard.extend(one.memory.memory_id for one in batch.upserts)

        store.subscribe(listen)
        await asyncio.gather(*(insert(store, bank, memory(number)) for number in range(64)))
        assert positions == sorted(set(positions))
        assert heard == [change.memory_id for change in store.changes(bank, after=0, limit=100)]

    async def test_a_listener_that_fails_does_not_fail_the_write(self, store: MemoryStore, bank: Bank) -> None:
        def fail(_: IndexBatch) -> None:
            raise ValueError("index")

        heard: list[int] = []
        store.subscribe(fail)
        store.subscribe(lambda batch: heard.append(batch.position))
        await insert(store, bank, memory(1))
        assert heard == [1]
        assert listed(store, bank) == [memory_id(1)]
