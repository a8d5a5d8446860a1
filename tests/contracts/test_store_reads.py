"""Contract of memory stores on reads, on disk and in memory."""

import threading
from dataclasses import fields
from dataclasses import replace as changed

import pytest

from astrocyte.errors import (
    StoreError,
)
from astrocyte.model import Bank, ForgetSelector, Memory
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import Passage, Visibility
from samples.memories import (
    EVERYTHING,
    LATER,
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


class TestListing:
    async def test_tags_and_sessions_filter(self, store: MemoryStore, bank: Bank) -> None:
        await insert(
            store,
            bank,
            memory(1, tags=("a",), session_id="s"),
            memory(2, tags=("b",)),
            memory(3, tags=("a", "b"), session_id="s"),
            memory(4),
        )
        assert listed(store, bank, tags=("a",)) == [memory_id(1), memory_id(3)]
        assert listed(store, bank, tags=("a", "b")) == [memory_id(1), memory_id(2), memory_id(3)]
        assert listed(store, bank, session_id="s") == [memory_id(1), memory_id(3)]
        assert listed(store, bank, tags=("b",), session_id="s") == [memory_id(3)]
        assert listed(store, bank, tags=("A",)) == []

    @pytest.mark.parametrize(
        ("content_chars", "read"), [(None, 5), (10_000, 5), (39, 5), (29, 4), (30, 5), (10, 3), (9, 2), (0, 2)]
    )
    async def test_a_page_is_read_up_to_its_content(
        self, store: MemoryStore, bank: Bank, content_chars: int | None, read: int
    ) -> None:
        await insert(store, bank, *[memory(number, f"ten chars{number}") for number in range(1, 6)])
        position = current(store, bank).position
        rows, total = store.list_memories(
            bank, tags=(), session_id=None, at_position=position, after=0, limit=10, content_chars=content_chars
        )
        assert ([one.memory_id for _, one in rows], total) == ([memory_id(number + 1) for number in range(read)], 5)
        # The reader is free again.
        assert len(listed(store, bank)) == 5

    async def test_pages_show_one_position(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 8)])
        position = current(store, bank).position
        first, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=3)
        assert ([one.memory_id for _, one in first], total) == ([memory_id(1), memory_id(2), memory_id(3)], 7)
        await replace(store, bank, memory(5, "changed"))
        await insert(store, bank, memory(8))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(6),)))
        rest, total = store.list_memories(
            bank, tags=(), session_id=None, at_position=position, after=first[-1][0], limit=10
        )
        assert [(one.memory_id, one.content) for _, one in rest] == [
            (memory_id(4), "memory number 4"), (memory_id(5), "memory number 5"), (memory_id(7), "memory number 7"),
        ]  # fmt: skip
        assert total == 6
        assert listed(store, bank) == [memory_id(n) for n in (1, 2, 3, 4, 7, 5, 8)]

    async def test_what_was_brought_back_later_is_not_in_an_older_page(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1), memory(2))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        position = current(store, bank).position
        await store.undelete(bank, memory_id(1))
        rows, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=10)
        assert ([one.memory_id for _, one in rows], total) == ([memory_id(2)], 1)
        assert listed(store, bank) == [memory_id(1), memory_id(2)]

    async def test_what_was_there_then_and_is_now_stays_in_the_pages(self, store: MemoryStore, bank: Bank) -> None:
        """Forgotten and brought back between two pages, twice: the pages show what was visible at their position."""
        await insert(store, bank, *[memory(number) for number in range(1, 5)])
        positions = [current(store, bank).position]
        one = ForgetSelector(memory_ids=(memory_id(3),))
        for _ in range(2):
            await forget(store, bank, one)
            positions.append(current(store, bank).position)
            await store.undelete(bank, memory_id(3))
            positions.append(current(store, bank).position)
        assert positions == [4, 5, 6, 7, 8]
        counts = []
        for position in positions:
            first, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=2)
            rest, again = store.list_memories(
                bank, tags=(), session_id=None, at_position=position, after=first[-1][0], limit=9
            )
            assert total == again == len(first) + len(rest)
            counts.append(total)
        assert counts == [4, 3, 4, 3, 4]


class TestHydrate:
    async def test_the_chunk_asked_for_comes_back(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(7), RICH)
        rows = store.hydrate(bank, [Passage(2, 1), Passage(1, -1), Passage(2, -1), Passage(2, 0)], Visibility())
        assert [(row.row_key, row.ordinal, row.chunk_text) for row in rows] == [
            (2, 1, "third"),
            (1, -1, "memory number 7"),
            (2, -1, RICH.content),
            (2, 0, "Grüße aus Zürich 👋"),
        ]

    async def test_what_is_asked_for_twice_comes_twice(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1), memory(2))
        rows = store.hydrate(bank, [Passage(2, -1), Passage(1, -1), Passage(2, -1)], Visibility())
        assert [row.row_key for row in rows] == [2, 1, 2]

    async def test_a_hydrated_memory_equals_the_memory(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH)
        (row,) = store.hydrate(bank, [Passage(1, -1)], Visibility())
        found = store.memory(bank, RICH.memory_id)
        shared = set(row._fields) & {field.name for field in fields(Memory)}
        assert shared == set(row._fields) - {"row_key", "ordinal", "chunk_text"}
        assert found is not None
        assert found.occurred_at is not None
        timed = row._asdict() | {"occurred_at": found.occurred_at, "retained_at": found.retained_at}
        assert [timed[name] for name in sorted(shared)] == [getattr(found, name) for name in sorted(shared)]
        times = (to_ms(found.occurred_at), to_ms(found.retained_at))
        assert (row.occurred_at, row.retained_at) == times

    async def test_nothing_asked_nothing_read(self, store: MemoryStore, bank: Bank) -> None:
        assert store.hydrate(bank, [], Visibility()) == []

    async def test_unknown_rows_are_left_out(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        rows = store.hydrate(bank, [Passage(99, -1), Passage(1, -1), Passage(1, 5)], Visibility())
        assert [row.row_key for row in rows] == [1, 1]

    async def test_another_bank_or_tenant_gets_nothing(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        other = await make_bank(store, tenant="other")
        assert seen(store, bank) == [memory_id(1)]
        assert seen(store, other) == []
        assert seen(store, changed(bank, tenant="other")) == []
        assert seen(store, changed(bank, bank_id="elsewhere")) == []
        assert seen(store, changed(other, key=bank.key)) == []

    async def test_several_banks_are_read_at_once_each_its_own(self, store: MemoryStore, bank: Bank) -> None:
        other = await make_bank(store, bank_id="other")
        await insert(store, bank, memory(1), memory(2))
        await insert(store, other, memory(3), memory(4))
        every = [Passage(key, -1) for key in (4, 2, 3, 1, 99)]
        read = store.hydrate_each([(other, every), (bank, every)], Visibility())
        # In the order of the passages.
        expected = [[memory_id(4), memory_id(3)], [memory_id(2), memory_id(1)]]
        assert [[row.memory_id for row in rows] for rows in read] == expected
        assert store.hydrate_each([], Visibility()) == []
        assert store.hydrate_each([(bank, []), (other, [])], Visibility()) == [[], []]

    async def test_ended_versions_are_seen_in_their_time_only(
        self, store: MemoryStore, bank: Bank, clock: Clock
    ) -> None:
        start = clock.now
        await insert(store, bank, memory(1, "old"))
        clock.now += 100
        await replace(store, bank, memory(1, "new"))

        def contents(as_of: int | None) -> list[str]:
            rows = store.hydrate(bank, [Passage(1, -1), Passage(2, -1)], Visibility(as_of))
            return [row.chunk_text for row in rows]

        assert contents(None) == ["new"]
        assert contents(start - 1) == []
        assert contents(start) == contents(start + 99) == ["old"]
        assert contents(start + 100) == contents(LATER) == ["new"]

    async def test_validity_includes_both_ends(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, valid_from=10, valid_until=20), memory(2, valid_from=15), memory(3))
        by_instant = {at: seen(store, bank, Visibility(valid_at=at)) for at in (9, 10, 20, 21)}
        one, two, three = memory_id(1), memory_id(2), memory_id(3)
        assert by_instant == {9: [three], 10: [one, three], 20: [one, two, three], 21: [two, three]}
        assert seen(store, bank, Visibility(as_of=LATER, valid_at=9)) == [three]

    async def test_forgotten_is_absent_at_every_instant(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        start = clock.now
        await insert(store, bank, memory(1, "old"))
        clock.now += 100
        await replace(store, bank, memory(1, "new"))
        clock.now += 100
        await forget(store, bank, EVERYTHING)
        for as_of in (None, start, start + 100, start + 200, LATER):
            assert seen(store, bank, Visibility(as_of)) == []
        assert store.versions(bank, memory_id(1)) == []
        assert store.version(bank, memory_id(1)) is None


class TestIteration:
    async def test_every_visible_version_comes_with_its_parts(
        self, store: MemoryStore, bank: Bank, clock: Clock
    ) -> None:
        other = await make_bank(store, "other")
        await insert(store, bank, RICH)
        for number in range(2, 30):
            await insert(store, bank, memory(number))
            await insert(store, other, memory(number))
        clock.now += 7
        await replace(store, bank, memory(3, "new", vector=None))
        batches = list(store.iter_versions(bank, batch_size=7))
        assert [len(batch) for batch in batches] == [7, 7, 7, 7, 2]
        rows = [row for batch in batches for row in batch]
        assert [row.row_key for row in rows] == sorted(row.row_key for row in rows)
        assert rows[0].memory == RICH
        by_content = {row.memory.content: row for row in rows}
        assert by_content["memory number 3"].known_until == clock.now
        assert by_content["new"].known_until is None
        assert by_content["new"].memory.vector is None
        assert by_content["memory number 4"].memory == memory(4)

    async def test_what_comes_while_reading_is_not_seen(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 7)])
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(4),)))
        reading = store.iter_versions(bank, batch_size=2)
        rows = next(reading)
        await replace(store, bank, memory(5, "later"))
        await insert(store, bank, memory(7))
        await store.undelete(bank, memory_id(4))
        rows += [row for batch in reading for row in batch]
        assert [row.memory.content for row in rows] == [f"memory number {number}" for number in (1, 2, 3, 5, 6)]
        assert {row.known_until for row in rows} == {None}


class TestReaders:
    async def test_reads_from_many_threads_see_whole_commits(self, store: MemoryStore, bank: Bank) -> None:
        stop = threading.Event()
        problems: list[int] = []
        first = (await insert(store, bank, memory(1, "v0"), memory(2, "v0 b")))[-1].position

        def read() -> None:
            while not stop.is_set():
                rows, total = store.list_memories(
                    bank, tags=(), session_id=None, at_position=LATER, after=0, limit=1_000
                )
                if total != len(rows) or total % 2:
                    problems.append(total)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(3, 103, 2):
            await insert(store, bank, memory(number), memory(number + 1))
        stop.set()
        for thread in threads:
            thread.join()
        assert problems == []
        assert current(store, bank).position == first + 100

    async def test_a_closed_store_says_so(self, store: MemoryStore, bank: Bank) -> None:
        assert store.healthy
        store.close()
        store.close()
        assert not store.healthy
        with pytest.raises(StoreError, match="closed"):
            await insert(store, bank, memory(1))
        with pytest.raises(StoreError, match="closed"):
            store.memory(bank, memory_id(1))


class TestTurnsBefore:
    async def test_the_turn_before_is_the_last_visible_one_of_the_session(self, store: MemoryStore, bank: Bank) -> None:
        await insert(
            store,
            bank,
            memory(1, session_id="s"),
            memory(2, session_id="other"),
            memory(3, session_id="s"),
            memory(4),
            memory(5, session_id="s"),
            memory(6),
        )
        every = [memory_id(number) for number in range(1, 8)]
        before = {memory_id(3): memory_id(1), memory_id(5): memory_id(3)}
        assert store.turns_before(bank, every) == before
        assert store.turns_before(bank, [memory_id(5), memory_id(5)]) == {memory_id(5): memory_id(3)}
        assert store.turns_before(bank, []) == {}
        assert store.turns_before(changed(bank, tenant="another"), every) == {}
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(3),)))
        assert store.turns_before(bank, every) == {memory_id(5): memory_id(1)}
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(5),)))
        assert store.turns_before(bank, every) == {}
