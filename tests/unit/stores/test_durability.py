"""The store on a disk that is slow, full, broken, locked or already taken."""

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from astrocyte.errors import DiskFull, RateLimited, StoreError, StoreLocked
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.records import IndexBatch, Insert, NewMemory, RequestKey
from astrocyte.stores.sqlite import SqliteStore, open_store
from astrocyte.stores.sqlite.engine.data_directory import BALLAST, DATABASE, LOCK
from doubles.faulty_disk import FaultyDisk, failing_sync, faulty_disk, no_space
from samples.memories import current, insert, listed, make_bank, memory, memory_id

EVERYTHING = ForgetSelector(scope="all")
LATER = 10**13
MEBIBYTE = 1 << 20


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    with faulty_disk() as made:
        yield made


async def forget_all(store: SqliteStore) -> int:
    bank = store.get_bank("default", "bank")
    assert bank is not None
    count, *_ = await store.forget(bank, EVERYTHING, reason="", principal="", purge_after=LATER)
    return count


async def insert_when_there_is_room(store: SqliteStore, bank: Bank, new: NewMemory) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            await insert(store, bank, new)
        except DiskFull:
            assert time.monotonic() < deadline, "writes did not come back with the space"
            await asyncio.sleep(0.1)
        else:
            return


async def test_every_acknowledgement_has_a_sync_before_it(tmp_path: Path, disk: FaultyDisk) -> None:
    store = SqliteStore(tmp_path, _vfs=disk.name)
    bank = await make_bank(store)
    for number in range(20):
        before = disk.counts["sync", "wal"]
        await insert(store, bank, memory(number))
        assert disk.counts["sync", "wal"] > before
    before = disk.counts["sync", "wal"]
    await asyncio.gather(*(insert(store, bank, memory(100 + number)) for number in range(64)))
    # Those that wait share a sync.
    assert 1 <= disk.counts["sync", "wal"] - before <= 16
    store.close()


async def test_a_write_that_stores_nothing_needs_no_sync(tmp_path: Path, disk: FaultyDisk) -> None:
    store = SqliteStore(tmp_path, _vfs=disk.name)
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    before = disk.counts["sync", "wal"]
    assert (await insert(store, bank, memory(2, "memory number 1")))[0].duplicate_of == memory_id(1)
    assert disk.counts["sync", "wal"] == before
    store.close()


async def test_what_was_acknowledged_is_there_after_reopening(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    bank = await make_bank(store)
    await insert(store, bank, *[memory(number) for number in range(1, 50)])
    store.close()
    again = open_store(tmp_path, ballast_bytes=0)
    assert listed(again, bank) == [memory_id(number) for number in range(1, 50)]
    assert current(again, bank) == again.get_bank("default", "bank")
    (outcome,) = await insert(again, bank, memory(50))
    assert outcome.position == 50
    again.close()


async def test_a_full_disk_changes_nothing_and_still_forgets(tmp_path: Path, disk: FaultyDisk) -> None:
    store = SqliteStore(tmp_path, ballast_bytes=MEBIBYTE, _vfs=disk.name)
    bank = await make_bank(store)
    await insert(store, bank, memory(1), memory(2))
    ballast = tmp_path / BALLAST
    assert ballast.stat().st_size == MEBIBYTE

    def full_while_ballast_is_there(action: str, kind: str) -> None:
        if ballast.exists():
            no_space(action, kind)

    disk.fault = full_while_ballast_is_there
    with pytest.raises(DiskFull, match="nothing was changed"):
        await insert(store, bank, memory(3))
    assert ballast.exists()
    assert listed(store, bank) == [memory_id(1), memory_id(2)]
    assert await forget_all(store) == 2
    assert not ballast.exists()
    assert store.healthy
    # The ballast comes back with the space, and with it the writes.
    disk.fault = None
    await insert_when_there_is_room(store, bank, memory(4))
    assert ballast.exists()
    assert listed(store, bank) == [memory_id(4)]
    store.close()


async def test_without_ballast_only_what_frees_space_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path, ballast_bytes=MEBIBYTE)
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    (tmp_path / BALLAST).unlink()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(DiskFull):
        await insert(store, bank, memory(2))
    assert not (tmp_path / BALLAST).exists()
    assert await forget_all(store) == 1
    monkeypatch.undo()
    await insert_when_there_is_room(store, bank, memory(2))
    store.close()


async def test_a_group_on_a_full_disk_fails_job_by_job(tmp_path: Path, disk: FaultyDisk) -> None:
    store = SqliteStore(tmp_path, ballast_bytes=MEBIBYTE, _vfs=disk.name)
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    ballast = tmp_path / BALLAST
    disk.fault = lambda action, kind: no_space(action, kind) if ballast.exists() else None
    results = await asyncio.gather(
        insert(store, bank, memory(2)),
        insert(store, bank, memory(3)),
        forget_all(store),
        insert(store, bank, memory(4)),
        return_exceptions=True,
    )
    assert [isinstance(one, DiskFull) for one in results] == [True, True, False, True] or results[2] == 1
    assert listed(store, bank) == []
    assert store.healthy
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small file system needs root on Linux")
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


@pytest.mark.process
async def test_a_real_full_disk(small_disk: Path) -> None:
    store = open_store(small_disk / "data", ballast_bytes=4 * MEBIBYTE)
    bank = await make_bank(store)
    acknowledged: list[str] = []

    async def fill() -> None:
        for number in range(1, 10_000):
            await insert(store, bank, memory(number, f"{number} " + "filling " * 400))
            acknowledged.append(memory_id(number))

    with pytest.raises(DiskFull):
        await fill()
    assert len(acknowledged) > 100
    assert listed(store, bank) == acknowledged
    assert store.memory(bank, acknowledged[0]) is not None
    keep = acknowledged[-1]
    gone = ForgetSelector(memory_ids=tuple(acknowledged[:-1]))
    assert (await store.forget(bank, gone, reason="", principal="", purge_after=0))[0] == len(acknowledged) - 1
    await store.erase(bank, gone, reason="", principal="")
    assert listed(store, bank) == [keep]
    assert store.healthy
    await insert_when_there_is_room(store, bank, memory(20_000))
    store.close()
    again = open_store(small_disk / "data", ballast_bytes=0)
    assert listed(again, bank) == [keep, memory_id(20_000)]
    again.close()


async def test_a_failed_sync_is_never_tried_again(tmp_path: Path, disk: FaultyDisk) -> None:
    store = SqliteStore(tmp_path / "data", _vfs=disk.name)
    bank = await make_bank(store)
    await insert(store, bank, memory(1))
    disk.fault = failing_sync
    with pytest.raises(StoreError, match="not known"):
        await insert(store, bank, memory(2))
    assert not store.healthy
    syncs = disk.counts["sync", "wal"], disk.counts["sync", "main"]
    disk.fault = None
    for attempt in (insert(store, bank, memory(3)), forget_all(store), store.purge(LATER)):
        with pytest.raises(StoreError, match="restart"):
            await attempt
    assert memory_id(1) in listed(store, bank)
    store.close()
    assert (disk.counts["sync", "wal"], disk.counts["sync", "main"]) == syncs
    again = open_store(tmp_path / "data", ballast_bytes=0)
    assert memory_id(1) in listed(again, bank)
    assert memory_id(3) not in listed(again, bank)
    await insert(again, bank, memory(4))
    again.close()


async def test_a_full_queue_refuses(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0, waiting_limit=10)
    bank = await make_bank(store)
    results = await asyncio.gather(
        *(insert(store, bank, memory(number)) for number in range(40)), return_exceptions=True
    )
    refused = [one for one in results if isinstance(one, RateLimited)]
    assert refused
    assert refused[0].retry_after > 0
    assert len(listed(store, bank)) == 40 - len(refused)
    # A batch above the limit gets in when nothing else waits.
    await insert(store, bank, *[memory(100 + number) for number in range(20)])
    store.close()


async def test_closing_finishes_what_waits(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    bank = await make_bank(store)
    waiting = [asyncio.create_task(insert(store, bank, memory(number))) for number in range(50)]
    await asyncio.sleep(0)
    await asyncio.to_thread(store.close)
    await asyncio.gather(*waiting)
    again = open_store(tmp_path, ballast_bytes=0)
    assert len(listed(again, bank)) == 50
    again.close()


async def test_a_caller_that_gave_up_before_its_turn_is_left_out(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    bank = await make_bank(store)

    def slow(_: object) -> bytes:
        time.sleep(0.3)
        return b""

    first = asyncio.create_task(
        store.commit(bank, [Insert(memory(1))], request=RequestKey("r", "o", b""), respond=slow)
    )
    await asyncio.sleep(0.1)
    second = asyncio.create_task(insert(store, bank, memory(2)))
    await asyncio.sleep(0)
    second.cancel()
    await first
    await insert(store, bank, memory(3))
    assert listed(store, bank) == [memory_id(1), memory_id(3)]
    store.close()


def _hold_lock(path: str, seconds: float, held: "multiprocessing.synchronize.Event") -> None:
    connection = apsw.Connection(path)
    connection.execute("BEGIN IMMEDIATE")
    held.set()
    time.sleep(seconds)
    connection.execute("ROLLBACK")
    connection.close()


@pytest.mark.process
@pytest.mark.parametrize(("seconds", "busy_seconds"), [(0.1, 5.0), (2.0, 5.0), (3.0, 0.3)])
async def test_a_lock_of_another_process_is_waited_for(tmp_path: Path, seconds: float, busy_seconds: float) -> None:
    store = open_store(tmp_path, ballast_bytes=0, busy_seconds=busy_seconds)
    bank = await make_bank(store)
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    other = context.Process(target=_hold_lock, args=(str(tmp_path / DATABASE), seconds, held))
    other.start()
    assert await asyncio.to_thread(held.wait, 30)
    started = time.monotonic()
    if seconds < busy_seconds:
        await insert(store, bank, memory(1))
        assert time.monotonic() - started > seconds / 4
    else:
        with pytest.raises(RateLimited, match="nothing was changed") as caught:
            await insert(store, bank, memory(1))
        assert caught.value.retry_after > 0
    assert store.healthy
    await asyncio.to_thread(other.join)
    await insert(store, bank, memory(2))
    assert listed(store, bank)[-1] == memory_id(2)
    store.close()


@pytest.mark.process
def test_a_second_process_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    code = (
        "import sys; from pathlib import Path; from astrocyte.errors import StoreLocked\n"
        "from astrocyte.stores.sqlite import open_store\n"
        "try: open_store(Path(sys.argv[1]))\n"
        "except StoreLocked as error: print(error)\n"
    )

    def attempt() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout

    said = attempt()
    assert str(tmp_path) in said
    assert f"pid {os.getpid()}" in said
    # The lock does not end with its file.
    (tmp_path / LOCK).unlink()
    assert str(tmp_path) in attempt()
    with pytest.raises(StoreLocked):
        open_store(tmp_path)
    store.close()
    assert attempt() == ""


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreError, match=r"3\.51\.3"):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_settings_that_durability_rests_on(tmp_path: Path) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    connection = store._connections.writer
    found = {
        name: connection.pragma(name)
        for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "mmap_size", "temp_store")
    }
    assert found == {
        "journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "mmap_size": 0, "temp_store": 2,
    }  # fmt: skip
    assert (tmp_path / DATABASE).stat().st_mode & 0o077 == 0
    store.close()


async def test_a_read_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astrocyte.stores.sqlite.engine.connections.READ_LIMIT_SECONDS", 0.05)
    store = open_store(tmp_path, ballast_bytes=0)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(StoreError, match="longer"):
        store._connections.query(endless)
    assert store._connections.query("SELECT 1") == [(1,)]
    store.close()


@pytest.mark.parametrize("in_memory", [False, True])
async def test_closing_waits_for_a_read_of_another_thread(tmp_path: Path, in_memory: bool) -> None:
    store = open_store(None if in_memory else tmp_path, ballast_bytes=0)
    reading = await _reading_slowly(store)
    await asyncio.to_thread(store.close)
    assert await reading == [(3_000_000,)]


@pytest.mark.parametrize("in_memory", [False, True])
async def test_a_purge_runs_while_another_thread_reads(tmp_path: Path, in_memory: bool) -> None:
    store = open_store(None if in_memory else tmp_path, ballast_bytes=0)
    reading = await _reading_slowly(store)
    assert await store.purge(1) == 0
    assert await reading == [(3_000_000,)]
    store.close()


async def _reading_slowly(store: SqliteStore) -> asyncio.Task[object]:
    """Let another thread read for some tenths of a second."""
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT count(*) FROM n"
    reading = asyncio.create_task(asyncio.to_thread(store._connections.query, slow))
    await asyncio.sleep(0.1)
    return reading


async def test_a_failure_nobody_foresaw_shows_no_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(tmp_path, ballast_bytes=0)
    bank = await make_bank(store)
    secret = "the secret word"

    def fail(_: object) -> bytes:
        raise ValueError(secret)

    with pytest.raises(StoreError) as caught:
        await store.commit(bank, [Insert(memory(1, secret))], request=RequestKey("r", "o", b""), respond=fail)

    def listen(batch: IndexBatch) -> None:
        fail(batch)

    store.subscribe(listen)
    await insert(store, bank, memory(2, secret))
    store.close()
    said = capsys.readouterr()
    assert "write_failed" in said.out + said.err
    assert "listener_failed" in said.out + said.err
    assert secret not in said.out + said.err + str(caught.value) + repr(caught.value.metadata)


@pytest.mark.parametrize("name", [BALLAST, LOCK])
async def test_a_fifo_in_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with contextlib.suppress(StoreError):
        open_store(tmp_path, ballast_bytes=4_096).close()
