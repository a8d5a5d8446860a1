"""The index follows the rows: loads lose nothing and take nothing twice, and a failed apply heals."""

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from astrocyte.core import Core, RecallRequest, content_hash
from astrocyte.errors import BankNotFound, FailedPrecondition
from astrocyte.model import Bank
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, NewMemory, VersionRecord
from astrocyte.stores.sharing import ToldListener

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def bank(position: int) -> Bank:
    return Bank(7, "t", "b", "", "", "m", 2, NOW, NOW, position, "")


def version(key: int, *, known_until: int | None = None) -> VersionRecord:
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
    return VersionRecord(key, 1, key, key, known_until, memory)


class Rows:
    """A store of rows and a log, which can commit in the middle of a load."""

    def __init__(self) -> None:
        self.rows: dict[int, VersionRecord] = {}
        self.position = 0
        self.listener: Callable[[IndexBatch], None] = lambda _: None
        self.loads = 0
        self.during_load: Callable[[], object] = lambda: None
        self.exists = True

    def subscribe(self, listener: Callable[[IndexBatch], None]) -> None:
        self.listener = listener

    def follow(self, listener: ToldListener) -> None:
        self.told = listener

    def commit(
        self, add: Sequence[int] = (), remove: Sequence[int] = (), end: Sequence[int] = (), *, tell: bool = True
    ) -> None:
        added = tuple(version(key) for key in add)
        self.rows |= {one.row_key: one for one in added}
        for key in remove:
            self.rows.pop(key, None)
        for key in end:
            self.rows[key] = version(key, known_until=1_000)
        # Last: no reader may see a position before its rows.
        self.position += max(1, len(add) + len(remove) + len(end))
        if tell:
            ended = tuple((key, 1_000) for key in end)
            self.listener(IndexBatch(bank(self.position), self.position, added, ended, tuple(remove)))

    def get_bank(self, _tenant: str, _bank_id: str) -> Bank | None:
        return bank(self.position) if self.exists else None

    def iter_versions(self, _bank: Bank, *, batch_size: int) -> Iterator[list[VersionRecord]]:
        self.loads += 1
        rows = list(self.rows.values())
        half = len(rows) // 2
        yield rows[:half]
        self.during_load()
        yield rows[half:]


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
async def registry(rows: Rows) -> AsyncIterator[IndexRegistry]:
    with ThreadPoolExecutor(2) as executor:
        yield IndexRegistry(cast("MemoryStore", rows), Core(), executor)


def found(index: BankIndex, **options: Any) -> set[int]:
    hits = index.core.recall(RecallRequest(vector=struct.pack("<2f", 1.0, 1.0), k=200, **options)).hits
    assert len({hit.key for hit in hits}) == len(hits)
    return {hit.key for hit in hits}


async def test_a_bank_is_loaded_on_first_use_and_then_follows(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=range(1, 6))
    assert registry.loaded(bank(0)) is None
    index = await registry.get(bank(0))
    assert found(index) == {1, 2, 3, 4, 5}
    rows.commit(add=[6], remove=[1], end=[2])
    assert found(index) == {3, 4, 5, 6}
    assert found(index, as_of=999) == {2, 3, 4, 5, 6}
    assert index.core.position == rows.position
    assert rows.loads == 1


async def test_many_first_users_share_one_load(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=range(1, 50))
    indexes = await asyncio.gather(*(registry.get(bank(0)) for _ in range(20)))
    assert len({id(index) for index in indexes}) == 1
    assert rows.loads == 1


async def test_a_user_that_gives_up_does_not_stop_the_load(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=range(1, 50))
    release = threading.Event()
    rows.during_load = lambda: release.wait(5)
    first = asyncio.create_task(registry.get(bank(0)))
    await asyncio.sleep(0.01)
    first.cancel()
    second = asyncio.create_task(registry.get(bank(0)))
    await asyncio.sleep(0.01)
    release.set()
    assert len(found(await second)) == 49
    assert rows.loads == 1


async def test_commits_during_a_load_are_neither_lost_nor_taken_twice(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=range(1, 11))

    def meanwhile() -> None:
        rows.commit(add=[11, 12])
        rows.commit(remove=[1, 9, 11])
        rows.commit(end=[2])
        # Forgotten and brought back: its row comes again under the same key.
        rows.commit(remove=[3])
        rows.commit(add=[3])

    rows.during_load = meanwhile
    index = await registry.get(bank(0))
    assert found(index) == {3, 4, 5, 6, 7, 8, 10, 12}
    assert index.core.stats()["memories"] == 8
    assert index.core.position == rows.position


async def test_rows_newer_than_the_position_that_was_read_are_harmless(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=[1, 2])
    held: list[IndexBatch] = []
    listener, rows.listener = rows.listener, held.append
    true_bank = rows.get_bank
    # The position is read, then three commits happen, then the rows are read; their batches come last.
    before = true_bank("t", "b")

    def get_bank(_tenant: str, _bank_id: str) -> Bank | None:
        rows.commit(add=[3])
        rows.commit(remove=[1])
        rows.commit(end=[2])
        return before

    rows.get_bank = get_bank  # type: ignore[method-assign] # a race, made certain
    rows.during_load = lambda: [listener(batch) for batch in held]
    index = await registry.get(bank(0))
    assert found(index) == {3}
    assert found(index, as_of=999) == {2, 3}
    assert index.core.position == rows.position


async def test_random_commits_from_another_thread_during_loads(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=range(1, 200))
    stop = threading.Event()

    def write() -> None:
        # Bounded: a writer that never pauses grows faster than a slow machine loads.
        for key in range(1_000, 5_000, 2):
            if stop.is_set():
                return
            rows.commit(add=[key, key + 1])
            rows.commit(remove=[key])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            registry.drop(bank(0))
            await registry.get(bank(0))
    finally:
        stop.set()
        writer.join()
    index = await registry.get(bank(0))
    assert index.core.stats()["memories"] == len(rows.rows)
    assert index.core.position == rows.position


async def test_an_index_that_cannot_take_a_commit_is_built_anew(
    rows: Rows, registry: IndexRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.commit(add=[1])
    index = await registry.get(bank(0))
    monkeypatch.setattr(BankIndex, "apply", lambda *_: (_ for _ in ()).throw(RuntimeError("no memory")))
    with capture_logs() as logs:
        rows.commit(add=[2])
    monkeypatch.undo()
    assert registry.loaded(bank(0)) is None
    # Where and what, and nothing that a message could hold.
    (entry,) = logs
    assert (entry["event"], entry["bank_key"], entry["error"]) == ("index_dropped", 7, "RuntimeError")
    assert "registry.py" in entry["frames"][0]
    assert "no memory" not in str(logs)
    rows.commit(add=[3])
    healed = await registry.get(bank(0))
    assert healed is not index
    assert found(healed) == {1, 2, 3}


async def test_a_load_that_fails_can_be_tried_again(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=[1])
    rows.exists = False
    with pytest.raises(BankNotFound):
        await registry.get(bank(0))
    rows.exists = True
    assert found(await registry.get(bank(0))) == {1}


async def test_waiting_for_a_position(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=[1])
    waiting = asyncio.create_task(registry.wait_for(bank(0), 3, 5))
    await asyncio.sleep(0.01)
    rows.commit(add=[2])
    await asyncio.sleep(0.01)
    assert not waiting.done()
    threading.Thread(target=rows.commit, args=([3],)).start()
    await waiting
    with pytest.raises(FailedPrecondition, match="min_position 99") as caught:
        await registry.wait_for(bank(0), 99, 0.01)
    assert caught.value.metadata["position"] == "3"


async def test_the_span_of_times_grows(rows: Rows, registry: IndexRegistry) -> None:
    rows.commit(add=[5, 9])
    index = await registry.get(bank(0))
    assert (index.earliest, index.latest) == (5, 9)
    rows.commit(add=[3, 12], remove=[9])
    assert (index.earliest, index.latest) == (3, 12)
