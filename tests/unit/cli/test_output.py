import json
from datetime import UTC, datetime

import pytest
from rich.console import Console

from astrocyte.cli.output import hits_table, milliseconds, path_text, plain, prefix_text, stamp
from astrocyte.model import (
    ArmScore,
    Embedding,
    MemoryHit,
    MemoryPath,
    PrefixExpansion,
    RecallResult,
    TagMatch,
    TimeRange,
)

HIT = MemoryHit(
    text="We land at 17:40. [bold]",
    score=0.5,
    memory_id="mem_1",
    tags=("travel",),
    speaker="Ines",
    occurred_at=datetime(2025, 7, 27, 18, 7, tzinfo=UTC),
    arms=(ArmScore("semantic", 1, 0.8),),
)


def test_values_become_json() -> None:
    value = plain(RecallResult(hits=(HIT,), total_available=1, truncated=False))
    again = json.loads(json.dumps(value))
    assert again["hits"][0]["occurred_at"] == "2025-07-27T18:07:00+00:00"
    assert again["hits"][0]["arms"] == [{"arm": "semantic", "rank": 1, "score": 0.8}]
    assert again["trace"] is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TagMatch.ANY, "any"),
        (Embedding("m", 1, b"\x00\x01"), {"model": "m", "dimensions": 1, "values": "AAE="}),
        ({1: (TimeRange(),)}, {"1": [{"start": None, "end": None}]}),
        (frozenset({"a"}), ["a"]),
    ],
)
def test_each_kind_of_value(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_hits_are_shown_as_they_are() -> None:
    console = Console(width=100, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(hits_table([HIT]))
    text = captured.get()
    assert "Ines: We land at 17:40. [bold]" in text, "content must not be taken for markup"
    assert "2025-07-27" in text
    assert "18:07" in text
    assert "semantic 1" in text
    assert "mem_1" in text


def test_a_path_is_one_line() -> None:
    path = MemoryPath("mem_1", ("person:ines", "org:acme", "place:porto"), ("works_at", "co_occurs_with"))
    assert path_text(path) == "person:ines -works_at- org:acme -co_occurs_with- place:porto"
    assert path_text(MemoryPath("mem_1", ("person:ines",))) == "person:ines"


def test_the_words_of_a_prefix_are_on_one_line() -> None:
    assert prefix_text(PrefixExpansion("kil", "b", ("kiln", "kilo"), 2)) == "b: kil*: kiln, kilo"
    assert prefix_text(PrefixExpansion("kil", "b", ("kiln", "kilo"), 7)) == "b: kil*: kiln, kilo (2 of 7)"
    assert prefix_text(PrefixExpansion("kil", "b", (), 0)) == "b: kil*: no words"


def test_stamps() -> None:
    assert stamp(None) == ""
    assert stamp(datetime(2025, 1, 2, tzinfo=UTC)) == "2025-01-02"


def test_milliseconds_leave_out_what_is_no_number() -> None:
    assert milliseconds({"embed": 0.0314, "core": float("nan")}) == "embed 0.03"
    assert milliseconds(None) == ""
