"""The indexes stay within their budget: who is evicted, what that costs nobody, and what the counts say."""

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from astrocyte.config.loading.environment import memory_limit
from astrocyte.core import Core, RecallRequest, content_hash
from astrocyte.model import Bank
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, NewMemory, VersionRecord
from astrocyte.stores.sharing import ToldListener

NOW = datetime(2024, 1, 1, tzinfo=UTC)
# Each bank holds a few hundred rows, so that three banks fit and a fourth does not.
ROWS = 300


def bank(key: int, position: int = 0) -> Bank:
    return Bank(key, "t", f"b{key}", "", "", "m", 2, NOW, NOW, position, "")


def version(key: int) -> VersionRecord:
    memory = NewMemory(
        memory_id=f"mem_{key:032x}",
        content=f"word{key}",
        content_hash=content_hash(f"word{key}"),
        content_type="text",
        fact_type="world",
        memory_layer="semantic",
        token_count=1,
        vector=struct.pack("<2f", 1.0, key),
    )
    return VersionRecord(key, 1, key, key, None, memory)


class Banks:
    """A store of many banks of equal size."""

    def __init__(self) -> None:
        self.rows = {number: [version(key) for key in range(1, ROWS + 1)] for number in range(10)}
        self.listener: Callable[[IndexBatch], None] = lambda _: None
        self.during_load: Callable[[], object] = lambda: None

    def subscribe(self, listener: Callable[[IndexBatch], None]) -> None:
        self.listener = listener

    def follow(self, listener: ToldListener) -> None:
        self.told = listener

    def get_bank(self, _tenant: str, bank_id: str) -> Bank:
        number = int(bank_id.removeprefix("b"))
        return bank(number, len(self.rows[number]))

    def iter_versions(self, one: Bank, *, batch_size: int) -> Iterator[list[VersionRecord]]:
        yield list(self.rows[one.key])
        self.during_load()

    def commit(self, number: int, key: int) -> None:
        added = version(key)
        self.rows[number].append(added)
        position = len(self.rows[number])
        self.listener(IndexBatch(bank(number, position), position, (added,)))


@pytest.fixture
def banks() -> Banks:
    return Banks()


@pytest.fixture
async def executor() -> AsyncIterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
async def room(banks: Banks, executor: ThreadPoolExecutor) -> int:
    """Bytes that three banks take, and half of a fourth."""
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor)
    await registry.get(bank(0))
    return int(registry.memory.bytes * 3.5)


def keys(index: BankIndex) -> set[int]:
    request = RecallRequest(vector=struct.pack("<2f", 1.0, 1.0), k=ROWS * 2, depth=ROWS * 2)
    return {hit.key for hit in index.core.recall(request).hits}


def held(registry: IndexRegistry) -> set[int]:
    return {number for number in range(10) if registry.peek(bank(number)) is not None}


async def test_the_least_recently_used_bank_goes_first(banks: Banks, executor: ThreadPoolExecutor, room: int) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)
    for number in (0, 1, 2):
        await registry.get(bank(number))
    assert held(registry) == {0, 1, 2}
    assert registry.loaded(bank(0)) is not None
    # Looking does not count as a use.
    assert registry.peek(bank(1)) is not None
    await registry.get(bank(3))
    assert held(registry) == {0, 2, 3}
    memory = registry.memory
    assert (memory.loaded_banks, memory.loads, memory.evictions, memory.budget_bytes) == (3, 4, 1, room)
    assert memory.bytes <= room


async def test_an_evicted_bank_answers_again_with_all_that_was_committed(
    banks: Banks, executor: ThreadPoolExecutor, room: int
) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)
    await registry.get(bank(0))
    for number in range(1, 6):
        await registry.get(bank(number))
    assert registry.peek(bank(0)) is None
    banks.commit(0, 1_000)
    index = await registry.get(bank(0))
    assert keys(index) == {*range(1, ROWS + 1), 1_000}
    assert index.core.position == ROWS + 1


async def test_a_call_finishes_on_the_index_that_it_holds(
    banks: Banks, executor: ThreadPoolExecutor, room: int
) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)
    index = await registry.get(bank(0))
    for number in range(1, 6):
        await registry.get(bank(number))
    assert registry.peek(bank(0)) is None
    assert keys(index) == set(range(1, ROWS + 1))


async def test_growth_by_writes_evicts_others_and_counts(banks: Banks, executor: ThreadPoolExecutor, room: int) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)
    for number in (0, 1, 2):
        await registry.get(bank(number))
    before = registry.memory.bytes
    for key in range(2_000, 2_000 + ROWS * 3):
        banks.commit(2, key)
    # The eviction runs in the executor; what is put behind it there runs after it.
    executor.submit(int).result()
    executor.submit(int).result()
    assert 2 in held(registry)
    assert registry.memory.evictions > 0
    assert registry.memory.bytes != before
    assert len(keys(registry.loaded(bank(2)) or pytest.fail("it is not there"))) <= ROWS * 4


async def test_one_bank_beyond_the_budget_stays_while_it_is_used(banks: Banks, executor: ThreadPoolExecutor) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=1)
    await registry.get(bank(0))
    assert held(registry) == {0}
    await registry.get(bank(1))
    assert held(registry) == {1}


async def test_what_is_dropped_counts_for_nothing(banks: Banks, executor: ThreadPoolExecutor) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor)
    await registry.get(bank(0))
    registry.drop(bank(0))
    assert (registry.memory.loaded_banks, registry.memory.bytes) == (0, 0)
    # A load that ends after its bank was dropped.
    banks.during_load = lambda: registry.drop(bank(1))
    assert keys(await registry.get(bank(1))) == set(range(1, ROWS + 1))
    assert (registry.memory.loaded_banks, registry.memory.bytes) == (0, 0)


async def test_commits_loads_and_evictions_at_once_lose_nothing(
    banks: Banks, executor: ThreadPoolExecutor, room: int
) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)

    def write() -> None:
        for key in range(5_000, 5_200):
            for number in range(6):
                banks.commit(number, key)

    writer = threading.Thread(target=write)
    writer.start()
    for turn in range(120):
        await registry.get(bank(turn % 6))
    writer.join()
    for number in range(6):
        index = await registry.get(bank(number))
        assert keys(index) == {row.row_key for row in banks.rows[number]}
        assert index.core.position == len(banks.rows[number])
    assert registry.memory.evictions > 0
    loaded = [registry.peek(bank(number)) for number in held(registry)]
    assert registry.memory.bytes <= sum(index.measure() for index in loaded if index is not None)


async def test_statistics_of_a_bank(banks: Banks, executor: ThreadPoolExecutor) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor)
    index = await registry.get(bank(0))
    stats = index.stats()
    assert (stats.rows, stats.dead_rows, stats.sessions) == (ROWS, 0, 0)
    # Each word, its number, and the letters that all of them have.
    assert stats.terms == 2 * ROWS + 1
    assert replace(stats, rows=0) != stats
    assert min(stats.vector_bytes, stats.keyword_bytes, stats.column_bytes, stats.scratch_bytes) > 0


def test_the_limit_of_a_control_group_counts(tmp_path: Path) -> None:

    folder = tmp_path
    none, small = folder / "max", folder / "small"
    none.write_text("max\n", encoding="ascii")
    small.write_text("1048576\n", encoding="ascii")
    machine = memory_limit((folder / "missing",))
    assert machine > 1 << 20
    assert memory_limit((none,)) == machine
    assert memory_limit((none, small)) == 1 << 20


async def test_waiting_works_across_an_eviction(banks: Banks, executor: ThreadPoolExecutor, room: int) -> None:
    registry = IndexRegistry(cast("MemoryStore", banks), Core(), executor, memory_bytes=room)
    # Were it loaded beside the others, it could be the one that was used last.
    await registry.get(bank(0))
    waiting = asyncio.create_task(registry.wait_for(bank(0), ROWS + 1, 60))
    await asyncio.sleep(0)
    assert registry._waiters.wakes
    for number in range(1, 6):
        await registry.get(bank(number))
    assert registry.peek(bank(0)) is None
    banks.commit(0, 1_000)
    await waiting
