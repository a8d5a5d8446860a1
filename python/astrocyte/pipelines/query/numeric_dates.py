"""Dates written with digits: ISO dates, weeks and months, slashed and dotted dates, quarters, decades."""

from __future__ import annotations

import re
from datetime import datetime

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.date_context import NUMBERED, OF_TWO_YEARS, YEAR_CONTEXT
from astrocyte.pipelines.query.date_parts import DatedTokens, Match, long_year
from astrocyte.pipelines.query.date_tokens import AMOUNT_AFTER
from astrocyte.pipelines.query.spans import DAY, Point, Span

DIGITS = re.compile(r"\d+")
ISO = re.compile(
    r"(\d{4})[-/.](\d\d?)[-/.](\d\d?)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?(Z|z|UTC|[+-]\d\d:?\d\d))?)?"
)
QUARTER = re.compile(r"(\d{4})?[-/ ]?([QH])([1-4])\D*(\d+)?", re.IGNORECASE)
BASIC = re.compile(r"(?:19|20)\d{6}")
MONTHS_OF_YEAR, MONTHS_OF_QUARTER, MONTHS_OF_HALF = 12, 3, 6
# Two-digit decades up to this are of this century.
NEWEST_SHORT_DECADE = 20


class WrittenDates(DatedTokens):
    """Parses these dates; arguments as of `DatedTokens`."""

    def written(self, place: int) -> Match:  # noqa: PLR0911 - one return for each form
        """The date that a token alone denotes."""
        match self.token(place).kind:
            case "iso":
                return self._iso(place)
            case "month":
                year, month = map(int, DIGITS.findall(self.token(place).text))
                if "/" in self.token(place).text and month == (year + 1) % 100 and self.word(place + 1) in OF_TWO_YEARS:
                    return self.whole_years(year, year + 1, "years"), place + 1
                return Point((spans.months_from(year, month, 1),), "month"), place + 1
            case "numeric":
                return self._numeric(place)
            case "week":
                return self._week_token(place)
            case "quarter":
                return self._quarter_token(place)
            case "decade":
                return self._decade_token(place)
            case "short" if self.word(place - 1) in YEAR_CONTEXT:
                year = long_year(int(self.token(place).text[1:]))
                return self.whole_years(year, year), place + 1
        return None

    def week_of(self, number: int, place: int) -> Match:
        """A week by its number, which stands before a place, and the year that may stand there."""
        years, after = self.year_suffix(place)
        if not years and self.word(place) == "of":
            # Of something that is no year, such as a course.
            return None
        if all(spans.iso_week(year, number) is None for year in years or range(2000, 2010)):
            return self.impossible(f"week {number}{f' of {years[0]}' if years else ''}", after)
        return self.free(place, "week", lambda year: spans.iso_week(year, number))

    def _iso(self, place: int) -> Match:
        token = self.token(place)
        match = ISO.match(token.text)
        if match is None:
            return None
        parts = [int(part) for part in match.groups()[:6] if part]
        try:
            start = datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001 - local time
        except ValueError:
            return self.impossible(token.text, place + 1)
        if len(parts) == len(("year", "month", "day")):
            return Point((Span(start, start + DAY),), "day"), place + 1
        if match[7]:
            sign = match[7].upper().replace("UTC", "Z").replace("Z", "+00:00")
            start = datetime.fromisoformat(f"{start.isoformat()}{sign}").astimezone(self.bank.zone).replace(tzinfo=None)
        end = spans.moved(start, 1, "second" if match[6] else "minute")
        return Point((Span(start, end),), "time", limits=Span(start, start)), place + 1

    def basic(self, place: int, *, joined: bool = False) -> Match:
        """Reads "20250304", an ISO date without signs; ``joined`` follows a hyphen."""
        token = self.token(place)
        if not BASIC.fullmatch(token.text) or self.word(place - 1) in NUMBERED:
            return None
        if not self.is_plain(place) and not (joined and not AMOUNT_AFTER.match(self.text[token.end : token.end + 2])):
            return None
        month, day = int(token.text[4:6]), int(token.text[6:])
        # A number with another month or day is no wrong date, but a number.
        found = spans.day_of(int(token.text[:4]), month, day) if 1 <= month <= MONTHS_OF_YEAR else None
        return None if found is None else (Point((spans.days(found, found),), "day"), place + 1)

    def _numeric(self, place: int) -> Match:
        """Day, month and year: the day comes first with dots and hyphens; with slashes either may, and both count."""
        text = self.token(place).text
        first, second, year = map(int, DIGITS.findall(text))
        days = [
            day
            for month, number in ((second, first), (first, second))
            if 1 <= month <= MONTHS_OF_YEAR and (day := spans.day_of(long_year(year), month, number))
        ]
        if not days:
            # "2.0.2024" is a version.
            return self.impossible(text, place + 1) if first and second else None
        kept = sorted(set(days)) if "/" in text else days[:1]
        return Point(tuple(spans.days(day, day) for day in kept), "day"), place + 1

    def _week_token(self, place: int) -> Match:
        text = self.token(place).text.upper()
        year, week, weekday = ([*map(int, DIGITS.findall(text)), 0, 0])[:3]
        if not text[0].isdigit():
            # "W2" is the name of other things too.
            named = text.startswith(("KW", "CW", "WK")) or self.year_suffix(place + 1)[0]
            # "KW 47/2026".
            slash = self.text[self.token(place).end : self.token(place + 1).end] == "/"
            return self.week_of(year, place + 1 + slash) if named else None
        if "-" not in text[:5]:
            # "2026W47" and "2026-W47" have the same digits.
            text = f"{year}-W{week}"
        found = spans.iso_week(year, week)
        if found is None:
            return self.impossible(text, place + 1)
        if not weekday:
            return Point((found,), "week"), place + 1
        day = found.start + (weekday - 1) * DAY
        return Point((Span(day, day + DAY),), "day"), place + 1

    def _quarter_token(self, place: int) -> Match:
        """Reads "Q3", "2025-Q3", "Q3'25" and "H1 2025"."""
        match = QUARTER.fullmatch(self.token(place).text)
        if match is None:
            return None
        half = match[2].upper() == "H"
        number, length = int(match[3]), MONTHS_OF_HALF if half else MONTHS_OF_QUARTER
        if number * length > MONTHS_OF_YEAR:
            return None

        def in_year(year: int) -> Span:
            return spans.months_from(year, length * (number - 1) + 1, length)

        grain, written = "half" if half else "quarter", match[1] or match[4]
        if written:
            return Point((in_year(long_year(int(written))),), grain), place + 1
        if half and not self.year_suffix(place + 1)[0]:
            # "H1" is the name of other things too.
            return None
        return self.free(place + 1, grain, in_year)

    def _decade_token(self, place: int) -> Match:
        text = self.token(place).text
        year = int(DIGITS.findall(text)[0])
        if len(DIGITS.findall(text)[0]) == len("90"):
            if text[0].isdigit() and self.word(place - 1) not in {"the", "early", "mid", "late"}:
                return None
            year += 2000 if year <= NEWEST_SHORT_DECADE else 1900
        return self.decade(year), place + 1
