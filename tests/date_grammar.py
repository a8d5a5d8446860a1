"""A reference grammar of date expressions: random phrases with the half-open windows of local time that they name.

It shares no code with the parser. Days are counted one by one, and units are found by looking at each day's calendar
fields, so that an arithmetic mistake cannot be on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random

Moment = datetime | None
Window = tuple[Moment, Moment]
ONE = timedelta(days=1)
MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
SHORT = {1: "Jan", 2: "Feb.", 4: "Apr", 8: "Aug.", 9: "Sept.", 10: "Oct", 11: "Nov.", 12: "Dec"}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 10: "ten", 12: "twelve"}
NTH = ["first", "second", "third", "fourth"]
CARRIERS = [
    *("what did we do {}?", "who called {}", "notes {}", "Which books did Ann read {}?", "{}: what happened?"),
    *("show me the photos {}, please", "{}", "where was I {}?", "Did anything break {}?"),
]


@dataclass(frozen=True)
class Case:
    """A phrase and what it names.

    Attributes:
        phrase: The expression within a question.
        windows: Ascending; None is an open end.
        template: Which form it has.
    """

    phrase: str
    windows: list[Window]
    template: str


@dataclass(frozen=True)
class World:
    """The reference and the bank that phrases are made for.

    Attributes:
        random: Where choices come from.
        now: Local time of the reference.
        years: Those of the bank.
    """

    random: Random
    now: datetime
    years: Sequence[int]

    @property
    def today(self) -> date:
        return self.now.date()


Template = Callable[[World], tuple[str, list[Window]]]
# Names of one span each, which a direction or a range can stand before.
POINTS: list[Template] = []
# What stands for itself.
OTHERS: list[Template] = []


def point(template: Template) -> Template:
    POINTS.append(template)
    return template


def other(template: Template) -> Template:
    OTHERS.append(template)
    return template


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - local time


def whole(first: date, last: date) -> list[Window]:
    return [(midnight(first), midnight(last + ONE))]


def spell(world: World, count: int) -> str:
    return world.random.choice([WORDS[count], str(count)]) if count in WORDS else str(count)


def some_day(world: World) -> date:
    return date(world.random.randint(2005, 2035), 1, 1) + world.random.randrange(365) * ONE


def suffix(number: int) -> str:
    if number in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"


def days_where(start: date, keep: Callable[[date], bool]) -> tuple[date, date]:
    """The longest run of days around a day that keep something."""
    first = last = start
    while keep(first - ONE):
        first -= ONE
    while keep(last + ONE):
        last += ONE
    return first, last


def month_of(day: date) -> tuple[date, date]:
    return days_where(day, lambda other: (other.year, other.month) == (day.year, day.month))


def week_of(day: date) -> tuple[date, date]:
    return days_where(day, lambda other: other.isocalendar()[:2] == day.isocalendar()[:2])


def quarter_of(day: date) -> tuple[date, date]:
    return days_where(day, lambda other: (other.year, (other.month - 1) // 3) == (day.year, (day.month - 1) // 3))


def year_of(day: date) -> tuple[date, date]:
    return days_where(day, lambda other: other.year == day.year)


UNITS = {"week": week_of, "month": month_of, "quarter": quarter_of, "year": year_of}


def stepped(unit: str, day: date, steps: int) -> tuple[date, date]:
    """The unit so many units from that of a day."""
    first, last = UNITS[unit](day)
    for _ in range(abs(steps)):
        first, last = UNITS[unit](last + ONE if steps > 0 else first - ONE)
    return first, last


def months_away(day: date, steps: int) -> date:
    """The same day of another month, or its last."""
    first, last = stepped("month", day, steps)
    return min(last, first + (day.day - 1) * ONE)


def going(day: date, weekday: int, step: int) -> date:
    """The next such weekday in a direction, never the day itself."""
    day += step * ONE
    while day.weekday() != weekday:
        day += step * ONE
    return day


def named_month(world: World, month: int) -> str:
    return world.random.choice([MONTHS[month - 1], MONTHS[month - 1].lower(), SHORT.get(month, MONTHS[month - 1])])


def date_phrase(world: World, day: date) -> str:
    month = MONTHS[day.month - 1]
    return world.random.choice(
        [
            day.isoformat(),
            f"{day.year}/{day.month}/{day.day}",
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{month} {suffix(day.day)} {day.year}",
            f"the {suffix(day.day)} of {month.lower()} {day.year}",
            f"{suffix(day.day)} {month}, {day.year}",
            f"{day.day}.{day.month}.{day.year}",
            f"{day.day:02}-{day.month:02}-{day.year}",
            f"{DAYS[day.weekday()]}, {day.day} {month} {day.year}",
            f"{DAYS[day.weekday()]} {month} {day.day}, {day.year}",
        ]
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
    return world.random.choice([f"{year}", f"the year {year}"]), whole(date(year, 1, 1), date(year, 12, 31))


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


@point
def a_holiday(world: World) -> tuple[str, list[Window]]:
    year = world.random.randint(2005, 2035)
    name, first, last = world.random.choice(
        [
            ("Christmas", date(year, 12, 24), date(year, 12, 26)),
            ("Halloween", date(year, 10, 31), date(year, 10, 31)),
            ("Valentine's Day", date(year, 2, 14), date(year, 2, 14)),
            ("New Year's Eve", date(year, 12, 31), date(year, 12, 31)),
        ]
    )
    return f"{name} {year}", whole(first, last)


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
def two_weeks_of_a_month(world: World) -> tuple[str, list[Window]]:
    first, _ = month_of(some_day(world))
    begins = [first, first + 14 * ONE]
    text = f"in the first and third weeks of {MONTHS[first.month - 1]} {first.year}"
    return text, [window for begin in begins for window in whole(begin, begin + 6 * ONE)]


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
def a_day_of_the_latest_month(world: World) -> tuple[str, list[Window]]:
    number, day = world.random.randint(1, 28), world.today
    while day.day != number:
        day -= ONE
    return f"on the {suffix(number)}", whole(day, day)


@other
def a_short_year(world: World) -> tuple[str, list[Window]]:
    year, month = world.random.randint(2005, 2035), world.random.randint(1, 12)
    return f"in {MONTHS[month - 1]} '{year % 100:02}", whole(*month_of(date(year, month, 1)))


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


@other
def minutes_ago(world: World) -> tuple[str, list[Window]]:
    count, around = world.random.randint(2, 50), timedelta(minutes=5)
    middle = world.now - timedelta(minutes=count)
    return f"{spell(world, count)} minutes ago", [(middle - around, middle + around)]


@other
def a_second(world: World) -> tuple[str, list[Window]]:
    start = midnight(some_day(world)) + timedelta(seconds=world.random.randrange(86_400))
    return f"at {start.isoformat()}", [(start, start + timedelta(seconds=1))]


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


def one_side(world: World) -> tuple[str, list[Window]]:
    """A direction before a point."""
    text, ((start, end),) = world.random.choice(POINTS)(world)
    direction, window = world.random.choice(
        [
            ("before", (None, start)),
            ("prior to", (None, start)),
            ("after", (end, None)),
            ("later than", (end, None)),
            ("since", (start, None)),
            ("until", (None, end)),
            ("till", (None, end)),
            ("by", (None, end)),
            ("up to", (None, end)),
            ("no later than", (None, end)),
        ]
    )
    return f"{direction} {text}", [window]


def one_side_of_an_edge(world: World) -> tuple[str, list[Window]]:
    """A direction before the start or the end of a point."""
    text, ((start, end),) = world.random.choice([a_month, a_year])(world)
    edge, name = world.random.choice([(start, "start"), (end, "end")])
    direction, window = world.random.choice(
        [("before", (None, edge)), ("after", (edge, None)), ("since", (edge, None)), ("until", (None, edge))]
    )
    return f"{direction} the {name} of {text}", [window]


def one_side_of_a_near_day(world: World) -> tuple[str, list[Window]]:
    """A direction before a day that counts from now."""
    name, ahead = world.random.choice(
        [("yesterday", -1), ("today", 0), ("tomorrow", 1), ("the day before yesterday", -2)]
    )
    start = midnight(world.today) + ahead * ONE
    end = start + ONE
    direction, window = world.random.choice(
        [("before", (None, start)), ("after", (end, None)), ("since", (start, None)), ("until", (None, end))]
    )
    return f"{direction} {name}", [window]


def one_side_of_so_long_ago(world: World) -> tuple[str, list[Window]]:
    """A direction before "N weeks ago", which is the exact day then."""
    count = world.random.randint(2, 12)
    start = midnight(world.today) - 7 * count * ONE
    direction, window = world.random.choice(
        [("before", (None, start)), ("after", (start + ONE, None)), ("since", (start, None))]
    )
    return f"{direction} {spell(world, count)} weeks ago", [window]


def one_side_of_a_month_without_a_year(world: World) -> tuple[str, list[Window]]:
    """A direction before a month: the latest one that has begun."""
    month, day = world.random.randint(1, 12), world.today
    while day.month != month:
        day -= ONE
    first, last = month_of(day)
    direction, window = world.random.choice(
        [
            ("since", (midnight(first), None)),
            ("before", (None, midnight(first))),
            ("until", (None, midnight(last + ONE))),
            ("after", (midnight(last + ONE), None)),
        ]
    )
    return f"{direction} {MONTHS[month - 1]}", [window]


def from_a_point_on(world: World) -> tuple[str, list[Window]]:
    """An open range."""
    text, ((start, _),) = world.random.choice([a_date, a_month, a_year])(world)
    return f"from {text} {world.random.choice(['on', 'onwards'])}", [(start, None)]


def until_now(world: World) -> tuple[str, list[Window]]:
    """Everything so far."""
    return "until now", [(None, world.now)]


def from_one_to_another(world: World) -> tuple[str, list[Window]]:
    """A range between two points of one kind."""
    template = world.random.choice([a_date, a_month, a_year, a_numbered_week, a_slashed_date])
    ends = sorted([template(world), template(world)], key=lambda found: found[1])
    (one, ((start, _),)), (two, ((_, end),)) = ends
    form = world.random.choice(["between {} and {}", "from {} to {}", "from {} until {}", "{} to {}", "{} \u2013 {}"])
    return form.format(one, two), [(start, end)]


def years_joined(world: World) -> tuple[str, list[Window]]:
    first = world.random.randint(1950, 2030)
    last = first + world.random.randint(1, 15)
    short = f"{first}\u2013{last % 100:02}" if last // 100 == first // 100 and last % 100 > 12 else f"{first}-{last}"
    return world.random.choice([f"{first}-{last}", short]), whole(date(first, 1, 1), date(last, 12, 31))


def months_of_one_year(world: World) -> tuple[str, list[Window]]:
    year, first = world.random.randint(2005, 2035), world.random.randint(1, 11)
    last = world.random.randint(first + 1, 12)
    form = world.random.choice(["from {} to {} {}", "between {} and {} {}"])
    text = form.format(MONTHS[first - 1], MONTHS[last - 1], year)
    return text, whole(date(year, first, 1), month_of(date(year, last, 1))[1])


def a_date_that_never_was(world: World) -> tuple[str, list[Window]]:
    year, month = world.random.randint(2005, 2035), world.random.choice([2, 4, 6, 9, 11])
    number = 31 if month != 2 else world.random.choice([30, 31])
    form = world.random.choice(["on {d} {m} {y}", "on {m} {d}, {y}", "on {y}-{n:02}-{d}", "on {d}.{n}.{y}", "{m} {s}"])
    return form.format(d=number, m=MONTHS[month - 1], y=year, n=month, s=suffix(number)), []


WHOLE = [
    *OTHERS,
    *POINTS,
    *[one_side] * 8,
    one_side_of_an_edge,
    *[from_one_to_another] * 4,
    one_side_of_a_near_day,
    one_side_of_so_long_ago,
    one_side_of_a_month_without_a_year,
    from_a_point_on,
    until_now,
    years_joined,
    months_of_one_year,
    a_date_that_never_was,
]


def case_of(world: World) -> Case:
    """A random phrase, and what it names."""
    template = world.random.choice(WHOLE)
    text, windows = template(world)
    if template in POINTS:
        lead = {"a_date": "on ", "a_slashed_date": "on ", "a_month": "in ", "a_year": "in "}.get(template.__name__, "")
        text = lead + text
    return Case(world.random.choice(CARRIERS).format(text), sorted(windows, key=str), template.__name__)
