"""Phrases for parts of dates, for what is so long before or after them, and for times of day."""

from __future__ import annotations

from datetime import date, timedelta

from date_grammars.worlds import (
    DAYS,
    MONTHS,
    NTH,
    ONE,
    Window,
    World,
    date_phrase,
    going,
    midnight,
    month_of,
    other,
    quarter_of,
    some_day,
    spell,
    stepped,
    week_of,
    whole,
)


@other
def a_weekday_of_a_week(world: World) -> tuple[str, list[Window]]:
    weekday, (which, steps) = world.random.randrange(7), world.random.choice([("last", -1), ("next", 1), ("this", 0)])
    first, _ = stepped("week", world.today, steps)
    day = first + weekday * ONE
    form = world.random.choice(["on {d} of {w} week", "{d} {w} week", "{w} week on {d}", "{w} week's {d}"])
    return form.format(d=DAYS[weekday], w=which), whole(day, day)


@other
def a_week_of_a_month(world: World) -> tuple[str, list[Window]]:
    first, last = month_of(some_day(world))
    number = world.random.randrange(4)
    name = f"{MONTHS[first.month - 1]} {first.year}"
    if world.random.random() < 0.2:
        return f"in the last week of {name}", whole(last - 6 * ONE, last)
    begin = first + 7 * number * ONE
    return f"in the {NTH[number]} week of {name}", whole(begin, begin + 6 * ONE)


@other
def a_weekday_of_a_month(world: World) -> tuple[str, list[Window]]:
    first, last = month_of(some_day(world))
    weekday, number = world.random.randrange(7), world.random.randrange(4)
    name = f"{MONTHS[first.month - 1]} {first.year}"
    if world.random.random() < 0.3:
        day = going(last + ONE, weekday, -1)
        return f"on the last {DAYS[weekday]} of {name}", whole(day, day)
    day = first - ONE
    for _ in range(number + 1):
        day = going(day, weekday, 1)
    return f"on the {NTH[number]} {DAYS[weekday]} in {name}", whole(day, day)


@other
def the_ends_of_a_month(world: World) -> tuple[str, list[Window]]:
    first, last = month_of(some_day(world))
    count, name = world.random.randint(2, 10), f"{MONTHS[first.month - 1]} {first.year}"
    return world.random.choice(
        [
            (f"in the first {spell(world, count)} days of {name}", whole(first, first + (count - 1) * ONE)),
            (f"in the last {spell(world, count)} days of {name}", whole(last - (count - 1) * ONE, last)),
            (f"on the last day of {name}", whole(last, last)),
            (f"early {name}", whole(first, first + 9 * ONE)),
            (f"mid-{name}", whole(first + 10 * ONE, first + 19 * ONE)),
            (f"in late {name}", whole(first + 20 * ONE, last)),
            (f"at the end of {name}", whole(first + 20 * ONE, last)),
        ]
    )


@other
def the_ends_of_a_year(world: World) -> tuple[str, list[Window]]:
    year = world.random.choice([world.today.year - 1, world.today.year + 1, 2011])
    name = {world.today.year - 1: "last year", world.today.year + 1: "next year"}.get(year, str(year))
    return world.random.choice(
        [
            (f"early {name}", whole(date(year, 1, 1), date(year, 4, 30))),
            (f"late {name}", whole(date(year, 9, 1), date(year, 12, 31))),
            (f"at the beginning of {name}", whole(date(year, 1, 1), date(year, 3, 31))),
            (f"at the end of {name}", whole(date(year, 10, 1), date(year, 12, 31))),
            (f"in the last month of {name}", whole(date(year, 12, 1), date(year, 12, 31))),
            (f"in the first three months of {name}", whole(date(year, 1, 1), date(year, 3, 31))),
            (f"in the last quarter of {name}", whole(date(year, 10, 1), date(year, 12, 31))),
        ]
    )


@other
def beside_a_date(world: World) -> tuple[str, list[Window]]:
    day, count = some_day(world), world.random.randint(2, 12)
    name = date_phrase(world, day)
    return world.random.choice(
        [
            (f"the week before {name}", whole(day - 7 * ONE, day - ONE)),
            (f"the week after {name}", whole(day + ONE, day + 7 * ONE)),
            (f"the day before {name}", whole(day - ONE, day - ONE)),
            (f"the day after {name}", whole(day + ONE, day + ONE)),
            (f"{spell(world, count)} days before {name}", whole(day - count * ONE, day - count * ONE)),
            (f"{spell(world, count)} days after {name}", whole(day + count * ONE, day + count * ONE)),
            (f"the {spell(world, count)} weeks before {name}", whole(day - 7 * count * ONE, day - ONE)),
            (f"the week of {name}", whole(*week_of(day))),
            (f"the weekend of {name}", whole(week_of(day)[1] - ONE, week_of(day)[1])),
        ]
    )


@other
def not_far_from_a_date(world: World) -> tuple[str, list[Window]]:
    day, count = some_day(world), world.random.randint(2, 12)
    name, unit = date_phrase(world, day), world.random.choice(["days", "weeks"])
    away = count * (7 if unit == "weeks" else 1) * ONE
    side, first, last = world.random.choice(
        [("of", day - away, day + away), ("before", day - away, day - ONE), ("after", day + ONE, day + away)]
    )
    return f"within {spell(world, count)} {unit} {side} {name}", whole(first, last)


@other
def the_nearest_weekday_to_a_date(world: World) -> tuple[str, list[Window]]:
    day, weekday = some_day(world), world.random.randrange(7)
    text, step = world.random.choice([("the last {} before", -1), ("the first {} after", 1)])
    found = going(day, weekday, step)
    return f"on {text.format(DAYS[weekday])} {date_phrase(world, day)}", whole(found, found)


@other
def the_nearest_weekend_to_a_date(world: World) -> tuple[str, list[Window]]:
    day = some_day(world)
    if world.random.random() < 0.5:
        saturday = going(day, 5, 1)
        return f"on the weekend after {date_phrase(world, day)}", whole(saturday, saturday + ONE)
    sunday = going(day, 6, -1)
    return f"on the weekend before {date_phrase(world, day)}", whole(sunday - ONE, sunday)


@other
def two_weeks_of_a_month(world: World) -> tuple[str, list[Window]]:
    first, _ = month_of(some_day(world))
    begins = [first, first + 14 * ONE]
    text = f"in the first and third weeks of {MONTHS[first.month - 1]} {first.year}"
    return text, [window for begin in begins for window in whole(begin, begin + 6 * ONE)]


@other
def a_part_of_a_week(world: World) -> tuple[str, list[Window]]:
    which, steps = world.random.choice([("last", -1), ("next", 1), ("this", 0)])
    part, (first, last) = world.random.choice([("early", (0, 1)), ("late", (4, 6))])
    monday, _ = stepped("week", world.today, steps)
    return f"{part} {which} week", whole(monday + first * ONE, monday + last * ONE)


@other
def a_month_of_a_quarter(world: World) -> tuple[str, list[Window]]:
    first, last = quarter_of(some_day(world))
    name = f"Q{(first.month - 1) // 3 + 1} {first.year}"
    text, day = world.random.choice([("early in", first), ("at the start of", first), ("at the end of", last)])
    return f"{text} {name}", whole(*month_of(day))


@other
def the_end_of_the_unit(world: World) -> tuple[str, list[Window]]:
    first, last = month_of(world.today)
    return "at the end of the month", whole(first + 20 * ONE, last)


PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (18, 29)}


def within(day: date, first: float, last: float) -> list[Window]:
    return [(midnight(day) + timedelta(hours=first), midnight(day) + timedelta(hours=last))]


@other
def parts_of_days(world: World) -> tuple[str, list[Window]]:
    part = world.random.choice(list(PARTS))
    day = some_day(world)
    yesterday = world.today - ONE
    return world.random.choice(
        [
            (f"yesterday {part}", within(yesterday, *PARTS[part])),
            (f"tomorrow {part}", within(world.today + ONE, *PARTS[part])),
            (f"on the {part} of {date_phrase(world, day)}", within(day, *PARTS[part])),
            (f"on {date_phrase(world, day)} in the {part}", within(day, *PARTS[part])),
            ("last night", within(yesterday, *PARTS["night"])),
            ("this morning", within(world.today, *PARTS["morning"])),
            ("tonight", within(world.today, *PARTS["night"])),
        ]
    )


@other
def clock_times(world: World) -> tuple[str, list[Window]]:
    name, day = world.random.choice([("yesterday", world.today - ONE), ("", some_day(world))])
    name = name or date_phrase(world, day)
    hour, minute = world.random.randint(1, 11), world.random.randint(10, 59)
    half = world.random.choice(["am", "pm"])
    at = hour + (12 if half == "pm" else 0)
    exact = at + minute / 60
    return world.random.choice(
        [
            (f"{name} at {hour}{half}", within(day, at, at + 1)),
            (f"{name} at {hour} {half[0]}.m.", within(day, at, at + 1)),
            (f"at {hour} {half} on {name}", within(day, at, at + 1)),
            (f"{name} at {at}:{minute}", within(day, exact, exact + 1 / 60)),
            (f"{name} at noon", within(day, 12, 13)),
            (f"{name} after {hour}{half}", within(day, at, 24)),
            (f"after {hour}{half} on {name}", within(day, at, 24)),
            (f"{name} before {at}:{minute}", within(day, 0, exact)),
            (f"{name} between {hour} and {hour + 1} pm", within(day, hour + 12, (hour + 1) % 12 + 12))
            if hour < 11
            else (f"{name} at midday", within(day, 12, 13)),
            (f"from {hour}:00 to {at}:30 on {name}", within(day, hour, at + 0.5)),
        ]
    )
