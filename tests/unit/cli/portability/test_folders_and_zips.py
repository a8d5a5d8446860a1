"""Folders and zip files as programs export them."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest
from click.testing import CliRunner, Result

from astrocyte.cli import cli
from astrocyte.cli.portability.sources import zips

NODE = {"parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["Mara drinks tea."]}}}
CHATGPT = json.dumps([{"id": "talk", "mapping": {"a": NODE}, "current_node": "a"}])
CLAUDE = json.dumps([{"uuid": "a", "chat_messages": [{"sender": "human", "text": "Mara drinks tea."}]}])
MESSAGE = {"id": 1, "type": "message", "date_unixtime": "1748770200", "from": "Mara", "text": "Mara drinks tea."}
TELEGRAM = json.dumps({"name": "Tea", "type": "personal_chat", "messages": [{**MESSAGE, "date": "x"}]})
SLACK = json.dumps([{"type": "message", "user": "U1", "text": "Mara drinks tea.", "ts": "1748770200.1"}])
PICTURE = "\x89PNG"
FOLDERS: Mapping[str, tuple[str, dict[str, str]]] = {
    "chatgpt": ("chatgpt", {"conversations.json": CHATGPT, "chat.html": "<p>", "user.json": "{}", "a/b.png": PICTURE}),
    "claude": ("claude", {"conversations.json": CLAUDE, "users.json": "[]", "projects.json": "[]"}),
    "telegram": ("telegram", {"result.json": TELEGRAM, "photos/a.jpg": PICTURE, "notes/x.md": "x"}),
    "slack": ("slack", {"users.json": "[]", "channels.json": "[]", "general/2025-06-01.json": SLACK}),
    "whatsapp": ("whatsapp", {"_chat.txt": "[01.06.25, 09:30:05] Mara: Mara drinks tea.\n", "a.jpg": PICTURE}),
    "notes": ("markdown", {"deep/er/a.md": "Mara drinks tea.", "b.png": PICTURE}),
    "vault": ("markdown", {"a.md": "Mara drinks tea.", ".obsidian/app.json": "{}"}),
    "lines": ("jsonl", {"a.jsonl": '{"content": "Mara drinks tea."}\n'}),
}


def folder_of(place: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return place


def zip_of(path: Path, files: Mapping[str, str], prefix: str = "") -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(prefix + name, text)
    return path


def imported(path: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["--json", "import", "b", str(path), "--dry-run", *options])


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_a_folder_and_its_zip_file_are_recognised(tmp_path: Path, name: str) -> None:
    expected, files = FOLDERS[name]
    noise = {"__MACOSX/._a.json": "x", ".DS_Store": "x"}
    for path in (
        folder_of(tmp_path / "export", files),
        zip_of(tmp_path / "export.zip", {**files, **noise}),
        # Some programs put a folder around.
        zip_of(tmp_path / "nested.zip", files, "ChatExport_2025-06-01/inner/"),
    ):
        result = imported(path)
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert (report["format"], report["memories"], report["failures"]) == (expected, 1, [])
        assert json.loads(imported(path, "--format", expected).stdout)["memories"] == 1


def test_a_zip_file_is_stored_without_being_unpacked(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "export.zip", FOLDERS["chatgpt"][1])
    before = sorted(tmp_path.iterdir())
    arguments = ["--data-dir", str(tmp_path / "data"), "--json", "import", "me", str(path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["created"] == 1
    assert sorted(one for one in tmp_path.iterdir() if one.name != "data") == before


@pytest.mark.parametrize("name", ["../escape.json", "/etc/passwd.json", "a/../../b.json", "a\\..\\b.json"])
def test_a_path_out_of_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    result = imported(zip_of(tmp_path / "bad.zip", {**FOLDERS["chatgpt"][1], name: "x"}))
    assert result.exit_code == 2
    assert "leads out of it" in result.stderr


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**FOLDERS["chatgpt"][1], "video.mp4": "x" * 10_000}
    path = zip_of(tmp_path / "a.zip", files)
    monkeypatch.setattr(zips, "MOST_TEXT_BYTES", 5_000)
    # A film does not count.
    assert imported(path).exit_code == 0
    for name, limit, told in (
        ("MOST_TEXT_BYTES", 10, "bytes of text"),
        ("MOST_ENTRIES", 2, "more than 2 files"),
        ("MOST_DOCUMENT_BYTES", 10, "more than 10 bytes; unpack"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(zips, name, limit)
            refused = imported(path)
            assert refused.exit_code == 2
            assert told in refused.stderr


def test_a_size_that_is_a_lie_bounds_the_read(tmp_path: Path) -> None:
    """The unpacked size in the table says ten bytes; no more are unpacked, and the checksum fails."""
    path = zip_of(tmp_path / "a.zip", {"conversations.json": "[" + " " * 1_000_000 + "]"})
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    result = imported(path)
    assert result.exit_code == 2
    assert "cannot be unpacked" in result.stderr


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_damage_of_every_method_of_packing_is_told_in_words(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    with ZipFile(path, "w", method) as archive:
        archive.writestr("conversations.json", FOLDERS["chatgpt"][1]["conversations.json"])
    whole = path.read_bytes()
    # In the packed bytes, behind the header, the name and the settings of LZMA.
    for place in range(60, 90, 6):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        result = imported(path)
        assert isinstance(result.exception, SystemExit), place
        assert result.exit_code == 2


def test_damaged_and_encrypted_files_are_told_in_words(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", FOLDERS["chatgpt"][1])
    data = bytearray(path.read_bytes())
    encrypted = bytearray(data)
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    damaged = bytearray(data)
    damaged[60] ^= 0xFF
    for changed, told in ((encrypted, "is encrypted"), (damaged, "cannot be unpacked"), (data[:200], "damaged zip")):
        path.write_bytes(changed)
        result = imported(path)
        assert result.exit_code == 2
        assert told in result.stderr
        assert isinstance(result.exception, SystemExit)


def test_an_array_of_messages_is_recognised(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Yes"}]},
    ]
    path = folder_of(tmp_path, {"chat.json": json.dumps([*messages, {"role": "user"}])}) / "chat.json"
    report = json.loads(imported(path).stdout)
    assert (report["format"], report["memories"], report["speakers"]) == ("json", 2, {"user": 1, "assistant": 1})
    assert report["failures"] == [{"place": "message 3", "error": "content: expected text, got nothing"}]


def test_a_text_of_no_known_format_names_the_option(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {"notes.txt": "Mara drinks tea.\n"}) / "notes.txt"
    refused = imported(path)
    assert refused.exit_code == 2
    assert "name its format with --format" in refused.stderr
    assert json.loads(imported(path, "--format", "markdown").stdout)["memories"] == 1


def test_a_folder_of_no_known_program_says_what_it_lacks(tmp_path: Path) -> None:
    refused = imported(folder_of(tmp_path / "x", {"a.png": PICTURE}))
    assert refused.exit_code == 2
    assert "conversations.json" in refused.stderr
