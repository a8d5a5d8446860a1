"""Relative dates of quoted sentences."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.reflect.spoken_dates import names_day, with_dates

# A Monday.
MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "dates"),
    [
        ("yesterday", "7 May 2023"),
        ("Yesterday evening", "7 May 2023"),
        ("last night", "7 May 2023"),
        ("the day before yesterday", "6 May 2023"),
        ("The day after tomorrow", "10 May 2023"),
        ("today", "8 May 2023"),
        ("this morning", "8 May 2023"),
        ("tomorrow", "9 May 2023"),
        ("three days ago", "5 May 2023"),
        ("two weeks ago", "about 24 April 2023"),
        ("a fortnight ago", "about 24 April 2023"),
        ("two nights ago", "6 May 2023"),
        ("a month ago", "about April 2023"),
        ("10 years ago", "about 2013"),
        ("last week", "1 to 7 May 2023"),
        ("last weekend", "6 to 7 May 2023"),
        ("last Fri", "5 May 2023"),
        ("this past Saturday", "6 May 2023"),
        ("this month", "May 2023"),
        ("next month", "June 2023"),
        ("last October", "October 2022"),
        ("last summer", "June to August 2022"),
        ("last winter", "December 2022 to February 2023"),
        ("last year", "2022"),
    ],
)
def test_a_date_follows_its_expression(said: str, dates: str) -> None:
    assert with_dates(f"It was {said}, I think.", MAY) == f"It was {said} ({dates}), I think."


@pytest.mark.parametrize(
    "text",
    [
        "I went in March.",
        "The next day it rained.",
        "It was the last week of May.",
        "This weekend I rest.",
        "We meet next Friday.",
        "A few days ago it rained.",
        "At last we won.",
        "A week from today it ends.",
        "It was a year ago today.",
        "A week last Tuesday it rained.",
        "It was last Thursday week.",
        "It was the week before last.",
    ],
)
def test_what_does_not_count_from_the_day_or_not_exactly_stays(text: str) -> None:
    assert with_dates(text, MAY) == text


def test_a_week_may_cross_months_and_years() -> None:
    assert with_dates("last week", datetime(2023, 6, 5, tzinfo=UTC)) == "last week (29 May 2023 to 4 June 2023)"
    assert with_dates("last week", datetime(2024, 1, 8, tzinfo=UTC)) == "last week (1 to 7 January 2024)"


def test_the_day_itself_is_left_out_where_it_is_shown() -> None:
    text = "Today I ran, yesterday I slept."
    assert with_dates(text, MAY, day_is_shown=True) == "Today I ran, yesterday (7 May 2023) I slept."


def test_a_date_follows_the_possessive() -> None:
    assert with_dates("yesterday\u2019s run", MAY) == "yesterday\u2019s (7 May 2023) run"
    assert with_dates("last year's run", MAY) == "last year's (2022) run"


@pytest.mark.parametrize("before", ["all day", "one night", "every week"])
def test_words_before_a_day_that_do_not_move_it(before: str) -> None:
    assert with_dates(f"It rained {before} yesterday.", MAY) == f"It rained {before} yesterday (7 May 2023)."
    assert with_dates("I had a week last year.", MAY) == "I had a week last year (2022)."


def test_days_are_those_of_utc() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    assert with_dates("today", late) == "today (9 May 2023)"


@pytest.mark.parametrize("year", [1, 999, 9001, 9999])
def test_years_without_room_for_arithmetic_stay(year: int) -> None:
    text = "99 years ago, last week, yesterday, tomorrow"
    assert with_dates(text, datetime(year, 1, 1, tzinfo=UTC)) == text
    assert with_dates(text, datetime(year, 12, 31, tzinfo=UTC)) == text


def test_without_a_time_nothing_is_added() -> None:
    assert with_dates("yesterday", None) == "yesterday"


@given(st.text(max_size=100), st.datetimes(timezones=st.just(UTC)))
def test_nothing_is_taken_from_a_text(text: str, said: datetime) -> None:
    assert len(with_dates(text, said)) >= len(text)


@pytest.mark.parametrize(
    "day", ["12 May", "the 3rd of December", "May 12th", "Dec. 3", "2026-05-12", "12/5/2026", "3 sept"]
)
def test_a_day_of_the_calendar_is_found(day: str) -> None:
    assert names_day(f"It is on {day}, I think.")


@pytest.mark.parametrize("text", ["I may 3 times.", "In May 2023 we met.", "Version 1.2.3.", "12 maybe.", "Tomorrow."])
def test_other_times_and_numbers_are_no_days_of_the_calendar(text: str) -> None:
    assert not names_day(text)
