"""Files as people have them: other encodings and line ends, dates of several languages, records of another shape."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from astrocyte.cli import cli
from astrocyte.cli.portability.sources.entries import Entry, moment
from astrocyte.cli.portability.sources.recognition import SOURCES, recognised

EVENING = datetime(2024, 3, 14, 21, 5, tzinfo=UTC)
CHAT = "[12.03.24, 10:32:05] Anna Müller: Hallo\n[13.03.24, 10:33:05] Ben: Grüße\n"
CUES = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>Schön hier.\n\n0:00:03,5 --> 0:00:04,5\nBen: Ja.\n"
MEMORIES = [{"id": "1", "memory": "Mag Käse", "created_at": "2024-03-14T21:05:00Z"}]
BOX = "From a@b Thu Jan  1 00:00:00 1970\nFrom: Anna <a@b.example>\nDate: Thu, 14 Mar 2024 21:05:00 +0000\n\nGrüße\n"
TEXTS = {"chat.txt": CHAT, "talk.vtt": CUES, "mem0.json": json.dumps(MEMORIES, ensure_ascii=False)}
NODE = {"parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["Tee"]}}}


def read(path: Path) -> list[Entry]:
    return list(SOURCES[recognised(path)].read(path, None))


def contents(path: Path) -> list[tuple[str | None, str]]:
    found = read(path)
    assert [entry.problem for entry in found if entry.problem] == []
    return [(entry.item.speaker, entry.item.content) for entry in found if entry.item is not None]


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", sorted(TEXTS))
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: text.replace("\n", "\r").encode(), id="CR"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="mark"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16"),
        pytest.param(lambda text: text.encode("utf-32"), id="UTF-32"),
    ],
)
def test_encodings_with_a_mark_and_all_line_ends_are_read(
    tmp_path: Path, name: str, change: Callable[[str], bytes]
) -> None:
    plain = contents(written(tmp_path / "plain", name, TEXTS[name].encode()))
    assert plain
    assert contents(written(tmp_path / "other", name, change(TEXTS[name]))) == plain


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_another_encoding_is_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, TEXTS[name].encode("latin-1"))
    result = imported(path)
    assert result.exit_code == 2
    assert "is not UTF-8 text" in result.stderr
    assert "iconv" in result.stderr


def imported(path: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["import", "b", str(path), "--dry-run", *options])


@pytest.mark.parametrize(
    "line",
    [
        "14.03.24, 21:05 - Ann: hi",
        "3/14/24, 9:05 PM - Ann: hi",
        "3/14/24, 9:05\u202fPM - Ann: hi",
        "14/03/2024, 9:05 pm - Ann: hi",
        "14/3/24, 9:05 p. m. - Ann: hi",
        "14/3/24, 9:05 p.\u00a0m. - Ann: hi",
        "2024-03-14, 21:05 - Ann: hi",
        "2024/3/14 21:05 - Ann: hi",
        "2024/3/14 下午9:05 - Ann: hi",
        "2024. 3. 14. 오후 9:05, Ann : hi",
        "2024년 3월 14일 오후 9:05, Ann : hi",
        "2024年3月14日 21:05 - Ann: hi",
        "14.3.2024 klo 21.05 - Ann: hi",
        "14.03.2024 ÖS 9:05 - Ann: hi",
        "14/3/2024, 9:05 μ.μ. - Ann: hi",
        "١٤\u200f/٣\u200f/٢٠٢٤، ٩:٠٥ م - Ann: hi",
        "\u200e[14/03/2024, 21:05:00] \u202aAnn\u202c: hi",
        "[14/03/2024 21:05:00] ~\u00a0Ann: hi",
    ],
)
def test_dates_of_a_chat_in_several_languages(tmp_path: Path, line: str) -> None:
    (entry,) = read(written(tmp_path, "chat.txt", f"{line}\n".encode()))
    assert entry.item is not None, entry.problem
    assert (entry.item.speaker, entry.item.content, entry.item.occurred_at) == ("Ann", "hi", EVENING)


def test_midnight_and_noon_of_twelve_hours(tmp_path: Path) -> None:
    chat = "3/14/24, 12:01 AM - Ann: night\n3/14/24, 12:01 PM - Ann: noon\n3/14/24, 上午12:02 - Ann: later\n"
    times = [entry.item.occurred_at for entry in read(written(tmp_path, "chat.txt", chat.encode())) if entry.item]
    assert [(time.hour, time.minute) for time in times if time is not None] == [(0, 1), (12, 1), (0, 2)]


def test_signs_that_only_look_like_line_ends_stay(tmp_path: Path) -> None:
    chat = "14.03.24, 21:05 - Ann: one\u2028two\x0cthree\nfour\n"
    assert contents(written(tmp_path, "chat.txt", chat.encode())) == [("Ann", "one\u2028two\x0cthree\nfour")]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([*MEMORIES, {"id": 2}], "lacks 'memory'"),
        ([*MEMORIES, {"id": 2, "memory": None}], "expected text"),
        ([*MEMORIES, "x"], "another shape"),
        ([*MEMORIES, {"id": 2, "memory": "a", "metadata": "x"}], "another shape"),
        ([*MEMORIES, {"id": 2, "memory": "a", "created_at": "14.03.2024"}], "is not a time"),
        ({"messages": [{"content": "a"}, "x"]}, "another shape"),
        ({"messages": [{"content": "a"}, {"content": 7}]}, "expected text"),
        ({"messages": [{"content": "a"}], "facts": [{"fact": "b"}]}, "lacks 'uuid'"),
        ([{"id": "a", "current_node": "n", "mapping": {"n": NODE}}, None], "another shape"),
        ([{"uuid": "u", "chat_messages": [{"sender": "human", "text": "a"}]}, {}], "lacks 'uuid'"),
        (
            {"channel": {"id": "1"}, "messages": [
                {"id": "1", "timestamp": "2024-03-14T21:05:00Z", "content": "a", "author": {"name": "b"}},
                {"id": "2", "timestamp": "2024-03-14T21:05:00Z", "content": "a"},
            ]},
            "lacks 'author'",
        ),
        (
            {"name": "n", "type": "p", "messages": [
                {"type": "message", "date": "2024-03-14T21:05:00Z", "text": "a", "from": "b"},
                {"type": "message", "text": "a", "from": "b"},
            ]},
            "lacks 'date'",
        ),
    ],
)  # fmt: skip
def test_one_record_of_another_shape_is_named_and_the_others_are_read(tmp_path: Path, data: Any, problem: str) -> None:
    found = read(written(tmp_path, "export.json", json.dumps(data).encode()))
    assert sum(entry.item is not None for entry in found) == 1
    (wrong,) = [entry for entry in found if entry.item is None]
    assert problem in wrong.problem
    assert wrong.place


def test_a_slack_export_with_a_broken_day_and_another_file(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann"}]
    day = [{"type": "message", "user": "U1", "text": "hi", "ts": "1710000000.000100"}]
    written(tmp_path, "users.json", json.dumps(users).encode())
    written(tmp_path, "general/2024-03-09.json", b"\xef\xbb\xbf" + json.dumps([*day, 7]).encode())
    written(tmp_path, "general/2024-03-10.json", b"[{")
    written(tmp_path, "general/canvas.json", b'{"title": "x"}')
    found = read(tmp_path)
    assert [entry.item.content for entry in found if entry.item] == ["hi"]
    assert [entry.place for entry in found if not entry.item] == [
        "general/2024-03-09.json, message 2",
        "general/2024-03-10.json",
    ]


def test_mails_in_boxes_with_a_mark_and_in_old_encodings(tmp_path: Path) -> None:
    for number, data in enumerate((BOX.encode(), b"\xef\xbb\xbf" + BOX.encode(), BOX.replace("\n", "\r\n").encode())):
        ((speaker, text),) = contents(written(tmp_path, f"{number}.mbox", data))
        assert (speaker, text.endswith("Grüße")) == ("Anna", True)
        assert "\r" not in text
    head = "From: A <a@b.example>\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n"
    old = f"{head}\nGrüße\n"
    ((_, text),) = contents(written(tmp_path, "old.eml", old.encode("latin-1")))
    assert text.endswith("Grüße")
    two = written(tmp_path, "two.mbox", f"{BOX}\nFrom here on it rains.\n\n{BOX}".encode())
    # A line of text that begins with the word follows no empty line in a well-formed box, except when it was escaped.
    assert len(read(two)) == 3
    escaped = written(tmp_path, "escaped.mbox", f"{BOX}\n>From here on it rains.\n\n{BOX}".encode())
    assert len(read(escaped)) == 2


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("junk.mbox", b"no mail here\n", "has no mail"),
        ("deep.json", b"[" * 200_000, "too many levels"),
        ("cut.json", b'[{"id": 1, "memory": "a"', "is not JSON"),
        ("lines.jsonl", '{"content": "a"}\n'.encode("utf-16"), "iconv -f UTF-16"),
        ("half.json", b'[{"id": "1", "memory": "a \\ud800"}]', "half of a surrogate pair"),
        ("empty.txt", b"", "nothing to import"),
        ("empty.vtt", b"", "nothing to import"),
        ("empty.mbox", b"", "nothing to import"),
        ("blank.jsonl", b"\n\r\n", "nothing to import"),
    ],
)
def test_what_cannot_be_read_is_told_in_words(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    result = imported(written(tmp_path, name, data))
    assert told in result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_huge_line_is_one_memory(tmp_path: Path) -> None:
    text = "x" * 3_000_000
    assert contents(written(tmp_path, "chat.txt", f"14.03.24, 21:05 - Ann: {text}\n".encode())) == [("Ann", text)]


@pytest.mark.parametrize(
    "value",
    [
        "2024-03-14 21:05:00 UTC",
        "2024-03-14T21:05:00.1234567Z",
        "Thu, 14 Mar 2024 22:05:00 +0100",
        "1710450300",
        1710450300,
    ],
)
def test_more_forms_of_times(value: object) -> None:
    assert moment(value).replace(microsecond=0) == EVENING
