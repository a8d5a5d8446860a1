"""Holidays by name, and what belongs to a year that stands before it."""

import calendar

import pytest

from astrocyte.pipelines.query.date_parser import may_name_time, read_dates
from astrocyte.pipelines.query.holidays import NAMES, easter_sunday
from oracles.told_dates import SINCE_2024, windows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on Boxing Day 2025", ["2025-12-26/2025-12-27"]),
        ("labor day 2025", ["2025-09-01/2025-09-02"]),
        ("Labour Day 2025", ["2025-09-01/2025-09-02"]),
        ("over the labour day weekend 2025", ["2025-08-30/2025-09-02"]),
        ("last Labour Day", ["2026-09-07/2026-09-08"]),
        ("over the Memorial Day weekend 2025", ["2025-05-24/2025-05-27"]),
        ("Christmas weekend 2024", ["2024-12-21/2024-12-27"]),
        ("Mothers' Day last year", ["2025-05-11/2025-05-12"]),
        ("last Good Friday", ["2026-04-03/2026-04-04"]),
        ("next Easter", ["2027-03-26/2027-03-30"]),
        ("the fourth of July 2025", ["2025-07-04/2025-07-05"]),
        ("on Black Friday 2025", ["2025-11-28/2025-11-29"]),
        ("in 2025's summer", ["2025-06-01/2025-09-01"]),
        ("the end of 2025's summer", ["2025-08-01/2025-09-01"]),
        ("in 2025 summer", ["2025-06-01/2025-09-01"]),
        ("last year's Q4", ["2025-10-01/2026-01-01"]),
        ("last year\u2019s May", ["2025-05-01/2025-06-01"]),
        ("before this year's Thanksgiving", ["/2026-11-26"]),
        ("between Easter and Christmas 2025", ["2025-04-18/2025-12-27"]),
        # Days of which no rule is known count as their year.
        ("at Diwali 2025", ["2025-01-01/2026-01-01"]),
        ("on Chinese New Year 2025", ["2025-01-01/2026-01-01"]),
        ("last year's budget", ["2025-01-01/2026-01-01"]),
        ("the easter egg of 2025", ["2025-01-01/2026-01-01"]),
    ],
)
def test_holidays_and_what_belongs_to_a_year(text: str, expected: list[str]) -> None:
    assert windows(text) == expected
    assert may_name_time(text)


@pytest.mark.parametrize("name", list(NAMES.values()))
def test_every_holiday_is_found_by_its_name(name: str) -> None:
    reading = read_dates(f"on {name}", SINCE_2024)
    assert len(reading.spans) == len(SINCE_2024.years)
    assert reading.places == ((3, 3 + len(name)),)
    assert may_name_time(name)


def test_easter_is_the_first_sunday_after_the_first_full_moon_of_spring() -> None:
    known = {1583: (4, 10), 1818: (3, 22), 1943: (4, 25), 1954: (4, 18), 1981: (4, 19), 2000: (4, 23), 2038: (4, 25)}
    assert {year: (easter_sunday(year).month, easter_sunday(year).day) for year in known} == known
    assert all(easter_sunday(year).weekday() == calendar.SUNDAY for year in range(1583, 4100))
