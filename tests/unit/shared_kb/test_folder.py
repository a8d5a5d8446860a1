"""Folders: which files are read, and that nothing outside is."""

import os
from pathlib import Path

import pytest

from astrocyte.shared_kb import folder as folders
from astrocyte.shared_kb.folder import Folder, FolderTooLargeError, UnreadableFileError

SECRET = "the secret of another folder"


def tree(root: Path, files: dict[str, str]) -> Folder:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return Folder(root)


def test_markdown_is_found_at_all_depths_and_tools_are_left_out(tmp_path: Path) -> None:
    wanted = ["b.MD", "a/c.markdown", ".context/decisions/d.md", "a/ä b.md"]
    others = ["x.txt", ".git/e.md", "node_modules/f.md", "a/.venv/g.md"]
    folder = tree(tmp_path, dict.fromkeys([*wanted, *others], "text"))
    assert folder.paths() == sorted(wanted)
    survey = folder.survey()
    assert sorted(survey.hashes) == sorted(wanted)
    assert (survey.problems, survey.ignored) == ({}, [])


def test_a_digest_is_of_the_content_alone(tmp_path: Path) -> None:
    found = tree(tmp_path, {"a.md": "same", "b.md": "same", "c.md": "other"}).survey().hashes
    assert found["a.md"] == found["b.md"] != found["c.md"]
    assert len(found["a.md"]) == 32
    assert set(found["a.md"]) <= set("abcdefghijklmnop")


def test_empty_files_and_indexes_are_ignored(tmp_path: Path) -> None:
    survey = tree(tmp_path, {"a.md": " \n", "INDEX.md": "# All", "b/index.md": "# All"}).survey()
    assert (survey.hashes, survey.problems) == ({}, {})
    assert sorted(survey.ignored) == ["INDEX.md", "a.md", "b/index.md"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    tree(outside, {"secret.md": SECRET, "deep/secret.md": SECRET})
    root = tmp_path / "root"
    folder = tree(root, {"own.md": "own"})
    (root / "link.md").symlink_to(outside / "secret.md")
    (root / "linked").symlink_to(outside, target_is_directory=True)
    (root / "loop").symlink_to(root, target_is_directory=True)
    survey = folder.survey()
    assert list(survey.hashes) == ["own.md"]
    assert survey.ignored == ["link.md", "linked", "loop"]
    # The paths themselves, as if a link had taken the place of a file after it was found.
    for path in ("link.md", "linked/secret.md", "linked/deep/secret.md"):
        with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
            folder.text(path)


@pytest.mark.parametrize("path", ["../outside/secret.md", "a/../../outside/secret.md", "./own.md"])
def test_paths_that_lead_out_are_refused(tmp_path: Path, path: str) -> None:
    tree(tmp_path / "outside", {"secret.md": SECRET})
    folder = tree(tmp_path / "root", {"own.md": "own", "a/b.md": "b"})
    with pytest.raises(NotADirectoryError, match="leads out of the folder"):
        folder.text(path)


def test_an_absolute_path_is_one_below_the_root(tmp_path: Path) -> None:
    tree(tmp_path / "outside", {"secret.md": SECRET})
    folder = tree(tmp_path / "root", {"own.md": "own"})
    with pytest.raises(FileNotFoundError):
        folder.text(str(tmp_path / "outside/secret.md"))


def test_the_folder_itself_can_be_reached_by_a_link(tmp_path: Path) -> None:
    tree(tmp_path / "root", {"own.md": "own"})
    (tmp_path / "link").symlink_to(tmp_path / "root", target_is_directory=True)
    assert Folder(tmp_path / "link").text("own.md")[0] == "own"


def test_what_is_not_a_file_is_told_and_does_not_block(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"own.md": "own", "folder.md/inside.md": "in a folder with the name of a file"})
    os.mkfifo(tmp_path / "pipe.md")
    survey = folder.survey()
    assert survey.problems == {"pipe.md": "is not a file"}
    assert sorted(survey.hashes) == ["folder.md/inside.md", "own.md"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"caf\xe9", "is not UTF-8, by its byte 3; convert it"),
        ("text".encode("utf-16"), "is not UTF-8, by its byte 0; convert it"),
        (b"a\0b", "has a NUL character; remove it"),
        (b"x" * (folders.MOST_FILE_BYTES + 1), "has more than 1,048,576 bytes; split it"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, data: bytes, problem: str) -> None:
    folder = tree(tmp_path, {"own.md": "own"})
    (tmp_path / "bad.md").write_bytes(data)
    survey = folder.survey()
    assert survey.problems == {"bad.md": problem}
    assert list(survey.hashes) == ["own.md"]
    with pytest.raises(UnreadableFileError, match=problem.split(";", maxsplit=1)[0]):
        folder.text("bad.md")


def test_names_that_no_document_has_are_told(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"own.md": "own", f"{'d' * 250}/{'e' * 250}/{'f' * 20}.md": "long", "a\nb.md": "line"})
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb") as file:  # noqa: PTH123 - a name that is not UTF-8
        file.write(b"text")
    survey = folder.survey()
    assert list(survey.hashes) == ["own.md"]
    assert sorted(survey.problems.values()) == [
        "has a name with characters that are not printable UTF-8",
        "has a name with characters that are not printable UTF-8",
        "has a path of more than 512 bytes",
    ]


def test_line_ends_and_the_byte_order_mark_are_taken_off(tmp_path: Path) -> None:
    folder = tree(tmp_path, {})
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert folder.text("a.md")[0] == "one\ntwo\nthree\n"


def test_count_size_and_depth_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path, {"a.md": "one", "b.md": "two", "c/d/e.md": "three"})
    assert len(folder.survey().hashes) == 3
    monkeypatch.setattr(folders, "MOST_DEPTH", 1)
    assert folder.survey().problems == {"c/d": "is deeper than 1 folders"}
    monkeypatch.setattr(folders, "MOST_TOTAL_BYTES", 5)
    with pytest.raises(FolderTooLargeError, match="has more than 5 bytes of Markdown"):
        folder.survey()
    monkeypatch.setattr(folders, "MOST_FILES", 1)
    with pytest.raises(FolderTooLargeError, match="has more than 1 Markdown files"):
        folder.survey()


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"own.md": "own", "gone/a.md": "a"})
    opened = folder._open_folder

    def refusing(path: str) -> int:
        if path == "gone":
            raise PermissionError(13, "Permission denied")
        return opened(path)

    folder._open_folder = refusing  # type: ignore[method-assign]
    survey = folder.survey()
    assert (list(survey.hashes), survey.problems) == (["own.md"], {"gone": "Permission denied"})


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    with pytest.raises(NotADirectoryError, match=r"a\.md is not a folder"):
        Folder(tmp_path / "a.md")
    with pytest.raises(FileNotFoundError):
        Folder(tmp_path / "none")


def test_stamps_change_with_a_file(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"a.md": "one", "b.md": "two"})
    before = folder.stamps()
    assert folder.stamps() == before
    (tmp_path / "a.md").write_text("three")
    changed = folder.stamps()
    assert [path for path in before if before[path] != changed[path]] == ["a.md"]
    (tmp_path / "b.md").unlink()
    assert list(folder.stamps()) == ["a.md"]
