"""Phrases for dates that do not count from now: days, months, quarters, numbered weeks, years, seasons, holidays."""

from __future__ import annotations

from datetime import date, timedelta

from date_grammars.worlds import (
    MONTHS,
    NTH,
    ONE,
    Window,
    World,
    date_phrase,
    midnight,
    month_of,
    months_away,
    named_month,
    other,
    point,
    quarter_of,
    some_day,
    suffix,
    week_of,
    whole,
)


@point
def a_date(world: World) -> tuple[str, list[Window]]:
    day = some_day(world)
    return date_phrase(world, day), whole(day, day)


@point
def a_slashed_date(world: World) -> tuple[str, list[Window]]:
    day = some_day(world).replace(day=world.random.randint(13, 28))
    text = world.random.choice([f"{day.day}/{day.month}/{day.year}", f"{day.month}/{day.day}/{day.year}"])
    return text, whole(day, day)


@other
def a_slashed_date_with_two_readings(world: World) -> tuple[str, list[Window]]:
    year, first, second = world.random.randint(2005, 2030), world.random.randint(1, 6), world.random.randint(7, 12)
    days = [date(year, first, second), date(year, second, first)]
    return f"on {first}/{second}/{year}", [window for day in days for window in whole(day, day)]


@point
def a_date_without_signs(world: World) -> tuple[str, list[Window]]:
    day = some_day(world)
    return f"{day.year}{day.month:02}{day.day:02}", whole(day, day)


@point
def a_season_of_two_years(world: World) -> tuple[str, list[Window]]:
    first = world.random.randint(2012, 2035)
    text = world.random.choice([f"{first}/{(first + 1) % 100}", f"{first}/{first + 1}"])
    return text, whole(date(first, 1, 1), date(first + 1, 12, 31))


@other
def an_instant(world: World) -> tuple[str, list[Window]]:
    start = midnight(some_day(world)) + timedelta(minutes=world.random.randrange(1440))
    text = start.isoformat(sep=world.random.choice("T "), timespec="minutes")
    return f"at {text}", [(start, start + timedelta(minutes=1))]


@point
def a_month(world: World) -> tuple[str, list[Window]]:
    first, last = month_of(some_day(world))
    name = named_month(world, first.month)
    form = world.random.choice(["{name} {year}", "{name}, {year}", "{name} of {year}", "{iso}"])
    return form.format(name=name, year=first.year, iso=f"{first.year}-{first.month:02}"), whole(first, last)


@point
def a_year(world: World) -> tuple[str, list[Window]]:
    year = world.random.randint(1950, 2049)
    text = world.random.choice([f"{year}", f"the year {year}", f"FY{year}", f"fiscal year {year}"])
    return text, whole(date(year, 1, 1), date(year, 12, 31))


@point
def a_quarter(world: World) -> tuple[str, list[Window]]:
    first, last = quarter_of(some_day(world))
    number, year = (first.month - 1) // 3, first.year
    form = world.random.choice(
        [
            "Q{q} {y}",
            "{y} Q{q}",
            "{y}-Q{q}",
            "{y}Q{q}",
            "q{q} of {y}",
            "Q{q}/{y}",
            "the {nth} quarter of {y}",
            "Q{q}'{s:02}",
            "Q{q} FY{s:02}",
            "FY{y} Q{q}",
        ]
    )
    return form.format(q=number + 1, y=year, nth=NTH[number], s=year % 100), whole(first, last)


@other
def a_half_year(world: World) -> tuple[str, list[Window]]:
    year, half = world.random.randint(2005, 2035), world.random.randint(1, 2)
    form = world.random.choice(["in H{h} {y}", "in {y} H{h}", "in the {nth} half of {y}"])
    ends = (date(year, 1, 1), date(year, 6, 30)) if half == 1 else (date(year, 7, 1), date(year, 12, 31))
    return form.format(h=half, y=year, nth=NTH[half - 1]), whole(*ends)


@point
def a_numbered_week(world: World) -> tuple[str, list[Window]]:
    first, last = week_of(some_day(world))
    year, number, _ = first.isocalendar()
    form = world.random.choice(
        ["week {w} of {y}", "{y}-W{w:02}", "week {w}, {y}", "{y}W{w:02}", "W{w} {y}", "KW {w} {y}", "{y} week {w}"]
    )
    return form.format(w=number, y=year), whole(first, last)


@other
def a_day_of_a_numbered_week(world: World) -> tuple[str, list[Window]]:
    day = some_day(world)
    year, week, weekday = day.isocalendar()
    return f"on {year}-W{week:02}-{weekday}", whole(day, day)


@point
def a_season(world: World) -> tuple[str, list[Window]]:
    year = world.random.randint(2005, 2035)
    name, month = world.random.choice([("spring", 3), ("summer", 6), ("autumn", 9), ("fall", 9), ("winter", 12)])
    first = date(year, month, 1)
    text = world.random.choice([f"the {name} of {year}", f"{name} {year}"])
    return text, whole(first, months_away(first, 3) - ONE)


@point
def a_decade(world: World) -> tuple[str, list[Window]]:
    decade = world.random.choice([1950, 1960, 1970, 1980, 1990])
    name = {1950: "fifties", 1960: "sixties", 1970: "seventies", 1980: "eighties", 1990: "nineties"}[decade]
    text = world.random.choice([f"the {decade}s", f"the {decade % 100}s", f"the {name}", f"the {decade}'s"])
    return text, whole(date(decade, 1, 1), date(decade + 9, 12, 31))


@other
def a_day_without_a_year(world: World) -> tuple[str, list[Window]]:
    month, number = world.random.randint(1, 12), world.random.randint(1, 28)
    form = world.random.choice(["on {d} {m}", "on {m} {d}", "on the {n} of {m}"])
    days = [date(year, month, number) for year in world.years]
    text = form.format(d=number, m=MONTHS[month - 1], n=suffix(number))
    return text, [window for day in days for window in whole(day, day)]


@other
def a_month_without_a_year(world: World) -> tuple[str, list[Window]]:
    month = world.random.randint(1, 12)
    name = world.random.choice([MONTHS[month - 1], MONTHS[month - 1].lower()])
    return f"in {name}", [window for year in world.years for window in whole(*month_of(date(year, month, 1)))]


@other
def days_of_one_month(world: World) -> tuple[str, list[Window]]:
    day = some_day(world).replace(day=world.random.randint(1, 14))
    last = day + world.random.randint(1, 14) * ONE
    month = MONTHS[day.month - 1]
    form = world.random.choice(
        ["from {a} to {b} {m} {y}", "{m} {a}-{b}, {y}", "between {a} and {b} {m} {y}", "between {m} {a} and {b}, {y}"]
    )
    return form.format(a=day.day, b=last.day, m=month, y=day.year), whole(day, last)


@other
def a_winter_without_a_year(world: World) -> tuple[str, list[Window]]:
    years = [world.years[0] - 1, *world.years]
    starts = [date(year, 12, 1) for year in years]
    return "in the winter", [window for first in starts for window in whole(first, months_away(first, 3) - ONE)]


@other
def two_months_of_a_year(world: World) -> tuple[str, list[Window]]:
    year, first = world.random.randint(2005, 2035), world.random.randint(1, 11)
    months = [first, world.random.randint(first + 1, 12)]
    text = f"in {MONTHS[months[0] - 1]} and {MONTHS[months[1] - 1]} {year}"
    return text, [window for month in months for window in whole(*month_of(date(year, month, 1)))]


@other
def a_short_year(world: World) -> tuple[str, list[Window]]:
    year, month = world.random.randint(2005, 2035), world.random.randint(1, 12)
    return f"in {MONTHS[month - 1]} '{year % 100:02}", whole(*month_of(date(year, month, 1)))


@other
def a_second(world: World) -> tuple[str, list[Window]]:
    start = midnight(some_day(world)) + timedelta(seconds=world.random.randrange(86_400))
    return f"at {start.isoformat()}", [(start, start + timedelta(seconds=1))]


@other
def a_count(world: World) -> tuple[str, list[Window]]:
    """A number that counts what stands behind it is no year."""
    number = world.random.randint(1900, 2099)
    noun = world.random.choice(["shares", "tickets", "books", "people", "euros", "users"])
    lead = world.random.choice(["buy ", "about ", "more than ", "by ", ""])
    if world.random.random() < 0.2:
        return f"between {number} and 3000 {noun}", []
    return f"{lead}{number} {noun}", []


@other
def a_year_before_a_plural(world: World) -> tuple[str, list[Window]]:
    """A preposition of time, a determiner, or what belongs to a year makes a year of it."""
    year = world.random.randint(1950, 2049)
    text = world.random.choice(
        [f"in {year} shares", f"since {year} users", f"the {year} tickets", f"our {year} books", f"{year} results"]
    )
    start, end = whole(date(year, 1, 1), date(year, 12, 31))[0]
    return text, [(start, None if text.startswith("since") else end)]
