"""Phrases for dates that count from now."""

from __future__ import annotations

from datetime import date, timedelta

from date_grammars.worlds import (
    DAYS,
    MONTHS,
    ONE,
    UNITS,
    Window,
    World,
    going,
    midnight,
    month_of,
    months_away,
    other,
    point,
    spell,
    stepped,
    suffix,
    week_of,
    whole,
)


@other
def near_days(world: World) -> tuple[str, list[Window]]:
    text, ahead = world.random.choice(
        [
            *(("today", 0), ("yesterday", -1), ("tomorrow", 1)),
            *(("the day before yesterday", -2), ("the day after tomorrow", 2)),
        ]
    )
    day = world.today + ahead * ONE
    return text, whole(day, day)


@point
def past_and_coming_units(world: World) -> tuple[str, list[Window]]:
    unit = world.random.choice(list(UNITS))
    which, steps = world.random.choice([("last", -1), ("previous", -1), ("this", 0), ("next", 1)])
    return f"{which} {unit}", whole(*stepped(unit, world.today, steps))


@other
def units_beyond_the_nearest(world: World) -> tuple[str, list[Window]]:
    unit = world.random.choice(list(UNITS))
    text, steps = world.random.choice([("before last", -2), ("after next", 2)])
    return f"the {unit} {text}", whole(*stepped(unit, world.today, steps))


@other
def weekends(world: World) -> tuple[str, list[Window]]:
    text, steps = world.random.choice(
        [("last weekend", -1), ("this weekend", 0), ("next weekend", 1), ("the weekend before last", -2)]
    )
    _, last = stepped("week", world.today, steps)
    return text, whole(last - ONE, last)


@other
def days_away(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(1, 60)
    text, sign = world.random.choice([("ago", -1), ("from now", 1)])
    day = world.today + sign * count * ONE
    return f"{spell(world, count)} day{'s' * (count > 1)} {text}", whole(day, day)


@other
def weeks_ago(world: World) -> tuple[str, list[Window]]:
    text, count = world.random.choice(
        [("a week", 1), ("a fortnight", 2), ("a couple of weeks", 2), ("a few weeks", 3), ("six weeks", 6)]
    )
    day = world.today - 7 * count * ONE
    return f"{text} ago", whole(day - 3 * ONE, day + 3 * ONE)


@other
def months_ago(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(1, 12)
    day = months_away(world.today, -count)
    return f"{spell(world, count)} month{'s' * (count > 1)} ago", whole(day - 15 * ONE, day + 15 * ONE)


@other
def years_ago(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(1, 12)
    day = months_away(world.today, -12 * count)
    return f"{spell(world, count)} year{'s' * (count > 1)} ago", whole(day - 90 * ONE, day + 90 * ONE)


@other
def half_years_ago(world: World) -> tuple[str, list[Window]]:
    text, months = world.random.choice([("half a year", 6), ("a year and a half", 18)])
    day = months_away(world.today, -months)
    return f"{text} ago", whole(months_away(day, -1), months_away(day, 1))


@other
def the_last_days(world: World) -> tuple[str, list[Window]]:
    which = world.random.choice(["the past", "the last", "in the last", "over the past"])
    count = world.random.randint(2, 20)
    unit, first = world.random.choice(
        [
            ("days", world.today - count * ONE),
            ("weeks", world.today - 7 * count * ONE),
            ("months", months_away(world.today, -count)),
            ("years", months_away(world.today, -12 * count)),
        ]
    )
    return f"{which} {spell(world, count)} {unit}", whole(first, world.today)


@other
def the_last_unit_up_to_now(world: World) -> tuple[str, list[Window]]:
    unit, first = world.random.choice(
        [
            ("week", world.today - 7 * ONE),
            ("month", months_away(world.today, -1)),
            ("fortnight", world.today - 14 * ONE),
        ]
    )
    return f"{world.random.choice(['in the last', 'the past'])} {unit}", whole(first, world.today)


@other
def the_last_quarters(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(2, 5)
    first, last = stepped("quarter", world.today, -count)[0], stepped("quarter", world.today, -1)[1]
    return f"the last {spell(world, count)} quarters", whole(first, last)


@other
def the_next_days(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(2, 20)
    unit, days = world.random.choice([("days", 1), ("weeks", 7)])
    last = world.today + days * count * ONE
    return f"in the next {spell(world, count)} {unit}", whole(world.today + ONE, last)


@other
def lately(world: World) -> tuple[str, list[Window]]:
    text = world.random.choice(["recently", "lately"])
    return text, whole(world.today - 30 * ONE, world.today)


@other
def hours(world: World) -> tuple[str, list[Window]]:
    count, half = world.random.randint(1, 12), timedelta(minutes=30)
    middle = world.now - timedelta(hours=count)
    if world.random.random() < 0.5:
        return f"{spell(world, count)} hour{'s' * (count > 1)} ago", [(middle - half, middle + half)]
    return f"in the last {count + 1} hours", [(world.now - timedelta(hours=count + 1), world.now)]


@point
def weekdays(world: World) -> tuple[str, list[Window]]:
    weekday = world.random.randrange(7)
    name = world.random.choice([DAYS[weekday], DAYS[weekday].lower()])
    which = world.random.choice(["last", "next", "this"])
    if which == "this":
        first, _ = week_of(world.today)
        day = first + weekday * ONE
    else:
        day = going(world.today, weekday, -1 if which == "last" else 1)
    return f"{which} {name}", whole(day, day)


@other
def on_a_weekday(world: World) -> tuple[str, list[Window]]:
    weekday = world.random.randrange(7)
    day = going(world.today, weekday, -1)
    return f"on {world.random.choice([DAYS[weekday], DAYS[weekday].lower()])}", whole(day, day)


@other
def a_month_that_is_near(world: World) -> tuple[str, list[Window]]:
    month = world.random.randint(1, 12)
    name, step = MONTHS[month - 1], world.random.choice([-1, 1])
    day = world.today
    # Wholly over, or not begun.
    while day.month != month or (day.year, day.month) == (world.today.year, world.today.month):
        day = stepped("month", day, step)[0]
    return f"{'last' if step < 0 else 'next'} {name}", whole(*month_of(day))


@other
def a_month_of_a_near_year(world: World) -> tuple[str, list[Window]]:
    month, year = world.random.randint(1, 12), world.today.year - 1
    form = world.random.choice(["in {m} of last year", "in {m} last year", "in {m}, last year"])
    return form.format(m=MONTHS[month - 1]), whole(*month_of(date(year, month, 1)))


@other
def the_same_time_of_another_unit(world: World) -> tuple[str, list[Window]]:
    sign, which = world.random.choice([(-1, "last"), (1, "next")])
    day = months_away(world.today, 12 * sign)
    return f"this time {which} year", whole(day - 15 * ONE, day + 15 * ONE)


@other
def the_rest_of_a_unit(world: World) -> tuple[str, list[Window]]:
    unit = world.random.choice(["week", "month", "quarter", "year"])
    first, last = UNITS[unit](world.today)
    if world.random.random() < 0.5 or world.today == last:
        return f"earlier this {unit}", whole(first, world.today)
    return f"later this {unit}", whole(world.today + ONE, last)


@other
def the_rest_of_today(world: World) -> tuple[str, list[Window]]:
    end = midnight(world.today + ONE)
    if world.now == midnight(world.today):
        return "later today", [(world.now, end)]
    if world.random.random() < 0.5:
        return "earlier today", [(midnight(world.today), world.now)]
    return "later today", [(world.now, end)]


@other
def a_season_that_is_near(world: World) -> tuple[str, list[Window]]:
    name, month = world.random.choice([("spring", 3), ("summer", 6), ("autumn", 9), ("winter", 12)])
    spans = [(date(year, month, 1), months_away(date(year, month, 1), 3) - ONE) for year in range(2005, 2045)]
    if world.random.random() < 0.5:
        return f"last {name}", whole(*[span for span in spans if span[1] < world.today][-1])
    return f"next {name}", whole(*next(span for span in spans if span[0] > world.today))


@other
def a_holiday_that_is_near(world: World) -> tuple[str, list[Window]]:
    spans = [(date(year, 12, 24), date(year, 12, 26)) for year in range(2005, 2045)]
    if world.random.random() < 0.5:
        return "last Christmas", whole(*[span for span in spans if span[1] < world.today][-1])
    return "next Christmas", whole(*next(span for span in spans if span[0] > world.today))


@other
def some_recent_units(world: World) -> tuple[str, list[Window]]:
    unit, first = world.random.choice(
        [("days", world.today - 3 * ONE), ("weeks", world.today - 21 * ONE), ("months", months_away(world.today, -3))]
    )
    return f"in recent {unit}", whole(first, world.today)


@other
def in_so_long(world: World) -> tuple[str, list[Window]]:
    count = world.random.randint(2, 12)
    day = world.today + 7 * count * ONE
    return f"in {spell(world, count)} weeks' time", whole(day - 3 * ONE, day + 3 * ONE)


@other
def in_so_long_without_more(world: World) -> tuple[str, list[Window]]:
    """Something due, or nothing that says otherwise."""
    count = world.random.randint(2, 12)
    day = world.today + 7 * count * ONE
    return f"due in {spell(world, count)} weeks", whole(day - 3 * ONE, day + 3 * ONE)


@other
def within_so_long(world: World) -> tuple[str, list[Window]]:
    """Back, or ahead where something is due."""
    count = world.random.randint(2, 20)
    unit, days = world.random.choice([("days", count), ("weeks", 7 * count)])
    if world.random.random() < 0.5:
        return f"due within {spell(world, count)} {unit}", whole(world.today, world.today + days * ONE)
    return f"called within {spell(world, count)} {unit}", whole(world.today - days * ONE, world.today)


@other
def up_to_this_day(world: World) -> tuple[str, list[Window]]:
    unit = world.random.choice(list(UNITS))
    text = world.random.choice([f"{unit} to date", f"{unit}-to-date", f"{unit[0].upper()}TD", f"the {unit} to date"])
    return text, whole(UNITS[unit](world.today)[0], world.today)


@other
def a_day_of_the_latest_month(world: World) -> tuple[str, list[Window]]:
    number, day = world.random.randint(1, 28), world.today
    while day.day != number:
        day -= ONE
    return f"on the {suffix(number)}", whole(day, day)


@other
def minutes_ago(world: World) -> tuple[str, list[Window]]:
    count, around = world.random.randint(2, 50), timedelta(minutes=5)
    middle = world.now - timedelta(minutes=count)
    return f"{spell(world, count)} minutes ago", [(middle - around, middle + around)]
