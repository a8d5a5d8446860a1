"""Times without a zone, and texts that are too long for one memory, in every format."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from astrocyte.cli import cli
from astrocyte.cli.portability.sources.entries import PART_BYTES, Entry
from astrocyte.cli.portability.sources.json_lines import json_lines
from astrocyte.cli.portability.sources.recognition import LINES, SOURCES

NAIVE = "2025-06-01T11:30:00"
NINE = datetime(2025, 6, 1, 9, 30, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=2))
# Of each format: the file name, and a text with one memory whose time has no zone.
Make = Callable[[str], str]


def _json(make: Callable[[str], Any]) -> Make:
    return lambda text: json.dumps(make(text))


def _chatgpt(text: str) -> Any:
    content = {"parts": [text]}
    node = {"parent": None, "message": {"author": {"role": "user"}, "create_time": NAIVE, "content": content}}
    return [{"id": "talk", "mapping": {"a": node}, "current_node": "a"}]


FILES: dict[str, tuple[str, Make]] = {
    "jsonl": ("a.jsonl", _json(lambda text: {"content": text, "date": NAIVE})),
    "json": ("a.json", _json(lambda text: [{"role": "user", "content": text, "date": NAIVE}])),
    "chatgpt": ("conversations.json", _json(_chatgpt)),
    "claude": (
        "conversations.json",
        _json(lambda text: [{"uuid": "a", "chat_messages": [{"sender": "human", "text": text, "created_at": NAIVE}]}]),
    ),
    "discord": (
        "channel.json",
        _json(
            lambda text: {
                "channel": {"name": "tea"},
                "messages": [{"id": "1", "timestamp": NAIVE, "content": text, "author": {"name": "mara"}}],
            }
        ),
    ),
    "telegram": (
        "result.json",
        _json(
            lambda text: {
                "name": "Tea",
                "type": "personal_chat",
                "messages": [{"id": 1, "type": "message", "date": NAIVE, "from": "Mara", "text": text}],
            }
        ),
    ),
    "mem0": ("mem0.json", _json(lambda text: {"results": [{"id": "1", "memory": text, "created_at": NAIVE}]})),
    "zep": ("zep.json", _json(lambda text: {"messages": [{"role": "user", "content": text, "created_at": NAIVE}]})),
    "markdown": ("note.md", "---\ndate: 2025-06-01 11:30:00\n---\n{}".format),
    "mail": ("a.eml", "From: Mara <m@x.example>\nSubject: Tea\nDate: Sun, 01 Jun 2025 11:30:00\n\n{}\n".format),
}
# Formats whose times have a zone by themselves, or none.
OTHERS: dict[str, tuple[str, Make]] = {
    "whatsapp": ("chat.txt", "[01.06.25, 11:30:00] Mara: {}\n".format),
    "subtitles": ("talk.vtt", "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n<v Mara>{}\n".format),
}


def written(folder: Path, name: str, text: str = "Mara drinks tea.") -> Path:
    file, make = {**FILES, **OTHERS}[name]
    path = folder / file
    path.write_text(make(text), encoding="utf-8")
    return path


def read(name: str, path: Path, zone: timezone | None) -> list[Entry]:
    return list((json_lines if name == LINES else SOURCES[name].read)(path, zone))


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_time_without_a_zone_takes_the_given_one_or_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name)
    (entry,) = read(name, path, BERLIN)
    assert entry.item is not None, entry.problem
    assert entry.item.occurred_at == NINE
    (refused,) = read(name, path, None)
    assert refused.item is None
    assert "has no time zone" in refused.problem
    assert "--time-zone" in refused.problem


def test_slack_has_a_zone(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text("[]")
    (tmp_path / "general").mkdir()
    message = {"type": "message", "user": "U1", "text": "hi", "ts": str(NINE.timestamp())}
    (tmp_path / "general/2025-06-01.json").write_text(json.dumps([message]))
    for zone in (None, BERLIN):
        (entry,) = read("slack", tmp_path, zone)
        assert entry.item is not None
        assert entry.item.occurred_at == NINE


def test_a_day_needs_no_zone(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("---\ndate: 2025-06-01\n---\ntea")
    for zone, when in ((None, datetime(2025, 6, 1, tzinfo=UTC)), (BERLIN, datetime(2025, 6, 1, tzinfo=BERLIN))):
        (entry,) = read("markdown", path, zone)
        assert entry.item is not None
        assert entry.item.occurred_at == when


def test_the_unknown_zone_of_a_mail_is_utc(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text("From: m@x.example\nDate: Sun, 01 Jun 2025 09:30:00 -0000\n\ntea\n")
    for zone in (None, BERLIN):
        (entry,) = read("mail", path, zone)
        assert entry.item is not None
        assert entry.item.occurred_at == NINE


def run(data: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli, ["--data-dir", str(data), "--json", *map(str, arguments)])


@pytest.mark.parametrize("name", sorted({**FILES, **OTHERS}))
def test_a_long_text_of_any_format_is_stored_in_parts(tmp_path: Path, name: str) -> None:
    """A dry run counts the memories that the store takes."""
    sentences = [f"Sentence {number} is about tea number {number * 7}." for number in range(3_200)]
    separator = " " if name in OTHERS or name == "mail" else "\n\n"
    path = written(tmp_path, name, separator.join(sentences))
    imported = partial(run, tmp_path / "data", "import", "long", path, "--format", name, "--time-zone", "+02:00")
    dry = json.loads(imported("--dry-run").stdout)
    assert dry["memories"] > 1
    result = imported()
    assert result.exit_code == 0, result.output
    stored = json.loads(result.stdout)
    assert (stored["memories"], stored["created"], stored["failed"]) == (dry["memories"], dry["memories"], 0)
    archive = tmp_path / "long.ama.jsonl"
    assert run(tmp_path / "data", "export", "long", archive).exit_code == 0
    lines = [json.loads(line) for line in archive.read_text(encoding="utf-8").splitlines()]
    contents = [line["text"] for line in lines if line.get("section") == "memories"]
    assert all(len(content.encode()) <= PART_BYTES for content in contents)
    # No sentence is lost, and none is there twice.
    assert sum(content.count("Sentence ") for content in contents) == len(sentences)
    again = json.loads(imported().stdout)
    assert (again["created"], again["skipped"]) == (0, dry["memories"])
