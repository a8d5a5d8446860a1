"""Files of other programs are recognised, and their entries read."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from astrocyte.cli import cli
from astrocyte.cli.portability.sources.entries import Entry, moment, parts_of
from astrocyte.cli.portability.sources.json_lines import read_line
from astrocyte.cli.portability.sources.recognition import LINES, SOURCES, recognised
from astrocyte.model import RetainItem

NINE = datetime(2025, 6, 1, 9, 30, tzinfo=UTC)
SECONDS = NINE.timestamp()
BERLIN = timezone(timedelta(hours=2))


def written(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def entries(path: Path, expected: str) -> list[Entry]:
    assert recognised(path) == expected
    return list(SOURCES[expected].read(path, None))


def items(path: Path, expected: str) -> list[RetainItem]:
    found = entries(path, expected)
    assert [entry.problem for entry in found if entry.problem] == []
    return [entry.item for entry in found if entry.item is not None]


def told(found: list[RetainItem]) -> list[tuple[str | None, str, datetime | None]]:
    return [(item.speaker, item.content, item.occurred_at) for item in found]


def chatgpt() -> list[dict[str, Any]]:
    def node(parent: str | None, role: str, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        return {"parent": parent, "message": {"author": {"role": role}, "create_time": SECONDS, "content": content}}

    mapping = {
        "root": {"parent": None, "message": None},
        "a": node("root", "user", "What is tea?"),
        "b": node("a", "assistant", "An old answer."),
        "c": node("a", "assistant", "A drink."),
        "s": node("c", "system", "hidden"),
    }
    return [{"id": "talk", "title": "Tea", "mapping": mapping, "current_node": "s"}]


def test_chatgpt_is_read_along_its_last_branch(tmp_path: Path) -> None:
    found = items(written(tmp_path, "conversations.json", chatgpt()), "chatgpt")
    assert told(found) == [("user", "What is tea?", NINE), ("assistant", "A drink.", NINE)]
    assert {item.session_id for item in found} == {"talk"}
    assert found[0].metadata == {"title": "Tea"}


def test_claude(tmp_path: Path) -> None:
    messages = [
        {"sender": "human", "text": "What is tea?", "created_at": "2025-06-01T09:30:00Z"},
        {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "A drink."}], "created_at": None},
    ]
    data = [{"uuid": "talk", "name": "Tea", "chat_messages": messages}]
    found = items(written(tmp_path, "conversations.json", data), "claude")
    assert told(found) == [("user", "What is tea?", NINE), ("assistant", "A drink.", None)]


def test_slack(tmp_path: Path) -> None:
    written(tmp_path, "users.json", [{"id": "U1", "profile": {"display_name": "Mara"}}, {"id": "U2", "name": "ines"}])
    day = [
        {"type": "message", "user": "U1", "text": "Hello <@U2>", "ts": f"{SECONDS:.6f}"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "text": "joined", "ts": f"{SECONDS:.6f}"},
        {"type": "message", "user": "U2", "text": "Hi", "ts": f"{SECONDS:.6f}", "thread_ts": "17.5"},
        {"type": "message", "user": "U2", "text": "late", "ts": "never"},
    ]
    written(tmp_path, "general/2025-06-01.json", day)
    found = entries(tmp_path, "slack")
    read = [entry.item for entry in found if entry.item is not None]
    assert told(read) == [("Mara", "Hello @ines", NINE), ("ines", "Hi", NINE)]
    assert [item.session_id for item in read] == ["general/2025-06-01", "general/17.5"]
    (wrong,) = [entry for entry in found if entry.problem]
    assert wrong.place == "general/2025-06-01.json, message 4"
    assert "'never' is not a time" in wrong.problem


def test_discord_and_telegram(tmp_path: Path) -> None:
    message = {"id": "1", "timestamp": "2025-06-01T11:30:00+02:00", "content": "Hello", "author": {"name": "mara"}}
    path = written(tmp_path, "channel.json", {"channel": {"name": "tea"}, "messages": [message]})
    assert told(items(path, "discord")) == [("mara", "Hello", NINE)]
    text = ["Look at ", {"type": "link", "text": "this"}]
    messages = [
        {"id": 1, "type": "message", "date": "x", "date_unixtime": str(int(SECONDS)), "from": "Mara", "text": text},
        {"id": 2, "type": "service", "date": "x", "text": ""},
    ]
    chat = {"name": "Tea", "type": "personal_chat", "id": 7, "messages": messages}
    for data in (chat, {"chats": {"list": [chat]}}):
        assert told(items(written(tmp_path, "result.json", data), "telegram")) == [("Mara", "Look at this", NINE)]


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("[01.06.25, 09:30:05] Mara: Hello\nmore\n[01.06.25, 09:31:00] Ines: Hi\n", NINE.replace(second=5)),
        ("01/06/2025, 09:30 - Encrypted.\n01/06/2025, 09:30 - Mara: Hello\nmore\n13/06/2025, 09:31 - Ines: Hi\n", NINE),
        ("6/1/25, 9:30 AM - Mara: Hello\nmore\n6/1/25, 9:31 PM - Ines: Hi\n", NINE),
        ("2025-06-01, 09:30 - Mara: Hello\nmore\n2025-06-01, 09:31 - Ines: Hi\n", NINE),
    ],
)
def test_whatsapp(tmp_path: Path, text: str, when: datetime) -> None:
    found = items(written(tmp_path, "WhatsApp Chat.txt", text), "whatsapp")
    assert told(found)[0] == ("Mara", "Hello\nmore", when)
    assert [item.speaker for item in found] == ["Mara", "Ines"]
    local = next(SOURCES["whatsapp"].read(tmp_path / "WhatsApp Chat.txt", BERLIN)).item
    assert local is not None
    assert local.occurred_at == when - timedelta(hours=2)


def test_subtitles_are_joined_to_speeches(tmp_path: Path) -> None:
    vtt = (
        "WEBVTT\n\nNOTE made by hand\n\n1\n00:00:01.000 --> 00:00:02.000\n<v Mara>Hello\n\n"
        "00:00:02.000 --> 00:00:03.000\n<v Mara>again.</v>\n\n01:00:04.500 --> 01:00:05.000\n<v Ines>Hi.\n"
    )
    found = items(written(tmp_path, "talk.vtt", vtt), "subtitles")
    assert [(item.speaker, item.content, item.metadata["start"]) for item in found] == [
        ("Mara", "Hello again.", "00:00:01"),
        ("Ines", "Hi.", "01:00:04"),
    ]
    srt = (
        "1\n00:00:01,000 --> 00:00:02,000\nMARA: <i>Hello</i>\nthere.\n\n2\n00:00:03,000 --> 00:00:04,000\nINES: Hi.\n"
    )
    found = items(written(tmp_path, "talk.srt", srt), "subtitles")
    assert [(item.speaker, item.content) for item in found] == [("MARA", "Hello there."), ("INES", "Hi.")]


def test_markdown_folders_with_long_notes(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    written(folder, "a.md", "---\ntags: [tea, home]\ndate: 2025-06-01\n---\n# Tea\n\nMara drinks tea.\n")
    written(folder, "sub/long.md", "\n\n".join(f"Paragraph {number} " + "x" * 900 for number in range(200)))
    written(folder, "sub/wrong.md", "---\ntags: [a\n---\ntext\n")
    (folder / "bytes.md").write_bytes(b"\xfa\xfe")
    found = entries(folder, "markdown")
    read = [entry.item for entry in found if entry.item is not None]
    assert (read[0].source, read[0].tags, read[0].occurred_at) == (
        "a.md",
        ("tea", "home"),
        datetime(2025, 6, 1, tzinfo=UTC),
    )
    assert read[0].content == "# Tea\n\nMara drinks tea."
    long = [item for item in read if item.source == "sub/long.md"]
    assert len(long) > 2
    assert all(len(item.content.encode()) <= 64_000 for item in long)
    assert "\n\n".join(item.content for item in long).count("Paragraph") == 200
    assert sorted(entry.place for entry in found if entry.problem) == ["bytes.md", "sub/wrong.md"]


def test_no_part_of_a_text_is_lost() -> None:
    for text in ("x" * 1_000, "line\n" * 300, "é" * 500, "a\n\nb"):
        parts = list(parts_of(text, 64))
        assert all(len(part.encode()) <= 64 for part in parts)
        assert "".join("".join(parts).split()) == "".join(text.split())


def test_mails(tmp_path: Path) -> None:
    mail = (
        "From: =?utf-8?q?Mara_M=C3=BCller?= <mara@example.org>\nDate: Sun, 01 Jun 2025 11:30:00 +0200\n"
        "Subject: Tea\nMessage-ID: <2@x>\nReferences: <1@x> <2@x>\nMIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n'
        "We drink tea.\n--b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nAAAA\n--b--\n"
    )
    (item,) = items(written(tmp_path, "tea.eml", mail), "mail")
    assert "We drink tea." in item.content
    assert "AAAA" not in item.content
    assert (item.speaker, item.session_id, item.occurred_at) == ("Mara Müller", "<1@x>", NINE)
    first, second = "From mara Sun Jun  1 09:30:00 2025", "From ines Sun Jun  1 09:31:00 2025"
    box = f"{first}\n{mail}\n{second}\nFrom: ines@example.org\n\nYes.\n"
    found = items(written(tmp_path, "inbox.mbox", box), "mail")
    assert [one.speaker for one in found] == ["Mara Müller", "ines@example.org"]


def test_a_mail_of_many_parts_inside_each_other_is_named(tmp_path: Path) -> None:
    """The parser calls itself for each of them."""
    deep = "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(3_000))
    mail = f"From: ines@example.org\nMIME-Version: 1.0\n{deep}Content-Type: text/plain\n\nTea.\n"
    box = f"From a Sun Jun  1 09:30:00 2025\n{mail}\nFrom b Sun Jun  1 09:31:00 2025\nFrom: mara@example.org\n\nYes.\n"
    broken, kept = entries(written(tmp_path, "inbox.mbox", box), "mail")
    assert (broken.item, broken.problem) == (None, "the mail has more than 200 parts")
    assert kept.item is not None


def test_other_memory_systems(tmp_path: Path) -> None:
    one = {"id": "1", "memory": "Mara drinks tea.", "created_at": "2025-06-01T09:30:00Z", "user_id": "mara"}
    for data in ({"results": [{**one, "metadata": {"a": 1, "b": [2]}}]}, [one]):
        (item,) = items(written(tmp_path, "mem0.json", data), "mem0")
        assert (item.content, item.occurred_at, item.metadata["user_id"]) == ("Mara drinks tea.", NINE, "mara")
    data = {
        "messages": [{"uuid": "m", "role": "Mara", "content": "Hello", "created_at": "2025-06-01T09:30:00Z"}],
        "facts": [{"uuid": "f", "fact": "Mara drinks tea.", "valid_at": "2025-06-01T09:30:00Z"}],
    }
    found = items(written(tmp_path, "zep.json", data), "zep")
    assert told(found) == [("Mara", "Hello", NINE), (None, "Mara drinks tea.", NINE)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"message": "Hi", "from": "Mara", "ts": SECONDS}, ("Hi", "Mara", NINE)),
        ({"body": "Hi", "role": "user", "timestamp": int(SECONDS * 1_000)}, ("Hi", "user", NINE)),
        ({"text": "Hi", "user": "Mara", "date": "2025-06-01T11:30:00+02:00"}, ("Hi", "Mara", NINE)),
        ({"content": "Hi", "author": "Mara", "created_at": str(SECONDS)}, ("Hi", "Mara", NINE)),
    ],
)
def test_common_names_of_keys(values: dict[str, Any], expected: tuple[Any, ...]) -> None:
    item = read_line(json.dumps(values).encode())
    assert (item.content, item.speaker, item.occurred_at) == expected


def test_a_time_without_a_zone_needs_one() -> None:
    line = b'{"text": "Hi", "date": "2025-06-01T11:30:00"}'
    with pytest.raises(ValueError, match="--time-zone"):
        read_line(line)
    assert read_line(line, BERLIN).occurred_at == NINE
    values: list[object] = [True, None, [], "soon", "nan", 1e30]
    for wrong in values:
        with pytest.raises(ValueError, match="is not a time"):
            moment(wrong)


def test_what_is_unknown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (written(tmp_path, "a.json", {"x": 1}), written(tmp_path, "b.json", "{"), tmp_path / "empty"):
        with pytest.raises(ValueError, match=str(path)):
            recognised(path)
    assert recognised(written(tmp_path, "c.jsonl", '{"content": "Hi"}\n')) == LINES


def run(tmp_path: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli, ["--data-dir", str(tmp_path / "data"), *map(str, arguments)])


def test_the_command_shows_what_it_recognised_and_stores_it(tmp_path: Path) -> None:
    path = written(tmp_path, "conversations.json", chatgpt())
    shown = run(tmp_path, "import", "me", path, "--dry-run")
    assert shown.exit_code == 0
    assert "ChatGPT export (conversations.json): 2 memories; nothing was stored." in shown.stdout
    assert "times: 2025-06-01 09:30 to 2025-06-01 09:30" in shown.stdout
    assert "speakers: user (1), assistant (1)" in shown.stdout
    assert run(tmp_path, "banks", "show", "me").exit_code == 3
    assert "2 memories: 2 created" in run(tmp_path, "import", "me", path).stdout
    assert "2 memories: 2 skipped" in run(tmp_path, "import", "me", path).stdout
    refused = run(tmp_path, "import", "me", path, "--format", "claude")
    assert refused.exit_code == 2
    assert "is read as Claude export" in refused.stderr


def test_invalid_entries_are_skipped_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, "log.jsonl", '{"content": "fine"}\n{"content": 3}\n')
    assert run(tmp_path, "import", "me", path).exit_code == 2
    partly = run(tmp_path, "--json", "import", "me", path, "--skip-invalid")
    assert partly.exit_code == 7
    report = json.loads(partly.stdout)
    assert (report["created"], report["failed"], report["failures"][0]["place"]) == (1, 1, "line 2")
