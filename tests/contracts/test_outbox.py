"""Contract of outboxes, on disk and in memory: rows come with the change, and go with its delivery."""

from __future__ import annotations

from pathlib import Path

import pytest

from astrocyte.errors import BankNotFound, Conflict, RateLimited
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.outbox import LOSING, CopyAction, CopyOrder, WaitingCopy
from astrocyte.stores.records import Insert, Replace, RequestKey
from astrocyte.stores.sqlite import open_store
from astrocyte.stores.sqlite.store import SqliteStore
from samples.memories import Clock, current, make_bank, memory, memory_id

ORDER = CopyOrder("shelf", "user:ann", 1, 100)
LATER = 10**13


async def insert(store: SqliteStore, bank: Bank, *numbers: int, order: CopyOrder | None = ORDER) -> None:
    await store.commit(bank, [Insert(memory(number)) for number in numbers], copies=order)


def waiting(store: SqliteStore, bank: Bank, engine: str = "shelf") -> list[tuple[str, str]]:
    return [(one.memory_id, one.action.value) for one in store.outbox.waiting(engine, bank, limit=1_000)]


async def forget(store: SqliteStore, bank: Bank, number: int) -> None:
    await store.forget(
        bank,
        ForgetSelector(memory_ids=(memory_id(number),)),
        reason="",
        principal="me",
        purge_after=LATER,
        copies=ORDER,
    )


async def test_what_is_stored_waits_from_its_commit_on_in_the_order_of_the_changes(store: SqliteStore) -> None:
    bank = await make_bank(store)
    await insert(store, bank, 2, 1)
    # What the bank has already is no change, and what nobody is to copy does not wait.
    await insert(store, bank, 2)
    await insert(store, bank, 3, order=None)
    assert waiting(store, bank) == [(memory_id(2), "copy"), (memory_id(1), "copy")]
    await store.commit(bank, [Replace(memory(2, "new"))], copies=ORDER)
    await forget(store, bank, 3)
    assert waiting(store, bank) == [(memory_id(1), "copy"), (memory_id(2), "replace"), (memory_id(3), "forget")]
    await store.undelete(bank, memory_id(3), copies=ORDER)
    assert waiting(store, bank)[-1] == (memory_id(3), "replace")
    first, *others = store.outbox.waiting("shelf", bank, limit=1_000)
    assert first == WaitingCopy(memory_id(1), 2, CopyAction.COPY, "user:ann", 1)
    assert store.outbox.waiting("shelf", bank, after=first.place, limit=1) == others[:1]
    assert store.outbox.still_waiting("shelf", bank, [memory_id(1), memory_id(9)]) == {memory_id(1)}
    assert (store.outbox.waiting_count("shelf"), store.bank_stats(bank).waiting_copies) == (3, 3)
    assert store.outbox.waiting("other", bank, limit=9) == []


async def test_a_commit_that_fails_leaves_nothing_to_wait(store: SqliteStore) -> None:
    bank = await make_bank(store)
    key = RequestKey("one", "retain", b"a")
    await store.commit(bank, [Insert(memory(1))], request=key, respond=lambda _: b"x", copies=ORDER)
    with pytest.raises(Conflict):
        await store.commit(bank, [Insert(memory(2))], settle=lambda _: [(key, b"x")], copies=ORDER)
    assert waiting(store, bank) == [(memory_id(1), "copy")]


async def test_what_has_changed_since_it_was_delivered_stays(store: SqliteStore, clock: Clock) -> None:
    bank = await make_bank(store)
    await insert(store, bank, 1, 2)
    began = clock.now
    sent = store.outbox.waiting("shelf", bank, limit=10)
    clock.now += 5_000
    await store.commit(bank, [Replace(memory(1, "new"))], copies=ORDER)
    await store.outbox.delivered("shelf", bank, sent)
    assert waiting(store, bank) == [(memory_id(1), "replace")]
    # It has not had what it should since the first change.
    assert store.outbox.waiting_since("shelf") == began
    await store.outbox.delivered("shelf", bank, store.outbox.waiting("shelf", bank, limit=10))
    assert (store.outbox.waiting_count("shelf"), store.outbox.waiting_since("shelf")) == (0, None)


async def test_an_erasure_waits_as_one_and_with_nothing_of_what_is_erased(store: SqliteStore) -> None:
    bank = await make_bank(store)
    await insert(store, bank, 1, 2, 3)
    await forget(store, bank, 3)
    selector = ForgetSelector(memory_ids=(memory_id(1), memory_id(3)))
    _, position, _ = await store.erase(bank, selector, reason="", principal="me", copies=ORDER)
    assert waiting(store, bank) == [(memory_id(2), "copy"), (memory_id(1), "erase"), (memory_id(3), "erase")]
    assert len(store.outbox.waiting("shelf", bank, limit=10, actions=LOSING)) == 2
    await store.outbox.forgotten("shelf", bank, position)
    assert waiting(store, bank) == [(memory_id(2), "copy")]


async def test_no_row_holds_what_a_memory_says(store: SqliteStore) -> None:
    bank = await make_bank(store)
    await store.commit(bank, [Insert(memory(1, "canary", tags=("canary",), source="canary"))], copies=ORDER)
    rows = store._connections.query("SELECT * FROM waiting_copies")
    assert len(rows) == 1
    assert "canary" not in repr(rows)


async def test_too_much_is_refused_whole_and_forgetting_never_is(store: SqliteStore) -> None:
    bank = await make_bank(store)
    narrow = CopyOrder("shelf", "", 1, 2)
    await insert(store, bank, 1, order=None)
    await insert(store, bank, 2, order=narrow)
    position = current(store, bank).position
    with pytest.raises(RateLimited, match="2 memories are queued"):
        await insert(store, bank, 3, 4, order=narrow)
    assert current(store, bank).position == position
    await insert(store, bank, 3, order=narrow)
    await forget(store, bank, 1)
    assert store.outbox.waiting_count("shelf") == 3
    # What is there already is stored no second time.
    await insert(store, bank, 2, order=narrow)


async def test_what_waits_goes_with_its_bank(store: SqliteStore) -> None:
    bank = await make_bank(store)
    other = await make_bank(store, "other")
    await insert(store, bank, 1, 2)
    await insert(store, other, 1)
    assert [one.bank_id for one in store.outbox.waiting_banks("shelf")] == ["bank", "other"]
    await store.delete_bank(bank, expected_etag=None)
    assert [one.bank_id for one in store.outbox.waiting_banks("shelf")] == ["other"]
    assert store.outbox.waiting_count("shelf") == 1
    with pytest.raises(BankNotFound):
        await insert(store, bank, 3)


async def test_what_waits_is_there_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    bank = await make_bank(store)
    await insert(store, bank, 1)
    store.close()
    store = open_store(tmp_path)
    assert waiting(store, bank) == [(memory_id(1), "copy")]
    store.close()
