"""Cron expressions of five fields: minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Names, least and most values of the fields. Sunday is 0 and 7.
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# The 29th of February comes again after eight years at the latest.
MOST_DAYS = 366 * 8 + 1
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression, by the values that each field lets pass.

    If both days of the month and days of the week are restricted, either is enough, as in cron.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Parse an expression such as ``0 3 * * *``.

        Raises:
            ValueError: It has another form, or no date meets it.
        """
        parts = text.split()
        if len(parts) != len(FIELDS) or len(text) > LONGEST:
            raise ValueError(f"expected five fields (minute, hour, day, month, weekday), got {text[:LONGEST]!r}")
        minutes, hours, days, months, weekdays = (
            _values(part, name, least, most) for part, (name, least, most) in zip(parts, FIELDS, strict=True)
        )
        either = not parts[2].startswith("*") and not parts[4].startswith("*")
        made = cls(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)
        made.after(datetime(2000, 1, 1, tzinfo=UTC))
        return made

    def after(self, instant: datetime) -> datetime:
        """The first minute after an instant that the expression meets.

        Raises:
            ValueError: No date meets it.
        """
        found = instant.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(MOST_DAYS):
            if self._meets_day(found):
                for hour in sorted(one for one in self.hours if one >= found.hour):
                    least = found.minute if hour == found.hour else 0
                    minutes = [one for one in self.minutes if one >= least]
                    if minutes:
                        return found.replace(hour=hour, minute=min(minutes))
            found = found.replace(hour=0, minute=0) + timedelta(days=1)
        raise ValueError("no date meets the expression")

    def _meets_day(self, date: datetime) -> bool:
        if date.month not in self.months:
            return False
        day, weekday = date.day in self.days, date.isoweekday() % 7 in self.weekdays
        return day or weekday if self.either_day else day and weekday


def _values(part: str, name: str, least: int, most: int) -> frozenset[int]:
    """The values of a field."""
    found: set[int] = set()
    for one in part.split(","):
        span, slash, step = one.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = least, most
        else:
            low = _number(first, name)
            high = _number(last, name) if dash else (most if slash else low)
        pace = int(step) if step.isascii() and step.isdigit() else 0
        if not least <= low <= high <= most or (slash and pace < 1):
            raise ValueError(f"{name}: expected values from {least} to {most}, got {one!r}")
        found.update(range(low, high + 1, pace or 1))
    return frozenset(found)


def _number(text: str, name: str) -> int:
    """The number of a value, which may be the name of a month or of a weekday."""
    names = {"month": MONTHS, "weekday": WEEKDAYS}.get(name, ())
    if text.lower() in names:
        return names.index(text.lower()) + (name == "month")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}: expected a number, got {text!r}")
    return int(text)
