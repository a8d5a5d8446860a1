"""An erasure leaves no byte of what it erased in any file of the data directory."""

import asyncio
import hashlib
import multiprocessing
import os
import random
import re
import shutil
import signal
import struct
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from astrocyte.errors import BankNotFound, MemoryNotFound, StoreError
from astrocyte.model import Bank, Entity, ForgetSelector
from astrocyte.stores.records import ChunkRecord, Insert, NewMemory, RequestKey
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.stores.sqlite.deletion.scrubbing import gap
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from astrocyte.stores.sqlite.engine.transaction import Transaction
from samples.memories import Clock, current, insert, listed, make_bank, memory, memory_id, replace, vector

LATER = 10**13
LETTERS = "abcdefghijklmnopqrstuvwxyz"


# What a secret begins and ends with, so that one pass over the files finds them all.
WORD = re.compile(rb"qzx([a-z]{6})xzq", re.IGNORECASE)
WIDE_WORD = re.compile(b"q\0z\0x\0((?:[a-z]\0){6})x\0z\0q", re.IGNORECASE)
MAGIC = struct.pack("<f", 12_345.678)
VECTOR = re.compile(re.escape(MAGIC) + b"(.{4})", re.DOTALL)
# What a request with a text is recognised by.
FINGERPRINT = b"\xfe\xed fingerprint\xff"
KINDS = ("content", "chunk", "tag", "key", "value", "source", "speaker", "session", "entity")


def secret(kind: str, mark: int) -> str:
    """A word that stands nowhere else, of letters only."""
    code = ""
    rest = mark * len(KINDS) + KINDS.index(kind)
    for _ in range(6):
        rest, letter = divmod(rest, 26)
        code += LETTERS[letter]
    return f"Qzx{code}xzQ"


def secret_vector(mark: int) -> bytes:
    return vector(12_345.678, float(mark), 1.0, 2.0)


def secretive(number: int, version: int = 1) -> NewMemory:
    """A memory whose every part holds words of its own, of a size that makes pages split and overflow."""
    chosen = random.Random(number * 31 + version)
    filler = "lorem " * chosen.choice((0, 5, 60, 300, 1_500))
    mark = number * 10 + version
    content = f"{secret('content', mark)} {filler}"
    return memory(
        number,
        content,
        vector=secret_vector(mark),
        chunks=(ChunkRecord(f"{secret('chunk', mark)} {filler[:400]}", 3, secret_vector(-mark)),),
        tags=(secret("tag", mark), f"shared-{number % 3}"),
        metadata={secret("key", mark): secret("value", mark)},
        source=secret("source", mark),
        speaker=secret("speaker", mark),
        session_id=secret("session", mark),
        entities=(Entity(secret("entity", mark)),),
    )


def found(directory: Path, numbers: list[int], copies: Path, versions: int = 2) -> int:
    """The number of secrets of the memories in the files, free pages and log included."""
    # A copy: closing a descriptor of the database would drop this process's locks on it.
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(directory, copies)
    hay = b"".join(path.read_bytes() for path in sorted(copies.iterdir()))
    words = {match.lower() for match in WORD.findall(hay)}
    words |= {match.replace(b"\0", b"").lower() for match in WIDE_WORD.findall(hay)}
    vectors = set(VECTOR.findall(hay))
    marks = [number * 10 + version for number in numbers for version in range(1, versions + 1)]
    return sum((secret(kind, mark)[3:9].encode() in words) for mark in marks for kind in KINDS) + sum(
        struct.pack("<f", sign * mark) in vectors for mark in marks for sign in (1, -1)
    )


def holds(directory: Path, part: bytes, copies: Path) -> bool:
    """True if any file holds these bytes."""
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(directory, copies)
    return any(part in path.read_bytes() for path in copies.iterdir())


async def busy_life(store: SqliteStore, bank: Bank, seed: int) -> list[int]:
    """Retain, update, forget and bring back in a random order; returns the numbers of the memories to erase."""
    chosen = random.Random(seed)
    numbers = list(range(1, 401))
    for start in range(0, len(numbers), 25):
        await insert(store, bank, *[secretive(number) for number in numbers[start : start + 25]])
    for number in chosen.sample(numbers, 80):
        await replace(store, bank, secretive(number, 2))
    forgotten = tuple(memory_id(number) for number in chosen.sample(numbers, 80))
    await store.forget(bank, ForgetSelector(memory_ids=forgotten), reason="", principal="", purge_after=LATER)
    for one in forgotten[:40]:
        await store.undelete(bank, one)
    return chosen.sample(numbers, 200)


async def erase(store: SqliteStore, bank: Bank, numbers: list[int]) -> None:
    chosen = random.Random(len(numbers))
    chosen.shuffle(numbers)
    for start in range(0, len(numbers), 50):
        ids = tuple(memory_id(number) for number in numbers[start : start + 50])
        await store.erase(bank, ForgetSelector(memory_ids=ids), reason="", principal="")


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_of_the_erased_is_left(tmp_path: Path, seed: int) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    gone = await busy_life(store, bank, seed)
    assert found(tmp_path / "data", gone, tmp_path / "copy") > len(gone)
    await erase(store, bank, list(gone))
    assert found(tmp_path / "data", gone, tmp_path / "copy") == 0
    # The pages live on in the writer's cache: their next change must not bring anything back.
    await insert(store, bank, *[secretive(number) for number in range(1_000, 1_100)])
    kept = [number for number in range(1, 401) if number not in gone]
    await store.forget(
        bank,
        ForgetSelector(memory_ids=tuple(memory_id(number) for number in kept[::2])),
        reason="", principal="", purge_after=LATER,
    )  # fmt: skip
    assert found(tmp_path / "data", gone, tmp_path / "copy") == 0
    assert found(tmp_path / "data", kept[:20], tmp_path / "copy", versions=1) >= 20 * len(KINDS)
    assert store._connections.query("PRAGMA integrity_check") == [("ok",)]
    store.close()
    assert found(tmp_path / "data", gone, tmp_path / "copy") == 0


async def test_without_secure_delete_much_is_left(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data", _secure_delete=False, _scrub=False)
    bank = await make_bank(store)
    gone = await busy_life(store, bank, 0)
    await erase(store, bank, list(gone))
    assert found(tmp_path / "data", gone, tmp_path / "copy") > len(gone)
    store.close()


async def test_without_scrubbing_something_is_left(tmp_path: Path) -> None:
    left = 0
    for seed in (3, 6, 7):
        store = SqliteStore(tmp_path / f"data{seed}", _scrub=False)
        bank = await make_bank(store)
        gone = await busy_life(store, bank, seed)
        await erase(store, bank, list(gone))
        store._connections.writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        left += found(tmp_path / f"data{seed}", gone, tmp_path / "copy")
        store.close()
    assert left > 0


async def test_purged_memories_and_deleted_banks_leave_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    bank, other = await make_bank(store), await make_bank(store, "other")
    gone = await busy_life(store, bank, 5)
    await insert(store, other, *[secretive(number) for number in range(2_000, 2_100)])
    ids = tuple(memory_id(number) for number in gone)
    await store.forget(bank, ForgetSelector(memory_ids=ids), reason="", principal="", purge_after=0)
    assert await store.purge(LATER) >= len(gone)
    await store.delete_bank(other, expected_etag=None)
    assert found(tmp_path / "data", [*gone, *range(2_000, 2_100)], tmp_path / "copy") == 0
    assert store._connections.query("PRAGMA user_version") == [(0,)]
    store.close()


async def test_a_cleaning_that_was_cut_short_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    await insert(store, bank, *[secretive(number) for number in range(1, 50)])

    def killed() -> None:
        raise SystemError

    monkeypatch.setattr(store._eraser._cleaner, "clean", killed)
    ids = tuple(memory_id(number) for number in range(1, 50))
    with pytest.raises(StoreError):
        await store.erase(bank, ForgetSelector(memory_ids=ids), reason="", principal="")
    store.close()
    again = SqliteStore(tmp_path / "data")
    assert listed(again, bank) == []
    assert again._connections.query("PRAGMA user_version") == [(1,)]
    await again.purge(0)
    assert again._connections.query("PRAGMA user_version") == [(0,)]
    assert found(tmp_path / "data", list(range(1, 50)), tmp_path / "copy") == 0
    again.close()


async def test_an_erasure_waits_for_a_reader_and_says_when_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "data", busy_seconds=0.05)
    bank = await make_bank(store)
    await insert(store, bank, secretive(1), secretive(2))
    monkeypatch.setattr("astrocyte.stores.sqlite.deletion.vacuum.CLEAN_SECONDS", 0.2)
    reader = apsw.Connection(str(tmp_path / "data" / DATABASE))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchall()
    first = ForgetSelector(memory_ids=(memory_id(1),))
    with pytest.raises(StoreError, match="reader"):
        await store.erase(bank, first, reason="", principal="")
    assert listed(store, bank) == [memory_id(2)]
    reader.execute("ROLLBACK")
    reader.close()
    await store.erase(bank, first, reason="", principal="")
    assert found(tmp_path / "data", [1], tmp_path / "copy") == 0
    store.close()


async def test_a_crash_between_slices_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store = SqliteStore(tmp_path / "data", clock=clock)
    bank = await make_bank(store)
    await insert(store, bank, *[secretive(number) for number in range(1, 30)])
    first = ForgetSelector(memory_ids=(memory_id(1),))
    await store.forget(bank, first, reason="", principal="", purge_after=LATER)

    def killed(*_: object) -> None:
        raise SystemError

    monkeypatch.setattr(store._eraser, "_erase_all", killed)
    with pytest.raises(StoreError):
        await store.erase(bank, ForgetSelector(scope="all"), reason="", principal="")
    assert listed(store, bank) == []
    # Not even a clock that goes back revives them.
    clock.now -= 100_000
    for number in (1, 2):
        assert store.memory(bank, memory_id(number), include_forgotten=True) is None
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(number))
    monkeypatch.undo()
    assert await store.purge(clock.now) == 29
    assert found(tmp_path / "data", list(range(1, 30)), tmp_path / "copy") == 0
    store.close()


async def _killed_in_slice(data_dir: Path, work: str, slice_: int) -> None:
    """Store 600 memories, begin, and die by SIGKILL within that slice; for a process of its own."""
    store = SqliteStore(data_dir)
    bank, _ = await make_bank(store), await make_bank(store, "kept")
    for start in range(1, 601, 50):
        key = RequestKey(f"r{start}", "retain", FINGERPRINT)
        writes = [Insert(secretive(number)) for number in range(start, start + 50)]
        await store.commit(bank, writes, request=key, respond=lambda _: b"")
    await store.forget(bank, ForgetSelector(memory_ids=(memory_id(1),)), reason="", principal="", purge_after=LATER)
    transact, done = store._writer.transact, 0

    def counted(run: Callable[[Transaction], object]) -> object:
        nonlocal done
        done += 1
        if done > slice_:
            store._writer.connection.execute("BEGIN IMMEDIATE")
            os.kill(os.getpid(), signal.SIGKILL)
        return transact(run)

    store._writer.transact = counted  # type: ignore[assignment, method-assign]
    if work == "delete":
        await store.delete_bank(bank, expected_etag=None)
    else:
        await store.erase(bank, ForgetSelector(scope="all"), reason="", principal="")


def _run_killed(data_dir: Path, work: str, slice_: int) -> None:
    asyncio.run(_killed_in_slice(data_dir, work, slice_))


@pytest.mark.process
@pytest.mark.parametrize("work", ["delete", "erase"])
@pytest.mark.parametrize("slice_", [1, 3, 5])
async def test_what_a_kill_leaves_is_finished_by_the_next_process(tmp_path: Path, work: str, slice_: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_run_killed, args=(tmp_path / "data", work, slice_))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL
    store = SqliteStore(tmp_path / "data")
    bank = store.get_bank("default", "bank")
    if work == "delete":
        assert bank is None
        # The name is free, and the answers to the old bank's requests are none of the new one's.
        bank = await make_bank(store)
        assert store.find_response("default", RequestKey("r1", "retain", FINGERPRINT)) is None
    assert bank is not None
    assert store._connections.query("SELECT count(*) FROM memories") > [(0,)]
    # Of the erasure that was killed at once only the note is there.
    assert (listed(store, bank) == []) == ((work, slice_) != ("erase", 1))
    await store.purge(0)
    assert listed(store, bank) == []
    for table in ("memories", "contents", "tags", "chunks", "embeddings"):
        assert store._connections.query(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608
    assert store._connections.query("SELECT count(*) FROM banks") == [(2,)]
    assert store._connections.query("PRAGMA user_version") == [(0,)]
    assert found(tmp_path / "data", list(range(1, 601)), tmp_path / "copy", versions=1) == 0
    assert not holds(tmp_path / "data", FINGERPRINT, tmp_path / "copy")
    store.close()


@pytest.mark.parametrize("work", ["delete", "erase"])
async def test_others_write_while_a_bank_goes(tmp_path: Path, work: str) -> None:
    store = SqliteStore(tmp_path / "data")
    bank, other = await make_bank(store), await make_bank(store, "other")
    for start in range(1, 1_501, 100):
        await insert(store, bank, *[secretive(number) for number in range(start, start + 100)])
    if work == "delete":
        going: asyncio.Task[object] = asyncio.create_task(store.delete_bank(bank, expected_etag=None))
    else:
        going = asyncio.create_task(store.erase(bank, ForgetSelector(scope="all"), reason="", principal=""))
    purging = asyncio.create_task(store.purge(0))
    between = 0
    number = 5_000
    while not going.done():
        number += 1
        await insert(store, other, secretive(number))
        await store.forget(
            other, ForgetSelector(memory_ids=(memory_id(number - 2),)), reason="", principal="", purge_after=LATER
        )
        between += not going.done()
    await going
    await purging
    assert between > 5
    assert found(tmp_path / "data", list(range(1, 1_501)), tmp_path / "copy") == 0
    assert listed(store, other) == [memory_id(number - 1), memory_id(number)]
    assert store._connections.query("PRAGMA integrity_check") == [("ok",)]
    assert store._connections.query("PRAGMA user_version") == [(0,)]
    store.close()
    assert found(tmp_path / "data", list(range(1, 1_501)), tmp_path / "copy") == 0


async def test_a_caller_that_gives_up_does_not_stop_an_erasure(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    await insert(store, bank, *[secretive(number) for number in range(1, 601)])
    task = asyncio.create_task(store.erase(bank, ForgetSelector(scope="all"), reason="", principal=""))
    await asyncio.sleep(0)
    # It has begun when a write that came after it is done; 600 are hidden in two slices.
    await make_bank(store, "other")
    await make_bank(store, "another")
    assert len(listed(store, bank)) < 600
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(store.close)
    assert found(tmp_path / "data", list(range(1, 601)), tmp_path / "copy", versions=1) == 0


async def test_erasures_at_once_each_have_their_own_receipt(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    await insert(store, bank, *[memory(number) for number in range(1, 601)])
    halves = [ForgetSelector(memory_ids=tuple(memory_id(n) for n in range(first, 601, 2))) for first in (1, 2)]
    everything = ForgetSelector(scope="all")
    answers = await asyncio.gather(
        store.erase(bank, halves[0], reason="", principal=""),
        insert(store, bank, memory(1_000)),
        store.erase(bank, halves[1], reason="", principal=""),
        store.purge(LATER),
        store.erase(bank, everything, reason="", principal=""),
    )
    (_, _, one), _, (_, _, two), purged, (_, _, last) = answers
    assert purged == 0
    assert [receipt.counts["memories"] for receipt in (one, two, last)] == [300, 300, 1]
    assert [len(receipt.salted_ids) for receipt in (one, two, last)] == [300, 300, 1]
    assert last.root_hash_after == hashlib.sha256().hexdigest()
    store.close()


async def test_an_erasure_in_a_bank_that_is_deleted_meanwhile_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    await insert(store, bank, *[secretive(number) for number in range(1, 601)])
    answers = await asyncio.gather(
        store.erase(bank, ForgetSelector(scope="all"), reason="", principal=""),
        store.delete_bank(bank, expected_etag=None),
        return_exceptions=True,
    )
    assert isinstance(answers[0], BankNotFound)
    assert answers[1] == 600
    assert found(tmp_path / "data", list(range(1, 601)), tmp_path / "copy", versions=1) == 0
    assert store._connections.query("SELECT count(*) FROM memories") == [(0,)]
    store.close()


async def test_responses_outlive_and_hold_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    bank = await make_bank(store)
    key = RequestKey("r", "retain", FINGERPRINT)
    await store.commit(bank, [Insert(secretive(1))], request=key, respond=lambda done: done[0].memory_id.encode())
    assert holds(tmp_path / "data", FINGERPRINT, tmp_path / "copy")
    ids, _, receipt = await store.erase(
        bank, ForgetSelector(scope="all"), reason="", principal="", request=RequestKey("e", "erase", b"f")
    )
    # Nor can a guess of the content be held against a digest of the request.
    assert not holds(tmp_path / "data", FINGERPRINT, tmp_path / "copy")
    assert (ids, len(receipt.salted_ids)) == ([memory_id(1)], 1)
    assert store.find_response("default", key) == memory_id(1).encode()
    # A retry of the retain does not bring the erased content back.
    assert (await store.commit(bank, [Insert(secretive(1))], request=key, respond=lambda _: b""))[0] == []
    assert current(store, bank).position == 3
    assert found(tmp_path / "data", [1], tmp_path / "copy") == 0
    store.close()


async def test_a_deleted_bank_leaves_no_name_in_the_responses(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    names = [secret("content", 1), secret("chunk", 1), secret("tag", 1)]
    bank = await make_bank(store, names[0], display_name=names[1], request=RequestKey("c", "create_bank", b"f"))
    await store.update_bank(
        bank, display_name=None, description=names[2], expected_etag=None, request=RequestKey("u", "update_bank", b"f")
    )
    assert found(tmp_path / "data", [0], tmp_path / "copy") == len(names)
    await store.delete_bank(bank, expected_etag=None, request=RequestKey("d", "delete_bank", b"f"))
    assert found(tmp_path / "data", [0], tmp_path / "copy") == 0
    store.close()


def page(kind: int, cells: int, content: int, size: int = 512, at: int = 0) -> bytes:
    made = bytearray(size)
    made[at] = kind
    made[at + 3 : at + 5] = cells.to_bytes(2, "big")
    made[at + 5 : at + 7] = (content & 0xFFFF).to_bytes(2, "big")
    return bytes(made)


@pytest.mark.parametrize(
    ("kind", "cells", "content", "expected"),
    [(13, 3, 400, (14, 400)), (10, 0, 512, (8, 512)), (5, 2, 100, (16, 100)), (2, 1, 14, (14, 14)), (0, 7, 9, (0, 0))],
)
def test_the_gap_lies_between_pointers_and_cells(
    kind: int, cells: int, content: int, expected: tuple[int, int]
) -> None:
    assert gap(page(kind, cells, content), 0, first=False) == expected


def test_the_first_page_begins_after_the_header_of_the_file() -> None:
    assert gap(page(13, 2, 300, at=100), 0, first=True) == (112, 300)


def test_a_gap_of_the_largest_page_ends_at_64_kibibytes() -> None:
    assert gap(page(13, 0, 1 << 16, size=1 << 16), 0, first=False) == (8, 1 << 16)


ALL = ForgetSelector(scope="all")
ONCE = RequestKey("once", "erase", b"fingerprint")


def _run_killed_erasure(data_dir: Path, slice_: int, request: RequestKey | None) -> None:
    async def run() -> None:
        store = SqliteStore(data_dir)
        bank = await make_bank(store)
        await insert(store, bank, *[secretive(number) for number in range(1, 301)])
        transact, done = store._writer.transact, 0

        def counted(work: Callable[[Transaction], object]) -> object:
            nonlocal done
            done += 1
            if done > slice_:
                os.kill(os.getpid(), signal.SIGKILL)
            return transact(work)

        store._writer.transact = counted  # type: ignore[assignment, method-assign]
        await store.erase(bank, ALL, reason="asked to", principal="user:ann", request=request)

    asyncio.run(run())


# Without a request id nothing names the answer that a purge made.
@pytest.mark.parametrize(("request_", "purged"), [(ONCE, False), (ONCE, True), (None, False)])
@pytest.mark.parametrize("slice_", [1, 3, 4])
async def test_an_erasure_that_was_killed_gives_its_whole_receipt_when_it_is_repeated(
    tmp_path: Path, slice_: int, request_: RequestKey | None, purged: bool
) -> None:
    work = (tmp_path / "data", slice_, request_)
    process = multiprocessing.get_context("spawn").Process(target=_run_killed_erasure, args=work)
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL
    store = SqliteStore(tmp_path / "data")
    bank = store.get_bank("default", "bank")
    assert bank is not None
    await insert(store, bank, memory(5_000, "The tent is in the attic."))
    if purged:
        assert await store.purge(0) == 300
    ids, _, receipt = await store.erase(bank, ALL, reason="asked to", principal="user:ann", request=request_)
    assert sorted(ids) == [memory_id(number) for number in range(1, 301)]
    assert receipt.counts["memories"] == receipt.counts["versions"] == len(receipt.salted_ids) == 300
    assert receipt.counts["chunks"] == 300
    assert receipt.root_hash_after == hashlib.sha256(b"").hexdigest()
    hashes = sorted(hashlib.sha256(f"{receipt.salt}{one}".encode()).hexdigest() for one in ids)
    assert receipt.root_hash_before == hashlib.sha256("".join(hashes).encode()).hexdigest()
    events, _, _ = store.audit.read("default", bank_key=bank.key, after=0, limit=10)
    kinds = [(str(event.event), event.actor) for event in events]
    assert kinds == [("erase_begun", "user:ann"), ("erase_completed", "user:ann")]
    assert events[1].details["root_hash_before"] == receipt.root_hash_before
    # What came after the crash was not chosen.
    assert listed(store, bank) == [memory_id(5_000)]
    store.close()
