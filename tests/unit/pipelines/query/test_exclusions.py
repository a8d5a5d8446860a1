"""Parts of a time that a question leaves out, and fiscal years."""

import pytest

from astrocyte.pipelines.query.date_parser import may_name_time, read_dates, without
from oracles.told_dates import SINCE_2024, windows

WITHOUT_MAY = ["2025-01-01/2025-05-01", "2025-06-01/2026-01-01"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did I do in 2025 but not in May?", WITHOUT_MAY),
        ("in 2025 but not May", WITHOUT_MAY),
        ("in 2025, not in May", WITHOUT_MAY),
        ("in 2025 (not in May)", WITHOUT_MAY),
        ("notes of 2025 except May", WITHOUT_MAY),
        ("in 2025 except for May", WITHOUT_MAY),
        ("in 2025, excluding the month of May", WITHOUT_MAY),
        ("in 2025 apart from May", WITHOUT_MAY),
        ("in 2025 aside from in May", WITHOUT_MAY),
        ("in 2025 other than May", WITHOUT_MAY),
        ("in 2025 outside of May", WITHOUT_MAY),
        ("except for May, what did I do in 2025?", WITHOUT_MAY),
        ("in 2025 except May and July", [WITHOUT_MAY[0], "2025-06-01/2025-07-01", "2025-08-01/2026-01-01"]),
        ("all of 2024 without December", ["2024-01-01/2024-12-01"]),
        ("this year other than July", ["2026-01-01/2026-07-01", "2026-08-01/2027-01-01"]),
        ("what did I do in 2025 excluding summer?", ["2025-01-01/2025-06-01", "2025-09-01/2026-01-01"]),
        ("in May but not in 2024", ["2025-05-01/2025-06-01", "2026-05-01/2026-06-01"]),
        ("in 2024 except March and in 2025",
         ["2024-01-01/2024-03-01", "2024-04-01/2025-01-01", "2025-01-01/2026-01-01"]),
        ("between March and June 2025 but not in April", ["2025-03-01/2025-04-01", "2025-05-01/2025-07-01"]),
        ("since 2023 but not in 2024", ["2023-01-01/2024-01-01", "2025-01-01/"]),
        ("in 2025 except before June", ["2025-06-01/2026-01-01"]),
        ("in November 2025 but not on Thanksgiving", ["2025-11-01/2025-11-27", "2025-11-28/2025-12-01"]),
        # A weekday is that of the week beside it, and a number of a day one of the month.
        ("last week except Wednesday", ["2026-11-09/2026-11-11", "2026-11-12/2026-11-16"]),
        ("this week but not on Monday", ["2026-11-17/2026-11-23"]),
        ("in May 2025 apart from the 9th", ["2025-05-01/2025-05-09", "2025-05-10/2025-06-01"]),
        ("in March 2025, but not on the 5th", ["2025-03-01/2025-03-05", "2025-03-06/2025-04-01"]),
        # Nothing is left out of another time.
        ("in 2025 but not in 2024", ["2025-01-01/2026-01-01"]),
        ("not in May but in June 2025", ["2025-06-01/2025-07-01"]),
        ("in 2025 but not in 2025", []),
        # Of all time.
        ("everything except May 2025", ["/2025-05-01", "2025-06-01/"]),
        ("what was done outside of 2025?", ["/2025-01-01", "2026-01-01/"]),
        # Neither of these leaves a time out.
        ("was it not in May 2025?", ["2025-05-01/2025-06-01"]),
        ("in 2025, what did we do without Ann in June 2025?", ["2025-01-01/2026-01-01", "2025-06-01/2025-07-01"]),
        ("in 2025 but not before June", ["2025-06-01/2026-01-01"]),
        ("someone other than May Chen in 2025", ["2025-01-01/2026-01-01"]),
    ],
)  # fmt: skip
def test_what_is_left_out_of_a_time(text: str, expected: list[str]) -> None:
    assert windows(text) == expected
    assert may_name_time(text)


def test_the_words_of_a_date_that_is_left_out_are_not_searched_for() -> None:
    text = "which walks in 2025 but not in May?"
    assert without(text, read_dates(text, SINCE_2024).excluded) == "which walks in 2025 but not in  ?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the budget of FY2024", ["2024-01-01/2025-01-01"]),
        ("the budget of FY 2024", ["2024-01-01/2025-01-01"]),
        ("fy24 budget", ["2024-01-01/2025-01-01"]),
        ("since FY24", ["2024-01-01/"]),
        ("before FY2025", ["/2025-01-01"]),
        ("after fiscal 2024", ["2025-01-01/"]),
        ("in fiscal year 2024", ["2024-01-01/2025-01-01"]),
        ("Q3 FY2024", ["2024-07-01/2024-10-01"]),
        ("FY24 Q2", ["2024-04-01/2024-07-01"]),
        ("Q3 of the 2025 fiscal year", ["2025-07-01/2025-10-01"]),
        ("Q3 of last fiscal year", ["2025-07-01/2025-10-01"]),
        ("between FY2022 and FY2024", ["2022-01-01/2025-01-01"]),
        ("FY2024/25", ["2024-01-01/2026-01-01"]),
        ("FY24-25", ["2024-01-01/2026-01-01"]),
        ("last fiscal year's sales", ["2025-01-01/2026-01-01"]),
        ("next financial year", ["2027-01-01/2028-01-01"]),
        ("the first half of FY25", ["2025-01-01/2025-07-01"]),
        ("at the end of the fiscal year", ["2026-10-01/2027-01-01"]),
        ("the financial crisis", []),
        ("flight XFY2024", []),
    ],
)
def test_fiscal_years_count_as_the_year_of_their_number(text: str, expected: list[str]) -> None:
    assert windows(text) == expected
