"""The ground of every subject of the grammar: the world that a phrase is made for, and units found day by day.

No code is shared with the parser. Days are counted one by one, and units are found by looking at each day's calendar
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
