"""Two processes on one data directory: what one acknowledged, the other knows."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest

from astrocyte.api import requests
from astrocyte.api.requests import (
    CreateApiKey,
    CreateBank,
    CreateObservation,
    DeleteBank,
    Forget,
    GetBank,
    GetMemory,
    ListMemories,
    PlaceHold,
    Recall,
    Remember,
    Retain,
    RevokeApiKey,
    StartReindex,
    Watch,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import (
    AccessDenied,
    AuthorizationError,
    BankNotFound,
    CapabilityNotSupported,
    FailedPrecondition,
    LegalHoldActive,
    LimitReached,
    MemoryNotFound,
)
from astrocyte.model import ForgetSelector, RecallQuery, RetainItem
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from harness.workers import ME, Workers, two_workers

pytestmark = pytest.mark.process

PAIRS = 800
MANY_PAIRS = 100_000
CALLERS = 8
ROOT = "a key of the configuration"
DIGEST = hashlib.sha256(ROOT.encode()).hexdigest()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Two workers with default settings, of tests that kill none."""
    workers = Workers(tmp_path_factory.mktemp("workers"))
    try:
        for number in (1, 2):
            workers.spawn(number)
        yield workers
    finally:
        asyncio.run(workers.close())


@asynccontextmanager
async def clients(workers: Workers) -> AsyncIterator[tuple[RemoteBackend, RemoteBackend]]:
    """A client of each worker; afterwards the bank of the test is gone."""
    first, second = (RemoteBackend(workers.addresses[number]) for number in (1, 2))
    try:
        yield first, second
        with suppress(BankNotFound):
            await first.call(ME, DeleteBank("b"))
    finally:
        await first.close()
        await second.close()


async def _stored(backend: RemoteBackend, content: str, bank: str = "b", **given: object) -> str:
    result = await backend.call(ME, Retain(bank, RetainItem(content), **given))  # type: ignore[arg-type]
    assert result.memory_id
    return result.memory_id


async def _found(backend: RemoteBackend, query: str, bank: str = "b", **given: object) -> set[str]:
    result = await backend.call(ME, Recall(RecallQuery(query, bank, max_results=10, **given)))  # type: ignore[arg-type]
    return {hit.memory_id or "" for hit in result.hits}


async def _misses(first: RemoteBackend, second: RemoteBackend, pairs: int) -> int:
    """Write in one process and read in the other at once, several callers at a time; how many reads miss it."""
    numbers, misses = iter(range(pairs)), 0

    async def caller(seed: int) -> None:
        nonlocal misses
        chosen = random.Random(seed)
        for number in numbers:
            writer, reader = chosen.sample((first, second), 2)
            # A few banks, so that own commits and those of others alternate within one.
            bank = f"bank-{number % 3}"
            memory_id = await _stored(writer, f"Parcel zq{number}x stands in row {chosen.randrange(10_000)}", bank)
            misses += memory_id not in await _found(reader, f"zq{number}x", bank)

    await asyncio.gather(*(caller(seed) for seed in range(CALLERS)))
    return misses


@pytest.mark.timeout(240)
async def test_a_recall_sees_every_write_that_another_process_acknowledged(tmp_path: Path) -> None:
    async with two_workers(tmp_path) as (first, second, _):
        for number in range(3):
            await first.call(ME, CreateBank(f"bank-{number}"))
        assert await _misses(first, second, PAIRS) == 0


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_recall_sees_every_write_of_very_many(tmp_path: Path) -> None:
    async with two_workers(tmp_path) as (first, second, _):
        for number in range(3):
            await first.call(ME, CreateBank(f"bank-{number}"))
        assert await _misses(first, second, MANY_PAIRS) == 0


async def test_reads_updates_and_forgets_cross_at_once(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        await first.call(ME, CreateBank("b"))
        await second.call(ME, GetBank("b"))
        for number in range(40):
            here, there = (first, second) if number % 2 else (second, first)
            memory_id = await _stored(here, f"Ticket kx{number} is for the late train")
            assert (await there.call(ME, GetMemory("b", memory_id))).memory_id == memory_id
            listed = await there.call(ME, ListMemories("b"))
            assert memory_id in {memory.memory_id for memory in listed.memories}
            assert memory_id in await _found(there, f"kx{number}")
            await there.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
            assert memory_id not in await _found(here, f"kx{number}")
            with pytest.raises(MemoryNotFound):
                await here.call(ME, GetMemory("b", memory_id))


async def test_a_position_of_one_process_is_waited_for_in_the_other(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        await first.call(ME, CreateBank("b"))
        await _stored(first, "The first one")
        await _found(second, "first")
        position = (await first.call(ME, GetBank("b"))).position
        late = asyncio.create_task(_found(second, "penguin", min_position=position + 1))
        await asyncio.sleep(0.1)
        memory_id = await _stored(first, "A penguin walks")
        assert memory_id in await asyncio.wait_for(late, 5)


async def test_a_watcher_wakes_for_the_writes_of_another_process(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        await first.call(ME, CreateBank("b"))

        async def next_change() -> str:
            async for change in second.stream(ME, Watch("b", after_position=0)):
                return change.memory_id
            raise AssertionError("the stream ended")

        watching = asyncio.create_task(next_change())
        await asyncio.sleep(0.2)
        memory_id = await _stored(first, "Something new")
        assert await asyncio.wait_for(watching, 5) == memory_id


async def test_a_request_id_happens_once_over_both_processes(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        await first.call(ME, CreateBank("b"))
        calls = [
            _stored((first, second)[number % 2], f"Letter {number // 2}", request_id=f"r-{number // 2}")
            for number in range(40)
        ]
        stored = await asyncio.gather(*calls)
        assert stored[::2] == stored[1::2]
        assert len((await second.call(ME, ListMemories("b", page_size=100))).memories) == len(stored) // 2


async def test_grants_and_keys_hold_at_once_in_the_other_process(tmp_path: Path) -> None:
    sections = {
        "access_control": {"enabled": True},
        "auth": {
            "api_keys": [{"name": "root", "sha256": hashlib.sha256(ROOT.encode()).hexdigest(), "principal": "root"}]
        },
        "access_grants": [{"bank_id": "*", "principal": "root", "permissions": ["*"]}],
    }
    async with two_workers(tmp_path, **sections) as (_, __, workers):
        root = [RemoteBackend(workers.addresses[number], api_key=ROOT) for number in (1, 2)]
        await root[0].call(ME, CreateBank("b"))
        for number in range(10):
            here, there = root[number % 2], root[1 - number % 2]
            made = await here.call(ME, CreateApiKey(f"key-{number}", "bob"))
            bob = RemoteBackend(workers.addresses[2 - number % 2], api_key=made.secret)
            with pytest.raises(AccessDenied):
                await _found(bob, "anything")
            await here.call(ME, requests.Grant("b", "bob", ["read"]))
            await _found(bob, "anything")
            await here.call(ME, requests.Revoke("b", "bob", ["read"]))
            with pytest.raises(AccessDenied):
                await _found(bob, "anything")
            await there.call(ME, RevokeApiKey(made.api_key.key_id))
            with pytest.raises(AuthorizationError):
                await _found(bob, "anything")
            await bob.close()
        for one in root:
            await one.close()


async def test_a_hold_of_one_process_stops_the_other(tmp_path: Path) -> None:
    async with two_workers(tmp_path) as (first, second, _):
        await first.call(ME, CreateBank("b"))
        memory_id = await _stored(first, "Evidence")
        await first.call(ME, PlaceHold("b", "a case"))
        with pytest.raises(LegalHoldActive):
            await second.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))


async def test_a_page_of_one_process_is_followed_in_the_other(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        await first.call(ME, CreateBank("b"))
        ids = [await _stored((first, second)[number % 2], f"Entry {number}") for number in range(20)]
        found: list[str] = []
        token = ""
        for number in range(20):
            backend = (first, second)[number % 2]
            page = await backend.call(ME, ListMemories("b", page_size=3, page_token=token))
            found += [memory.memory_id for memory in page.memories]
            token = page.next_page_token
            if not token:
                break
        assert found == ids


async def test_kept_answers_and_knowledge_follow_the_other_process(tmp_path: Path) -> None:
    async with two_workers(tmp_path, recall={"cache_bytes": 1 << 20}) as (first, second, _):
        await first.call(ME, CreateBank("b"))
        old = await _stored(first, "The office is in Lisbon")
        for _ in range(2):
            assert await _found(second, "where is the office") == {old}
        new = await _stored(first, "The office moved from Lisbon to Porto")
        assert await _found(second, "where is the office") == {old, new}
        await first.call(ME, CreateObservation("b", "The office moves every year", (old, new)))
        result = await second.call(ME, Recall(RecallQuery("where is the office", "b")))
        assert {hit.memory_id for hit in result.hits} > {old, new}


async def test_a_deleted_bank_is_gone_in_the_other_process(workers: Workers) -> None:
    async with clients(workers) as (first, second):
        for number in range(6):
            here, there = (first, second) if number % 2 else (second, first)
            await here.call(ME, CreateBank("b"))
            memory_id = await _stored(there, "Of the bank that goes")
            await _found(here, "bank that goes")
            await there.call(ME, DeleteBank("b"))
            with pytest.raises(BankNotFound):
                await _found(here, "bank that goes")
            await here.call(ME, CreateBank("b"))
            assert memory_id not in await _found(there, "bank that goes")
            await here.call(ME, DeleteBank("b"))


async def test_rates_are_those_of_both_processes_together(tmp_path: Path) -> None:
    async with two_workers(tmp_path, homeostasis={"rate_limits": {"recall_per_minute": 20}}) as (first, second, _):
        await first.call(ME, CreateBank("b"))
        admitted = 0
        for number in range(60):
            try:
                await _found((first, second)[number % 2], "anything")
            except LimitReached:
                continue
            admitted += 1
        # What a few seconds bring comes on top.
        assert 20 <= admitted <= 25


async def test_what_one_process_alone_can_do_is_refused(workers: Workers) -> None:
    async with clients(workers) as (first, _):
        await first.call(ME, CreateBank("b"))
        with pytest.raises(CapabilityNotSupported, match="workers"):
            await first.call(ME, Remember("drinks", "likes tea", agent_id="agent"))
        with pytest.raises(FailedPrecondition, match="workers"):
            await first.call(ME, StartReindex("b", rollback=True))


async def test_an_erasure_leaves_no_byte_beside_another_writer(tmp_path: Path) -> None:
    async with two_workers(tmp_path, recall={"cache_bytes": 1 << 20}) as (first, second, workers):
        await first.call(ME, CreateBank("b"))
        for number in range(120):
            await _stored((first, second)[number % 2], f"Filler {number} of the archive {'x' * (number % 90)}")

        async def write() -> None:
            # Pages that the erasure cleans are in the memory of this writer, and change with its next commits.
            for number in range(10_000):
                await _stored(second, f"Later filler {number} of the archive")

        writing = asyncio.create_task(write())
        secrets = []
        for number in range(12):
            secret = f"SECRET{number:04d}ZEBRA"
            secrets.append(secret)
            here = (first, second)[number % 2]
            memory_id = await _stored((second, first)[number % 2], f"The word is {secret}, keep it")
            for backend in (first, second):
                assert memory_id in await _found(backend, f"word {secret}")
            result = await here.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
            assert result.receipt is not None
            for backend in (first, second):
                assert memory_id not in await _found(backend, f"word {secret}")
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        # What was written since the last erasure is in the log, whose pages came from the memory of the writers.
        for path in workers.data_dir.rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            assert [secret for secret in secrets if secret.encode() in data] == [], path


async def test_background_work_moves_on_within_15_seconds_of_a_kill(tmp_path: Path) -> None:
    async with two_workers(tmp_path, forget={"purge_after_days": 0, "purge_interval_seconds": 0.2}) as (_, __, workers):
        holder = await _holder(workers)
        left = workers.backends[3 - holder]
        await left.call(ME, CreateBank("b"))
        await workers.kill(holder)
        began = time.monotonic()
        memory_id = await _stored(left, "Due at once")
        await left.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
        while _rows(workers, "SELECT count(*) FROM memories"):
            assert time.monotonic() - began < 15
            await asyncio.sleep(0.1)
        assert await _holder(workers) != holder


async def _holder(workers: Workers) -> int:
    for _ in range(100):
        found = _rows(workers, "SELECT holder FROM leases WHERE name = 'background'")
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("nobody took the background work")


def _rows(workers: Workers, sql: str) -> int:
    """The only value of a query, 0 where there is none."""
    connection = apsw.Connection(str(workers.data_dir / DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(5_000)
        rows = connection.execute(sql).fetchall()
        return int(str(rows[0][0])) if rows else 0
    finally:
        connection.close()


async def test_a_paused_worker_that_was_taken_for_dead_ends_when_it_goes_on(tmp_path: Path) -> None:
    async with two_workers(tmp_path, server={"write_deadline_seconds": 40}) as (first, second, workers):
        await first.call(ME, CreateBank("b"))
        memory_id = await _stored(first, "The code of the vault")
        await _found(second, "the code")
        workers.pause(2)
        # Nothing waits for it once its time is up.
        await first.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,)), compliance=True))
        for number in range(20):
            await _stored(first, f"Written meanwhile {number}")
        end = time.monotonic() + 20
        while _rows(workers, "SELECT count(*) FROM told") > 5:
            assert time.monotonic() < end
            await asyncio.sleep(0.2)
        workers.resume(2)
        assert workers.processes[2].wait(20) != 0
