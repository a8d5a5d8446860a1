"""Stores of several processes on one directory: the commits that they tell each other, and their leases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from astrocyte.errors import StoreError
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.records import Insert
from astrocyte.stores.sharing import FENCE, Fence, Told, Topic
from astrocyte.stores.sqlite import open_store
from astrocyte.stores.sqlite.engine.sharing import Sharing
from astrocyte.stores.sqlite.store import SqliteStore
from astrocyte.stores.sqlite.tables.leases import LEASE_MS, SqliteLeases
from samples.memories import DIMENSIONS, listed, memory

Pair = tuple[SqliteStore, SqliteStore]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    open_store(tmp_path, ballast_bytes=0).close()
    stores = tuple(open_store(tmp_path, ballast_bytes=0, worker=number) for number in (1, 2))
    yield stores[0], stores[1]
    for store in stores:
        store.close()


@pytest.fixture
async def bank(pair: Pair) -> Bank:
    return await pair[0].create_bank(
        "t", "b", display_name="", description="", embedding_model="m", dimensions=DIMENSIONS, created_by="me"
    )


def leases(store: SqliteStore, clock: list[int]) -> SqliteLeases:
    sharing = store._sharing
    assert sharing is not None
    return SqliteLeases(store._writer, store._connections, sharing, lambda: clock[0])


def told_of(store: SqliteStore) -> list[Told]:
    heard: list[Told] = []
    store.follow(heard.append)
    return heard


async def test_a_process_hears_of_the_commits_of_others_and_not_of_its_own(pair: Pair, bank: Bank) -> None:
    here, there = pair
    own, others = told_of(here), told_of(there)
    await here.commit(bank, [Insert(memory(1)), Insert(memory(2))])
    await here.commit(bank, [Insert(memory(3))])
    assert others == []
    here.refresh()
    there.refresh()
    assert own == []
    assert [(told.topic, told.bank, told.position) for told in others] == [
        (Topic.CHANGES, bank.key, 2),
        (Topic.CHANGES, bank.key, 3),
    ]
    there.refresh()
    assert len(others) == 2


async def test_what_is_rolled_back_is_told_to_nobody(pair: Pair, bank: Bank) -> None:
    here, there = pair
    others = told_of(there)

    def fail(_: object) -> list[tuple[object, bytes]]:
        raise ValueError

    with pytest.raises(StoreError):
        await here.commit(bank, [Insert(memory(1))], settle=fail)  # type: ignore[arg-type]
    there.refresh()
    assert others == []


async def test_erasures_and_deletions_are_told_as_such(pair: Pair, bank: Bank) -> None:
    here, there = pair
    await here.commit(bank, [Insert(memory(1))])
    there.refresh()
    others = told_of(there)
    await here.erase(bank, ForgetSelector(scope="all"), reason="r", principal="p")
    there.refresh()
    assert [told.erased for told in others if told.topic is Topic.CHANGES] == [False, True]
    await there.delete_bank(bank, expected_etag=None)
    heard = told_of(here)
    here.refresh()
    assert [(told.topic, told.bank) for told in heard if told.topic is Topic.DELETED] == [(Topic.DELETED, bank.key)]


async def test_one_process_holds_the_lease_until_it_says_nothing_more(pair: Pair) -> None:
    clock = [1_000_000]
    first, second = (leases(store, clock) for store in pair)
    held = await first.beat(0)
    assert held is not None
    assert await second.beat(0) is None
    clock[0] += LEASE_MS - 1
    assert await first.beat(0) == held
    clock[0] += LEASE_MS - 1
    assert await second.beat(0) is None
    clock[0] += 1
    taken = await second.beat(0)
    assert taken is not None
    assert taken.number > held.number
    assert await first.beat(0) is None


async def test_a_process_that_leaves_is_replaced_at_once(pair: Pair) -> None:
    clock = [1_000_000]
    first, second = (leases(store, clock) for store in pair)
    await first.beat(0)
    await first.leave()
    assert await second.beat(0) is not None


async def test_a_write_under_a_lease_that_another_process_took_changes_nothing(pair: Pair, bank: Bank) -> None:
    clock = [1_000_000]
    first, second = (leases(store, clock) for store in pair)
    held = await first.beat(0)

    async def write(fence: Fence | None) -> None:
        FENCE.set(fence)
        await pair[0].commit(bank, [Insert(memory(1))])

    await asyncio.create_task(write(held))
    clock[0] += LEASE_MS
    await second.beat(0)
    with pytest.raises(StoreError, match="another process took the lease"):
        await asyncio.create_task(write(held))
    with pytest.raises(StoreError, match="another process took the lease"):
        await asyncio.create_task(_purge(pair[0], held))
    assert pair[0].get_bank("t", "b").position == 1  # type: ignore[union-attr]
    # Calls have no fence.
    await asyncio.create_task(write(None))


async def _purge(store: SqliteStore, fence: Fence | None) -> None:
    FENCE.set(fence)
    await store.purge(2**40)


async def test_processes_that_live_are_deaf_until_they_have_heard(pair: Pair, bank: Bank) -> None:
    clock = [1_000_000]
    first, second = (leases(store, clock) for store in pair)
    await first.beat(0)
    await second.beat(0)
    await pair[0].commit(bank, [Insert(memory(1))])
    assert first.last_erasure(bank.key) == 0
    await pair[0].erase(bank, ForgetSelector(scope="all"), reason="r", principal="p")
    place = first.last_erasure(bank.key)
    assert first.deaf(place) == [2]
    await second.note_heard(place - 1)
    assert first.deaf(place) == [2]
    await second.note_heard(place)
    assert first.deaf(place) == []
    await pair[1].commit(bank, [Insert(memory(2))])
    await pair[1].erase(bank, ForgetSelector(scope="all"), reason="r", principal="p")
    assert second.deaf(second.last_erasure(bank.key)) == [1]
    # A dead process keeps nothing.
    clock[0] += LEASE_MS
    assert second.deaf(second.last_erasure(bank.key)) == []


async def test_what_all_have_heard_is_deleted_and_who_missed_it_answers_nothing_more(pair: Pair, bank: Bank) -> None:
    clock = [1_000_000]
    first, second = (leases(store, clock) for store in pair)
    for number in range(5):
        await pair[0].commit(bank, [Insert(memory(number))])
    rows = "SELECT count(*) FROM told"
    await second.beat(0)
    await first.beat(pair[0].heard)
    pair[0].refresh()
    await first.beat(pair[0].heard)
    assert pair[0]._connections.query(rows)[0][0] >= 5
    clock[0] += LEASE_MS
    await first.beat(pair[0].heard)
    assert pair[0]._connections.query(rows)[0][0] == 1
    for _ in range(2):
        with pytest.raises(StoreError, match="missed"):
            pair[1].refresh()
    assert not pair[1].healthy
    pair[0].refresh()
    assert pair[0].healthy


async def test_erasures_of_two_processes_take_turns(pair: Pair, bank: Bank) -> None:
    contents = [memory(number) for number in range(64)]
    await pair[0].commit(bank, [Insert(one) for one in contents])
    erasures = [
        pair[number % 2].erase(bank, ForgetSelector(memory_ids=(one.memory_id,)), reason="r", principal="p")
        for number, one in enumerate(contents[:16])
    ]
    receipts = await asyncio.gather(*erasures)
    assert [ids for ids, _, _ in receipts] == [[one.memory_id] for one in contents[:16]]
    assert all(receipt.counts["memories"] == 1 for _, _, receipt in receipts)
    assert len(listed(pair[1], bank)) == 48


async def test_an_erasure_waits_for_that_of_another_process(pair: Pair, bank: Bank) -> None:
    await pair[0].commit(bank, [Insert(memory(1))])
    other = pair[1]._sharing
    assert other is not None
    assert other.erasing.taken()
    erasing = asyncio.create_task(pair[0].erase(bank, ForgetSelector(scope="all"), reason="r", principal="p"))
    done, _ = await asyncio.wait([erasing], timeout=0.3)
    assert done == set()
    # The writes of the process that waits come between.
    await pair[0].commit(bank, [Insert(memory(2))])
    other.erasing.release()
    ids, _, _ = await erasing
    assert memory(1).memory_id in ids


async def test_an_owner_forgets_what_processes_of_before_told(tmp_path: Path, pair: Pair, bank: Bank) -> None:
    await pair[0].commit(bank, [Insert(memory(1))])
    for store in pair:
        store.close()
    owner = open_store(tmp_path, ballast_bytes=0)
    assert not owner.shared
    assert owner._connections.query("SELECT (SELECT count(*) FROM told), (SELECT count(*) FROM workers)") == [(0, 0)]
    owner.close()


async def test_a_group_tells_of_each_bank_once(pair: Pair, bank: Bank) -> None:
    here, there = pair
    others = told_of(there)
    await asyncio.gather(*(here.commit(bank, [Insert(memory(number))]) for number in range(50)))
    there.refresh()
    assert [told.position for told in others][-1] == 50
    assert len(others) < 50
    assert isinstance(here._sharing, Sharing)
