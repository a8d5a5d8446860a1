"""Daily quotas: never more than the limit, whoever counts and whatever dies."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from astrocyte.errors import StoreError
from astrocyte.policy.limits.daily_quotas import DAY_MILLISECONDS, Quotas
from astrocyte.stores.quotas import Use
from astrocyte.stores.sqlite.tables.quotas import SqliteQuotaBook

USE = Use("t", "b", "retain")
OTHER = Use("t", "c", "retain")
NOON = 20_000 * DAY_MILLISECONDS + DAY_MILLISECONDS // 2


class Clock:
    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2)


async def admitted(quotas: Quotas, limit: int, *, use: Use = USE, most: int = 10_000) -> int:
    """The number of single calls that pass until one is refused."""
    count = 0
    while count < most and await quotas.take({use: (1, limit)}) is None:
        count += 1
    return count


async def test_exactly_the_limit_is_admitted_each_day(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    clock = Clock()
    quotas = Quotas(SqliteQuotaBook(tmp_path / "quotas.db"), clock, executor)
    assert await admitted(quotas, 500) == 500
    assert await quotas.take({USE: (1, 500)}) == (USE, DAY_MILLISECONDS / 2_000)
    clock.now += DAY_MILLISECONDS // 2
    assert await admitted(quotas, 500) == 500
    # A clock that goes back brings no day back.
    clock.now -= DAY_MILLISECONDS
    assert await admitted(quotas, 500) == 0
    await quotas.close()


async def test_a_restart_gives_nothing_and_loses_nothing(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    path, clock = tmp_path / "quotas.db", Clock()
    total = 0
    for _ in range(5):
        quotas = Quotas(SqliteQuotaBook(path), clock, executor)
        total += await admitted(quotas, 500, most=130)
        await quotas.close()
    assert total == 500


async def test_all_or_none(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    quotas = Quotas(SqliteQuotaBook(tmp_path / "quotas.db"), Clock(), executor)
    assert await quotas.take({OTHER: (8, 10)}) is None
    for _ in range(20):
        refused = await quotas.take({USE: (1, 10), OTHER: (3, 10)})
        assert refused is not None
        assert refused[0] == OTHER
    assert await admitted(quotas, 10) == 10
    assert await admitted(quotas, 10, use=OTHER) == 2
    await quotas.close()


async def test_what_is_given_back_may_be_used(executor: ThreadPoolExecutor) -> None:
    quotas = Quotas(SqliteQuotaBook(None), Clock(), executor)
    assert await quotas.take({USE: (10, 10)}) is None
    quotas.give_back({USE: (3, 10)})
    assert await admitted(quotas, 10) == 3
    await quotas.close()


async def test_calls_at_once_are_counted_each(executor: ThreadPoolExecutor) -> None:
    quotas = Quotas(SqliteQuotaBook(None), Clock(), executor)
    dice = random.Random(3)
    sizes = [dice.choice([1, 1, 2, 7, 30]) for _ in range(300)]
    answers = await asyncio.gather(*(quotas.take({USE: (size, 700), OTHER: (1, 10_000)}) for size in sizes))
    passed = sum(size for size, answer in zip(sizes, answers, strict=True) if answer is None)
    assert passed <= 700
    # What refused ones were too large for is still there for small ones.
    assert passed + await admitted(quotas, 700) == 700
    await quotas.close()


def count_up(path: Path, limit: int, pipe: Connection, start: Barrier) -> None:
    """A server that counts until it is refused, telling each call that it let pass."""

    async def run() -> None:
        quotas = Quotas(SqliteQuotaBook(path), Clock(), ThreadPoolExecutor(1))
        # However long a process takes to start, both count at the same time.
        start.wait(40)
        while await quotas.take({USE: (1, limit)}) is None:
            pipe.send_bytes(b".")
        await quotas.close()

    asyncio.run(run())
    pipe.close()


def count_in_processes(path: Path, limit: int, kill_after: int | None) -> list[int]:
    """Calls that two processes let pass; the one that comes first to ``kill_after`` is killed there."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    counts = [0, 0]
    killing = threading.Lock()
    processes: list[SpawnProcess] = []
    readers = []

    def read(number: int, pipe: Connection) -> None:
        try:
            while pipe.recv_bytes():
                counts[number] += 1
                # Which one it is is up to who gets the lock of the book.
                if counts[number] == kill_after and killing.acquire(blocking=False):
                    os.kill(processes[number].pid or 0, signal.SIGKILL)
        except EOFError:
            return

    for number in range(2):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=count_up, args=(path, limit, theirs, start))
        process.start()
        theirs.close()
        processes.append(process)
        reader = threading.Thread(target=read, args=(number, ours))
        readers.append(reader)
    for reader in readers:
        reader.start()
    for reader, process in zip(readers, processes, strict=True):
        reader.join()
        process.join()
    return counts


def open_books(folder: Path, count: int, start: Barrier, failures: Connection) -> None:
    for number in range(count):
        start.wait(40)
        try:
            SqliteQuotaBook(folder / f"{number}.db").close()
        except StoreError as error:
            failures.send(str(error))
    failures.close()


@pytest.mark.process
def test_processes_may_open_a_new_book_at_the_same_moment(tmp_path: Path) -> None:
    # Without another try about one in twenty is refused here.
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3)
    ours, theirs = context.Pipe(duplex=False)
    processes = [context.Process(target=open_books, args=(tmp_path, 60, start, theirs)) for _ in range(3)]
    for process in processes:
        process.start()
    theirs.close()
    with pytest.raises(EOFError):
        pytest.fail(ours.recv())
    for process in processes:
        process.join()
        assert process.exitcode == 0


@pytest.mark.process
def test_two_processes_share_a_quota(tmp_path: Path) -> None:
    counts = count_in_processes(tmp_path / "quotas.db", 3_000, None)
    # One may give back a last block that the other was refused: an eighth of what was left by then, at the most.
    assert 2_900 <= sum(counts) <= 3_000
    again = count_in_processes(tmp_path / "quotas.db", 3_000, None)
    assert sum(counts) + sum(again) == 3_000


@pytest.mark.process
def test_a_quota_survives_a_kill(tmp_path: Path) -> None:
    counts = count_in_processes(tmp_path / "quotas.db", 3_000, 700)
    assert max(counts) >= 700
    assert sum(counts) <= 3_000
    # A killed process takes a block with it, not more.
    assert sum(counts) >= 3_000 - 2 * 64


def test_old_days_are_deleted_but_not_the_last(tmp_path: Path) -> None:
    book = SqliteQuotaBook(tmp_path / "quotas.db")
    assert book.reserve(10, USE, least=4, limit=5) == 4
    assert book.reserve(11, USE, least=1, limit=5) == 1
    assert book.reserve(10, USE, least=2, limit=5) == 0
    assert book.reserve(12, USE, least=5, limit=5) == 5
    assert book.reserve(10, USE, least=5, limit=5) == 5
    book.close()
    book.close()


def test_a_book_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "quotas.db").write_bytes(b"this is no database, and never was one" * 100)
    with pytest.raises(StoreError, match="quotas"):
        SqliteQuotaBook(tmp_path / "quotas.db")
