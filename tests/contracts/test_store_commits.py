"""Contract of memory stores on writes, on disk and in memory."""

import asyncio
import threading
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta

import pytest

from astrocyte.errors import (
    AlreadyExists,
    Conflict,
    DimensionMismatch,
    MemoryNotFound,
    StoreError,
)
from astrocyte.model import Bank, ForgetSelector, MemoryState
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, Insert, Replace, RequestKey
from samples.memories import (
    EVERYTHING,
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
)


class TestCommit:
    async def test_every_field_comes_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        (outcome,) = await insert(store, bank, RICH)
        assert (outcome.memory_id, outcome.position, outcome.version, outcome.duplicate_of) == (
            RICH.memory_id, 1, 1, None,
        )  # fmt: skip
        found = store.memory(bank, RICH.memory_id)
        assert found is not None
        for name in ("content", "content_type", "fact_type", "memory_layer", "tags", "metadata", "source",
                     "session_id", "speaker", "principal", "token_count", "entities"):  # fmt: skip
            assert getattr(found, name) == getattr(RICH, name), name
        now = datetime.fromtimestamp(clock.now / 1_000, UTC)
        assert (found.retained_at, found.updated_at, found.forgotten_at) == (now, now, None)
        assert found.occurred_at == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
        assert found.valid_from == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5)
        assert found.valid_until == datetime(2100, 1, 1, tzinfo=UTC)
        assert (found.version, found.chunk_count, found.position, found.state) == (1, 2, 1, MemoryState.ACTIVE)
        assert store.versions(bank, RICH.memory_id) == [found]
        assert store.memory(bank, RICH.memory_id, version=1) == found
        assert store.memory(bank, RICH.memory_id, version=2) is None
        record = store.version(bank, RICH.memory_id)
        assert record is not None
        assert record.memory == RICH
        assert (record.version, record.known_from, record.known_until) == (1, clock.now, None)

    async def test_positions_count_changes(self, store: MemoryStore, bank: Bank) -> None:
        outcomes = await insert(store, bank, *[memory(number) for number in range(1, 131)])
        assert [outcome.position for outcome in outcomes] == list(range(1, 131))
        assert current(store, bank).position == 130
        other = await make_bank(store, "other")
        assert (await insert(store, other, memory(1)))[0].position == 1

    async def test_the_same_content_is_stored_once(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, "same"))
        outcomes = await insert(store, bank, memory(2, "same"), memory(3, "new"), memory(4, "new"))
        assert [outcome.duplicate_of for outcome in outcomes] == [memory_id(1), None, memory_id(3)]
        assert listed(store, bank) == [memory_id(1), memory_id(3)]
        assert (await insert(store, await make_bank(store, "other"), memory(5, "same")))[0].duplicate_of is None

    async def test_only_current_visible_content_counts_as_the_same(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, "old"), memory(2, "gone"))
        await replace(store, bank, memory(1, "new"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        outcomes = await insert(store, bank, memory(3, "old"), memory(4, "gone"), memory(5, "new"))
        assert [outcome.duplicate_of for outcome in outcomes] == [None, None, memory_id(1)]

    async def test_a_replacement_is_the_next_version(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, RICH)
        first = store.memory(bank, RICH.memory_id)
        assert first is not None
        clock.now += 1_000
        outcome = await replace(store, bank, memory(1, "new content", tags=("z",)), first.etag)
        assert (outcome.version, outcome.position) == (2, 2)
        second = store.memory(bank, RICH.memory_id)
        assert second is not None
        assert (second.content, second.tags, second.version) == ("new content", ("z",), 2)
        assert second.retained_at == first.retained_at < second.updated_at
        assert second.etag != first.etag
        assert store.versions(bank, RICH.memory_id) == [first, second]
        assert listed(store, bank, tags=("a",)) == []

    async def test_a_stale_etag_changes_nothing(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        with pytest.raises(Conflict):
            await store.commit(bank, [Insert(memory(2)), Replace(memory(1, "x"), "stale")])
        assert listed(store, bank) == [memory_id(1)]
        assert current(store, bank).position == 1

    async def test_what_is_not_there_cannot_be_replaced(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(MemoryNotFound):
            await replace(store, bank, memory(1))
        await insert(store, bank, memory(1))
        await forget(store, bank, EVERYTHING)
        with pytest.raises(MemoryNotFound):
            await replace(store, bank, memory(1, "new"))

    async def test_one_commit_may_replace_what_it_inserts(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        outcomes, _ = await store.commit(
            bank, [Insert(memory(1, "a")), Replace(memory(1, "b")), Insert(memory(2, "a")), Replace(memory(1, "c"))]
        )
        assert [(one.memory_id, one.version) for one in outcomes] == [
            (memory_id(1), 1), (memory_id(1), 2), (memory_id(2), 1), (memory_id(1), 3),
        ]  # fmt: skip
        assert [one.content for one in store.versions(bank, memory_id(1))] == ["a", "b", "c"]
        ((upserts, ended),) = [(batch.upserts, batch.ended) for batch in batches]
        assert ended == ()
        assert [(one.memory.content, one.known_until is None) for one in upserts] == [
            ("a", False), ("b", False), ("a", True), ("c", True),
        ]  # fmt: skip

    async def test_a_batch_with_a_wrong_vector_is_refused_as_a_whole(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(DimensionMismatch, match="16"):
            await insert(store, bank, memory(1), memory(2, vector=b"1234"))
        assert listed(store, bank) == []

    async def test_an_id_is_used_once(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        await forget(store, bank, EVERYTHING)
        with pytest.raises(AlreadyExists):
            await insert(store, bank, memory(2), memory(1, "other"))
        assert listed(store, bank) == []

    async def test_text_that_is_not_unicode_fails_alone(self, store: MemoryStore, bank: Bank) -> None:
        bad = memory(1, "ok", content_hash=b"h")
        with pytest.raises(StoreError):
            await insert(store, bank, changed(bad, content="lone \ud800"))
        await insert(store, bank, memory(2))
        assert listed(store, bank) == [memory_id(2)]

    async def test_concurrent_writers_share_no_failure(self, store: MemoryStore, bank: Bank) -> None:
        async def one(number: int) -> str:
            try:
                if number % 3 == 0:
                    await replace(store, bank, memory(10_000 + number))
                else:
                    await insert(store, bank, memory(number))
            except MemoryNotFound:
                return "missing"
            return "stored"

        results = await asyncio.gather(*(one(number) for number in range(90)))
        assert results.count("missing") == 30
        assert len(listed(store, bank)) == 60
        assert [change.position for change in store.changes(bank, after=0, limit=100)] == list(range(1, 61))

    async def test_a_caller_that_gives_up_does_not_stop_its_write(self, store: MemoryStore, bank: Bank) -> None:
        begun, release = threading.Event(), threading.Event()

        def respond(_: object) -> bytes:
            begun.set()
            release.wait(10)
            return b""

        key = RequestKey("r", "retain", b"f")
        task = asyncio.create_task(store.commit(bank, [Insert(memory(1))], request=key, respond=respond))
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await insert(store, bank, memory(2))
        assert listed(store, bank) == [memory_id(1), memory_id(2)]
