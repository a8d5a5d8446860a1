"""Holidays by their names, with the rules of their days.

Of names that countries use for different days the one of the United States is meant. Days of other calendars, such as
Ramadan and Diwali, are none of them: a question about "Diwali 2025" asks about 2025.
"""

from __future__ import annotations

import calendar
from collections import defaultdict
from datetime import date

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import FINAL
from astrocyte.pipelines.query.spans import DAY, Span

# First and last day, as month and day.
FIXED = {
    "new year": ((1, 1), (1, 2)),
    "new year day": ((1, 1), (1, 1)),
    "epiphany": ((1, 6), (1, 6)),
    "australia day": ((1, 26), (1, 26)),
    "groundhog day": ((2, 2), (2, 2)),
    "valentine": ((2, 14), (2, 14)),
    "valentine day": ((2, 14), (2, 14)),
    "women day": ((3, 8), (3, 8)),
    "st patrick day": ((3, 17), (3, 17)),
    "saint patrick day": ((3, 17), (3, 17)),
    "april fool day": ((4, 1), (4, 1)),
    "earth day": ((4, 22), (4, 22)),
    "anzac day": ((4, 25), (4, 25)),
    "may day": ((5, 1), (5, 1)),
    "juneteenth": ((6, 19), (6, 19)),
    "canada day": ((7, 1), (7, 1)),
    "independence day": ((7, 4), (7, 4)),
    "fourth of july": ((7, 4), (7, 4)),
    "bastille day": ((7, 14), (7, 14)),
    "halloween": ((10, 31), (10, 31)),
    "all saint day": ((11, 1), (11, 1)),
    "all soul day": ((11, 2), (11, 2)),
    "armistice day": ((11, 11), (11, 11)),
    "remembrance day": ((11, 11), (11, 11)),
    "veteran day": ((11, 11), (11, 11)),
    "christmas eve": ((12, 24), (12, 24)),
    "christmas": ((12, 24), (12, 26)),
    "christmas day": ((12, 25), (12, 25)),
    "boxing day": ((12, 26), (12, 26)),
    "st stephen day": ((12, 26), (12, 26)),
    "new year eve": ((12, 31), (12, 31)),
}
# Which weekday of which month, and so many days later.
COUNTED = {
    "martin luther king day": (3, calendar.MONDAY, 1, 0),
    "martin luther king jr day": (3, calendar.MONDAY, 1, 0),
    "mlk day": (3, calendar.MONDAY, 1, 0),
    "president day": (3, calendar.MONDAY, 2, 0),
    "mother day": (2, calendar.SUNDAY, 5, 0),
    "memorial day": (FINAL, calendar.MONDAY, 5, 0),
    "father day": (3, calendar.SUNDAY, 6, 0),
    "labor day": (1, calendar.MONDAY, 9, 0),
    "columbus day": (2, calendar.MONDAY, 10, 0),
    "indigenous people day": (2, calendar.MONDAY, 10, 0),
    "election day": (1, calendar.MONDAY, 11, 1),
    "thanksgiving": (4, calendar.THURSDAY, 11, 0),
    "thanksgiving day": (4, calendar.THURSDAY, 11, 0),
    "black friday": (4, calendar.THURSDAY, 11, 1),
    "cyber monday": (4, calendar.THURSDAY, 11, 4),
}
# First and last day, counted from Easter Sunday.
OF_EASTER = {
    "shrove tuesday": (-47, -47),
    "mardi gra": (-47, -47),
    "ash wednesday": (-46, -46),
    "palm sunday": (-7, -7),
    "maundy thursday": (-3, -3),
    "good friday": (-2, -2),
    "easter": (-2, 1),
    "easter eve": (-1, -1),
    "easter saturday": (-1, -1),
    "easter sunday": (0, 0),
    "easter day": (0, 0),
    "easter monday": (1, 1),
    "ascension day": (39, 39),
    "pentecost": (49, 49),
    "whit sunday": (49, 49),
    "whit monday": (50, 50),
    "corpus christi": (60, 60),
}
# Words of other meanings: holidays only behind a preposition or before a year.
UNSURE = {"new year", "black friday", "cyber monday", "may day", "groundhog day", "election day", "epiphany"}
# Before the name of a holiday these make another day of it, of a calendar that is not known here.
OTHER_CALENDARS = {
    "chinese",
    "lunar",
    "jewish",
    "islamic",
    "persian",
    "tibetan",
    "tamil",
    "thai",
    "orthodox",
    "canadian",
}
# Behind "Easter".
NO_HOLIDAY = {"island", "islands", "egg", "eggs", "bunny", "bunnies", "lily", "lilies"}
LONGEST_NAME = 5


# British spelling.
SPELLINGS = {"labour": "labor"}


def _singular(word: str) -> str:
    return SPELLINGS.get(word, word.removesuffix("s"))


# Names by the singular of each word: possessives and plurals are written alike, "Veterans Day", "New Year's Eve".
NAMES = {tuple(map(_singular, name.split())): name for name in (*FIXED, *COUNTED, *OF_EASTER)}
_BY_FIRST: defaultdict[str, int] = defaultdict(int)
for _name in NAMES:
    _BY_FIRST[_name[0]] = max(_BY_FIRST[_name[0]], len(_name))
# First words of names.
FIRST_WORDS = {ending for name in NAMES for ending in (name[0], f"{name[0]}s")} | SPELLINGS.keys()


def named_by(words: list[str]) -> tuple[str, int]:
    """The holiday that words in small letters begin with, and how many of them are its name; else nothing and 0."""
    found = tuple(map(_singular, words[: _BY_FIRST.get(_singular(words[0]), 0)])) if words else ()
    for length in range(len(found), 0, -1):
        if found[:length] in NAMES:
            return NAMES[found[:length]], length
    return "", 0


def holiday(name: str, year: int) -> Span:
    """The days of a holiday, by a name of `NAMES`."""
    if name in FIXED:
        first, last = FIXED[name]
        found = spans.days(date(year, *first), date(year, *last))
        # The turn of the year begins on its eve.
        return Span(found.start - DAY, found.end) if name == "new year" else found
    if name in OF_EASTER:
        sunday, (before, after) = easter_sunday(year), OF_EASTER[name]
        return spans.days(sunday + before * DAY, sunday + after * DAY)
    number, weekday, month, later = COUNTED[name]
    whole = spans.months_from(year, month, 1)
    day = spans.nth_weekday(number, weekday, whole) or whole
    return Span(day.start + later * DAY, day.end + later * DAY)


def long_weekend(span: Span) -> Span:
    """A holiday with the Saturday and Sunday before it, where it is from Monday to Wednesday, or else after it."""
    weekday = span.start.weekday()
    if weekday < calendar.THURSDAY:
        return Span(span.start - (weekday + 2) * DAY, span.end)
    saturday = span.start + (calendar.SATURDAY - weekday) * DAY
    return Span(min(span.start, saturday), max(span.end, saturday + 2 * DAY))


def easter_sunday(year: int) -> date:
    """Easter Sunday of the Gregorian calendar.

    The algorithm is the anonymous one of 1876, as in Jean Meeus, "Astronomical Algorithms", chapter 8.
    """
    golden, century, of_century = year % 19, year // 100, year % 100
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - correction + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - epact - of_century % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * shift + 114, 31)
    return date(year, month, day + 1)
