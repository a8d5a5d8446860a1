"""Relative dates of a quoted sentence with the dates that they meant: "yesterday (7 May 2023)".

A memory says "yesterday" of its own day; whoever reads the answer reads it on another.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from astrocyte.pipelines.query.calendar import (
    EARLIEST,
    LATEST,
    MONTH_NAMES,
    NUMBERS,
    SEASONS,
    WEEKDAY_ABBREVIATIONS,
    WEEKDAYS,
    Calendar,
)
from astrocyte.pipelines.query.date_parser import read_dates
from astrocyte.pipelines.query.spans import DAY, OPEN_END, OPEN_START, Span, moved, unit_of

# Exact counts of units; "a few" and "a couple of" are left as they are.
COUNTS = {word: number for word, number in NUMBERS.items() if word not in {"few", "several", "couple", "dozen"}}
_MONTHS = "|".join(map(str.lower, MONTH_NAMES[1:]))
_WEEKDAYS = "|".join([*WEEKDAYS, *WEEKDAY_ABBREVIATIONS])
# Expressions that count from the day on which they are said. "The last week of May" and "the next day" do not; "this
# weekend" and "next Friday" are said of two different ones.
RELATIVE = re.compile(
    r"\b(?P<second>the day before yesterday|the day after tomorrow)\b"
    r"|(?<!\bthe )\b(?:(?:yesterday|tomorrow)(?: (?:morning|afternoon|evening|night))?|last night|tonight|today"
    r"|this (?:morning|afternoon|evening|week|month|year)|next (?:week|weekend|month|year)"
    rf"|(?P<last>last|this past) (?P<unit>week|weekend|month|year|{'|'.join(SEASONS)}|{_WEEKDAYS}|{_MONTHS})"
    rf"|(?P<count>\d{{1,2}}|{'|'.join(COUNTS)}) (?P<units>day|night|week|fortnight|month|year)s? ago)"
    r"(?:['\u2019]s)?\b(?! of\b)",
    re.IGNORECASE,
)
# What makes another day of the expression behind it ("a week from today"), of a day behind it ("a week last Tuesday")
# or of what stands before it ("last Thursday week", "a year ago today"). Those are left as they are.
MOVED_BEFORE = re.compile(
    r"\b(?:day|night|weekend|week|fortnight|month|year)s? (?:before|after|from|ago) $", re.IGNORECASE
)
WEEKS_BEFORE = re.compile(r"\b(?:a|one|two|three|four) (?:week|fortnight)s? $", re.IGNORECASE)
MOVED_BEHIND = re.compile(r" (?:week|fortnight|(?:ago )?(?:today|yesterday|tomorrow))\b", re.IGNORECASE)

# A day of the calendar: "12 May", "May 12th", "2026-05-12", "12/5/2026". A month or a year alone may be of anything.
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_ALL_MONTHS = rf"(?:{_MONTHS.replace('may', '(?-i:May)')}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
CALENDAR_DAY = re.compile(
    rf"\b(?:the )?{_DAY}(?:st|nd|rd|th)?(?: of)? {_ALL_MONTHS}|\b{_ALL_MONTHS} (?:the )?{_DAY}(?:st|nd|rd|th)?\b"
    rf"|\b\d{{4}}-\d\d-\d\d\b|\b{_DAY}[/.]{_DAY}[/.](?:\d\d)?\d\d\b",
    re.IGNORECASE,
)

# Days from the one on which they are said, by their first word or first two. Reading a date takes a tenth of a
# recall's time, and these are the most frequent.
NEAR_DAYS = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
NEAR_DAYS |= {"this morning": 0, "this afternoon": 0, "this evening": 0}
NEAR_DAYS |= {"the day before yesterday": -2, "the day after tomorrow": 2}
# Most sentences have none of these words, and need not be searched for expressions.
HINT = re.compile(r"yester|\bto(?:day|night|morrow)|\b(?:last|this|next)\b|\bago\b", re.IGNORECASE)


def names_day(text: str) -> bool:
    """True if a sentence has a day of the calendar in it, such as "12 May", whatever the day on which it is said."""
    return CALENDAR_DAY.search(text) is not None


def with_dates(text: str, said: datetime | None, *, day_is_shown: bool = False) -> str:
    """Return a sentence with the date behind each of its relative dates.

    Args:
        text: The sentence.
        said: When it was said; None if that is not known. Then, and in years without room for arithmetic, the
            sentence stays as it is.
        day_is_shown: Leave out the day itself ("today"), because it stands before the sentence.
    """
    if said is None or HINT.search(text) is None:
        return text
    moment = said.astimezone(UTC).replace(tzinfo=None)
    if not EARLIEST <= moment.date() <= LATEST:
        return text

    def dated(match: re.Match[str]) -> str:
        if not match["second"] and _is_moved(match, text):
            return match[0]
        words = _near(match, moment) or (_ago(match, moment) if match["count"] else _span(match, moment))
        shown = day_is_shown and words == _day(moment.date())
        return match[0] if not words or shown else f"{match[0]} ({words})"

    return RELATIVE.sub(dated, text)


def _is_moved(match: re.Match[str], text: str) -> bool:
    """True if the words beside an expression make another day of it."""
    if MOVED_BEFORE.search(text, 0, match.start()) or MOVED_BEHIND.match(text, match.end()):
        return True
    is_day = match[0].lower() in NEAR_DAYS or (match["unit"] or "").lower() in {*WEEKDAYS, *WEEKDAY_ABBREVIATIONS}
    return is_day and WEEKS_BEFORE.search(text, 0, match.start()) is not None


def _near(match: re.Match[str], moment: datetime) -> str:
    """The day of "yesterday evening"; empty for what is no day beside the one on which it is said."""
    words = match[0].lower().removesuffix("'s").removesuffix("\u2019s")
    move = NEAR_DAYS.get(words, NEAR_DAYS.get(words.split()[0]))
    return "" if move is None else _day(moment.date() + move * DAY)


def _ago(match: re.Match[str], moment: datetime) -> str:
    """The time of "two months ago", as exact as its unit."""
    count, unit = match["count"].lower(), match["units"].lower()
    unit = "day" if unit == "night" else unit
    then = moved(moment, -(int(count) if count.isdigit() else COUNTS[count]), unit).date()
    if unit == "year":
        return f"about {then.year}"
    if unit == "month":
        return f"about {MONTH_NAMES[then.month]} {then.year}"
    return _day(then) if unit == "day" else f"about {_day(then)}"


def _span(match: re.Match[str], moment: datetime) -> str:
    """The time of any other expression."""
    # "This past Friday" is "last Friday" to the reader of dates.
    text = f"last {match['unit']}" if match["last"] else match[0]
    spans = read_dates(text, Calendar.of(moment.date(), moment.date(), moment)).spans
    if len(spans) != 1 or OPEN_START in spans[0] or OPEN_END in spans[0]:
        return ""
    return _words(spans[0])


def _words(span: Span) -> str:
    """A span as a day, a month, a year, or its first and last day or month."""
    first = span.start.date()
    # A night ends on the next day.
    last = max(first, (span.end - DAY).date())
    if first == last:
        return _day(first)
    if span == unit_of("year", first):
        return str(first.year)
    if first.day == 1 and (last + DAY).day == 1:
        begin = MONTH_NAMES[first.month] if first.year == last.year else f"{MONTH_NAMES[first.month]} {first.year}"
        end = f"{MONTH_NAMES[last.month]} {last.year}"
        return end if span == unit_of("month", first) else f"{begin} to {end}"
    begin = str(first.day) if (first.month, first.year) == (last.month, last.year) else _day(first)
    return f"{begin} to {_day(last)}"


def _day(day: date) -> str:
    return f"{day.day} {MONTH_NAMES[day.month]} {day.year}"
