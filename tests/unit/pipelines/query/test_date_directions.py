"""Directions: "before", "since" and their like, what turns them around, and what several of them mean together."""

import pytest

from astrocyte.pipelines.query.date_parser import DateReading, read_dates
from oracles.told_dates import SINCE_2024, windows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what was done after 2022 but before 2024?", ["2023-01-01/2024-01-01"]),
        ("after May 2025 and before July 2025", ["2025-06-01/2025-07-01"]),
        ("since 2024 until 2025", ["2024-01-01/2026-01-01"]),
        ("which notes before July 2025 did she write after May 2025?", ["2025-06-01/2025-07-01"]),
        ("after 2022 and since May 2025", ["2025-05-01/"]),
        # Months without a year: the latest such time that has begun.
        ("after May and before July", ["2026-06-01/2026-07-01"]),
        ("since December and until February", ["2025-12-01/2026-03-01"]),
        ("what will we do after May and before July?", ["2027-06-01/2027-07-01"]),
        ("after May and before July 2025", ["2025-06-01/2025-07-01"]),
        ("after November 2025 and before March", ["2025-12-01/2026-03-01"]),
        ("before May and after July 2025", ["2025-08-01/2026-05-01"]),
        ("since Wednesday until Monday", ["2026-11-18/2026-11-24"]),
        # No time is on both sides.
        ("before 2022 and after 2024", ["/2022-01-01", "2025-01-01/"]),
        ("before May and after July", ["/2026-05-01", "2026-08-01/"]),
        # Each is a time of its own.
        ("in 2022 or in 2024", ["2022-01-01/2023-01-01", "2024-01-01/2025-01-01"]),
        ("in May 2025 and in July 2025", ["2025-05-01/2025-06-01", "2025-07-01/2025-08-01"]),
        ("after 2024 or before 2025", ["/2025-01-01", "2025-01-01/"]),
        ("did we spend more after 2022 than before 2024?", ["/2024-01-01", "2023-01-01/"]),
        ("who joined after 2022, and who left before 2024?", ["/2024-01-01", "2023-01-01/"]),
        # A date narrows a direction that stands beside it.
        ("in 2025 before June", ["2025-01-01/2025-06-01"]),
        ("in 2025, but after June", ["2025-07-01/2026-01-01"]),
        ("after 8 May 2025 in 2025", ["2025-05-09/2026-01-01"]),
        ("since March 2025 and in May 2024", ["2024-05-01/2024-06-01", "2025-03-01/"]),
        ("notes of 2024 that were changed after June 2025", ["2024-01-01/2025-01-01", "2025-07-01/"]),
    ],
)
def test_directions_narrow_one_another(text: str, expected: list[str]) -> None:
    assert windows(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not before 2025", ["2025-01-01/"]),
        ("no earlier than 2025", ["2025-01-01/"]),
        ("not prior to 2025", ["2025-01-01/"]),
        ("it was not until May 2025", ["2025-05-01/"]),
        ("what wasn't before 2025?", ["2025-01-01/"]),
        ("not after 2025", ["/2026-01-01"]),
        ("not later than 2025", ["/2026-01-01"]),
        ("no later than 2025", ["/2026-01-01"]),
        ("not since 2025", ["/2026-01-01"]),
        ("not by 8 May 2025", ["2025-05-09/"]),
        ("not before 2024 and not after 2025", ["2024-01-01/2026-01-01"]),
        ("neither before 2024 nor after 2025", ["2024-01-01/2026-01-01"]),
        ("no earlier than 2024 or later than 2025", ["2024-01-01/2026-01-01"]),
        ("on or after 8 May 2025", ["2025-05-08/"]),
        ("in or before 2024", ["/2025-01-01"]),
        ("in 2025 or later", ["2025-01-01/"]),
        ("in 2025 or earlier this year", ["2025-01-01/2026-01-01", "2026-01-01/2026-11-21"]),
        ("by 8 May 2025 at the latest", ["/2025-05-09"]),
        ("on 8 May 2025 at the earliest", ["2025-05-08/"]),
        # What is negated is something else.
        ("who did not call before 2025?", ["/2025-01-01"]),
        ("who didn't call after 2025?", ["2026-01-01/"]),
        ("not long after 2025", ["2026-01-01/"]),
    ],
)
def test_a_negation_turns_a_direction_around(text: str, expected: list[str]) -> None:
    assert windows(text) == expected


def test_the_date_of_a_direction_that_was_turned_around_is_one_that_is_asked_about() -> None:
    assert read_dates("the boiler before 2025", SINCE_2024).excluded == ((11, 22),)
    assert read_dates("the boiler, not before 2025", SINCE_2024).excluded == ()
    assert read_dates("the boiler, not before 2025", SINCE_2024).places == ((12, 27),)
    assert read_dates("the boiler, not by 2025", SINCE_2024).excluded == ((12, 23),)


def test_directions_that_narrow_one_another_still_are_directions() -> None:
    assert read_dates("after 2022 but before 2024", SINCE_2024).directed
    assert not read_dates("between 2022 and 2024", SINCE_2024).directed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between Ramadan and 8 May 2025", ["/2025-05-09"]),
        ("what happened between the wedding and May 2025?", ["/2025-06-01"]),
        ("from the launch to May 2025", ["/2025-06-01"]),
        ("from the launch until May 2025", ["/2025-06-01"]),
        ("between May 2025 and the wedding", ["2025-05-01/"]),
        ("between yesterday and the wedding", ["2026-11-19/"]),
        ("yesterday between 2 and 4 pm", ["2026-11-19T14:00/2026-11-19T16:00"]),
        ("between noon and 3 pm on 8 May 2025", ["2025-05-08T12:00/2025-05-08T15:00"]),
    ],
)
def test_a_range_is_open_at_an_end_that_is_no_date(text: str, expected: list[str]) -> None:
    assert windows(text) == expected


@pytest.mark.parametrize("text", ["between us", "a talk between Ann and April", "from Ann to you", "from A to Z"])
def test_other_words_between_two_are_no_range(text: str) -> None:
    assert read_dates(text, SINCE_2024) == DateReading() or windows(text)[0][:1] != "/"


@pytest.mark.parametrize(
    ("direction", "days"), [("before", 0), ("by", 1), ("until", 1), ("no later than", 1), ("not after", 1)]
)
def test_every_direction_counts_from_the_same_weekday(direction: str, days: int) -> None:
    """On a Friday, "Friday" is a week ago, or in a week where the question looks ahead."""
    assert windows(f"notes {direction} Friday") == [f"/2026-11-{13 + days}"]
    assert windows(f"what should have been done {direction} Friday?") == [f"/2026-11-{13 + days}"]
    for question in (
        "what is due",
        "what do I have to do",
        "what should I write",
        "what needs to be done",
        "deadlines",
    ):
        assert windows(f"{question} {direction} Friday") == [f"/2026-11-{27 + days}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pre-2024 invoices", ["/2024-01-01"]),
        ("post-2023 notes", ["2024-01-01/"]),
        ("post-Christmas 2025 sales", ["2025-12-27/"]),
        ("from June 2025 forward", ["2025-06-01/"]),
        ("2024 and beyond", ["2024-01-01/"]),
        ("in 2025 or before", ["/2026-01-01"]),
        ("in 2025 and before that", ["2025-01-01/2026-01-01"]),
        ("up to and including May 2025", ["/2025-06-01"]),
        # So long ago.
        ("more than two years ago", ["/2024-11-20"]),
        ("over a year ago", ["/2025-11-20"]),
        ("at least three months ago", ["/2026-08-21"]),
        ("less than a week ago", ["2026-11-14/"]),
        ("at most two days ago", ["2026-11-18/"]),
        ("no more than two weeks ago", ["2026-11-06/"]),
        ("not less than two weeks ago", ["/2026-11-07"]),
        ("over Christmas 2025", ["2025-12-24/2025-12-27"]),
        ("more than once last week", ["2026-11-09/2026-11-16"]),
        ("at least 5 people in 2025", ["2025-01-01/2026-01-01"]),
        ("post 2024 results", ["2024-01-01/2025-01-01"]),
    ],
)
def test_prefixes_and_ages_are_directions(text: str, expected: list[str]) -> None:
    assert windows(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a week from Monday", ["2026-11-30/2026-12-01"]),
        ("Monday week", ["2026-11-30/2026-12-01"]),
        ("two weeks from tomorrow", ["2026-12-05/2026-12-06"]),
        ("three days from 8 May 2025", ["2025-05-11/2025-05-12"]),
        ("the week from Monday to Friday", ["2026-11-16/2026-11-21"]),
        ("two weeks from 8 May 2025 to 9 June 2025", ["2025-05-08/2025-06-10"]),
        ("Monday before last", ["2026-11-09/2026-11-10"]),
        ("the Tuesday after next", ["2026-12-01/2026-12-02"]),
        ("two Fridays ago", ["2026-11-06/2026-11-07"]),
        ("a year ago today", ["2025-11-20/2025-11-21"]),
        ("a week ago yesterday", ["2026-11-12/2026-11-13"]),
        ("three hours ago today", ["2026-11-20/2026-11-21", "2026-11-20T11:00/2026-11-20T12:00"]),
        ("the next fortnight", ["2026-11-21/2026-12-05"]),
        ("Friday next", ["2026-11-27/2026-11-28"]),
        ("on Friday last", ["2026-11-13/2026-11-14"]),
        ("on Friday next week", ["2026-11-27/2026-11-28"]),
        ("three weeks back", ["2026-10-27/2026-11-03"]),
        ("two weeks back pay", []),
        ("the week commencing 9 November 2026", ["2026-11-09/2026-11-16"]),
        ("week ending 8 May 2026", ["2026-05-02/2026-05-09"]),
        ("CW47/2026", ["2026-11-16/2026-11-23"]),
        ("in the 2nd half of last year", ["2025-07-01/2026-01-01"]),
        ("8-May-2025", ["2025-05-08/2025-05-09"]),
        ("in Nov-2025", ["2025-11-01/2025-12-01"]),
        ("in May or June 2025", ["2025-05-01/2025-06-01", "2025-06-01/2025-07-01"]),
        ("it may or may not work", []),
        ("in the noughties", ["2000-01-01/2010-01-01"]),
    ],
)
def test_every_word_of_an_expression_counts(text: str, expected: list[str]) -> None:
    assert windows(text) == expected
