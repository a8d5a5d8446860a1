import re
from dataclasses import replace
from datetime import date
from time import process_time

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.pipelines.query import date_parser, date_rules
from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import MOST_EXPRESSIONS, find_windows
from astrocyte.pipelines.query.date_rules import Resolver, Window

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
    ["May ", "in May ", "2024-05-08 ", "March ", "summer ", "the summer ", "between ", "a few ", "1-", "12 ", "to "]
)


def looks(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many matches of the rules were looked at."""
    seen = 0

    def counted(resolve: Resolver) -> Resolver:
        def resolved(match: re.Match[str], bank: Calendar) -> list[Window]:
            nonlocal seen
            seen += 1
            return resolve(match, bank)

        return resolved

    monkeypatch.setattr(
        date_parser, "RULES", tuple(replace(rule, resolve=counted(rule.resolve)) for rule in date_rules.RULES)
    )
    find_windows(text, BANK)
    monkeypatch.undo()
    return seen


def test_the_scan_stops_at_the_most_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    dated = " ".join(f"on 2024-05-{day:02} and" for day in range(1, 29))
    assert looks(dated, monkeypatch) == MOST_EXPRESSIONS
    assert len(spans(dated)) == MOST_EXPRESSIONS
    # None of these is a month: every one is looked at, once.
    assert looks("May " * 2_000, monkeypatch) == 2_000


@given(fragments=st.lists(FRAGMENTS, min_size=1, max_size=4))
@budget(max_examples=30, deadline=None)
def test_the_longest_query_takes_milliseconds(fragments: list[str]) -> None:
    text = ("".join(fragments) * 8_192)[:8_192]
    begin = process_time()
    windows = find_windows(text, BANK)
    # Some 10 ms; what grows with the square of the length takes 700.
    assert process_time() - begin < 0.25
    assert len(windows) <= MOST_EXPRESSIONS * len(BANK.years)


def test_day_and_month_in_either_order_are_both_meant() -> None:
    assert spans("on 5/8/2023") == ["2023-05-08/2023-05-08", "2023-08-05/2023-08-05"]
    assert spans("on 31/31/2023") == spans("what did she do about 2023 people?") == []
