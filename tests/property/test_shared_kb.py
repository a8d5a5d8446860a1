"""Random changes of a folder: after each run the bank has exactly its files, and what did not change is not sent."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import GetMemory, StreamRetain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError
from astrocyte.model import Caller
from astrocyte.shared_kb import FolderIndexer
from astrocyte.shared_kb.documents import rows_of
from samples.folders import BANK, every, write

ME = Caller()
FOLDERS = ("", "decisions/", "specs/approved/", "specs/drafts/")
STATES = ("draft", "approved", "accepted")
RUNS, MANY = 40, 1_500


class Broken:
    """A backend that fails at a call, and counts the rows that are written."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.left: int | None = None
        self.written: list[str] = []

    async def call(self, caller: Caller, request: Any) -> Any:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise StoreError("the connection is gone")
        if isinstance(request, StreamRetain):
            self.written += [str(item.metadata["kb_path"]) for item in request.items]
        elif isinstance(request, UpdateMemory):
            self.written.append(str(request.update.metadata["kb_path"]))
        return await self._backend.call(caller, request)


def text(draw: random.Random) -> str:
    """A document, some with several parts or components."""
    front = f"---\nstatus: {draw.choice(STATES)}\n"
    body = f"# Title {draw.randrange(5)}\n\nA text with the number {draw.randrange(5)}.\n"
    if draw.random() < 0.2:
        names = draw.sample("abcdef", draw.randrange(1, 6))
        front += "type: architecture\ncomponents:\n" + "".join(f"- {name}\n" for name in names)
    if draw.random() < 0.05:
        body += "Some words of a paragraph.\n\n" * draw.randrange(3_000, 6_000)
    return f"{front}---\n{body}"


def change(draw: random.Random, files: dict[str, str]) -> None:
    """One change of the files."""
    path = f"{draw.choice(FOLDERS)}{draw.randrange(12)}.md"
    known = sorted(files)
    kind = draw.choice(("write", "write", "remove", "rename", "copy", "swap"))
    if kind == "write" or not known:
        files[path] = text(draw)
        return
    one = draw.choice(known)
    if kind == "remove":
        del files[one]
    elif kind == "rename":
        files[path] = files.pop(one)
    elif kind == "copy":
        files[path] = files[one]
    else:
        other = draw.choice(known)
        files[one], files[other] = files[other], files[one]


def laid_out(root: Path, before: dict[str, str], files: dict[str, str]) -> None:
    for path in before.keys() - files.keys():
        (root / path).unlink()
    write(root, {path: content for path, content in files.items() if before.get(path) != content})


async def check(app: App, brain: Astrocyte, files: dict[str, str]) -> None:
    """The bank has the rows of the files, and nothing else."""
    expected = {
        (path, row.document.row): (row.text, row.document.type, row.document.status, row.document.title)
        for path, content in files.items()
        for row in rows_of("docs", path, content, "h")
    }
    found = {}
    for one in await every(brain, include_rows=True):
        memory = await app.backend.call(ME, GetMemory(BANK, one.memory_id))
        assert (one.path, one.row) not in found
        found[one.path, one.row] = (memory.content, one.type, one.status, one.title)
    assert found.keys() == expected.keys()
    # The normaliser of documents may strip blanks at the ends of lines.
    assert {key: (_words(value[0]), *value[1:]) for key, value in found.items()} == {
        key: (_words(value[0]), *value[1:]) for key, value in expected.items()
    }


def _words(content: str) -> list[str]:
    return content.split()


async def follow(tmp_path: Path, seed: int, runs: int, note: Callable[[int], None] = lambda _: None) -> None:
    """Runs after random changes, some of which break off."""
    draw = random.Random(seed)
    root = tmp_path / "docs"
    root.mkdir()
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    brain, backend = Astrocyte(app.backend), Broken(app.backend)
    indexer = FolderIndexer(backend, ME, BANK, root)  # type: ignore[arg-type]
    files: dict[str, str] = {"first.md": "# First"}
    write(root, files)
    await indexer.run()
    for step in range(runs):
        before = dict(files)
        for _ in range(draw.randrange(1, 6)):
            change(draw, files)
        laid_out(root, before, files)
        if draw.random() < 0.3:
            backend.left = draw.randrange(1, 5)
            try:
                await indexer.run(allow_empty=True)
            except StoreError:
                note(step)
            backend.left = None
        await indexer.run(allow_empty=True)
        await check(app, brain, files)
        backend.written.clear()
        assert (await indexer.run(allow_empty=True)).unchanged == len(files)
        assert backend.written == []
    await app.close()


@pytest.mark.parametrize("seed", range(3))
async def test_the_bank_equals_the_folder_after_each_run(tmp_path: Path, seed: int) -> None:
    broken: list[int] = []
    await follow(tmp_path, seed, RUNS, broken.append)
    assert broken


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_many_runs(tmp_path: Path) -> None:
    await follow(tmp_path, 99, MANY)
