"""Times of day as refinements of a day: "yesterday morning", "on 8 May at 3 pm", "from 2 to 4 pm on Monday"."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.date_parts import IMPOSSIBLE, Match
from astrocyte.pipelines.query.relative_dates import RelativeDates
from astrocyte.pipelines.query.spans import DAY, Point, Span

CLOCK = re.compile(r"(\d\d?)(?::(\d\d))?(?::(\d\d))?")
NAMED = {"noon": 12, "midday": 12, "midnight": 0}
HOURS_OF_DAY = 24
NOON = 12
JOINERS = {"to", "-", "\u2013", "\u2014", "and", "until", "till"}
DIRECTIONS = {"before", "after", "since", "until", "till", "by"}


class Clock(NamedTuple):
    """A time of day, from its start up to the end of its hour, minute or second."""

    start: timedelta
    end: timedelta


class ClockTimes(RelativeDates):
    """Reads times of day; arguments as of `DatedTokens`."""

    def clock(self, place: int, *, meridiem: str = "") -> tuple[Clock, int] | None:
        """The time of day at a place, and the place behind it; ``meridiem`` is that of the time behind it."""
        token = self.token(place)
        if token.word in NAMED:
            start = timedelta(hours=NAMED[token.word])
            return Clock(start, start + timedelta(hours=1)), place + 1
        if token.kind != "clock" and not (meridiem and token.kind == "number"):
            return None
        match = CLOCK.match(token.text)
        if match is None:
            return None
        hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
        half = meridiem or meridiem_of(token.word)
        if half:
            if not 1 <= hour <= NOON:
                return None
            hour = hour % NOON + (NOON if half == "p" else 0)
        if hour >= HOURS_OF_DAY or minute > 59 or second > 59:  # noqa: PLR2004
            return None
        start = timedelta(hours=hour, minutes=minute, seconds=second)
        length = timedelta(seconds=1) if match[3] else timedelta(minutes=1) if match[2] else timedelta(hours=1)
        return Clock(start, start + length), place + 1

    def _clock_range(self, place: int) -> tuple[Clock, int] | None:
        """Reads "2 to 4 pm" and "between 14:00 and 16:00"."""
        begin = self.skip(place, "from", "between")
        if self.token(begin).kind not in {"clock", "number"} and self.word(begin) not in NAMED:
            return None
        if self.token(begin + 1).word not in JOINERS:
            return None
        last = self.clock(begin + 2)
        if last is None:
            return None
        first = (
            self.clock(begin, meridiem=meridiem_of(self.token(begin + 2).word))
            if (self.token(begin).kind == "number")
            else self.clock(begin)
        )
        if first is None:
            return None
        start, end = first[0].start, last[0].start
        # From 10 pm to 2 am is a night.
        return Clock(start, end if end > start else end + timedelta(days=1)), begin + 3

    def clock_first(self, place: int, depth: int) -> Match:
        """A time of day before its day: "3 pm yesterday", "the morning of 8 May"."""
        word = self.word(place)
        if word in spans.DAY_PARTS and self.word(place + 1) in {"of", "on"}:
            day = self.point(self.skip(place + 2, "the"), depth + 1)
            if day is None or day[0].grain != "day":
                return None
            first, last = spans.DAY_PARTS[word]
            return self._on(day[0], Clock(timedelta(hours=first), timedelta(hours=last))), day[1]
        ranged = self._clock_range(place)
        clock = ranged or self.clock(place)
        if clock is None:
            return None
        day = self.point(self.skip(self.skip(clock[1], "on", "of", ","), "the"), depth + 1)
        if day is None or day[0].grain != "day":
            return None
        point = self._on(day[0], clock[0])
        if ranged is None and len(day[0].spans) == 1 and point.spans:
            start = point.spans[0].start
            point = replace(point, limits=Span(start, start), within=day[0].spans[0])
        return point, day[1]

    @abstractmethod
    def point(self, place: int, depth: int = 0, *, joined: bool = False) -> Match:
        """The point that begins at a place."""

    def refined(self, point: Point, place: int) -> tuple[Point, int]:  # noqa: PLR0911 - one return for each form
        """A day with the time of day that may follow it."""
        if point.grain != "day" or point is IMPOSSIBLE:
            return point, place
        after = self.skip(place, ",")
        part = self.skip(self.skip(after, "in", "during", "at"), "the")
        if self.word(part) in spans.DAY_PARTS:
            first, last = spans.DAY_PARTS[self.word(part)]
            return self._on(point, Clock(timedelta(hours=first), timedelta(hours=last))), part + 1
        ranged = self._clock_range(after)
        if ranged is not None:
            return self._on(point, ranged[0]), ranged[1]
        direction = self.word(after) if self.word(after) in DIRECTIONS else ""
        clock = self.clock(after + 1 if direction else self.skip(after, "at", "around", "about"))
        if clock is None:
            return point, place
        time, end = clock
        if direction in {"before", "until", "till", "by"}:
            return self._on(point, Clock(timedelta(), time.start)), end
        if direction:
            return self._on(point, Clock(time.start, timedelta(days=1))), end
        found = self._on(point, time)
        if len(found.spans) == 1:
            found = replace(found, limits=Span(found.spans[0].start, found.spans[0].start))
        return found, end

    @staticmethod
    def _on(day: Point, clock: Clock) -> Point:
        return day.mapped(lambda span: Span(span.start + clock.start, span.end - DAY + clock.end), "time")


def meridiem_of(text: str) -> str:
    """The half of the day that a time is in, "a" or "p"; empty where it does not say."""
    found = re.search(r"([ap])\.?m", text)
    return found[1] if found else ""
