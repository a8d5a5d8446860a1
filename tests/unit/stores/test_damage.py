"""A damaged row or page is left out and named; the rest of its bank answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    DeleteBank,
    Forget,
    GetMemory,
    GetServerInfo,
    ListMemories,
    Recall,
    Remember,
    Retain,
)
from astrocyte.app import App
from astrocyte.cli import cli
from astrocyte.config import Settings
from astrocyte.errors import FailedPrecondition, MemoryNotFound, StoreError
from astrocyte.model import Bank, Caller, ForgetSelector, RecallQuery, RecallResult, RetainItem
from astrocyte.stores import quarantine as quarantines
from astrocyte.stores.quarantine import Quarantine
from astrocyte.stores.sqlite import damage, reads
from astrocyte.stores.sqlite.engine.data_directory import AGENT_MEMORY, DATABASE

# What is said of agents that remember nothing.
NO_AGENTS = "0 agent memories, none damaged\n"
ME = Caller()
BANK = "family"
WORDS = ("tea", "jam", "bread", "honey", "milk", "salt", "rice", "plum")
COUNT = 40
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def opened(folder: Path, **sections: Any) -> App:
    quiet = {"signal_quality": {"dedup": {"action": "warn"}}, "index": {"checkpoints": False}}
    return App(Settings.from_mapping({"vector_store": "sqlite", "data_dir": str(folder), **quiet, **sections}))


async def filled(folder: Path) -> list[str]:
    """Memory ids of a bank on disk, which nobody has open."""
    app = opened(folder)
    items = [
        RetainItem(f"{WORDS[n % 8]} is in cupboard number {n}. " * 8, tags=("kitchen",), metadata={"n": n})
        for n in range(COUNT)
    ]
    ids = [str(one.memory_id) for one in await app.gate.call(ME, BatchRetain(BANK, items))]
    await app.gate.call(ME, Retain("other", RetainItem("The boat lies in the harbour.")))
    await app.close()
    return ids


def change(folder: Path, sql: str, *values: object) -> None:
    connection = apsw.Connection(str(folder / DATABASE))
    connection.set_busy_timeout(5_000)
    connection.pragma("writable_schema", "ON")
    connection.execute(sql, values)
    connection.close()


# ruff: noqa: S608 - statements of this file alone
ROW = "(SELECT row_key FROM memories WHERE memory_id = ?)"
BROKEN_ROWS: dict[str, str] = {
    "tags that are no JSON": f"UPDATE contents SET tags = '[\"kitch' WHERE row_key = {ROW}",
    "tags that are a number": f"UPDATE contents SET tags = '5' WHERE row_key = {ROW}",
    "metadata that is a list": f"UPDATE contents SET metadata = '[1]' WHERE row_key = {ROW}",
    "content that is no UTF-8": f"UPDATE contents SET content = CAST(x'FFFE41' AS TEXT) WHERE row_key = {ROW}",
    "content that changed": f"UPDATE contents SET content = replace(content, 'number', 'no') WHERE row_key = {ROW}",
    "a time beyond all calendars": f"UPDATE memories SET occurred_at = 9000000000000000000 WHERE row_key = {ROW}",
    "a vector cut in half": (
        "UPDATE embeddings SET vector = substr(vector, 1, 100)"
        f" WHERE passage_key / 65536 = {ROW} AND length(vector) > 0"
    ),
}


async def recalled(app: App) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery("cupboard", BANK, max_results=100)))


@pytest.mark.parametrize("name", BROKEN_ROWS)
async def test_a_damaged_row_does_not_fail_its_bank(tmp_path: Path, name: str) -> None:
    ids = await filled(tmp_path)
    change(tmp_path, BROKEN_ROWS[name], ids[7])
    app = opened(tmp_path)
    found = {hit.memory_id for hit in (await recalled(app)).hits}
    assert found >= set(ids) - {ids[7]} if len(found) >= COUNT - 1 else len(found) > COUNT // 2
    assert ids[7] not in found or name == "a vector cut in half"
    (several,) = await app.gate.call(ME, BatchRecall([RecallQuery("cupboard", banks=(BANK, "other"))]))
    assert several.hits
    info = await app.gate.call(ME, GetServerInfo())
    assert "1 damaged rows" in info.store
    assert [row.bank_key for row in app.storage.store.quarantine.rows] == [1]
    await app.close()
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "--json", "verify"])
    assert result.exit_code == 4, result.output
    (damaged,) = json.loads(result.stdout)["damaged"]
    assert (damaged["bank_id"], damaged["memory_id"]) == (BANK, ids[7])


@pytest.mark.parametrize("name", BROKEN_ROWS)
async def test_a_row_that_is_damaged_while_it_is_served_is_left_out(tmp_path: Path, name: str) -> None:
    ids = await filled(tmp_path)
    app = opened(tmp_path)
    assert len((await app.gate.call(ME, Recall(RecallQuery("harbour", "other")))).hits) == 1
    await app.gate.call(ME, ListMemories(BANK))
    await app.storage.registry.get(app.storage.store.get_bank("default", BANK))  # type: ignore[arg-type]
    change(tmp_path, BROKEN_ROWS[name], ids[7])
    found = {hit.memory_id for _ in range(64) for hit in (await recalled(app)).hits}
    assert len(found) > COUNT // 2
    listed = [one.memory_id for one in (await app.gate.call(ME, ListMemories(BANK, page_size=100))).memories]
    assert set(listed) >= set(ids) - {ids[7]}
    await app.close()


def _page_of(folder: Path, table: str, which: Callable[[list[int]], int]) -> tuple[int, int]:
    """The number of a leaf page of a table, and the size of pages."""
    connection = apsw.Connection(str(folder / DATABASE))
    size = connection.pragma("page_size")
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
    connection.close()
    assert isinstance(root, int)
    assert isinstance(size, int)
    raw = (folder / DATABASE).read_bytes()
    page = raw[(root - 1) * size : root * size]
    assert page[0] == 0x05, "an inner page of a table"
    count = int.from_bytes(page[3:5])
    cells = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n]) for n in range(count)]
    leaves = [int.from_bytes(page[cell : cell + 4]) for cell in cells] + [int.from_bytes(page[8:12])]
    return which(leaves), size


@pytest.mark.parametrize("table", ["contents", "embeddings", "memories"])
async def test_a_damaged_page_does_not_fail_its_bank(tmp_path: Path, table: str) -> None:
    ids = await filled(tmp_path)
    number, size = _page_of(tmp_path, table, lambda leaves: leaves[len(leaves) // 2])
    with (tmp_path / DATABASE).open("r+b") as file:
        file.seek((number - 1) * size)
        file.write(b"\xa5" * size)
    app = opened(tmp_path)
    found = {hit.memory_id for hit in (await recalled(app)).hits}
    assert len(found) > COUNT // 4
    assert found < set(ids)
    assert len(app.storage.store.quarantine) == len({row.row_key for row in app.storage.store.quarantine.rows}) > 0
    await app.gate.call(ME, ListMemories(BANK, page_size=100))
    await app.close()
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "verify"])
    assert result.exit_code == 4, result.output
    assert "page" in result.stdout


async def test_a_damaged_memory_can_be_erased(tmp_path: Path) -> None:
    ids = await filled(tmp_path)
    change(tmp_path, BROKEN_ROWS["content that changed"], ids[7])
    app = opened(tmp_path)
    await recalled(app)
    assert len(app.storage.store.quarantine) == 1
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[7],)), compliance=True))
    assert len(app.storage.store.quarantine) == 0
    await app.close()
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "verify"])
    assert (result.exit_code, result.output) == (
        0,
        f"40 versions in 2 banks, none damaged\n{NO_AGENTS}",
    )


async def test_a_whole_directory_verifies(tmp_path: Path) -> None:
    await filled(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}  # noqa: ASYNC240 - a test
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "verify"])
    assert (result.exit_code, result.output) == (
        0,
        f"41 versions in 2 banks, none damaged\n{NO_AGENTS}",
    )
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before


async def test_memories_of_agents_are_verified_too(tmp_path: Path) -> None:
    app = opened(tmp_path)
    for number in range(400):
        await app.gate.call(ME, Remember(f"topic {number}", f"The lighthouse keeper has {number} lamps."))
    await app.close()
    path = tmp_path / AGENT_MEMORY
    whole = path.read_bytes()
    arguments = ["--data-dir", str(tmp_path), "verify"]
    sound = CliRunner().invoke(cli, arguments)
    assert (sound.exit_code, sound.output.splitlines()[-1]) == (0, "400 agent memories, none damaged")
    size = 4_096
    for page in (0, 20, 40):
        path.write_bytes(whole[: page * size] + b"\xa5" * size + whole[(page + 1) * size :])
        assert CliRunner().invoke(cli, arguments).exit_code == 4, page
    path.write_bytes(whole)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE agent_memories SET source = 'no json' WHERE memory_key = 7")
    connection.execute("UPDATE agent_memories SET vector = x'00' WHERE memory_key = 9")
    connection.close()
    result = CliRunner().invoke(cli, [*arguments[:2], "--json", "verify"])
    assert (result.exit_code, json.loads(result.stdout)["agent_memory"]["damaged"]) == (4, [7, 9])
    told = CliRunner().invoke(cli, arguments).output
    assert "damaged rows of agent memories: 7, 9" in told
    # A directory of a version without agent memories has no such file.
    path.unlink()
    assert CliRunner().invoke(cli, arguments).exit_code == 0


async def test_verify_wants_the_directory_for_itself(tmp_path: Path) -> None:
    await filled(tmp_path)
    app = opened(tmp_path)
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "verify"])
    assert "in use by another process" in result.output
    await app.close()


async def test_a_read_only_directory_is_read_and_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    ids = await filled(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    folder.chmod(0o500)
    try:
        app = opened(folder, read_only=True)
        assert {hit.memory_id for hit in (await recalled(app)).hits} == set(ids)
        assert (await app.gate.call(ME, GetMemory(BANK, ids[0]))).memory_id == ids[0]
        # Others may read at the same time.
        second = opened(folder, read_only=True)
        assert (await recalled(second)).hits
        await second.close()
        for call in (
            app.gate.call(ME, Retain(BANK, RetainItem("More tea."))),
            app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(ids[0],)))),
            app.gate.call(ME, CreateBank("new")),
            app.gate.call(ME, DeleteBank(BANK)),
        ):
            with pytest.raises(FailedPrecondition, match="read-only"):
                await call
        await app.close()
    finally:
        folder.chmod(0o700)
    assert {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name in before
    } == before


def test_a_directory_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        opened(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", sorted(BROKEN_ROWS.keys() - {"content that changed"}))
async def test_a_damaged_memory_is_missing_wherever_it_is_asked_for(tmp_path: Path, name: str) -> None:
    ids = await filled(tmp_path)
    app = opened(tmp_path)
    await recalled(app)
    change(tmp_path, BROKEN_ROWS[name], ids[7])
    store = app.storage.store
    bank = store.get_bank("default", BANK)
    assert bank is not None
    assert store.version(bank, ids[7]) is None
    assert len(store.quarantine) == 1
    assert store.memory(bank, ids[7]) is None
    assert store.versions(bank, ids[7]) == []
    sound = store.version_records(bank, ids, at_position=bank.position)
    assert [record.memory.memory_id for record in sound] == [one for one in ids if one != ids[7]]
    with pytest.raises(MemoryNotFound):
        await app.gate.call(ME, GetMemory(BANK, ids[7]))
    await app.close()


@pytest.mark.parametrize("name", sorted(BROKEN_ROWS.keys() - {"content that changed", "a vector cut in half"}))
@pytest.mark.parametrize("method", ["memory", "versions"])
async def test_damage_is_met_by_the_methods_that_read_no_vectors(tmp_path: Path, name: str, method: str) -> None:
    ids = await filled(tmp_path)
    app = opened(tmp_path)
    change(tmp_path, BROKEN_ROWS[name], ids[7])
    store = app.storage.store
    bank = store.get_bank("default", BANK)
    assert not getattr(store, method)(bank, ids[7])
    assert len(store.quarantine) == 1
    await app.close()


@pytest.mark.parametrize("tags", [(), ("kitchen", "new")])
@pytest.mark.parametrize("loaded", [True, False])
async def test_the_content_of_a_damaged_memory_can_be_retained_again(
    tmp_path: Path, tags: tuple[str, ...], loaded: bool
) -> None:
    ids = await filled(tmp_path)
    app = opened(tmp_path)
    content = (await app.gate.call(ME, GetMemory(BANK, ids[7]))).content
    if loaded:
        await recalled(app)
    change(tmp_path, BROKEN_ROWS["metadata that is a list"], ids[7])
    await recalled(app)
    item = RetainItem(content, tags=tags, metadata={"n": 7})
    first = await app.gate.call(ME, Retain(BANK, item))
    assert (first.stored, first.retention_action) == (True, "created")
    # What was stored in its place is a memory like any other.
    second = await app.gate.call(ME, Retain(BANK, RetainItem(content, tags=("third",), metadata={"n": 7})))
    assert second.memory_id == first.memory_id
    assert set((await app.gate.call(ME, GetMemory(BANK, str(first.memory_id)))).tags) == {*tags, "third"}
    assert len(app.storage.store.quarantine) == 1
    await app.close()


@pytest.mark.parametrize("keys_at_once", [3, 4_096])
async def test_a_listing_around_damage_has_every_other_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys_at_once: int
) -> None:
    monkeypatch.setattr(reads, "KEYS_AT_ONCE", keys_at_once)
    ids = await filled(tmp_path)
    app = opened(tmp_path)
    # Few match, and they come after many that do not.
    items = [RetainItem(f"The {word} is on the table.", tags=("table",)) for word in WORDS]
    late = [str(one.memory_id) for one in await app.gate.call(ME, BatchRetain(BANK, items))]
    change(tmp_path, BROKEN_ROWS["tags that are a number"], late[2])
    change(tmp_path, BROKEN_ROWS["metadata that is a list"], ids[3])
    listed = await app.gate.call(ME, ListMemories(BANK, tags=("table",), page_size=100))
    assert [one.memory_id for one in listed.memories] == [one for one in late if one != late[2]]
    listed = await app.gate.call(ME, ListMemories(BANK, tags=("table",), page_size=4))
    assert [one.memory_id for one in listed.memories] == [late[n] for n in (0, 1, 3, 4)]
    await app.close()


async def test_versions_are_counted_once(tmp_path: Path) -> None:
    ids = await filled(tmp_path)
    for name, memory_id in zip(BROKEN_ROWS, ids, strict=False):
        change(tmp_path, BROKEN_ROWS[name], memory_id)
    result = CliRunner().invoke(cli, ["--data-dir", str(tmp_path), "verify"])
    assert result.output.splitlines()[-2] == f"41 versions in 2 banks, {len(BROKEN_ROWS)} damaged"


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError, apsw.NotADBError])
def test_a_failed_system_call_is_no_damage(error: type[apsw.Error]) -> None:
    failure = StoreError("the database failed")
    failure.__cause__ = error("disk")
    is_damage = error is not apsw.IOError
    assert (damage.problem_of(failure) is not None, damage.problem_of(error("disk")) is not None) == (is_damage,) * 2
    quarantine = Quarantine()

    def read(row_key: int) -> None:
        raise failure

    bank = Bank(1, "default", BANK, "", "", "m", 4, EPOCH, EPOCH, 0, "", "")
    if is_damage:
        assert list(damage.around(read, iter([5]), bank, quarantine)) == []
    else:
        with pytest.raises(StoreError):
            list(damage.around(read, iter([5]), bank, quarantine))
    assert (5 in quarantine) is is_damage


def test_rows_beyond_the_named_ones_are_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantines, "MOST_NAMED", 2)
    quarantine = Quarantine()
    for row_key in (1, 2, 3, 3):
        quarantine.add(1, row_key, damage.ROW)
    assert (len(quarantine), 3 in quarantine, [row.row_key for row in quarantine.rows]) == (3, True, [1, 2])
    quarantine.discard(3)
    assert (len(quarantine), 3 in quarantine) == (2, False)
