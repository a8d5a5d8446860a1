"""Phrases for holidays, and for what belongs to a year that stands before it."""

from __future__ import annotations

from datetime import date

from date_grammars.worlds import (
    MONTHS,
    ONE,
    Window,
    World,
    going,
    month_of,
    months_away,
    other,
    point,
    quarter_of,
    whole,
)

# Easter Sundays as they were, and will be, celebrated: month and day by year.
EASTER = {
    2005: (3, 27),
    2006: (4, 16),
    2007: (4, 8),
    2008: (3, 23),
    2009: (4, 12),
    2010: (4, 4),
    2011: (4, 24),
    2012: (4, 8),
    2013: (3, 31),
    2014: (4, 20),
    2015: (4, 5),
    2016: (3, 27),
    2017: (4, 16),
    2018: (4, 1),
    2019: (4, 21),
    2020: (4, 12),
    2021: (4, 4),
    2022: (4, 17),
    2023: (4, 9),
    2024: (3, 31),
    2025: (4, 20),
    2026: (4, 5),
    2027: (3, 28),
    2028: (4, 16),
    2029: (4, 1),
    2030: (4, 21),
    2031: (4, 13),
    2032: (3, 28),
    2033: (4, 17),
    2034: (4, 9),
    2035: (3, 25),
}


def nth_of(day: date, weekday: int, number: int) -> date:
    """The nth such weekday from a day on."""
    day -= ONE
    for _ in range(number):
        day = going(day, weekday, 1)
    return day


def holidays(year: int) -> list[tuple[str, date, date]]:
    """Names, first and last days."""
    easter, thursday = date(year, *EASTER[year]), nth_of(date(year, 11, 1), 3, 4)
    labor_day = nth_of(date(year, 9, 1), 0, 1)
    single = [
        ("Halloween", date(year, 10, 31)),
        ("Valentine's Day", date(year, 2, 14)),
        ("New Year's Eve", date(year, 12, 31)),
        ("New Year's Day", date(year, 1, 1)),
        ("Boxing Day", date(year, 12, 26)),
        ("Independence Day", date(year, 7, 4)),
        ("St. Patrick's Day", date(year, 3, 17)),
        ("Veterans Day", date(year, 11, 11)),
        ("Good Friday", easter - 2 * ONE),
        ("Easter Sunday", easter),
        ("Easter Monday", easter + ONE),
        ("Ash Wednesday", going(easter - 42 * ONE, 2, -1)),
        ("Pentecost", easter + 49 * ONE),
        ("Martin Luther King Jr. Day", nth_of(date(year, 1, 1), 0, 3)),
        ("Presidents' Day", nth_of(date(year, 2, 1), 0, 3)),
        ("Mother's Day", nth_of(date(year, 5, 1), 6, 2)),
        ("Memorial Day", going(date(year, 6, 1), 0, -1)),
        ("Father's Day", nth_of(date(year, 6, 1), 6, 3)),
        ("labor day", labor_day),
        ("Columbus Day", nth_of(date(year, 10, 1), 0, 2)),
        ("Election Day", nth_of(date(year, 11, 1), 0, 1) + ONE),
        ("Thanksgiving", thursday),
        ("Black Friday", thursday + ONE),
    ]
    return [
        *[(name, day, day) for name, day in single],
        ("Christmas", date(year, 12, 24), date(year, 12, 26)),
        ("Easter", easter - 2 * ONE, easter + ONE),
        ("Labor Day weekend", labor_day - 2 * ONE, labor_day),
        ("Thanksgiving weekend", thursday, thursday + 3 * ONE),
    ]


@point
def a_holiday(world: World) -> tuple[str, list[Window]]:
    year = world.random.randint(2005, 2035)
    name, first, last = world.random.choice(holidays(year))
    return f"{name} {year}", whole(first, last)


@other
def a_holiday_without_a_year(world: World) -> tuple[str, list[Window]]:
    number = world.random.randrange(len(holidays(2020)))
    found = [holidays(year)[number] for year in world.years]
    return f"on {found[0][0]}", [window for _, first, last in found for window in whole(first, last)]


@point
def what_a_year_has(world: World) -> tuple[str, list[Window]]:
    """A quarter, season, month or holiday behind the possessive of its year."""
    year = world.random.choice([world.today.year - 1, world.today.year + 1, 2011])
    name = {world.today.year - 1: "last year's", world.today.year + 1: "next year's"}.get(year, f"{year}'s")
    month = world.random.randint(1, 12)
    first, last = quarter_of(date(year, month, 1))
    season, begin = world.random.choice([("spring", 3), ("summer", 6), ("autumn", 9), ("fall", 9), ("winter", 12)])
    start = date(year, begin, 1)
    feast, one, two = world.random.choice(holidays(year))
    return world.random.choice(
        [
            (f"{name} Q{(first.month + 2) // 3}", whole(first, last)),
            (f"{name} {season}", whole(start, months_away(start, 3) - ONE)),
            (f"{name} {MONTHS[month - 1]}", whole(*month_of(date(year, month, 1)))),
            (f"{name} {feast}", whole(one, two)),
        ]
    )


@other
def between_holidays(world: World) -> tuple[str, list[Window]]:
    """A range of two holidays of one year."""
    year = world.random.randint(2005, 2035)
    text = world.random.choice(["from Easter to Christmas {}", "between Easter and Christmas {}"])
    return text.format(year), whole(date(year, *EASTER[year]) - 2 * ONE, date(year, 12, 26))
