"""Date expressions in a question, as half-open windows of local time. Rules only, for English and ISO dates.

An expression without a year stands for every year of the bank; one such as "last week" counts from a reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import (
    DECADES,
    MONTHS,
    NUMBERS,
    ORDINALS,
    PARTS,
    PARTS_OF,
    SEASONS,
    UNITS,
    WEEKDAY_ABBREVIATIONS,
    WEEKDAYS,
    Calendar,
)
from astrocyte.pipelines.query.clock_times import NAMED
from astrocyte.pipelines.query.date_context import NAMES
from astrocyte.pipelines.query.date_parts import IMPOSSIBLE
from astrocyte.pipelines.query.directions import DIRECTION_WORDS, Expression, limits_of
from astrocyte.pipelines.query.exclusions import ExcludedDates
from astrocyte.pipelines.query.holidays import FIRST_WORDS
from astrocyte.pipelines.query.relative_dates import DAY_WORDS, TO_DATE, WHICH
from astrocyte.pipelines.query.spans import DAY, OPEN_END, OPEN_START, Point, Span

# First and last day of a window, both included, as proleptic Gregorian ordinals.
Window = tuple[int, int]
# Each may stand for a window of every year of the bank. Questions have one or two; a pasted text has any number, and
# many windows together tell no memory from another.
MOST_EXPRESSIONS = 16
# A word of an expression, or the beginning of one; most questions have none, and their tokens are never looked at.
HINT = re.compile(
    r"\d|\b(?:(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|christmas|valentine|halloween"
    r"|easter)|(?:may|last|next|coming|upcoming|this|these|past|previous|prior|current|recent|recently|lately|earlier|later"
    r"|now|ago|hence|today|tonight|yesterday|tomorrow|spring|summer|autumn|fall|winter|thanksgiving|new year|pentecost"
    r"|epiphany|corpus christi|ytd|qtd|mtd|wtd|[a-z]+ties"
    r"|(?:minute|hour|day|week|weekend|fortnight|month|quarter|year|decade)s?)\b)"
)
# A question for a date cannot be narrowed by one.
ASKS_FOR_DATE = re.compile(r"\W*when did\b", re.IGNORECASE)
# Beside another date these count from that.
VAGUE = {"recently", "lately"}
# Of a range, the first end of which is no date: "from the launch to May 2025".
RANGE_WORDS = {"between": {"and"}, "from": {"to", "through", "thru"}}
# Most words of that end.
MOST_WORDS = 4
JOINERS = {"to", "-", "\u2013", "\u2014", "through", "thru", "until", "till"}
# Words that an expression may begin with; no other word is looked at twice.
STARTERS = {
    "between",
    "from",
    "in",
    "within",
    "half",
    "new",
    "calendar",
    "this",
    "same",
    "these",
    "recent",
    "recently",
    "lately",
}
STARTERS |= DIRECTION_WORDS | PARTS.keys() | PARTS_OF.keys() | ORDINALS.keys() | UNITS.keys() | NUMBERS.keys()
STARTERS |= (
    MONTHS.keys() | SEASONS.keys() | FIRST_WORDS | DECADES.keys() | WEEKDAYS.keys() | WEEKDAY_ABBREVIATIONS.keys()
)
STARTERS |= WHICH.keys() | DAY_WORDS.keys() | TO_DATE.keys() | spans.DAY_PARTS.keys() | NAMED.keys()
SILENT = {"word", "sign"}


@dataclass(frozen=True, slots=True)
class DateReading:
    """The time expressions of a question.

    Attributes:
        spans: Its windows, ascending, without repeats.
        problems: Dates that no calendar has, each as a sentence.
        places: First character of each expression, and the character behind it.
        directed: Whether one of them names the time on one side of a date.
        excluded: Those of them whose own date is not in the time that is named: "before 2025", "but not in May".
    """

    spans: tuple[Span, ...] = ()
    problems: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    directed: bool = False
    excluded: tuple[tuple[int, int], ...] = ()


NOTHING = DateReading()


def may_name_time(text: str) -> bool:
    """True if a question may have an expression of time; False is sure."""
    return HINT.search(text.lower()) is not None


def find_windows(text: str, bank: Calendar) -> list[Window]:
    """The days of the date expressions in ``text``, ascending; see `read_dates`."""
    found = read_dates(text, bank).spans if may_name_time(text) else ()
    return sorted({(span.start.toordinal(), max(span.start, span.end - spans.TICK).toordinal()) for span in found})


def read_dates(text: str, bank: Calendar) -> DateReading:
    """The date expressions of a text that `may_name_time`; none where it asks for a date.

    Of more than `MOST_EXPRESSIONS` the first ones are taken.
    """
    if ASKS_FOR_DATE.match(text):
        return NOTHING
    return DateReader(text, bank).read()


def without(text: str, places: Sequence[tuple[int, int]]) -> str:
    """A text without the parts at some places, in their order."""
    rest, end = [], 0
    for start, stop in places:
        rest.append(text[end:start])
        end = stop
    return " ".join([*rest, text[end:]])


class DateReader(ExcludedDates):
    """Reads the expressions of one text; arguments as of `DatedTokens`."""

    def read(self) -> DateReading:
        """All expressions in the order of the text; none overlaps another."""
        found: list[Expression] = []
        recent: list[Span] = []
        places: list[tuple[int, int]] = []
        place, count = 0, len(self.tokens)
        while place < count and len(places) < MOST_EXPRESSIONS:
            if self.tokens[place].kind in SILENT and self.tokens[place].word not in STARTERS:
                place += 1
                continue
            self.side = None
            try:
                match = self.expression(place)
            except (ValueError, OverflowError):
                # Beyond what a calendar can hold.
                match = None
            if match is None:
                place += 1
                continue
            windows, after = match
            first = place - self.lead
            if self.word(place) in VAGUE and not recent:
                recent.extend(windows)
                places.append(self._place(place, after))
            elif self.word(place - 1) not in {"every", "each"}:
                kept = tuple(window for window in windows if window.start < window.end)
                found.append(Expression(kept, first, after, self.side))
                self.named = windows[0] if len(windows) == 1 else self.named
                self._points.clear()
                places.append(self._place(first, after))
            place = after
        # "In May, what had he recently bought?" asks about May.
        named = self.together(found) or recent
        return DateReading(
            tuple(sorted(set(named))),
            tuple(dict.fromkeys(self.problems)),
            tuple(places),
            any(OPEN_START in one or OPEN_END in one for one in (*named, *(w for e in found for w in e.windows))),
            tuple(self._place(one.first, one.after) for one in found if self._excludes(one)),
        )

    def _excludes(self, expression: Expression) -> bool:
        side = expression.side
        return expression.first in self.left_out or (side is not None and side.excluding)

    def _place(self, first: int, after: int) -> tuple[int, int]:
        return self.token(first).start, self.token(after - 1).end

    def expression(self, place: int) -> tuple[Sequence[Span], int] | None:  # noqa: PLR0911 - one return for each form
        """The windows of the expression that begins at a place, and the place behind it."""
        word = self.word(place)
        if word in {"between", "from"}:
            found = self._range(place + 1, between=word == "between")
            if found is not None:
                return found
            found = self._half_range(place)
            if found is not None or word == "between":
                return found
        if word in DIRECTION_WORDS:
            directed = self.direction(place)
            if directed is not None:
                return directed
        range_ = self._range(place, between=False)
        if range_ is not None:
            return range_
        match = self.point(self.article(self.skip(place, "from")))
        if match is None:
            return None
        point, after = match
        if self.word(place) == "from" and self.word(after) == "on":
            return self.directed(point, "since"), after + 1
        return self.direction_behind(point, after) or self._listed(point, after)

    def _half_range(self, place: int) -> tuple[Sequence[Span], int] | None:
        """Reads "between the wedding and May 2025": an end that is no date leaves the range open there."""
        if self.point(self.article(place + 1)) is not None:
            return None
        for joiner in range(place + 2, place + 2 + MOST_WORDS):
            if self.token(joiner).kind != "word":
                return None
            if self.word(joiner) in RANGE_WORDS[self.word(place)]:
                first = self.article(joiner + 1)
                match = self.point(first, joined=True)
                if match is None or match[0] is IMPOSSIBLE:
                    return None
                # Of two persons the second may be April.
                person = match[0].in_year is not None and self.word(first) in NAMES
                return None if person else (self.directed(match[0], "until"), match[1])
        return None

    def _listed(self, point: Point, place: int) -> tuple[Sequence[Span], int]:
        """A point, of the year that is named behind the next one: "in May and June 2023"."""
        behind = self.token(place).word
        if point.in_year is not None and behind in {"and", "or", ",", "&"}:
            other = self.point(place + 1)
            if other is not None and other[0].in_year is None and other[0].grain == point.grain and other[0].spans:
                year = other[0].spans[0].start.year
                if str(year) in self.text[self.token(place).start : self.token(other[1] - 1).end]:
                    return (*point.of_years([year]).spans, *other[0].spans), other[1]
        return point.spans, place

    def _range(self, place: int, *, between: bool) -> tuple[Sequence[Span], int] | None:
        """From the start of one point to the end of another."""
        first = self.point(self.article(place))
        if first is None:
            return None
        joiner = self.token(first[1]).word
        if joiner not in JOINERS and not (between and joiner == "and"):
            return None
        begin, middle = first
        if self.word(middle + 1) in {"now", "today"} or (joiner == "to" and self.word(middle + 1) == "date"):
            return [Span(self.limits(begin)[0].start, self.day(0).end)], middle + 2
        second = self.point(self.article(middle + 1), joined=True)
        if second is None:
            return (self.directed(begin, "since"), middle) if between else None
        end, after = second
        if IMPOSSIBLE in {begin, end}:
            return (), after
        return self._joined(begin, end), after

    def _joined(self, begin: Point, end: Point) -> list[Span]:
        """The ranges between two points, by years where they have none."""
        if begin.in_year is not None and end.in_year is not None:
            pairs = [(begin.of_years([year]), end.of_years([year])) for year in self.bank.years]
            return [
                span
                for number, (one, other) in enumerate(pairs)
                for span in self._between(one, other, end.of_years([self.bank.years[number] + 1]))
            ]
        if begin.in_year is not None and end.spans:
            year = end.spans[0].start.year
            return self._between(begin.of_years([year]), end) or self._between(begin.of_years([year - 1]), end)
        if end.in_year is not None and begin.spans:
            year = begin.spans[0].start.year
            return self._between(begin, end.of_years([year]), end.of_years([year + 1]))
        if end.weekday and begin.spans and end.spans and end.spans[0].start < begin.spans[0].start:
            weeks = -((end.spans[0].start - begin.spans[0].start).days // 7)
            end = end.mapped(lambda span: Span(span.start + weeks * 7 * DAY, span.end + weeks * 7 * DAY), end.grain)
        return self._between(begin, end) or self._between(end, begin)

    @staticmethod
    def _between(begin: Point, end: Point, later: Point | None = None) -> list[Span]:
        """From the first limit to the last; to that of ``later`` where the end would come before."""
        if not begin.spans or not end.spans:
            return []
        start = (begin.limits or limits_of(begin.spans[0], begin.edge)).start
        stop = (end.limits or limits_of(end.spans[-1], end.edge)).end
        if stop <= start and later is not None and later.spans:
            stop = limits_of(later.spans[0], later.edge).end
        return [Span(start, stop)] if start < stop else []
