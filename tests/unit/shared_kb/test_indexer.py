"""Indexing a folder: the bank becomes equal to it, and only what changed is sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from astrocyte import Astrocyte, connect
from astrocyte.api.requests import GetMemory, PlaceHold, Recall, ReleaseHold, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, RateLimited, StoreError, ValidationError
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.shared_kb import FolderIndexer, KbReport
from astrocyte.shared_kb.watch import watched
from harness.serving import serving
from samples.folders import BANK, HANDBOOK, every, write

ME = Caller()


class Counted:
    """A backend that counts the calls."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.calls: Counter[str] = Counter()

    def call(self, caller: Caller, request: Any) -> Any:
        self.calls[type(request).__name__] += 1
        return self._backend.call(caller, request)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


@pytest.fixture
def backend(app: App) -> Counted:
    return Counted(app.backend)


@pytest.fixture
def brain(app: App) -> Astrocyte:
    return Astrocyte(app.backend)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", HANDBOOK)


@pytest.fixture
def index(backend: Any, root: Path) -> Callable[..., Any]:
    async def run(**options: Any) -> KbReport:
        backend.calls.clear()
        return await FolderIndexer(backend, ME, BANK, root).run(**options)

    return run


async def texts(app: App, query: str) -> list[str]:
    hits = (await app.backend.call(ME, Recall(RecallQuery(query, BANK)))).hits
    return [hit.text for hit in hits]


async def test_a_folder_becomes_documents(index: Any, brain: Astrocyte) -> None:
    assert await index() == KbReport(created=6)
    found = {one.path: one for one in await every(brain)}
    assert set(found) == set(HANDBOOK)
    decision = found["decisions/0005-database.md"]
    assert (decision.document_id, decision.type, decision.status, decision.date, decision.folder) == (
        "ADR-0005",
        "adr",
        "accepted",
        "2026-05-06",
        "docs",
    )
    memory = await brain._backend.call(ME, GetMemory(BANK, decision.memory_id))
    assert memory.content.startswith("ADR-0005: Store graphs in PostgreSQL\n\n# Store graphs")
    assert (memory.tags, memory.source) == (("shared_kb", "storage"), "decisions/0005-database.md")
    assert (memory.metadata["kb_id"], memory.content_type) == ("ADR-0005", "document")
    assert memory.occurred_at is not None
    assert [one.title for one in await every(brain, type="component")] == ["gateway", "store"]


async def test_an_unchanged_folder_sends_nothing(index: Any, backend: Counted) -> None:
    await index()
    assert await index() == KbReport(unchanged=6)
    assert backend.calls == {"ListSharedKb": 1}


async def test_a_changed_file_gets_a_new_version(index: Any, brain: Astrocyte, root: Path, backend: Counted) -> None:
    await index()
    before = {one.path: one.memory_id for one in await every(brain)}
    write(root, {"GLOSSARY.md": "# Glossary\n\nAn outage is an hour without service.\n"})
    assert await index() == KbReport(unchanged=5, updated=1)
    assert backend.calls == {"ListSharedKb": 1, "UpdateMemory": 1}
    assert {one.path: one.memory_id for one in await every(brain)} == before
    memory = await brain._backend.call(ME, GetMemory(BANK, before["GLOSSARY.md"]))
    assert (memory.version, "outage" in memory.content) == (2, True)


async def test_a_new_status_embeds_nothing(
    index: Any, brain: Astrocyte, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index()
    embedded: list[str] = []
    known = DraftBuilder.embedded

    async def counting(self: DraftBuilder, bank: Any, items: Any) -> Any:
        embedded.extend(item.content for item, _ in items)
        return await known(self, bank, items)

    monkeypatch.setattr(DraftBuilder, "embedded", counting)
    path = "decisions/0006-queue.md"
    write(root, {path: HANDBOOK[path].replace("proposed", "accepted")})
    assert await index() == KbReport(unchanged=5, updated=1)
    assert embedded == []
    assert {one.path for one in await every(brain, type="adr", status="accepted")} == {
        path,
        "decisions/0005-database.md",
    }
    assert await every(brain, status="proposed") == []
    # A new text is embedded, so that the counter counts.
    write(root, {path: HANDBOOK[path].replace("Workers read", "Consumers read")})
    assert await index() == KbReport(unchanged=5, updated=1)
    assert len(embedded) == 1


async def test_a_renamed_file_keeps_one_copy(index: Any, brain: Astrocyte, root: Path, backend: Counted) -> None:
    await index()
    (old,) = await every(brain, status="draft")
    (root / old.path).rename(root / "specs/approved/SPEC-024-voice.md")
    assert await index() == KbReport(unchanged=5, moved=1)
    assert backend.calls == {"ListSharedKb": 1, "UpdateMemory": 1}
    assert await every(brain, status="draft") == []
    new = next(one for one in await every(brain, type="spec") if "voice" in one.path)
    assert (new.memory_id, new.path, new.status) == (old.memory_id, "specs/approved/SPEC-024-voice.md", "approved")
    # A new file under the old name, with the same text, is a second document.
    write(root, {old.path: HANDBOOK[old.path]})
    assert await index() == KbReport(unchanged=6, created=1)
    assert len(await every(brain, type="spec")) == 3


async def test_a_removed_file_leaves(index: Any, app: App, brain: Astrocyte, root: Path) -> None:
    await index()
    assert any("deploy window" in one for one in await texts(app, "deploy window"))
    (root / "GLOSSARY.md").unlink()
    (root / "ARCHITECTURE.md").unlink()
    assert await index() == KbReport(unchanged=4, removed=2)
    assert len(await every(brain, include_rows=True)) == 4
    assert not any("deploy window" in one for one in await texts(app, "deploy window"))


async def test_rows_of_a_file_come_and_go(index: Any, brain: Astrocyte, root: Path) -> None:
    long = "# Long\n\n" + "Some words of a paragraph.\n\n" * 6_000
    write(root, {"long.md": long})
    await index()
    parts = [one for one in await every(brain, include_rows=True) if one.path == "long.md"]
    assert [one.row for one in parts] == ["1", "2", "3"]
    assert sum(one.path == "long.md" for one in await every(brain)) == 1
    components = {one.title: one.memory_id for one in await every(brain, type="component")}
    write(root, {"long.md": "# Long\n\nShort now.", "ARCHITECTURE.md": HANDBOOK["ARCHITECTURE.md"] + "| auth | |\n"})
    assert await index() == KbReport(unchanged=5, updated=2)
    (left,) = [one for one in await every(brain, include_rows=True) if one.path == "long.md"]
    assert (left.memory_id, left.row_count) == (parts[0].memory_id, 1)
    now = {one.title: one.memory_id for one in await every(brain, type="component")}
    assert components.items() < now.items()
    assert now.keys() - components.keys() == {"auth"}
    write(root, {"long.md": long})
    assert await index() == KbReport(unchanged=6, updated=1)
    assert await index() == KbReport(unchanged=7)


async def test_equal_files_are_two_documents(index: Any, brain: Astrocyte, root: Path) -> None:
    write(root, {"copy/one.md": "# Same\n\nText.", "copy/two.md": "# Same\n\nText."})
    assert await index() == KbReport(created=8)
    assert await index() == KbReport(unchanged=8)
    assert sum(one.path.startswith("copy/") for one in await every(brain)) == 2


async def test_an_interrupted_run_is_completed(index: Any, app: App, brain: Astrocyte, root: Path) -> None:
    write(root, {"long.md": "# Long\n\n" + "Some words of a paragraph.\n\n" * 6_000})
    await index()
    victims = [one for one in await every(brain, include_rows=True) if one.path == "long.md"][1:]
    await brain.forget(BANK, memory_ids=[one.memory_id for one in victims])
    assert (await every(brain, include_rows=True)) != []
    assert await index() == KbReport(unchanged=6, updated=1)
    assert await index() == KbReport(unchanged=7)


async def test_folders_share_a_bank(app: App, brain: Astrocyte, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = write(tmp_path / name, {"a.md": f"# Of {name}"})
        assert (await brain.shared_kb_index_folder(folder, BANK)).created == 1
    renamed = await brain.shared_kb_index_folder(tmp_path / "two", BANK, folder="one")
    assert renamed.updated == 1
    assert {(one.folder, one.title) for one in await every(brain)} == {("one", "Of two"), ("two", "Of two")}
    assert {one.folder for one in await every(brain, folder="two")} == {"two"}


async def test_other_memories_of_the_bank_are_left_alone(index: Any, app: App, root: Path) -> None:
    tagged = RetainItem("A memory about deploy windows.", tags=("shared_kb",), metadata={"kb_path": "x"})
    await app.backend.call(ME, Retain(BANK, tagged))
    await index()
    for path in HANDBOOK:
        (root / path).unlink()
    assert await index(allow_empty=True) == KbReport(removed=6)
    assert await texts(app, "deploy windows") == ["A memory about deploy windows."]


async def test_an_empty_folder_is_refused_unless_it_is_meant(index: Any, brain: Astrocyte, root: Path) -> None:
    await index()
    for path in HANDBOOK:
        (root / path).unlink()
    with pytest.raises(ValidationError, match=r"has no Markdown file, and bank 'shared_kb' has 8 rows") as refused:
        await index()
    assert refused.value.field == "folder"
    assert len(await every(brain)) == 6
    assert (await index(allow_empty=True)).removed == 6
    assert await index() == KbReport()


async def test_a_file_that_cannot_be_read_keeps_its_earlier_version(index: Any, brain: Astrocyte, root: Path) -> None:
    await index()
    (root / "GLOSSARY.md").write_bytes(b"\xff\xff")
    write(root, {"decisions/0005-database.md": "---\nstatus: [\n---\n# New"})
    report = await index()
    assert set(report.failures) == {"GLOSSARY.md", "decisions/0005-database.md"}
    assert (report.unchanged, report.changed) == (4, 0)
    assert len(await every(brain)) == 6
    write(root, HANDBOOK)
    assert await index() == KbReport(unchanged=6)


async def test_a_document_that_becomes_an_index_leaves(index: Any, brain: Astrocyte, root: Path) -> None:
    await index()
    made = await brain.shared_kb_index(BANK)
    write(root, {"GLOSSARY.md": made.content, "new.md": made.content})
    report = await index()
    assert (report.unchanged, report.removed, sorted(report.ignored)) == (5, 1, ["GLOSSARY.md", "new.md"])
    assert len(await every(brain)) == 5


async def test_personal_data_is_redacted_and_not_sent_again(tmp_path: Path) -> None:
    barriers = {"barriers": {"pii": {"mode": "regex", "action": "redact"}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **barriers}))
    brain = Astrocyte(app.backend)
    files = {"ann@example.com.md": "# Call ann@example.com\n\nOr +49 30 901820.", **HANDBOOK}
    folder = write(tmp_path / "docs", files)
    assert (await brain.shared_kb_index_folder(folder, BANK)).created == 7
    assert await brain.shared_kb_index_folder(folder, BANK) == KbReport(unchanged=7)
    found = await every(brain)
    assert not any("ann@example.com" in str(one) for one in found)
    assert sum("REDACTED" in one.path for one in found) == 1
    for one in found:
        memory = await app.backend.call(ME, GetMemory(BANK, one.memory_id))
        assert "ann@example.com" not in str(memory)
    await app.close()


async def test_a_hold_keeps_what_it_covers(index: Any, app: App, brain: Astrocyte, root: Path) -> None:
    await index()
    await app.backend.call(ME, PlaceHold(BANK, "a case", hold_id="case-1"))
    (root / "GLOSSARY.md").unlink()
    report = await index()
    assert "case-1" in report.failures["GLOSSARY.md"]
    assert (report.removed, len(await every(brain))) == (0, 6)
    await app.backend.call(ME, ReleaseHold(BANK, "case-1"))
    assert await index() == KbReport(unchanged=5, removed=1)


async def test_progress_counts_files(index: Any, root: Path) -> None:
    steps: list[tuple[int, int]] = []
    await index(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (6, 6)
    (root / "GLOSSARY.md").unlink()
    write(root, {"new.md": "# New", "decisions/0006-queue.md": "# Other"})
    steps.clear()
    await index(progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("name", ["x" * 65, "a\nb"])
async def test_names_of_folders_are_bounded(backend: Any, root: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="expected 1 to 64 printable characters"):
        FolderIndexer(backend, ME, BANK, root, name)


async def test_a_reader_cannot_index(root: Path) -> None:
    grants = [
        {"bank_id": BANK, "principal": "user:ann", "permissions": ["read", "write", "forget"]},
        {"bank_id": BANK, "principal": "user:bob", "permissions": ["read"]},
    ]
    access = {"access_control": {"enabled": True, "default_policy": "deny"}, "access_grants": grants}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **access}))
    ann, bob = Caller(principal="user:ann"), Caller(principal="user:bob")
    with pytest.raises(AccessDenied):
        await FolderIndexer(app.backend, Caller(principal="user:eve"), BANK, root).run()
    assert (await FolderIndexer(app.backend, ann, BANK, root).run()).created == 6
    assert await FolderIndexer(app.backend, bob, BANK, root).run() == KbReport(unchanged=6)
    write(root, {"new.md": "# New"})
    with pytest.raises(AccessDenied):
        await FolderIndexer(app.backend, bob, BANK, root).run()
    await app.close()


async def test_a_rate_limit_ends_the_run(root: Path) -> None:
    limits = {"homeostasis": {"rate_limits": {"retain_per_minute": 2}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", **limits}))
    with pytest.raises(RateLimited):
        await FolderIndexer(app.backend, ME, BANK, root).run()
    await app.close()


async def test_it_works_over_the_wire(root: Path) -> None:
    async with serving() as served:
        brain = connect(served.address)
        assert await brain.shared_kb_index_folder(root, BANK) == KbReport(created=6)
        (root / "GLOSSARY.md").rename(root / "WORDS.md")
        (root / "decisions/0006-queue.md").unlink()
        write(root, {"ARCHITECTURE.md": "# System\n\nNo components."})
        assert await brain.shared_kb_index_folder(root, BANK) == KbReport(unchanged=3, updated=1, moved=1, removed=1)
        assert await brain.shared_kb_index_folder(root, BANK) == KbReport(unchanged=5)
        assert len(await every(brain, include_rows=True)) == 5
        (hit, *_) = await brain.shared_kb_search("where are graphs stored?", BANK, type="adr")
        assert hit.document.document_id == "ADR-0005"
        await brain.close()


async def test_a_watched_folder_is_indexed_after_each_change(backend: Any, root: Path) -> None:
    indexer = FolderIndexer(backend, ME, BANK, root)
    async with aclosing(watched(indexer, 0.01)) as reports:
        assert await anext(reports) == KbReport(created=6)
        following = asyncio.ensure_future(anext(reports))
        await asyncio.sleep(0.1)
        assert not following.done()
        assert backend.calls["ListSharedKb"] == 1
        write(root, {"GLOSSARY.md": "# Glossary\n\nAnother one."})
        assert await following == KbReport(unchanged=5, updated=1)


async def test_a_watch_survives_a_server_that_is_away(backend: Any, root: Path) -> None:
    indexer = FolderIndexer(backend, ME, BANK, root)
    known = backend._backend
    async with aclosing(watched(indexer, 0.01)) as outcomes:

        class Away:
            def call(self, caller: Caller, request: Any) -> Any:
                raise StoreError("away")

        backend._backend = Away()
        assert isinstance(await anext(outcomes), StoreError)
        backend._backend = known
        assert await anext(outcomes) == KbReport(created=6)
