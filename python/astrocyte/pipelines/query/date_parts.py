"""Helpers of every date reader: years behind a date, days of a month, and invalid dates."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_context import COUNTED
from astrocyte.pipelines.query.date_tokens import Tokens
from astrocyte.pipelines.query.spans import Point, Span, months_from

# A point and the place behind it; None where no date begins.
Match = tuple[Point, int] | None
# The date is written, but no calendar has it: it names no time, and no part of it is another date.
IMPOSSIBLE = Point((), "impossible")

YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# "December 1,2023".
DATED = re.compile(r",(?:1[5-9]|20)\d\d\b")
# A two-digit year up to this is of this century.
NEWEST_SHORT_YEAR = 68
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
        after = self.skip(self.skip(place, ","), "of", "in")
        if self.word(self.skip(after, "the")) == "year":
            after = self.skip(after, "the") + 1
        token = self.token(after)
        if token.kind == "number" and YEAR.fullmatch(token.text) and self.word(after + 1) not in COUNTED:
            return [int(token.text)], after + 1
        if token.kind == "short":
            return [long_year(int(token.text[1:]))], after + 1
        return self.relative_year(after) or ([], place)

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


def long_year(year: int) -> int:
    """The year that one of two digits stands for; a longer one stands for itself."""
    if year > NEWEST_SHORT_YEAR:
        return year if year >= 100 else year + 1900  # noqa: PLR2004
    return year + 2000
