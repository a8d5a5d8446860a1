"""Dates made of other dates: parts of them, their nth units, what is so long before or after them."""

from __future__ import annotations

import calendar
from dataclasses import replace

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import (
    FINAL,
    MONTHS,
    ORDINALS,
    PARTS,
    PARTS_OF,
    SEASONS,
    UNITS,
    WEEKDAYS,
    Calendar,
)
from astrocyte.pipelines.query.clock_times import ClockTimes
from astrocyte.pipelines.query.date_parts import IMPOSSIBLE, Match
from astrocyte.pipelines.query.date_tokens import FISCAL
from astrocyte.pipelines.query.spans import DAY, DAYS_OF, OPEN_START, SECONDS_OF, Point, Span

BEGINNING = {"beginning", "starting", "commencing"}
# Behind "a week from Monday" these make a range of it.
RANGES = {"to", "until", "till", "through"}
# An expression within an expression ("the week before the last Monday of May") has few levels.
MOST_DEPTH = 4


class ComposedDates(ClockTimes):
    """Reads any point in time; arguments as of `DatedTokens`."""

    def __init__(self, text: str, bank: Calendar) -> None:
        super().__init__(text, bank)
        # The last expression that named one window.
        self.named: Span | None = None
        # By place and depth: forms that begin alike would else read what they have in common again, at each depth.
        self._points: dict[tuple[int, int, bool], Match] = {}

    def article(self, place: int) -> int:
        """The place behind an article and what makes a year a fiscal one."""
        return self.skip(self.skip(place, "the"), *FISCAL)

    def point(self, place: int, depth: int = 0, *, joined: bool = False) -> Match:
        """The point that begins at a place, with what refines it."""
        if depth > MOST_DEPTH or not self.token(place).kind:
            return None
        known = (place, depth, joined)
        if known not in self._points:
            self._points[known] = self._point(place, depth, joined=joined)
        return self._points[known]

    def _point(self, place: int, depth: int, *, joined: bool) -> Match:
        clock = self.clock_first(place, depth)
        if clock is not None:
            return clock
        found = self._composed(place, depth) or self._simple(place, joined=joined)
        if found is None:
            return None
        point, after = found
        if point is IMPOSSIBLE:
            return found
        return self.refined(*self._contained(point, after, depth))

    def _simple(self, place: int, *, joined: bool) -> Match:
        token = self.token(place)
        if token.kind == "number":
            dated = self.day_first(place) or self.basic(place, joined=joined)
            return dated or self.year(place, joined=joined) or self.relative(place)
        if token.kind == "word":
            return self.relative(place) or self.absolute(place)
        if token.kind == "ordinal":
            return self.day_first(place) or self.day_alone(place)
        return self.absolute(place)

    def _contained(self, point: Point, place: int, depth: int) -> tuple[Point, int]:
        """A point within another one that is named behind it: "last week on Monday", "the weekend of last month"."""
        if point.grain == "week":
            weekday = self.word(self.skip(place, "on"))
            if weekday in WEEKDAYS:
                return self.weekday_in(point, WEEKDAYS[weekday]), self.skip(place, "on") + 1
        if point.grain == "year" and len(point.spans) == 1:
            named = self._of_year(place)
            if named is not None:
                return named[0].of_years([point.spans[0].start.year]), named[1]
        if point.grain == "day" and self.word(self.skip(place, ",")) in WEEKDAYS and self.token(place).word == ",":
            return point, place + 2
        if self.word(place) == "of" and depth < MOST_DEPTH:
            outer = self.point(self.article(place + 1), depth + 1)
            if outer is not None and outer[0].spans:
                kept = [
                    Span(max(span.start, other.start), min(span.end, other.end))
                    for span in point.spans
                    for other in outer[0].spans
                    if span.start < other.end and other.start < span.end
                ]
                return (replace(point, spans=tuple(kept), in_year=None) if kept else point), outer[1]
        return point, place

    def _of_year(self, place: int) -> Match:
        """A date of the year before it: "last year's Q4", "2025's May"; without the possessive a quarter or season."""
        possessive = self.text[self.token(place - 1).end : self.token(place).start].strip()[:1] in {"'", "\u2019"}
        if not possessive and self.token(place).kind != "quarter" and self.word(place) not in SEASONS:
            return None
        found = self.absolute(place, sure=True)
        return found if found is not None and found[0].in_year is not None else None

    def _composed(self, place: int, depth: int) -> Match:
        """A point that is made of another one: a part of it, its nth unit, so long before or after it."""
        place = self.article(place)
        word = self.word(place)
        if word in PARTS or word in PARTS_OF or (self._half(place) and self.word(place + 1) == "half"):
            return self._part(place, depth)
        found = self._not_far_from(place, depth) if word == "within" else None
        if word in ORDINALS or self.token(place).kind == "ordinal":
            found = self._nth(place, depth)
        if found is None and (word in UNITS or self.number(place) is not None):
            found = self._around(place, depth) or self._counted_from(place, depth) or self._beside(place, depth)
        if found is None and word in {"this", "same"}:
            found = self._same_time(place)
        return found

    def _part(self, place: int, depth: int) -> Match:
        word = self.word(place)
        if self._half(place) and word not in PARTS:
            part, after = f"{self._half(place)} half", place + 2
        else:
            part, after = PARTS.get(word) or PARTS_OF[word], place + 1
        if word not in PARTS and self.word(after) not in {"of", "the"} and self.word(after) not in MONTHS:
            return None
        while self.token(after).word in {"of", "in", "the", "-"}:
            after += 1
        found = self._whole(after, depth)
        if found is None or found[0] is IMPOSSIBLE:
            return found
        whole, end = found
        if any(spans.part_of(part, span, whole.grain) is None for span in whole.spans):
            return None
        point = whole.mapped(lambda span: spans.part_of(part, span, whole.grain) or span, "part")
        return replace(point, edge=part if part in {"start", "end"} else ""), end

    def _half(self, place: int) -> str:
        """The word of a half of something."""
        return {"first": "first", "1st": "first", "second": "second", "2nd": "second"}.get(self.token(place).word, "")

    def _whole(self, place: int, depth: int) -> Match:
        """The whole of a part: a point, or a unit that contains today ("the end of the month")."""
        article = self.word(place - 1) == "the"
        place = self.skip(place, *FISCAL)
        unit = UNITS.get(self.word(place))
        if unit in {"week", "month", "quarter", "year", "decade"} and article:
            behind = self.word(place + 1)
            if behind not in {"before", "after", "of"} and self.token(place + 1).kind != "number":
                # Of a month that was named before, where there is one: "in May and at the end of the month".
                named = self.named
                anchor = self.bank.today if named is None or OPEN_START in named else named.start.date()
                return Point((spans.unit_of(unit, anchor),), unit), place + 1
        if self.token(place).kind == "number":
            # A hyphen stands before the year of "mid-2023".
            year = self.year(place, joined=True)
            return self._contained(*year, depth) if year is not None else self.point(place, depth + 1)
        return self.point(place, depth + 1)

    def _nth(self, place: int, depth: int) -> Match:
        """Reads "the first week of May", "the third Monday of June", "the last two days of 2024"."""
        number, after, count = self._ordinal(place), place + 1, 1
        numbers = [number]
        if self.word(after) == "and" and (self.word(after + 1) in ORDINALS or self.token(after + 1).kind == "ordinal"):
            numbers, after = [number, self._ordinal(after + 1)], after + 2
        counted = self.number(after)
        if counted is not None and counted[0] >= 1 and (number in {1, -1}):
            count, after = round(counted[0]), counted[1]
        name = self.word(after)
        if self.word(after + 1) in {"before", "after"} and number in {1, FINAL}:
            return self._nearest_to(name, after + 1, depth)
        if self.word(after + 1) not in {"of", "in"} or (name not in UNITS and name not in WEEKDAYS):
            return None
        inner = self.skip(after + 2, "the")
        found = self._whole(inner, depth)
        if found is None or found[0] is IMPOSSIBLE:
            return found
        whole, end = found
        unit = UNITS.get(name)
        if unit in SECONDS_OF or unit == "decade":
            return None

        def pick(span: Span, number: int = number) -> Span | None:
            if unit is None:
                return spans.nth_weekday(number, WEEKDAYS[name], span)
            return spans.nth(number, unit, count, span)

        own = whole.in_year if len(numbers) == 1 else None

        def in_year(year: int) -> Span | None:
            span = own(year) if own else None
            return None if span is None else pick(span)

        kept = [picked for span in whole.spans for one in numbers if (picked := pick(span, one)) is not None]
        grain = "day" if unit in {None, "day"} and count == 1 else (unit or "day")
        return Point(tuple(kept), "week" if grain == "weekend" else grain, in_year if own else None), end

    def _ordinal(self, place: int) -> int:
        token = self.token(place)
        return ORDINALS[token.word] if token.kind == "word" else int(token.text[:-2])

    def _nearest_to(self, name: str, place: int, depth: int) -> Match:
        """Reads "the last weekend before 8 May", "the first Monday after Christmas"."""
        side = self.word(place)
        if name not in WEEKDAYS and UNITS.get(name) != "weekend":
            return None
        found = self.point(self.article(place + 1), depth + 1)
        if found is None or found[0] is IMPOSSIBLE:
            return found

        def change(span: Span) -> Span:
            week = 7 * DAY
            around = Span(span.start - week, span.start) if side == "before" else Span(span.end, span.end + week)
            length = 1 if name in WEEKDAYS else 2
            first = spans.nth_weekday(1, WEEKDAYS.get(name, calendar.SATURDAY), around) or around
            if side == "before" and first.start + length * DAY > span.start:
                first = Span(first.start - week, first.end)
            return Span(first.start, first.start + length * DAY)

        return found[0].mapped(change, "day" if name in WEEKDAYS else "week"), found[1]

    def _around(self, place: int, depth: int) -> Match:
        """Reads "the week of 8 May", "the weekend of May 8", "the week ending 8 May"."""
        unit = self.word(place)
        side = self.word(place + 1)
        if unit not in {"week", "weekend"} or side not in {"of", *BEGINNING, "ending"}:
            return None
        found = self.point(self.skip(self.article(place + 2), "on"), depth + 1)
        if found is None or found[0].grain != "day":
            return None
        if unit == "week" and side != "of":
            before, after = (0 * DAY, 6 * DAY) if side in BEGINNING else (6 * DAY, 0 * DAY)
            return found[0].mapped(lambda span: Span(span.start - before, span.end + after), "week"), found[1]
        return found[0].mapped(lambda span: spans.unit_of(unit, span.start.date()), "week"), found[1]

    def _beside(self, place: int, depth: int) -> Match:
        """Reads "the week before 8 May", "two days after Christmas", "the two weeks before X"."""
        found = self.quantity(place) if self.word(place) not in UNITS else (1.0, UNITS[self.word(place)], place + 1)
        if found is None:
            return None
        count, unit, after = found
        side = self.word(after)
        if side not in {"before", "after", "following", "preceding"} or unit in SECONDS_OF:
            return None
        inner = self.point(self.article(after + 1), depth + 1)
        if inner is None or inner[0] is IMPOSSIBLE:
            return inner
        base, end = inner
        sign = -1 if side in {"before", "preceding"} else 1
        single = self.word(place) in UNITS
        whole = single or self.word(place - 1) == "the"
        if base.limits is not None:
            base = replace(base, spans=(base.limits,), limits=None)

        def change(span: Span) -> Span:
            edge = span.start if sign < 0 else span.end
            if unit == "weekend" and single:
                saturday = (
                    edge - ((edge.weekday() - 5) % 7 or 7) * DAY if sign < 0 else edge + (5 - edge.weekday()) % 7 * DAY
                )
                if sign < 0 and saturday + 2 * DAY > edge:
                    saturday -= 7 * DAY
                return Span(saturday, saturday + 2 * DAY)
            other = spans.moved(edge, sign * count, unit)
            if whole:
                return Span(min(edge, other), max(edge, other))
            day = spans.moved(span.start if sign < 0 else span.end - DAY, sign * count, unit)
            return self.away(0, unit, day).spans[0]

        if whole:
            grain = {"weekend": "week"}.get(unit, unit) if count == 1 else "stretch"
        else:
            grain = {"day": "day", "week": "week", "fortnight": "week"}.get(unit, "about")
        return base.mapped(change, grain), end

    def _counted_from(self, place: int, depth: int) -> Match:
        """Reads "two weeks from tomorrow", "a week from Monday": of a weekday, the next one is meant."""
        found = self.quantity(place)
        if found is None or self.word(found[2]) != "from" or self.word(place - 1) == "the":
            return None
        count, unit, after = found
        inner = self.point(self.article(after + 1), depth + 1)
        if inner is None or inner[0].grain != "day" or len(inner[0].spans) != 1 or unit in SECONDS_OF:
            return None
        if self.token(inner[1]).word in RANGES:
            return None
        day = inner[0].spans[0]
        if inner[0].weekday:
            day = self.nearest(day.start.weekday(), ahead=True)
        point = self.away(count, unit, day.start)
        return (Point((point.limits,), "day") if point.limits and unit in DAYS_OF else point), inner[1]

    def _not_far_from(self, place: int, depth: int) -> Match:
        """Reads "within 3 days of Christmas", "within two weeks after 8 May"."""
        found = self.quantity(place + 1)
        if found is None or self.word(found[2]) not in {"of", "before", "after"}:
            return None
        count, unit, after = found
        side = self.word(after)
        inner = self.point(self.article(after + 1), depth + 1)
        if inner is None or inner[0] is IMPOSSIBLE:
            return inner
        base, end = inner
        if base.limits is not None:
            base = replace(base, spans=(base.limits,), limits=None)

        def change(span: Span) -> Span:
            first = span.end if side == "after" else spans.moved(span.start, -count, unit)
            return Span(first, span.start if side == "before" else spans.moved(span.end, count, unit))

        return base.mapped(change, "stretch"), end

    def _same_time(self, place: int) -> Match:
        """Reads "this time last year"."""
        if self.word(place + 1) not in {"time", "day"} or self.word(place + 2) not in {"last", "next"}:
            return None
        unit = UNITS.get(self.word(place + 3))
        if unit is None or unit in SECONDS_OF:
            return None
        point = self.away(-1 if self.word(place + 2) == "last" else 1, unit)
        around = {"year": 15, "month": 3}.get(unit, 0)
        day = point.limits or point.spans[0]
        return Point((Span(day.start - around * DAY, day.end + around * DAY),), "about", limits=day), place + 4
