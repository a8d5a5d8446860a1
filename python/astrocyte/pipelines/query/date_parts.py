"""Helpers of every date reader: years behind a date, days of a month, and invalid dates."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from astrocyte.pipelines.query.calendar import NUMBERS, UNITS, Calendar
from astrocyte.pipelines.query.date_context import COUNTED
from astrocyte.pipelines.query.date_tokens import AMOUNT_BEFORE, FISCAL, Tokens
from astrocyte.pipelines.query.spans import Point, Span, months_from

# A point and the place behind it; None where no date begins.
Match = tuple[Point, int] | None
# A number before its unit.
DECIMAL = re.compile(r"\d{1,2}[.,]\d\d?(?= [^\W\d_])")
TENS = 10
# The date is written, but no calendar has it: it names no time, and no part of it is another date.
IMPOSSIBLE = Point((), "impossible")

YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# "December 1,2023".
DATED = re.compile(r",(?:1[5-9]|20)\d\d\b")
# A two-digit year up to this is of this century.
NEWEST_SHORT_YEAR = 68
SHORT_YEAR_DIGITS = 2
# A number of so many digits at most, and not above this, is meant as a day of a month, though no month may have it.
DAY_DIGITS, LARGEST_DAY = 2, 39


class DatedTokens(Tokens, ABC):
    """Access to tokens, and to the calendar that dates are resolved on.

    Args:
        text: The question.
        bank: Its calendar.
    """

    def __init__(self, text: str, bank: Calendar) -> None:
        super().__init__(text)
        self.bank = bank
        # Dates that no calendar has, each as a sentence.
        self.problems: list[str] = []

    def impossible(self, what: str, place: int) -> Match:
        """The match of a date that no calendar has."""
        self.problems.append(f"{what} is no date of the calendar")
        return IMPOSSIBLE, place

    def free(self, place: int, grain: str, in_year: Callable[[int], Span | None]) -> tuple[Point, int]:
        """The point of a form without a year, in the year that follows it or else in every year of the bank."""
        years, after = self.year_suffix(place)
        point = Point((), grain, in_year)
        if years:
            return point.of_years(years), after
        return Point(point.of_years(list(self.bank.years)).spans, grain, in_year), after

    def year_suffix(self, place: int) -> tuple[list[int], int]:
        """The years named behind a form, and the place behind them."""
        after = self.skip(self.skip(self.skip(self.skip(place, ","), "of", "in"), "the"), *FISCAL)
        if self.word(self.skip(after, "the")) == "year":
            after = self.skip(after, "the") + 1
        token = self.token(after)
        year = self.year_number(after)
        if year is not None and self.word(after + 1) not in COUNTED:
            return [year], after + 1
        if token.kind == "short":
            return [long_year(int(token.text[1:]))], after + 1
        return self.relative_year(after) or ([], place)

    def year_number(self, place: int) -> int | None:
        """The year that a number at a place is, as its form says: four digits, or two behind "FY"."""
        text = self.token(place).text
        if YEAR.fullmatch(text):
            return int(text)
        fiscal = self.word(place - 1) == FISCAL[0] and self.token(place).kind == "number"
        return long_year(int(text)) if fiscal and len(text) == SHORT_YEAR_DIGITS else None

    @abstractmethod
    def relative_year(self, place: int) -> tuple[list[int], int] | None:
        """The year that counts from now ("last year"), and the place behind it."""

    def day_number(self, place: int) -> int | None:
        """The number of a day of a month, or None."""
        token = self.token(place)
        if token.kind == "ordinal":
            return int(token.text[:-2])
        if token.kind != "number" or len(token.text) > DAY_DIGITS or int(token.text) > LARGEST_DAY:
            return None
        joined = self.text[token.start - 1 : token.start] == "-" or DATED.match(self.text, token.end)
        return int(token.text) if self.is_plain(place) or joined else None

    @staticmethod
    def whole_years(first: int, last: int, grain: str = "year") -> Point:
        """The point of one year, or of several."""
        return Point((months_from(first, 1, 12 * (last - first + 1)),), grain)

    def decade(self, year: int) -> Point:
        """The point of the decade of a year."""
        return self.whole_years(year - year % 10, year - year % 10 + 9, "decade")

    def number(self, place: int) -> tuple[float, int] | None:
        """A number in digits or words, and the place behind it."""
        token = self.token(place)
        if token.kind == "number":
            return (int(token.text), place + 1) if len(token.text) <= 3 and self.is_plain(place) else None  # noqa: PLR2004
        word = self.word(place)
        if word == "half" and self.word(place + 1) in {"a", "an"}:
            return 0.5, place + 2
        if word in {"a", "an"} and self.word(place + 1) in {"couple", "few", "dozen", "hundred"}:
            place, word = place + 1, self.word(place + 1)
        if word not in NUMBERS:
            return None
        value, after = NUMBERS[word], self.skip(place + 1, "of") if word == "couple" else place + 1
        if value >= 2 * TENS and self.token(after).word == "-" and 0 < NUMBERS.get(self.word(after + 1), 0) < TENS:
            value, after = value + NUMBERS[self.word(after + 1)], after + 2
        return float(value), after

    def quantity(self, place: int) -> tuple[float, str, int] | None:
        """A number of units, and the place behind them: "two weeks", "1.5 years", "a year and a half"."""
        counted = self._decimal(place) or self.number(place)
        if counted is None:
            return None
        count, after = counted
        if self.text[self.token(after).start : self.token(after + 2).end] == "1/2":
            count, after = count + 0.5, after + 3
        if self._half_behind(after):
            count, after = count + 0.5, after + 3
        unit = UNITS.get(self.word(after))
        if unit is None or self.hyphenated(after):
            return None
        after += 1
        if self._half_behind(after):
            count, after = count + 0.5, after + 3
        return count, unit, after

    def _decimal(self, place: int) -> tuple[float, int] | None:
        token = self.token(place)
        match = DECIMAL.match(self.text, token.start) if token.kind == "number" else None
        if match is None or AMOUNT_BEFORE.search(self.text[max(0, token.start - 2) : token.start]):
            return None
        return float(match.group().replace(",", ".")), place + len(("1", ".", "5"))

    def _half_behind(self, place: int) -> bool:
        return (self.word(place), self.word(place + 1), self.word(place + 2)) == ("and", "a", "half")


def long_year(year: int) -> int:
    """The year that one of two digits stands for; a longer one stands for itself."""
    if year > NEWEST_SHORT_YEAR:
        return year if year >= 100 else year + 1900  # noqa: PLR2004
    return year + 2000
