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
    HOLIDAYS,
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
from astrocyte.pipelines.query.composed_dates import ComposedDates
from astrocyte.pipelines.query.date_parts import IMPOSSIBLE, Match
from astrocyte.pipelines.query.relative_dates import DAY_WORDS, WHICH
from astrocyte.pipelines.query.spans import DAY, OPEN_END, OPEN_START, Point, Span

# First and last day of a window, both included, as proleptic Gregorian ordinals.
Window = tuple[int, int]
# Each may stand for a window of every year of the bank. Questions have one or two; a pasted text has any number, and
# many windows together tell no memory from another.
MOST_EXPRESSIONS = 16
# A word of an expression, or the beginning of one; most questions have none, and their tokens are never looked at.
HINT = re.compile(
    r"\d|\b(?:(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|christmas|valentine|halloween)"
    r"|(?:may|last|next|coming|upcoming|this|these|past|previous|prior|current|recent|recently|lately|earlier|later|now"
    r"|ago|hence|today|tonight|yesterday|tomorrow|spring|summer|autumn|fall|winter|thanksgiving|new year|[a-z]+ties"
    r"|(?:minute|hour|day|week|weekend|fortnight|month|quarter|year|decade)s?)\b)"
)
# A question for a date cannot be narrowed by one.
ASKS_FOR_DATE = re.compile(r"\W*when did\b", re.IGNORECASE)
# Beside another date these count from that.
VAGUE = {"recently", "lately"}
JOINERS = {"to", "-", "\u2013", "\u2014", "through", "thru", "until", "till"}
PREPOSITIONS = {"in", "on", "at", "during", "of", "around", "about"}
DIRECTIONS = {
    ("before",): "before",
    ("prior", "to"): "before",
    ("earlier", "than"): "before",
    ("after",): "after",
    ("later", "than"): "after",
    ("since",): "since",
    ("starting", "from"): "since",
    ("starting",): "since",
    ("until",): "until",
    ("till",): "until",
    ("til",): "until",
    ("up", "to"): "until",
    ("up", "until"): "until",
    ("by",): "until",
    ("through",): "until",
    ("no", "later", "than"): "until",
}
# Directions that leave out the date itself begin with one of these.
EXCLUDING = {"before", "after", "prior", "earlier", "later"}
DIRECTION_WORDS = {words[0] for words in DIRECTIONS}
# Words that an expression may begin with; no other word is looked at twice.
STARTERS = {"between", "from", "in", "half", "new", "calendar", "this", "same", "these", "recent", "recently", "lately"}
STARTERS |= DIRECTION_WORDS | PARTS.keys() | PARTS_OF.keys() | ORDINALS.keys() | UNITS.keys() | NUMBERS.keys()
STARTERS |= MONTHS.keys() | SEASONS.keys() | HOLIDAYS | DECADES.keys() | WEEKDAYS.keys() | WEEKDAY_ABBREVIATIONS.keys()
STARTERS |= WHICH.keys() | DAY_WORDS.keys() | spans.DAY_PARTS.keys() | NAMED.keys()
SILENT = {"word", "sign"}


@dataclass(frozen=True, slots=True)
class DateReading:
    """The time expressions of a question.

    Attributes:
        spans: Its windows, ascending, without repeats.
        problems: Dates that no calendar has, each as a sentence.
        places: First character of each expression, and the character behind it.
        directed: Whether one of them names the time on one side of a date.
        excluded: Those of them whose own date is not in the time that they name: "before 2025".
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


class DateReader(ComposedDates):
    """Reads the expressions of one text; arguments as of `DatedTokens`."""

    def read(self) -> DateReading:
        """All expressions in the order of the text; none overlaps another."""
        found: list[Span] = []
        recent: list[Span] = []
        places: list[tuple[int, int]] = []
        excluded: list[tuple[int, int]] = []
        place, count = 0, len(self.tokens)
        while place < count and len(places) < MOST_EXPRESSIONS:
            if self.tokens[place].kind in SILENT and self.tokens[place].word not in STARTERS:
                place += 1
                continue
            try:
                match = self.expression(place)
            except (ValueError, OverflowError):
                # Beyond what a calendar can hold.
                match = None
            if match is None:
                place += 1
                continue
            windows, after = match
            if self.word(place) in VAGUE and not recent:
                recent.extend(windows)
                places.append((self.token(place).start, self.token(after - 1).end))
            elif self.word(place - 1) not in {"every", "each"}:
                found.extend(window for window in windows if window.start < window.end)
                self.named = windows[0] if len(windows) == 1 else self.named
                self._points.clear()
                places.append((self.token(place).start, self.token(after - 1).end))
                if self.word(place) in EXCLUDING:
                    excluded.append(places[-1])
            place = after
        # "In May, what had he recently bought?" asks about May.
        found = found or recent
        directed = any(OPEN_START in window or OPEN_END in window for window in found)
        return DateReading(
            tuple(sorted(set(found))), tuple(dict.fromkeys(self.problems)), tuple(places), directed, tuple(excluded)
        )

    def expression(self, place: int) -> tuple[Sequence[Span], int] | None:  # noqa: PLR0911 - one return for each form
        """The windows of the expression that begins at a place, and the place behind it."""
        word = self.word(place)
        if word in {"between", "from"}:
            found = self._range(place + 1, between=word == "between")
            if found is not None:
                return found
            if word == "between":
                return None
        if word in DIRECTION_WORDS:
            directed = self._direction(place)
            if directed is not None:
                return directed
        range_ = self._range(place, between=False)
        if range_ is not None:
            return range_
        match = self.point(self.article(self.skip(place, "from")))
        if match is None:
            return None
        point, after = match
        if self.word(place) == "from" and self.word(after) in {"on", "onward", "onwards"}:
            return self._directed(point, "since"), after + 1
        return self._listed(point, after)

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
        if self.word(middle + 1) in {"now", "today"}:
            return [Span(self._limits(begin)[0].start, self.day(0).end)], middle + 2
        second = self.point(self.article(middle + 1), joined=True)
        if second is None:
            return (begin.spans, middle) if between else None
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

    def _direction(self, place: int) -> tuple[Sequence[Span], int] | None:
        for length in (3, 2, 1):
            name = DIRECTIONS.get(tuple(self.word(place + number) for number in range(length)))
            if name is not None:
                after = place + length
                break
        else:
            return None
        if self.word(after) == "now" and name != "after":
            return [Span(OPEN_START, self.bank.now)], after + 1
        while self.word(after) in PREPOSITIONS:
            after += 1
        match = self.point(self.article(after)) or self._lone_clock(after, name)
        if match is None:
            return None
        point, end = match
        return self._directed(point, name), end

    def _lone_clock(self, place: int, direction: str) -> Match:
        """Reads "since 9 am": of today, or of yesterday where that is still to come."""
        clock = self.clock(place) if direction == "since" else None
        if clock is None:
            return None
        start = self.day(0).start + clock[0].start
        start = start if start <= self.bank.now else start - DAY
        return Point((Span(start, start),), "time"), clock[1]

    def _directed(self, point: Point, direction: str) -> list[Span]:
        """The time on one side of a point."""
        day = point.within or Span(OPEN_START, OPEN_END)
        found = []
        for limits in self._limits(point):
            start, end = {
                "before": (day.start, limits.start),
                "after": (limits.end, day.end),
                "since": (limits.start, day.end),
                "until": (day.start, limits.end),
            }[direction]
            if start < end:
                found.append(Span(start, end))
        return found

    def _limits(self, point: Point) -> list[Span]:
        """The origins of a direction: without a year, the latest one that has begun, or the next one to end."""
        if point.limits is not None:
            return [point.limits]
        found = point.spans
        if point.in_year is not None:
            year, now = self.bank.today.year, self.bank.now
            near = point.of_years([year + move for move in range(-5, 6)]).spans
            ahead, begun = [span for span in near if span.end > now], [span for span in near if span.start <= now]
            found = tuple(ahead[:1] if self.future else begun[-1:])
        return [limits_of(span, point.edge) for span in found]


def limits_of(span: Span, edge: str) -> Span:
    """The origin of a direction: the span, or one of its edges."""
    if not edge:
        return span
    moment = span.start if edge == "start" else span.end
    return Span(moment, moment)
