"""Dates in words that do not count from now: days, months, seasons, holidays, quarters, weeks by number, years."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import DECADES, FINAL, MONTH_NAMES, MONTHS, ORDINALS, SEASONS
from astrocyte.pipelines.query.date_context import (
    COUNTED,
    HOLIDAY_CONTEXT,
    LONGEST_ABBREVIATION,
    MEASURES,
    MONTH_CONTEXT,
    NAMES,
    NO_PLURAL,
    NO_SEASON,
    NUMBERED,
    OF_A_YEAR,
    PERSON_CONTEXT,
    QUALIFYING,
    SEASON_CONTEXT,
    TIME_PREPOSITIONS,
    UNSURE_MONTHS,
    VERB_CONTEXT,
    WEAK_MONTH_CONTEXT,
    YEAR_CONTEXT,
)
from astrocyte.pipelines.query.date_parts import IMPOSSIBLE, YEAR, Match
from astrocyte.pipelines.query.holidays import (
    FIRST_WORDS,
    LONGEST_NAME,
    NO_HOLIDAY,
    OTHER_CALENDARS,
    UNSURE,
    holiday,
    long_weekend,
    named_by,
)
from astrocyte.pipelines.query.numeric_dates import DIGITS, WrittenDates
from astrocyte.pipelines.query.spans import Point, Span

QUARTERS = 4
# A noun of more than three letters in the plural, and not "was", "this", "less" or "status".
PLURAL = re.compile(r"[a-z]{3,}(?<![sui])s")
OLDEST_BARE_YEAR = 1900
DASHES = {"-", "\u2013", "\u2014"}
JOINERS = {*DASHES, "to", "and", "through", "until", "till"}
# Behind a year that follows a hyphen these make an amount or a part of a longer number of it.
AFTER_YEAR = re.compile(r"[%\u00b0]|[.,:/-]\d|\w")
# Any leap year, and the three after it: a day that none of them has no year has.
SOME_YEARS = range(2000, 2004)


class AbsoluteDates(WrittenDates):
    """Parses these dates; arguments as of `DatedTokens`."""

    def absolute(self, place: int, *, sure: bool = False) -> Match:
        """The absolute date that begins at a place; ``sure`` where no word around it has to say that it is one."""
        if self.token(place).kind != "word":
            return self.day_first(place) if self.token(place).kind == "ordinal" else self.written(place)
        word = self.word(place)
        found = self._holiday(place, sure=sure) if word in FIRST_WORDS else None
        if found is not None:
            return found
        if word in MONTHS:
            found = self._month_first(place, sure=sure)
        elif word in SEASONS:
            found = self._season(place, sure=sure)
        elif word in {"week", "quarter", "year", "calendar"}:
            found = self._numbered(place)
        elif word in DECADES and self.word(place - 1) in {"the", "early", "mid", "late", "of"}:
            found = self.decade(DECADES[word] + 1900), place + 1
        elif word in ORDINALS and self.word(place + 1) == "quarter":
            number = QUARTERS if ORDINALS[word] == FINAL else ORDINALS[word]
            found = self.free(place + 2, "quarter", _quarter(number)) if number <= QUARTERS else None
        return found

    def day_first(self, place: int) -> Match:
        """Reads "8 May", "the 21st of June" and "3 to 5 March 2024"."""
        first = self.day_number(place)
        if first is None:
            return None
        last, after = self._last_day(first, place + 1)
        month = self.skip(self.skip(after, "of", "-"), "the")
        if self.word(month) not in MONTHS:
            return None
        return self._days_of(first, last, MONTHS[self.word(month)], self._month_end(month))

    def _last_day(self, first: int, place: int) -> tuple[int, int]:
        """The last day of "3 to 5", which goes on at a place, and the place behind it; else the first day."""
        if self.token(place).word in JOINERS:
            number = self.skip(place + 1, "the")
            last = self.day_number(number)
            if last is not None and last > first:
                return last, number + 1
        return first, place

    def _month_end(self, place: int) -> int:
        """The place behind a month and the dot of its abbreviation."""
        token, after, followed = self.token(place), self.token(place + 1), self.token(place + 2)
        if self.text[token.end : followed.start] == "-" and YEAR.fullmatch(followed.text):
            # "8-May-2025".
            return place + 2
        dotted = len(token.text) <= LONGEST_ABBREVIATION and after.word == "." and after.start == token.end
        # The dot at the end of a sentence is none of the abbreviation.
        goes_on = followed.kind and (followed.kind != "word" or followed.text.islower())
        return place + 2 if dotted and goes_on else place + 1

    def _month_first(self, place: int, *, sure: bool = False) -> Match:
        """Reads "May", "May 2024", "May 8, 2024" and "March 3-5"."""
        month, after = MONTHS[self.word(place)], self._month_end(place)
        number = self.skip(after, "the")
        first = self.day_number(number)
        if first is not None:
            last, end = self._last_day(first, number + 1)
            if last != first and self.word(self.skip(end, "of")) in MONTHS:
                # "March 3 to 5 April" has two months.
                last, end = first, number + 1
            return self._days_of(first, last, month, end)
        if not sure and not self.year_suffix(after)[0] and not self._is_month(place, after):
            return None
        return self.free(after, "month", lambda year: spans.months_from(year, month, 1))

    def _is_month(self, place: int, after: int) -> bool:
        """True if a month name without a day or year is a month, by the words around it."""
        token, before, behind = self.token(place), self.word(place - 1), self.token(after)
        capital = token.text.istitle()
        if token.word in NAMES:
            surname = behind.kind == "word" and behind.text.istitle() and before not in MONTH_CONTEXT
            if before in PERSON_CONTEXT or (capital and (surname or before == "by")):
                return False
        if token.word not in UNSURE_MONTHS:
            return True
        verb = token.word in {"may", "march"}
        # "May or June", and not "may or may not".
        listed = behind.word == "or" and self.word(after + 1) in MONTHS and self.token(after + 1).text.istitle()
        if (
            verb
            and behind.word in VERB_CONTEXT
            and not listed
            and not (before == "in" and behind.word in {"on", "for"})
        ):
            return False
        if token.text == "March" and place:
            return before not in {"to", "a", "the"}
        hyphen = self.token(place - 1).word == "-" and self.word(place - 2) in MONTH_CONTEXT
        weak = verb and not capital and before in WEAK_MONTH_CONTEXT
        left_out = capital and (before == "not" or (self.word(place - 2), before) == ("other", "than"))
        return (before in MONTH_CONTEXT or hyphen or left_out) and not weak

    def _days_of(self, first: int, last: int, month: int, place: int) -> Match:
        years, after = self.year_suffix(place)

        def in_year(year: int) -> Span | None:
            begin, end = spans.day_of(year, month, first), spans.day_of(year, month, last)
            return None if begin is None or end is None else spans.days(begin, end)

        if all(in_year(year) is None for year in years or SOME_YEARS):
            wrong = last if spans.day_of(SOME_YEARS[0], month, first) else first
            return self.impossible(" ".join([str(wrong), MONTH_NAMES[month], *map(str, years[:1])]), after)
        return self.free(place, "day", in_year)

    def _season(self, place: int, *, sure: bool = False) -> Match:
        name, after = self.word(place), place + 1
        if not self.year_suffix(after)[0]:
            hyphen = self.token(place - 1).word == "-" and self.word(place - 2) in SEASON_CONTEXT
            other = self.word(after) in NO_SEASON or (name == "fall" and self.word(after) in {"of", "in"})
            if other or not (sure or hyphen or self.word(place - 1) in SEASON_CONTEXT):
                return None
        point, after = self.free(after, "season", lambda year: spans.season(name, year))
        if name == "winter" and point.in_year is not None:
            # A winter belongs to two years.
            first = spans.season(name, self.bank.years[0] - 1)
            point = Point((first, *point.spans), "season", point.in_year)
        return point, after

    def _holiday(self, place: int, *, sure: bool) -> Match:
        words: list[str] = []
        after = place
        while len(words) < LONGEST_NAME and (word := self.word(after)):
            words.append(word)
            # "St. Patrick's Day", "Martin Luther King Jr. Day".
            after = self.skip(after + 1, ".") if word in {"st", "jr"} else after + 1
        name, length = named_by(words)
        before = self.word(place - 1)
        if not name or before in OTHER_CALENDARS:
            return None
        after = place + length + sum(self.token(one).word == "." for one in range(place, place + length))
        if self.word(after) in NO_HOLIDAY:
            return None
        weekend = self.word(after) == "weekend"
        after += weekend
        if name in UNSURE and not sure and not self.year_suffix(after)[0]:
            capital = name == "new year" and self.token(place).text.istitle()
            if not capital and before not in HOLIDAY_CONTEXT:
                return None
        if weekend:
            return self.free(after, "week", lambda year: long_weekend(holiday(name, year)))
        return self.free(after, "day", lambda year: holiday(name, year))

    def _numbered(self, place: int) -> Match:
        """Reads "week 47 of 2026", "quarter 3" and "the year 1850"."""
        if self.word(place) == "calendar":
            return self._numbered(place + 1) if self.word(place + 1) == "week" else None
        word, token = self.word(place), self.token(place + 1)
        if token.kind != "number" or not self.is_plain(place + 1):
            return None
        number = int(token.text[:4])
        if word == "week":
            return self.week_of(number, place + 2)
        if word == "year":
            return (self.whole_years(number, number), place + 2) if YEAR.fullmatch(token.text) else None
        return self.free(place + 2, "quarter", _quarter(number)) if 1 <= number <= QUARTERS else None

    def year(self, place: int, *, joined: bool = False) -> Match:
        """Reads a year alone, or with what is named behind it ("2025 week 47"); ``joined`` follows a hyphen."""
        token, year = self.token(place), self.year_number(place)
        if year is None or self.word(place - 1) in NUMBERED or (not joined and self._counts(place)):
            return None
        named = self._named_behind(year, place + 1)
        if named is not None:
            return named
        dash, end = self.token(place + 1), self.token(place + 2)
        if dash.word in DASHES and end.kind == "number" and dash.end == end.start:
            last = _last_year(year, end.text)
            return (self.whole_years(year, last, "years"), place + 3) if last is not None else None
        if self.text[token.end : end.start] == "/" and _last_year(year, end.text) == year + 1:
            # A season or a fiscal year, "2024/25", of which it is not known where it begins.
            return self.whole_years(year, year + 1, "years"), place + 3
        plain = self.is_plain(place) or (joined and not AFTER_YEAR.match(self.text[token.end : token.end + 2]))
        if not plain or (year < OLDEST_BARE_YEAR and self.word(place - 1) not in YEAR_CONTEXT and not joined):
            return None
        return self.whole_years(year, year), place + 1

    def _counts(self, place: int) -> bool:
        """True if a number counts what stands behind it: "2000 shares", "between 2000 and 3000 shares"."""
        other = self.token(place + 2)
        if self.token(place + 1).word in JOINERS and other.kind == "number" and not YEAR.fullmatch(other.text):
            return self._counts(place + 2)
        behind, before = self.token(place + 1), self.word(place - 1)
        if behind.word in MEASURES:
            return True
        if before in TIME_PREPOSITIONS:
            return False
        if behind.word in COUNTED:
            return True
        # A name has a capital: "2024 Olympics".
        plural = behind.kind == "word" and behind.text.islower() and PLURAL.fullmatch(behind.word)
        return bool(plural) and before not in QUALIFYING and behind.word not in OF_A_YEAR | NO_PLURAL

    def _named_behind(self, year: int, place: int) -> Match:
        """Reads "May 8", "week 47" and "W47" behind their year."""
        inner: Match = None
        token = self.token(place)
        if token.word in MONTHS and self.day_number(place + 1) is not None:
            inner = self._month_first(place)
        elif token.kind == "week" and not token.text[0].isdigit():
            inner = self.week_of(int(DIGITS.findall(token.text)[0]), place + 1)
        elif token.word == "week" or token.kind == "quarter":
            inner = self.absolute(place)
        if inner is None or (inner[0].in_year is None and inner[0] is not IMPOSSIBLE):
            return None
        point, after = inner
        return point.of_years([year]), after


def _quarter(number: int) -> Callable[[int], Span]:
    return lambda year: spans.months_from(year, 3 * number - 2, 3)


def _last_year(first: int, text: str) -> int | None:
    """The year that ends "2019-2021" or "2019-21"."""
    if YEAR.fullmatch(text):
        return int(text) if int(text) >= first else None
    last = first - first % 100 + int(text) if len(text) == len("21") else first
    return last if last > first else None


def of_weekday(point: Point, weekday: int, years: Sequence[int]) -> Point:
    """The days of a point that are such weekdays, where there are any; else all of them.

    Args:
        point: Days.
        weekday: From 0 for Monday.
        years: Where to look for a day without a year.
    """
    found = tuple(span for span in point.spans if span.start.weekday() == weekday)
    if not found and point.in_year is not None:
        spans_ = [point.in_year(year) for year in years]
        found = tuple(span for span in spans_ if span is not None and span.start.weekday() == weekday)
    return Point(found or point.spans, point.grain, None if found else point.in_year)
