"""Banks in the disk tier: by setting, by size, per bank; what is erased is in no file; metrics and statistics."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Forget, GetBank, GetBankStats, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Core
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.model import BankIndexStats, Caller, ForgetSelector, RecallQuery, RetainItem
from astrocyte.policy.observability.index_levels import IndexLevels

# Thousands of rows in each test; a busy machine takes a minute for some.
pytestmark = pytest.mark.timeout(300)
ME = Caller()
# Rows that lie in files together.
GROUP = 4_096
MEMORIES = GROUP + 100
BATCH = 256
PATIENCE = 60.0
SECRET = "quagga"


def opened(folder: Path, banks: dict[str, Any] | None = None, **index: Any) -> App:
    """An application whose graphs and indexes are built from a thousand rows on."""
    index = {"checkpoint_rows": 1, "graph_rows": 1_000, "sampling": 0.0, "build_share": 1.0, **index}
    return App(
        Settings.from_mapping(
            {
                "data_dir": str(folder),
                "index": index,
                "banks": banks or {},
                "signal_quality": {"dedup": {"enabled": False}},
            }
        )
    )


async def fill(app: App, bank: str) -> list[str]:
    """Memory ids; the sixth memory has a word of its own."""
    await app.gate.call(ME, CreateBank(bank))
    texts = [f"note {number} about {('tea', 'jam', 'rain')[number % 3]}" for number in range(MEMORIES)]
    texts[5] = f"{texts[5]} and a {SECRET}"
    ids: list[str] = []
    for first in range(0, MEMORIES, BATCH):
        items = [RetainItem(text) for text in texts[first : first + BATCH]]
        ids += [one.memory_id or "" for one in await app.gate.call(ME, BatchRetain(bank, items))]
    return ids


async def answer(app: App, bank: str, text: str) -> tuple[list[str], str]:
    """Ids of the hits, and the plan."""
    result = await app.gate.call(ME, Recall(RecallQuery(text, bank, include_trace=True)))
    assert result.trace is not None
    return [hit.memory_id or "" for hit in result.hits], result.trace.plan or ""


async def stats_of(app: App, bank: str) -> BankIndexStats:
    await answer(app, bank, "tea")
    stats = (await app.gate.call(ME, GetBankStats(bank))).index
    assert stats is not None
    return stats


async def on_disk(app: App, bank: str) -> BankIndexStats:
    """The statistics of a bank once all that can be is in files, and tantivy alone has the postings."""
    index = await index_of(app, bank)
    async with asyncio.timeout(PATIENCE):
        while True:
            await asyncio.get_running_loop().run_in_executor(None, index.fold)
            stats = await stats_of(app, bank)
            if stats.disk_rows >= GROUP:
                return stats


async def index_of(app: App, bank: str) -> Any:
    await answer(app, bank, "tea")
    index = app.storage.registry.peek(await app.gate.call(ME, GetBank(bank)))
    assert index is not None
    return index.core


def mapped(folder: Path) -> dict[int, bytes]:
    """The contents of all maps of files without names below a folder, by the file's inode."""
    contents: dict[int, bytes] = {}
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
            if str(folder) in line and line.endswith("(deleted)"):
                addresses, _, _, _, inode, _ = line.split(maxsplit=5)
                start, end = (int(one, 16) for one in addresses.split("-"))
                memory.seek(start)
                # A file has several maps where parts of it are advised differently.
                contents[int(inode)] = contents.get(int(inode), b"") + memory.read(end - start)
    return contents


def overwritten(before: dict[int, bytes], after: dict[int, bytes]) -> dict[int, list[bytes]]:
    """The former contents of the cache lines that changed, by inode, in files that are still there."""
    changed = {}
    for inode in before.keys() & after.keys():
        old, new = before[inode], after[inode]
        assert len(old) == len(new), "the file has other maps"
        lines = [old[at : at + 64] for at in range(0, len(old), 64) if old[at : at + 64] != new[at : at + 64]]
        if lines:
            changed[inode] = lines
    return changed


async def test_a_bank_on_disk_answers_as_in_memory_before_and_after_a_restart(tmp_path: Path) -> None:
    app = opened(tmp_path, tier="memory", dense="scan")
    await fill(app, "b")
    questions = ("note 7 tea", "jam 300", SECRET, "rain")
    expected = [(await answer(app, "b", text))[0] for text in questions]
    assert (await stats_of(app, "b")).tier == "memory"
    await app.close()
    app = opened(tmp_path, tier="disk", dense="scan")
    stats = await on_disk(app, "b")
    assert (stats.tier, stats.disk_rows) == ("disk", GROUP)
    assert stats.mapped_bytes > GROUP * 256
    for _ in range(2):
        for text, ids in zip(questions, expected, strict=True):
            found, plan = await answer(app, "b", text)
            assert found == ids
            assert f"disk tier: {GROUP} of {MEMORIES} rows in files" in plan
        await app.close()
        # What is loaded of a checkpoint is in files at once.
        app = opened(tmp_path, tier="disk", dense="scan")
        assert (await stats_of(app, "b")).disk_rows == GROUP
    await app.close()


async def test_an_erasure_is_out_of_every_file_before_it_is_acknowledged(tmp_path: Path) -> None:
    app = opened(tmp_path, tier="disk")
    ids = await fill(app, "b")
    await on_disk(app, "b")
    core = await index_of(app, "b")
    before = mapped(tmp_path)
    assert (await answer(app, "b", SECRET))[0][0] == ids[5]
    await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(ids[5],)), compliance=True, reason="asked"))
    after = mapped(tmp_path)
    # Both planes of the vector, the words of the row, and its vector in a graph.
    gone = overwritten(before, after)
    assert len(gone) == 3, "files"
    lines = [line for changed in gone.values() for line in changed]
    assert len(lines) >= 4
    assert not any(line in one for line in lines for one in after.values())
    # The index of tantivy with its words.
    assert len(before.keys() - after.keys()) == 1
    found, plan = await answer(app, "b", SECRET)
    assert ids[5] not in found
    # Nothing went back to memory for that.
    assert "postings of tantivy" in plan
    assert core.stats()["disk_rows"] == GROUP
    await app.close()


async def test_a_bank_has_a_tier_of_its_own_or_goes_by_its_size(tmp_path: Path) -> None:
    app = opened(tmp_path, {"own": {"index": {"tier": "disk"}}}, disk_rows=MEMORIES)
    for bank in ("own", "small"):
        await fill(app, bank)
    assert (await on_disk(app, "own")).tier == "disk"
    assert (await stats_of(app, "small")).tier == "memory"
    await app.gate.call(ME, BatchRetain("small", [RetainItem("one more"), RetainItem("and another")]))
    assert (await on_disk(app, "small")).tier == "disk"
    levels = {
        (family.name, *sample.labels.values()): sample.value
        for family in IndexLevels(app.storage.registry).collect()
        for sample in family.samples
    }
    assert levels["astrocyte_index_tier_rows", "disk"] == 2 * MEMORIES + 2
    assert levels["astrocyte_index_tier_rows", "memory"] == 0
    assert levels[("astrocyte_index_mapped_bytes",)] > 2 * GROUP * 256
    assert levels[("astrocyte_index_resident_bytes",)] > 0
    await app.close()


async def test_a_set_tier_is_reached_in_the_background_while_recalls_go_on(tmp_path: Path) -> None:
    app = opened(tmp_path, tier="memory")
    await fill(app, "b")
    core = await index_of(app, "b")
    for tier, rows in (("disk", GROUP), ("auto", 0), ("disk", GROUP), ("memory", 0)):
        core.set_tier(tier)
        async with asyncio.timeout(PATIENCE):
            while (await stats_of(app, "b")).disk_rows != rows:
                assert SECRET in (await texts(app, SECRET))[0]
    with pytest.raises(ValidationError, match="expected auto, memory or disk"):
        core.set_tier("tape")
    await app.close()


async def texts(app: App, question: str) -> list[str]:
    result = await app.gate.call(ME, Recall(RecallQuery(question, "b")))
    return [hit.text for hit in result.hits]


def test_a_core_refuses_a_tier_that_there_is_not() -> None:
    with pytest.raises(ValidationError, match="expected auto, memory or disk"):
        Core(None, tier="tape")
    with pytest.raises(ValidationError, match="expected auto, memory or disk"):
        Core(None).bank(3, tier="tape")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"index": {"tier": "tape"}}, "index.tier"),
        ({"index": {"tier": "disk", "scratch": False}}, "index.scratch: true"),
        ({"index": {"disk_rows": -1}}, "index.disk_rows"),
        (
            {"banks": {"b": {"index": {"tier": "disk", "graph_rows": 7}}}},
            "cannot be set per bank",
        ),
    ],
)
def test_settings_that_make_no_tier_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Settings.from_mapping(settings)


DISK_INDEX = {"index": {"tier": "disk"}}


@pytest.mark.parametrize("tier", [DISK_INDEX, {"banks": {"b": DISK_INDEX}}])
@pytest.mark.parametrize(
    ("settings", "excluding"),
    [
        ({"vector_store": "in_memory"}, "vector_store: in_memory"),
        ({"store": {"backend": "postgres", "dsn": "postgresql://localhost/x"}}, "store.backend: postgres"),
        ({"read_only": True}, "read_only: true"),
    ],
)
def test_the_disk_tier_without_a_data_directory_is_refused_and_nothing_is_made(
    tmp_path: Path, settings: dict[str, Any], excluding: str, tier: dict[str, Any]
) -> None:
    folder = tmp_path / "data"
    with pytest.raises(ConfigError, match=re.escape(f"writes to; change it, or {excluding}")) as refused:
        App(Settings.from_mapping({"data_dir": str(folder), **settings, **tier}))
    assert refused.value.metadata["key"] == ("banks.b.index.tier" if "banks" in tier else "index.tier")
    assert not folder.exists()
