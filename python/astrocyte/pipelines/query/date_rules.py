"""What dates look like in English, and the days that each form means: one rule for each form.

A rule is a pattern and a resolver, which gives the windows of a match: (first day, last day), both included, as
proleptic Gregorian ordinals. A form without a year stands for every year of the bank; one such as "last week" counts
from the reference day.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from astrocyte.pipelines.query.calendar import (
    AHEAD,
    DECADE_PARTS,
    MONTHS,
    MOST_MONTHS,
    NUMBERS,
    ORDINALS,
    PARTS,
    SEASONS,
    UNIT_DAYS,
    UNIT_SLACK,
    WEEKDAYS,
    YEAR_PARTS,
    Calendar,
)

Window = tuple[int, int]

# The longest word that tells a month from a verb, and what stands before and after it.
CONTEXT_CHARS = 10
MONTH = (
    r"(?P<month>January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
LAST_DAY = r"(?P<last_day>[0-3]?\d)(?:st|nd|rd|th)?"
YEAR = r"(?P<year>(?:19|20)\d\d)"
NUMBER = (
    r"(?P<number>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|an?"
    r"|(?:a )?couple of|(?:a )?few|several)"
)
TO = r" ?(?:to|and|through|until|till|[-\u2013\u2014]) ?(?:the )?"
# Before "May" and "March" these tell the month from the verb.
MONTH_CONTEXT = re.compile(
    r"\b(?:in|of|by|since|during|from|to|until|through|last|this|and|between|before|after|for|on|around|late|early|mid)"
    r"[ -]$",
    re.IGNORECASE,
)
SEASON_CONTEXT = re.compile(
    r"\b(?:the|in|during|of|by|since|over|before|after|until|early|late|mid)[ -]$", re.IGNORECASE
)


Resolver = Callable[[re.Match[str], Calendar], list[Window]]


def _follows(context: re.Pattern[str], match: re.Match[str]) -> bool:
    """True if the context stands right before the match."""
    start = match.start()
    return context.search(match.string, max(0, start - CONTEXT_CHARS), start) is not None


def _day(year: int, month: int, day: int) -> int:
    """Ordinal of a day; one beyond the month's end is its last."""
    return date(year, month, min(day, calendar.monthrange(year, month)[1])).toordinal()


def _span(year: int, month: int, first: int = 1, last: int = 31) -> Window:
    return _day(year, month, first), _day(year, month, last)


def _years(match: re.Match[str], bank: Calendar) -> Sequence[int]:
    return [int(match["year"])] if match["year"] else bank.years


def _month(match: re.Match[str], group: str = "month") -> int:
    return MONTHS[match[group].lower().rstrip(".")]


def _iso(match: re.Match[str], _: Calendar) -> list[Window]:
    year, month, day = int(match["year"]), int(match["number"]), int(match["day"] or 0)
    return [_span(year, month, day, day)] if day else [_span(year, month)]


def _one_day(match: re.Match[str], bank: Calendar) -> list[Window]:
    day, month = int(match["day"]), _month(match)
    return [
        _span(year, month, day, day) for year in _years(match, bank) if 1 <= day <= calendar.monthrange(year, month)[1]
    ]


def _days(match: re.Match[str], bank: Calendar) -> list[Window]:
    first, last = int(match["day"]), int(match["last_day"])
    return [_span(year, _month(match), first, last) for year in _years(match, bank)] if 1 <= first <= last else []


def _week_of_month(match: re.Match[str], bank: Calendar) -> list[Window]:
    name, month = match["which"].lower(), _month(match)
    if name == "last":
        return [(_day(year, month, 31) - 6, _day(year, month, 31)) for year in _years(match, bank)]
    first = 7 * ORDINALS[name] - 6
    return [_span(year, month, first, first + 6) for year in _years(match, bank)]


def _beside(match: re.Match[str], bank: Calendar) -> list[Window]:
    month = _month(match) if match["month"] else _month(match, "other_month")
    day = int(match["day"] or match["other_day"])
    length = 30 if match["unit"] == "month" else 7
    anchors = [_day(year, month, day) for year in _years(match, bank)] if day else []
    if match["side"] == "before":
        return [(anchor - length, anchor - 1) for anchor in anchors]
    return [(anchor + 1, anchor + length) for anchor in anchors]


def _part(match: re.Match[str], bank: Calendar) -> list[Window]:
    first, last = PARTS[match["part"].lower()]
    return [_span(year, _month(match), first, last) for year in _years(match, bank)]


def _dated_month(match: re.Match[str], bank: Calendar) -> list[Window]:
    return [_span(year, _month(match)) for year in _years(match, bank)]


def _bare_month(match: re.Match[str], bank: Calendar) -> list[Window]:
    if match["month"] == "May" and not _follows(MONTH_CONTEXT, match):
        return []
    if match["month"] == "March" and not match.start():
        return []
    return [_span(year, _month(match)) for year in bank.years]


def _part_of_year(match: re.Match[str], _: Calendar) -> list[Window]:
    year = int(match["year"])
    first, last = YEAR_PARTS[match["part"].lower()]
    return [(_day(year, first, 1), _day(year, last, 31))]


def _decade(match: re.Match[str], _: Calendar) -> list[Window]:
    part = match["part"]
    first, last = DECADE_PARTS[part.lower() if part else None]
    decade = int(match["decade"])
    return [(_day(decade + first, 1, 1), _day(decade + last, 12, 31))]


def _numeric(match: re.Match[str], _: Calendar) -> list[Window]:
    """Day and month in either order; both where both are possible."""
    year, first, second = int(match["year"]), int(match["number"]), int(match["day"])
    orders = {(month, day) for month, day in ((first, second), (second, first)) if 1 <= month <= MOST_MONTHS}
    return [
        _span(year, month, day, day) for month, day in sorted(orders) if 1 <= day <= calendar.monthrange(year, month)[1]
    ]


def _week_around(match: re.Match[str], bank: Calendar) -> list[Window]:
    month = _month(match) if match["month"] else _month(match, "other_month")
    day = int(match["day"] or match["other_day"])
    if not day:
        return []
    windows = []
    for year in _years(match, bank):
        anchor = _day(year, month, day)
        monday = anchor - date.fromordinal(anchor).weekday()
        windows.append((monday + 5, monday + 6) if match["unit"] == "weekend" else (monday, monday + 6))
    return windows


def _quarter(match: re.Match[str], bank: Calendar) -> list[Window]:
    quarter = int(match["digit"]) if match["digit"] else ORDINALS[match["which"].lower()]
    return [(_day(year, 3 * quarter - 2, 1), _day(year, 3 * quarter, 31)) for year in _years(match, bank)]


def _season(match: re.Match[str], bank: Calendar) -> list[Window]:
    relative, season = match["relative"], match["season"].lower()
    if not match["year"] and not relative and not _follows(SEASON_CONTEXT, match):
        return []
    today = bank.reference
    years = [today.year - 1, today.year] if relative else list(_years(match, bank))
    if season == "winter" and not match["year"]:
        # A winter belongs to two years.
        years = [years[0] - 1, *years]
    start = SEASONS[season]
    # Twelve months from January on: a winter that starts in December ends in February of the next year.
    ends = [(year + (start + 2) // 13, (start + 1) % 12 + 1) for year in years]
    windows = [(_day(year, start, 1), _day(*end, 31)) for year, end in zip(years, ends, strict=True)]
    if relative:
        this = relative.strip().lower() == "this"
        windows = [window for window in windows if window[0 if this else 1] < today.toordinal() + this][-1:]
    return windows


def _holiday(match: re.Match[str], bank: Calendar) -> list[Window]:
    name = match["holiday"].lower()
    return [_holiday_in(name, year) for year in _years(match, bank)]


def _holiday_in(name: str, year: int) -> Window:
    if name.startswith("christmas"):
        return _span(year, 12, 24, 26)
    if name.startswith("new year"):
        return _span(year, 12, 31, 31) if name.endswith("eve") else (_day(year, 1, 1) - 1, _day(year, 1, 2))
    if name.startswith("valentine"):
        return _span(year, 2, 14, 14)
    if name.startswith("halloween"):
        return _span(year, 10, 31, 31)
    # Thanksgiving: the fourth Thursday of November.
    first = _day(year, 11, 1)
    day = first + (calendar.THURSDAY - date.fromordinal(first).weekday()) % 7 + 21
    return day, day


def _ago(match: re.Match[str], bank: Calendar) -> list[Window]:
    unit = match["unit"].lower()
    middle = bank.reference.toordinal() - round(_number(match) * UNIT_DAYS[unit])
    return [(middle - UNIT_SLACK[unit], middle + UNIT_SLACK[unit])]


def _recent(match: re.Match[str], bank: Calendar) -> list[Window]:
    last = bank.reference.toordinal()
    return [(last - round(_number(match) * UNIT_DAYS[match["unit"].lower()]), last)]


def _number(match: re.Match[str]) -> int:
    words = match["number"]
    if words is None:
        return 1
    return int(words) if words.isdigit() else NUMBERS[words.lower()]


def _relative(match: re.Match[str], bank: Calendar) -> list[Window]:
    ahead = AHEAD.get(match["which"].lower(), -1)
    today = bank.reference
    monday = today.toordinal() - today.weekday() + 7 * ahead
    match match["unit"].lower():
        case "week":
            return [(monday, monday + 6)]
        case "weekend":
            return [(monday + 5, monday + 6)]
        case "month":
            months = today.year * 12 + today.month - 1 + ahead
            return [_span(months // 12, months % 12 + 1)]
        case _:
            return [_whole_year(today.year + ahead)]


def _weekday(match: re.Match[str], bank: Calendar) -> list[Window]:
    today, wanted = bank.reference, WEEKDAYS.index(match["weekday"].lower())
    which = match["which"].lower()
    if which == "this":
        day = today.toordinal() - today.weekday() + wanted
    elif which in AHEAD:
        day = today.toordinal() + ((wanted - today.weekday()) % 7 or 7)
    else:
        day = today.toordinal() - ((today.weekday() - wanted) % 7 or 7)
    return [(day, day)]


def _today(match: re.Match[str], bank: Calendar) -> list[Window]:
    words = match["words"].lower()
    back = 2 if "before" in words else 1 if words in {"yesterday", "last night"} else 0
    day = bank.reference.toordinal() - back
    return [(day, day)]


def _bare_year(match: re.Match[str], _: Calendar) -> list[Window]:
    return [_whole_year(int(match["year"]))]


def _whole_year(year: int) -> Window:
    return _day(year, 1, 1), _day(year, 12, 31)


@dataclass(frozen=True, slots=True)
class Rule:
    """A form of dates. Only a text with one of the cue words, in lower case, can have it; a digit counts as `DIGIT`."""

    pattern: re.Pattern[str]
    resolve: Resolver
    cues: frozenset[str]


def _rule(pattern: str, resolve: Resolver, cues: frozenset[str], flags: re.RegexFlag = re.NOFLAG) -> Rule:
    return Rule(re.compile(pattern, flags), resolve, cues)


def _cues(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Stands for any digit among a text's words.
DIGIT = "0"
_DIGIT = frozenset({DIGIT})
_MONTHS = frozenset(MONTHS)
_WEEKS = _cues("week weekend month")
_AGO = _cues("ago earlier")
_TODAY = _cues("today tonight morning yesterday night")


_OTHER = MONTH.replace("<month>", "<other_month>") + " " + DAY.replace("<day>", "<other_day>")
_IGNORE = re.IGNORECASE
_COMING = "(?:the|this) coming|next"
# In order of precision: what one rule took, a later one leaves alone. Month names keep their capital letter, because
# "may" and "march" are verbs.
RULES = (
    _rule(
        rf"(?<![\d-]){YEAR}[-/](?P<number>0?[1-9]|1[0-2])(?:[-/](?P<day>0?[1-9]|[12]\d|3[01]))?(?![\d-])", _iso, _DIGIT
    ),
    _rule(rf"(?<![\d./-])(?P<number>\d\d?)(?P<between>[./])(?P<day>\d\d?)(?P=between){YEAR}(?!\d)", _numeric, _DIGIT),
    _rule(rf"\b{MONTH} (?:the )?{DAY}{TO}{LAST_DAY}\b(?!\d|[:%])(?:,? {YEAR})?", _days, _MONTHS),
    _rule(rf"(?<![\d.,])\b{DAY}{TO}{LAST_DAY}(?: of)? {MONTH}(?:,? {YEAR})?\b", _days, _MONTHS),
    _rule(
        rf"\b(?P<which>first|second|third|fourth|last|1st|2nd|3rd|4th) week (?:of|in) {MONTH}(?:,? (?:of )?{YEAR})?\b",
        _week_of_month,
        _WEEKS,
        _IGNORE,
    ),
    _rule(
        rf"\b(?P<unit>week|weekend) of (?:the )?(?:{DAY}(?: of)? {MONTH}|{_OTHER})(?:,? {YEAR})?\b",
        _week_around,
        _WEEKS,
    ),
    _rule(
        rf"\b(?P<unit>week|weekend|month) (?P<side>before|after|following) (?:the )?"
        rf"(?:{DAY}(?: of)? {MONTH}|{_OTHER})(?:,? {YEAR})?\b",
        _beside,
        _WEEKS,
    ),
    _rule(rf"(?<![\d.,])\b{DAY}(?: of)? {MONTH}(?:,? {YEAR})?\b", _one_day, _MONTHS),
    _rule(rf"\b{MONTH} (?:the )?{DAY}\b(?!\d|[:%]| ?[ap]\.?m\b| o'clock)(?:,? {YEAR})?", _one_day, _MONTHS),
    _rule(rf"\b(?P<part>{'|'.join(PARTS)})(?: the)?[ -]{MONTH}(?:,? (?:of )?{YEAR})?\b", _part, _MONTHS, _IGNORE),
    _rule(rf"\b{MONTH},? (?:of )?{YEAR}\b", _dated_month, _MONTHS),
    _rule(rf"\b{MONTH}(?=\W|$)", _bare_month, _MONTHS),
    _rule(
        rf"\b(?:Q(?P<digit>[1-4])|(?P<which>first|second|third|fourth|last) quarter)(?: of)?(?: {YEAR})?\b",
        _quarter,
        _cues("q quarter"),
        _IGNORE,
    ),
    _rule(
        rf"\b(?P<relative>last |this |past )?(?P<season>spring|summer|autumn|fall|winter)(?: (?:of )?{YEAR})?\b"
        r"(?! (?:festival|break down|roll|cleaning|apart|asleep|in love|into|off|out|behind|short))",
        _season,
        frozenset(SEASONS),
        _IGNORE,
    ),
    _rule(
        r"\b(?P<holiday>Christmas(?: Eve| Day)?|New Year(?:['\u2019]?s)?(?: Eve| Day)?|Valentine['\u2019]?s(?: Day)?"
        rf"|Halloween|Thanksgiving)(?:,? (?:of |in )?{YEAR})?\b",
        _holiday,
        _cues("christmas new valentine valentines halloween thanksgiving"),
    ),
    _rule(
        rf"\b{NUMBER} (?P<unit>day|weekend|week|month|year)s? (?:ago|earlier)\b", _ago, _cues("ago earlier"), _IGNORE
    ),
    _rule(
        rf"\b(?:in|over|during|within) the (?:last|past) (?:{NUMBER} )?(?P<unit>day|week|month|year)s?\b",
        _recent,
        _cues("last past"),
        _IGNORE,
    ),
    _rule(
        rf"\b(?P<which>{_COMING}|last|this|past|previous) (?P<unit>weekend|week|month|year)\b(?![-'\u2019])",
        _relative,
        _cues("last this past previous next coming"),
        _IGNORE,
    ),
    _rule(
        rf"\b(?P<which>{_COMING}|last|this past|this) (?P<weekday>{'|'.join(WEEKDAYS)})\b(?![-'\u2019])",
        _weekday,
        frozenset(WEEKDAYS),
        _IGNORE,
    ),
    _rule(
        r"\b(?P<words>today|tonight|this morning|yesterday|last night|the day before yesterday)\b",
        _today,
        _cues("today tonight morning yesterday night"),
        _IGNORE,
    ),
    _rule(r"\b(?:(?P<part>early|mid|late)[ -])?(?P<decade>(?:19|20)\d0)['\u2019]?s\b", _decade, _DIGIT, _IGNORE),
    _rule(rf"\b(?P<part>{'|'.join(YEAR_PARTS)})(?: the year)?[ -]{YEAR}\b", _part_of_year, _DIGIT, _IGNORE),
    _rule(
        rf"(?<![\d$\u20ac\u00a3\u00a5#.,/-]){YEAR}(?![\d%]|[.,/-]\d)"
        r"(?! (?:people|words|dollars|yuan|steps|meters|metres|km|miles|units|points))",
        _bare_year,
        _DIGIT,
    ),
)
