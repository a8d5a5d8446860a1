"""Driver folder: changed files, and files that are none of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from astrocyte.errors import ConfigError
from astrocyte.providers.ingest.folder import FolderFiles, FolderOptions, create
from external.polled import ids, polled

# A clock that is so far ahead of the files that none of them is being written.
LATER_NS = 3_600_000_000_000


async def driver(folder: Path, **options: Any) -> FolderFiles:
    made = FolderFiles(FolderOptions(path=folder, **options), lambda: time.time_ns() + LATER_NS)
    await made.open()
    return made


def written(folder: Path, path: str, text: str = "A ship.") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


async def test_files_of_the_patterns_become_items(tmp_path: Path) -> None:
    first = written(tmp_path, "a.md", "\ufeff# Ship\r\n")
    os.utime(first, (1_700_000_000, 1_700_000_000))
    written(tmp_path, "deep/er/b.txt")
    written(tmp_path, "c.json", '{"name": "Ship"}')
    written(tmp_path, "d.py")
    written(tmp_path, ".git/e.md")
    found = await driver(tmp_path)
    items, cursor, refused = await polled(found, limit=2)
    assert (ids(items), cursor, refused) == (["a.md", "c.json", "deep/er/b.txt"], {}, 0)
    assert items[0].message == {
        "content": "# Ship\n",
        "source": "a.md",
        "occurred_at": "2023-11-14T22:13:20+00:00",
        "metadata": {"path": "a.md"},
    }
    assert (items[1].document["json"], items[0].document["json"]) == ({"name": "Ship"}, None)
    hidden = await driver(tmp_path, hidden=True, patterns=["er/*.txt", "*.py", "*.md"])
    assert ids((await polled(hidden))[0]) == [".git/e.md", "a.md", "d.py", "deep/er/b.txt"]


async def test_only_changed_files_are_read_again(tmp_path: Path) -> None:
    for number in range(5):
        written(tmp_path, f"{number}.md", f"Ship {number}")
    found = await driver(tmp_path)
    first = {item.item_id: item.version for item in (await polled(found))[0]}
    assert (await polled(found))[0] == []
    # The same bytes are the same version.
    (tmp_path / "1.md").touch()
    touched = (await polled(found))[0]
    assert [(item.item_id, item.version) for item in touched] == [("1.md", first["1.md"])]
    # The same size and time, other bytes.
    state = (tmp_path / "2.md").stat()
    written(tmp_path, "2.md", "Ship X")
    os.utime(tmp_path / "2.md", ns=(state.st_atime_ns, state.st_mtime_ns))
    (changed,) = (await polled(found))[0]
    assert changed.item_id == "2.md"
    assert changed.version != first["2.md"]
    (tmp_path / "3.md").unlink()
    assert (await polled(found))[0] == []
    again = await driver(tmp_path)
    assert {item.item_id: item.version for item in (await polled(again))[0]} == {
        "0.md": first["0.md"],
        "1.md": first["1.md"],
        "2.md": changed.version,
        "4.md": first["4.md"],
    }


async def test_a_page_that_was_not_taken_comes_again(tmp_path: Path) -> None:
    for number in range(4):
        written(tmp_path, f"{number}.md")
    found = await driver(tmp_path)
    pages = found.pages({}, 2)
    assert ids((await anext(pages)).items) == ["0.md", "1.md"]
    await pages.aclose()  # type: ignore[attr-defined]
    assert ids((await polled(found))[0]) == ["0.md", "1.md", "2.md", "3.md"]


async def test_a_file_that_is_being_written_waits(tmp_path: Path) -> None:
    written(tmp_path, "a.md")
    now = time.time_ns()
    found = FolderFiles(FolderOptions(path=tmp_path, settle_seconds=3_600), lambda: now)
    await found.open()
    assert (await polled(found))[0] == []
    now += LATER_NS
    assert ids((await polled(found))[0]) == ["a.md"]


async def test_a_file_that_changed_just_now_is_looked_at_again(tmp_path: Path) -> None:
    written(tmp_path, "a.md")
    now = time.time_ns()
    found = FolderFiles(FolderOptions(path=tmp_path, settle_seconds=0), lambda: now)
    await found.open()
    assert [ids((await polled(found))[0]) for _ in range(2)] == [["a.md"], ["a.md"]]
    now += LATER_NS
    assert [ids((await polled(found))[0]) for _ in range(2)] == [["a.md"], []]


async def test_links_lead_nowhere_and_are_refused_once(tmp_path: Path) -> None:
    outside = written(tmp_path, "outside/secret.md", "secret")
    inside = tmp_path / "inside"
    written(inside, "a.md")
    (inside / "b.md").symlink_to(outside)
    (inside / "c.md").symlink_to(inside / "a.md")
    (inside / "gone.md").symlink_to(inside / "nowhere.md")
    (inside / "folder").symlink_to(outside.parent)
    os.mkfifo(inside / "pipe.md")
    found = await driver(inside)
    items, _, refused = await polled(found)
    assert (ids(items), refused) == (["a.md"], 4)
    assert (await polled(found))[1:] == ({}, 0)
    # The folder itself may be named by a link.
    (tmp_path / "link").symlink_to(inside)
    assert ids((await polled(await driver(tmp_path / "link")))[0]) == ["a.md"]


async def test_a_folder_that_becomes_a_link_is_left(tmp_path: Path) -> None:
    outside = written(tmp_path, "outside/secret.md", "secret").parent
    inside = tmp_path / "inside"
    written(inside, "deep/secret.md", "own")
    found = await driver(inside)
    changed = found._scan()
    (inside / "deep/secret.md").unlink()
    (inside / "deep").rmdir()
    (inside / "deep").symlink_to(outside)
    assert found._read(list(changed.values()), 10)[0] == [None]


async def test_what_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "a.md", "x" * 100)
    written(tmp_path, "b.md", "x" * 101)
    (tmp_path / "c.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "d.md").write_bytes(b"a\0b")
    (tmp_path / "e.json").write_text("[" * 90, encoding="utf-8")
    (tmp_path / os.fsdecode(b"f\xff.md")).write_text("x", encoding="utf-8")
    written(tmp_path, "g\n.md")
    items, _, refused = await polled(await driver(tmp_path, max_file_bytes=100))
    assert (ids(items), refused) == (["a.md", "e.json"], 5)
    assert items[1].document["json"] is None


async def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    made = create({"path": tmp_path / "none"})
    with pytest.raises(FileNotFoundError):
        await made.open()
    made = create({"path": written(tmp_path, "file")})
    await made.open()
    with pytest.raises(NotADirectoryError):
        await polled(made)


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({}, r"sources\.options\.path"),
        ({"path": ".", "pattern": ["*"]}, "did you mean patterns"),
        ({"path": ".", "patterns": []}, "patterns"),
        ({"path": ".", "auth": {"token": "a"}}, "auth is not an option"),
    ):
        with pytest.raises(ConfigError, match=message):
            create(options)
