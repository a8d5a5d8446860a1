"""Half-open spans of local time, from days to decades, and their arithmetic."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from astrocyte.pipelines.query.calendar import FINAL, SEASONS

# Ends of a span that is open on one side.
OPEN_START, OPEN_END = datetime.min, datetime.max  # noqa: DTZ901 - local times have no zone
DAY, TICK = timedelta(days=1), timedelta(microseconds=1)
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
DAYS_OF = {"day": 1, "week": 7, "weekend": 7, "fortnight": 14}
SECONDS_OF = {"second": 1, "minute": 60, "hour": 3600}
# Days on both sides of "N units ago": the longer the unit, the less exact the memory.
SLACK_DAYS = {"day": 0, "week": 3, "weekend": 3, "fortnight": 3, "month": 15, "quarter": 30, "year": 90, "decade": 730}
# Hours of the parts of a day, from its start; a night ends on the next day.
DAY_PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (18, 29)}
# First and last day of the parts of a month, which is longer in some years.
MONTH_PARTS = {"early": (1, 10), "start": (1, 10), "mid": (11, 20), "late": (21, 31), "end": (21, 31)}
MONTH_PARTS |= {"first half": (1, 15), "second half": (16, 31)}
# First and last month of the parts of a year.
YEAR_PARTS = {"early": (1, 4), "start": (1, 3), "mid": (5, 8), "late": (9, 12), "end": (10, 12)}
YEAR_PARTS |= {"first half": (1, 6), "second half": (7, 12)}
# First and last year of the parts of a decade.
DECADE_PARTS = {"early": (0, 3), "start": (0, 3), "mid": (3, 6), "late": (6, 9), "end": (6, 9)}
DECADE_PARTS |= {"first half": (0, 4), "second half": (5, 9)}
# First and last weekday of the parts of a week.
WEEK_PARTS = {"early": (0, 1), "start": (0, 1), "mid": (2, 3), "late": (4, 6), "end": (4, 6)}
WEEK_PARTS |= {"first half": (0, 2), "second half": (3, 6)}


class Span(NamedTuple):
    """Local time from ``start`` up to, and without, ``end``."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Point:
    """The meaning of one time expression.

    Attributes:
        spans: Its spans; several where it has no year, or two readings.
        grain: Name of the unit that it is exact to.
        in_year: The span in a given year, for an expression without a year; None for others, and in a year without it.
        limits: What a direction ("before", "to") counts from, where that is not the span: a clock time is an instant.
        edge: "start" or "end" where a direction counts from that edge of the span ("before the end of May").
        within: The day of a clock time that was named before its day ("3 pm yesterday").
        weekday: A bare weekday, which repeats.
    """

    spans: tuple[Span, ...]
    grain: str
    in_year: Callable[[int], Span | None] | None = None
    limits: Span | None = None
    edge: str = ""
    within: Span | None = None
    weekday: bool = False

    def mapped(self, change: Callable[[Span], Span], grain: str) -> Point:
        """The point with every span changed."""
        own = self.in_year

        def in_year(year: int) -> Span | None:
            span = own(year) if own else None
            return None if span is None else change(span)

        return Point(tuple(map(change, self.spans)), grain, in_year if own else None)

    def of_years(self, years: list[int]) -> Point:
        """The point of an expression without a year in these years."""
        if self.in_year is None:
            return self
        spans = [span for year in years if (span := self.in_year(year)) is not None]
        return replace(self, spans=tuple(spans), in_year=None)


def at(day: date) -> datetime:
    """The start of a day."""
    return datetime.combine(day, time())


def days(first: date, last: date) -> Span:
    """From the first day to the last, both included."""
    return Span(at(first), at(last) + DAY)


def day_of(year: int, month: int, day: int) -> date | None:
    """The day, or None where the month has no such day."""
    return date(year, month, day) if 1 <= day <= calendar.monthrange(year, month)[1] else None


def months_from(year: int, month: int, count: int) -> Span:
    """So many months from a month on; ``month`` may be beyond a year's."""
    first, last = 12 * year + month - 1, 12 * year + month - 1 + count
    return Span(
        datetime(first // 12, first % 12 + 1, 1),  # noqa: DTZ001
        datetime(last // 12, last % 12 + 1, 1),  # noqa: DTZ001
    )


def month_days(year: int, month: int, first: int, last: int) -> Span:
    """From a day of a month to another; one beyond the month's end is its last."""
    most = calendar.monthrange(year, month)[1]
    return days(date(year, month, min(first, most)), date(year, month, min(last, most)))


def iso_week(year: int, week: int) -> Span | None:
    """A week by its ISO number, or None where the year has no such week."""
    try:
        monday = date.fromisocalendar(year, week, 1)
    except ValueError:
        return None
    return days(monday, monday + 6 * DAY)


def season(name: str, year: int) -> Span:
    """Three months of a northern season, by the year in which it begins."""
    return months_from(year, SEASONS[name], 3)


def unit_of(unit: str, day: date, ahead: int = 0) -> Span:
    """The calendar unit that holds a day, or the one so many units later."""
    if unit == "day":
        return days(day + ahead * DAY, day + ahead * DAY)
    if unit in {"week", "weekend", "fortnight"}:
        monday = day - day.weekday() * DAY + ahead * DAYS_OF[unit] * DAY
        return days(monday + 5 * DAY if unit == "weekend" else monday, monday + (DAYS_OF[unit] - 1) * DAY)
    length = MONTHS_OF[unit]
    first = (12 * day.year + day.month - 1) // length * length + ahead * length
    return months_from(first // 12, first % 12 + 1, length)


def moved(moment: datetime, count: float, unit: str) -> datetime:
    """The moment so many units later; a day that the month does not have becomes its last."""
    if unit in SECONDS_OF:
        return moment + timedelta(seconds=count * SECONDS_OF[unit])
    if unit in DAYS_OF:
        return moment + timedelta(days=round(count * DAYS_OF[unit]))
    months = 12 * moment.year + moment.month - 1 + round(count * MONTHS_OF[unit])
    year, month = months // 12, months % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))


def part_of(part: str, span: Span, grain: str) -> Span | None:  # noqa: PLR0911 - one return for each grain
    """A part of a week, month, quarter, season, year or decade; None of other spans."""
    start = span.start
    match grain:
        case "week":
            first, last = WEEK_PARTS[part]
            return days(start.date() + first * DAY, start.date() + last * DAY)
        case "month":
            return month_days(start.year, start.month, *MONTH_PARTS[part])
        case "quarter" | "season":
            if part.endswith("half"):
                middle = start + (span.end - start).days // 2 * DAY
                return Span(start, middle) if part == "first half" else Span(middle, span.end)
            return months_from(start.year, start.month + {"early": 0, "start": 0, "mid": 1}.get(part, 2), 1)
        case "year":
            first, last = YEAR_PARTS[part]
            return months_from(start.year, first, last - first + 1)
        case "decade":
            first, last = DECADE_PARTS[part]
            return months_from(start.year + first, 1, 12 * (last - first + 1))
    return None


def nth(number: int, unit: str, count: int, span: Span) -> Span | None:
    """``count`` units of a span from its nth on, or its last ones; None where it does not have them."""
    start, end = span
    if unit in MONTHS_OF:
        length = MONTHS_OF[unit] * count
        first = moved(end, -length, "month") if number == FINAL else moved(start, (number - 1) * length, "month")
        found = Span(first, moved(first, length, "month"))
    elif unit == "weekend":
        saturday = start + (5 - start.weekday()) % 7 * DAY
        if number == FINAL:
            saturday = end - DAY - (end - DAY - 5 * DAY).weekday() * DAY
        found = Span(first := saturday + max(0, number - 1) * 7 * DAY, first + 2 * DAY)
        return found if start <= first < end else None
    else:
        length = DAYS_OF[unit] * count
        first = end - length * DAY if number == FINAL else start + (number - 1) * length * DAY
        # The fifth week of a month is what is left of it.
        found = Span(first, min(end, first + length * DAY) if number != FINAL else end)
    return found if start <= found.start < found.end <= end else None


def nth_weekday(number: int, weekday: int, span: Span) -> Span | None:
    """The nth or last such weekday of a span."""
    if number == FINAL:
        day = span.end - DAY - ((span.end - DAY).weekday() - weekday) % 7 * DAY
    else:
        day = span.start + ((weekday - span.start.weekday()) % 7 + 7 * (number - 1)) * DAY
    return Span(day, day + DAY) if span.start <= day < span.end else None
