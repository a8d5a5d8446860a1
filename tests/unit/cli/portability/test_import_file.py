import json
from datetime import UTC, datetime

import pytest

from astrocyte.cli.portability.import_file import Report
from astrocyte.cli.portability.sources.json_lines import read_line
from astrocyte.errors import DiskFull
from astrocyte.model import RetainResult


def line(**values: object) -> bytes:
    return json.dumps(values).encode()


def test_a_full_line() -> None:
    item = read_line(
        line(
            content="We land at 17:40.",
            content_type="conversation",
            speaker="Ines",
            session_id="july",
            occurred_at="2025-07-27T18:07:12+01:00",
            tags=["travel"],
            metadata={"flight": 2, "paid": True, "seat": None},
            id="turn-7",
            fact_type="experience",
            pii_detected=True,
            valid_until="2025-08-04T00:00:00Z",
        )
    )
    assert item.content == "We land at 17:40."
    assert (item.speaker, item.session_id, item.content_type) == ("Ines", "july", "conversation")
    assert item.occurred_at == datetime(2025, 7, 27, 17, 7, 12, tzinfo=UTC)
    assert item.valid_until == datetime(2025, 8, 4, tzinfo=UTC)
    assert item.tags == ("travel",)
    assert item.metadata == {"flight": 2, "paid": True, "seat": None, "id": "turn-7"}
    assert item.pii_detected is True


def test_synonyms_and_nulls() -> None:
    item = read_line(line(text="short", time="2025-01-01T00:00:00Z", speaker=None, tags=None, metadata=None))
    assert item.content == "short"
    assert item.occurred_at == datetime(2025, 1, 1, tzinfo=UTC)
    assert (item.speaker, item.tags, dict(item.metadata)) == (None, (), {})


@pytest.mark.parametrize(
    ("values", "speaker", "metadata"),
    [
        ({"role": "user"}, "user", {}),
        ({"role": "user", "name": "Ines", "model": "m-1"}, "Ines", {"role": "user", "model": "m-1"}),
        ({"role": "user", "user": "Ines"}, "Ines", {"role": "user"}),
        ({"role": "user", "user": "Ines", "name": "I. Wolf"}, "Ines", {"role": "user", "name": "I. Wolf"}),
        ({"name": "Trip", "type": "note", "stars": 4, "done": True, "rest": None}, None, {
            "name": "Trip", "type": "note", "stars": 4, "done": True,
        }),
        ({"author": "Ines", "metadata": {"a": 1}, "model": "m-1"}, "Ines", {"a": 1, "model": "m-1"}),
    ],
)  # fmt: skip
def test_other_keys_are_metadata_and_names_win_over_roles(
    values: dict[str, object], speaker: str | None, metadata: dict[str, object]
) -> None:
    item = read_line(line(content="a", **values))
    assert (item.speaker, item.metadata) == (speaker, metadata)


def test_parts_of_texts_are_joined() -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "tea"}]
    assert read_line(line(role="user", content=parts)).content == "Look:\ntea"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"content": "a", "colours": ["red"]}, "colours: expected text, a number"),
        ({"content": "a", "user": "Ines", "from": "Ines"}, "expected at most one of user and from: both are speaker"),
        ({"content": [{"type": "image"}]}, "content: expected text, got [{'type'"),
        ({"speaker": "Ines"}, "content: expected text, got nothing"),
        ({"content": "a", "text": "b"}, "expected at most one of content and text"),
        ({"content": 7}, "content: expected text, got 7"),
        ({"content": "a", "occurred_at": "2025-01-01T00:00:00"}, "occurred_at: '2025-01-01T00:00:00' has no time zone"),
        ({"content": "a", "time": "yesterday"}, "occurred_at: 'yesterday' is not a time"),
        (
            {"content": "a", "time": "2025-01-01T00:00:00Z", "occurred_at": "2025-01-01T00:00:00Z"},
            "expected at most one of",
        ),
        ({"content": "a", "tags": "red"}, "tags: expected a list of texts, got 'red'"),
        ({"content": "a", "tags": [1]}, "tags: expected a list of texts, got [1]"),
        ({"content": "a", "metadata": []}, "metadata: expected an object, got []"),
        ({"content": "a", "metadata": {"a": [1]}}, "metadata.a: expected text, a number"),
        ({"content": "a", "metadata": {"id": 1}, "id": 2}, "id is given twice"),
        ({"content": "a", "id": [1]}, "id: expected text, a number"),
        ({"content": "a", "speaker": 3}, "speaker: expected text, got 3"),
        ({"content": "a", "pii_detected": "yes"}, "pii_detected: expected true or false, got 'yes'"),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_line(line(**values))
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8 text"),
        (b"[1]", "expected an object"),
        (b'"text"', "expected an object"),
    ],
)
def test_lines_that_are_no_objects(raw: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_line(raw)


def test_every_line_is_accounted_for() -> None:
    report = Report()
    report.add("line 1", RetainResult(stored=True, memory_id="mem_1"))
    report.add("line 2", RetainResult(stored=False, deduplicated=True, memory_id="mem_1"))
    report.add("line 3", RetainResult(stored=True, memory_id="mem_1", was_update=True))
    report.add("line 5", DiskFull("no space left"))
    assert report.lines == 4
    assert dict(report.outcomes) == {"created": 1, "skipped": 1, "updated": 1, "failed": 1}
    assert report.failures == [{"place": "line 5", "error": "no space left"}]
