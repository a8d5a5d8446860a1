from datetime import date

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.pipelines.query import date_parser
from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.composed_dates import MOST_DEPTH
from astrocyte.pipelines.query.date_parser import (
    MOST_EXPRESSIONS,
    DateReader,
    find_windows,
    read_dates,
)
from astrocyte.pipelines.query.date_parts import Match
from oracles.growth import takes_less
from oracles.told_dates import SINCE_2024, windows

# A Saturday.
REFERENCE = date(2024, 6, 15)
BANK = Calendar.of(date(2023, 3, 1), REFERENCE, REFERENCE)
ONE_YEAR = Calendar.of(date(2024, 1, 5), REFERENCE, REFERENCE)


def spans(text: str, bank: Calendar = ONE_YEAR) -> list[str]:
    return [
        f"{date.fromordinal(first).isoformat()}/{date.fromordinal(last).isoformat()}"
        for first, last in find_windows(text, bank)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what happened on 2024-05-08?", "2024-05-08/2024-05-08"),
        ("in 2024-05", "2024-05-01/2024-05-31"),
        ("on 8 May 2023", "2023-05-08/2023-05-08"),
        ("on May 8th, 2023", "2023-05-08/2023-05-08"),
        ("the 9th to 11th January", "2024-01-09/2024-01-11"),
        ("March 3-5", "2024-03-03/2024-03-05"),
        ("between March 3 and April 2", "2024-03-03/2024-04-02"),
        ("from May to June 2023", "2023-05-01/2023-06-30"),
        ("in mid-March", "2024-03-11/2024-03-20"),
        ("late February", "2024-02-21/2024-02-29"),
        ("the first week of May", "2024-05-01/2024-05-07"),
        ("the last week of May", "2024-05-25/2024-05-31"),
        ("the week before 8 May", "2024-05-01/2024-05-07"),
        ("in April", "2024-04-01/2024-04-30"),
        ("in May", "2024-05-01/2024-05-31"),
        ("Q2 2023", "2023-04-01/2023-06-30"),
        ("in the third quarter", "2024-07-01/2024-09-30"),
        ("last summer", "2023-06-01/2023-08-31"),
        ("this summer", "2024-06-01/2024-08-31"),
        ("last winter", "2023-12-01/2024-02-29"),
        ("this spring", "2024-03-01/2024-05-31"),
        ("in the spring of 2023", "2023-03-01/2023-05-31"),
        ("over the winter of 2022", "2022-12-01/2023-02-28"),
        ("at Christmas", "2024-12-24/2024-12-26"),
        ("on Thanksgiving 2023", "2023-11-23/2023-11-23"),
        ("three weeks ago", "2024-05-22/2024-05-28"),
        ("over the past two weeks", "2024-06-01/2024-06-15"),
        ("last week", "2024-06-03/2024-06-09"),
        ("this month", "2024-06-01/2024-06-30"),
        ("last month", "2024-05-01/2024-05-31"),
        ("last year", "2023-01-01/2023-12-31"),
        ("two weekends ago", "2024-05-29/2024-06-04"),
        ("a week earlier", "2024-06-05/2024-06-11"),
        ("next week", "2024-06-17/2024-06-23"),
        ("next month", "2024-07-01/2024-07-31"),
        ("the coming weekend", "2024-06-22/2024-06-23"),
        ("next Saturday", "2024-06-22/2024-06-22"),
        ("this Monday", "2024-06-10/2024-06-10"),
        ("the week of May 8", "2024-05-06/2024-05-12"),
        ("the weekend of 8 May 2023", "2023-05-13/2023-05-14"),
        ("on 13/05/2023", "2023-05-13/2023-05-13"),
        ("on 05.13.2023", "2023-05-13/2023-05-13"),
        ("in early 2022", "2022-01-01/2022-04-30"),
        ("at the end of 2022", "2022-10-01/2022-12-31"),
        ("in the 1990s", "1990-01-01/1999-12-31"),
        ("in the late 1990's", "1996-01-01/1999-12-31"),
        ("last Tuesday", "2024-06-11/2024-06-11"),
        ("yesterday", "2024-06-14/2024-06-14"),
        ("the day before yesterday", "2024-06-13/2024-06-13"),
        ("in 2023", "2023-01-01/2023-12-31"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert spans(text) == [expected]


def test_a_month_without_a_year_stands_for_every_year_of_the_bank() -> None:
    assert spans("in April", BANK) == ["2023-04-01/2023-04-30", "2024-04-01/2024-04-30"]


@pytest.mark.parametrize(
    "text",
    [
        "When did Mara move in May 2023?",
        "may I ask something?",
        "May I ask something?",
        "march on",
        "the 2000 people who came",
        "what does she like?",
        "it costs $2000",
        "32 May",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert spans(text) == []


@pytest.mark.parametrize("year", [1, 2, 9998, 9999])
def test_banks_at_the_ends_of_time(year: int) -> None:
    edge = Calendar.of(date(year, 1, 1), date(year, 12, 31), date(year, 6, 1))
    for text in (
        "last winter",
        "in winter",
        "over the winter",
        "last year",
        "3 years ago",
        "999 years ago",
        "New Year",
    ):
        assert isinstance(find_windows(text, edge), list)


# What a query of the largest size may be made of, at its worst.
FRAGMENTS = st.sampled_from(
    [
        *(
            "May ",
            "in May ",
            "2024-05-08 ",
            "March ",
            "summer ",
            "the summer ",
            "between ",
            "a few ",
            "1-",
            "12 ",
            "to ",
        ),
        *("the first week of ", "two days before ", "first half of ", "early ", "last weekend of ", "monday ", "last "),
        *("of ", "and ", "3 pm ", "from ", "half a ", "week ", "2024 ", "yesterday ", "the ", "morning of ", "since "),
    ]
)


def points(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of points that were read in a text."""
    seen = 0

    class Counted(DateReader):
        def _point(self, place: int, depth: int, *, joined: bool) -> Match:
            nonlocal seen
            seen += 1
            return super()._point(place, depth, joined=joined)

    with monkeypatch.context() as patch:
        patch.setattr(date_parser, "DateReader", Counted)
        find_windows(text, BANK)
    return seen


def test_the_scan_stops_at_the_most_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    dated = " ".join(f"on 2024-05-{day:02} and" for day in range(1, 29))
    assert points(dated, monkeypatch) == MOST_EXPRESSIONS
    assert len(spans(dated)) == MOST_EXPRESSIONS
    # None of these is a month: every one is looked at, once.
    assert points("May " * 2_000, monkeypatch) == 2_000
    # Nested forms are read once at each depth, and not once for each form that begins like them.
    assert points("the week before " * 100, monkeypatch) <= 100 * (MOST_DEPTH + 2)


@given(fragments=st.lists(FRAGMENTS, min_size=1, max_size=4))
@budget(max_examples=60, deadline=None)
def test_the_longest_query_takes_milliseconds(fragments: list[str]) -> None:
    text = ("".join(fragments) * 8_192)[:8_192]
    # Some 10 ms; a time that grows with the square of the length is 700.
    assert takes_less(0.25, lambda: find_windows(text, BANK))
    assert len(find_windows(text, BANK)) <= MOST_EXPRESSIONS * len(BANK.years)


def test_day_and_month_in_either_order_are_both_meant() -> None:
    assert spans("on 5/8/2023") == ["2023-05-08/2023-05-08", "2023-08-05/2023-08-05"]
    assert spans("on 31/31/2023") == spans("what did she do about 2023 people?") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The rest of an expression is no expression of its own.
        ("the last quarter of 2024", ["2024-10-01/2025-01-01"]),
        ("the second quarter of last year", ["2025-04-01/2025-07-01"]),
        ("the summer of last year", ["2025-06-01/2025-09-01"]),
        ("Monday of last week", ["2026-11-09/2026-11-10"]),
        ("the last week of school", []),
        ("the month before last May", ["2026-04-01/2026-05-01"]),
        ("two weeks ago on Monday", ["2026-11-09/2026-11-10"]),
        ("1.5 years ago", ["2025-04-20/2025-06-21"]),
        ("2.5 weeks ago", ["2026-10-30/2026-11-06"]),
        ("2 1/2 weeks ago", ["2026-10-30/2026-11-06"]),
        ("version 1.5 years", []),
        # A weekday beside a date says which of its years is meant, and nothing else.
        ("on Thursday, 8 May", ["2025-05-08/2025-05-09"]),
        ("on Monday, 8 May 2025", ["2025-05-08/2025-05-09"]),
        # What a question about the future means by a weekday or a date without a year.
        ("what will we do on Monday?", ["2026-11-23/2026-11-24"]),
        ("what did we do on Monday?", ["2026-11-16/2026-11-17"]),
        ("what is due by 8 May?", ["/2027-05-09"]),
        ("what was finished by 8 May?", ["/2026-05-09"]),
        # Beside another date, vague words count from that one.
        ("what had he recently bought in May 2025?", ["2025-05-01/2025-06-01"]),
        ("in May 2025, and at the end of the month", ["2025-05-01/2025-06-01", "2025-05-21/2025-06-01"]),
        # Directions count from the exact date, not from how far around it was meant.
        ("since three weeks ago", ["2026-10-30/"]),
        ("before the end of May", ["/2026-06-01"]),
        ("since this morning", ["2026-11-20T05:00/"]),
        ("since 9 am", ["2026-11-20T09:00/"]),
        ("since 4 pm", ["2026-11-19T16:00/"]),
        # A clock time that is named first stays within its day, on its side.
        ("after 3 pm yesterday", ["2026-11-19T15:00/2026-11-20"]),
        ("after yesterday at 3 pm", ["2026-11-19T15:00/"]),
        ("from Monday to Wednesday", ["2026-11-16/2026-11-19"]),
        ("from November 2025 to February", ["2025-11-01/2026-03-01"]),
        ("between Christmas and New Year 2024", ["2023-12-24/2024-01-03"]),
        ("on 2025-05-08T23:30:00-02:00", ["2025-05-09T01:30/2025-05-09T01:30"]),
    ],
)
def test_what_expressions_mean_together(text: str, expected: list[str]) -> None:
    assert windows(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("meetings in two weeks", ["2026-12-01/2026-12-08"]),
        ("what is planned in two weeks and who comes?", []),
        ("who called in two weeks?", []),
        ("what can I learn in two weeks?", []),
        ("what is due within 3 days?", ["2026-11-20/2026-11-24"]),
        ("what must be done within three days and by whom?", ["2026-11-20/2026-11-24"]),
        ("who called within 3 days?", ["2026-11-17/2026-11-21"]),
        ("what was said within 2 hours?", ["2026-11-20T12:30/2026-11-20T14:30"]),
        ("notes within 3 days", ["2026-11-17/2026-11-24"]),
        ("within three days he had learned it", []),
        ("within 3 days of Christmas 2025", ["2025-12-21/2025-12-30"]),
        ("within an hour of 3 pm on 8 May 2025", ["2025-05-08T14:00/2025-05-08T16:00"]),
        ("within 3 days of moving", []),
        ("sales year to date", ["2026-01-01/2026-11-21"]),
        ("year-to-date sales", ["2026-01-01/2026-11-21"]),
        ("MTD", ["2026-11-01/2026-11-21"]),
        ("quarter to date", ["2026-10-01/2026-11-21"]),
        ("from May 2025 to date", ["2025-05-01/2026-11-21"]),
        ("is the report up to date?", []),
        # Where a season or a fiscal year begins is not known.
        ("in the 2024/25 season", ["2024-01-01/2026-01-01"]),
        ("in 2024/2025", ["2024-01-01/2026-01-01"]),
        ("in the 2010/11 season", ["2010-01-01/2012-01-01"]),
        ("in 2010/11", ["2010-11-01/2010-12-01"]),
        ("2024/50", []),
        ("on 20250304", ["2025-03-04/2025-03-05"]),
        ("20250304-20250306", ["2025-03-04/2025-03-07"]),
        ("order 20250304", []),
        ("20251304", []),
        ("#20250304", []),
    ],
)
def test_lengths_to_date_and_years_in_pairs(text: str, expected: list[str]) -> None:
    assert windows(text) == expected
    assert read_dates(text, SINCE_2024).problems == ()
    assert date_parser.may_name_time(text) or not expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("on 30 February", "30 February is no date of the calendar"),
        ("February 30, 2025", "30 February 2025 is no date of the calendar"),
        ("on the 31st of april 2025", "31 April 2025 is no date of the calendar"),
        ("2025-02-29", "2025-02-29 is no date of the calendar"),
        ("on 31/11/2025", "31/11/2025 is no date of the calendar"),
        ("2025-13-01", "2025-13-01 is no date of the calendar"),
        ("in week 53 of 2025", "week 53 of 2025 is no date of the calendar"),
        ("between 30 February 2025 and May 2025", "30 February 2025 is no date of the calendar"),
    ],
)
def test_a_date_that_no_calendar_has_names_no_time_and_says_so(text: str, problem: str) -> None:
    reading = read_dates(text, SINCE_2024)
    assert (reading.spans, reading.problems) == ((), (problem,))


def test_a_leap_day_stands_for_the_years_that_have_it() -> None:
    assert windows("on 29 February") == ["2024-02-29/2024-03-01"]
    assert read_dates("on 29 February", SINCE_2024).problems == ()


@pytest.mark.parametrize("text", ["999 years ago", "in the past 999 years", "999 decades ago", "the next 999 decades"])
def test_times_beyond_the_calendar_name_nothing(text: str) -> None:
    assert all(start < end for start, end in read_dates(text, SINCE_2024).spans)
