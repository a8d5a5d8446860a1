"""Dates that count from now: "yesterday", "last week", "on Monday", "two months ago", "the next three days"."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import (
    MONTHS,
    NUMBERS,
    SEASONS,
    UNITS,
    WEEKDAY_ABBREVIATIONS,
    WEEKDAYS,
    Calendar,
)
from astrocyte.pipelines.query.date_context import CAPITAL_WEEKDAYS, NO_WEEKDAY, WEEKDAY_CONTEXT
from astrocyte.pipelines.query.date_parts import Match
from astrocyte.pipelines.query.date_tokens import FISCAL
from astrocyte.pipelines.query.holidays import FIRST_WORDS
from astrocyte.pipelines.query.named_dates import AbsoluteDates, of_weekday
from astrocyte.pipelines.query.spans import DAY, SECONDS_OF, SLACK_DAYS, Point, Span, unit_of

# Days back that "recently" may mean.
RECENT_DAYS = 30
# What a plural without a number ("in recent weeks") counts.
FEW = NUMBERS["few"]
# "twenty minutes ago", give or take.
CLOCK_SLACK = {"second": 30, "minute": 300, "hour": 1800}
WHICH = {"last": -1, "past": -1, "previous": -1, "prior": -1, "this": 0, "current": 0}
WHICH |= {"next": 1, "coming": 1, "upcoming": 1}
DAY_WORDS = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
# The question is about what is to come.
FUTURE = re.compile(
    r"\b(?:will|shall|should(?! (?:\w+ )?have)|going to|upcoming|due|must|ha(?:ve|s) to|needs? to|do(?:es)? \w+ have"
    r"|deadlines?|am i|are we|is there)\b|'ll\b"
)
# It is about what was.
PAST = re.compile(r"\b(?:did|was|were|had|has|have|been|\w{2,}[^\We]ed)\b")
# It is about how long something takes: "what can I learn in two weeks?"
LASTING = re.compile(r"\b(?:can|could|how (?:much|many|far|long|often|fast))\b")
TO_DATE = {"ytd": "year", "qtd": "quarter", "mtd": "month", "wtd": "week"}
# Behind a unit or a weekday.
BEYOND = {("before", "last"): -2, ("after", "next"): 2}
PLURAL_PARTS = {f"{part}s" for part in spans.DAY_PARTS}


class RelativeDates(AbsoluteDates):
    """Parses these dates; arguments as of `DatedTokens`."""

    def __init__(self, text: str, bank: Calendar) -> None:
        super().__init__(text, bank)
        small = text.lower()
        self.future = FUTURE.search(small) is not None
        self.past = PAST.search(small) is not None
        self.lasting = LASTING.search(small) is not None

    def relative(self, place: int) -> Match:  # noqa: PLR0911 - one return for each form
        """The relative date that begins at a place."""
        word = self.word(place)
        if word in WHICH or word == "recent":
            return self._which(place)
        if word in DAY_WORDS:
            return self._day_word(place)
        if word in WEEKDAYS or word in WEEKDAY_ABBREVIATIONS:
            return self._weekday(place)
        if word in {"recently", "lately"} or (word == "these" and self.word(place + 1) == "days"):
            return self._recently(place + 1 + (word == "these"))
        if word in {"earlier", "later"}:
            return self._rest_of(place)
        if word in UNITS or word in TO_DATE:
            return self._to_date(place) or (self._second_next(place) if word in UNITS else None)
        if word == "in":
            return self._in_so_long(place)
        if word == "within":
            return self._within(place)
        return self.ago(place)

    def day(self, ahead: int) -> Span:
        """The day so many days from the reference's."""
        return unit_of("day", self.bank.today, ahead)

    def ago(self, place: int) -> Match:
        """Reads "two weeks ago", "three days from now"."""
        found = self.quantity(place)
        if found is None:
            return self._weekdays_ago(place)
        count, unit, after = found
        if self.word(after) == "ago" and self.word(after + 1) in DAY_WORDS and unit not in SECONDS_OF:
            # "A year ago today" is one day, though "a year ago" is about that time.
            day = self.bank.now + DAY_WORDS[self.word(after + 1)] * DAY
            exact = self.away(-count, unit, day)
            return Point((exact.limits or exact.spans[0],), "day"), after + 2
        if self.word(after) in {"ago", "earlier"} or (self.word(after) == "back" and self._ends(after + 1)):
            return self.away(-count, unit), after + 1
        if (self.word(after), self.word(after + 1)) == ("from", "now") or self.word(after) == "hence":
            return self.away(count, unit), after + (1 if self.word(after) == "hence" else 2)
        return None

    def _weekdays_ago(self, place: int) -> Match:
        """Reads "two Fridays ago"."""
        counted = self.number(place)
        if counted is None or self.word(counted[1] + 1) != "ago":
            return None
        weekday = WEEKDAYS.get(self.word(counted[1]).removesuffix("s"))
        if weekday is None or not counted[0]:
            return None
        back = (round(counted[0]) - 1) * 7 * DAY
        return self._days_ahead(self.nearest(weekday, ahead=False), -back), counted[1] + 2

    @staticmethod
    def _days_ahead(day: Span, length: timedelta) -> Point:
        return Point((Span(day.start + length, day.end + length),), "day")

    def _in_so_long(self, place: int) -> Match:
        """Reads "in two weeks' time"; without "time" it may be a length, as the question's other words say."""
        found = self.quantity(place + 1)
        if found is None:
            return None
        count, unit, after = found
        timed = self.word(after) == "time"
        ahead = timed or self.future or (self._ends(after) and not self.past and not self.lasting)
        return (self.away(count, unit), after + timed) if ahead else None

    def _within(self, place: int) -> Match:
        """Reads "within 3 days": ahead, back, or either, as the question's other words say."""
        found = self.quantity(place + 1)
        if found is None or not (self.future or self._ends(found[2])):
            return None
        count, unit, after = found
        start, end = (self.bank.now, self.bank.now) if unit in SECONDS_OF else self.day(0)
        if self.future or not self.past:
            end = self.stretch(count, unit).spans[0].end
        if not self.future:
            start = self.stretch(-count, unit).spans[0].start
        return Point((Span(start, end),), "stretch"), after

    def _ends(self, place: int) -> bool:
        """True if no word goes on at a place."""
        return self.token(place).kind in {"", "sign"} and not self.hyphenated(place - 1)

    def _to_date(self, place: int) -> Match:
        """Reads "year to date", "month-to-date" and "YTD"."""
        unit, after = TO_DATE.get(self.word(place)), place + 1
        if unit is None:
            unit, after = UNITS[self.word(place)], self.skip(after, "-")
            date = self.skip(after + 1, "-")
            if unit not in TO_DATE.values() or self.word(after) != "to" or self.word(date) != "date":
                return None
            after = date + 1
        return Point((Span(unit_of(unit, self.bank.today).start, self.day(0).end),), "stretch"), after

    def away(self, count: float, unit: str, start: datetime | None = None) -> Point:
        """About so many units from now, or from another moment."""
        now = self.bank.now if start is None else start
        middle = spans.moved(now, count, unit)
        if unit in SECONDS_OF:
            slack = CLOCK_SLACK[unit]
            around = Span(spans.moved(middle, -slack, "second"), spans.moved(middle, slack, "second"))
            return Point((around,), "time", limits=Span(middle, middle))
        exact = spans.days(middle.date(), middle.date())
        if unit == "day":
            return Point((exact,), "day")
        if unit == "year" and count % 1:
            # Half a year is as exact as a number of months.
            around = Span(spans.moved(exact.start, -1, "month"), spans.moved(exact.start, 1, "month") + DAY)
        else:
            slack = SLACK_DAYS[unit]
            around = Span(exact.start - slack * DAY, exact.end + slack * DAY)
        return Point((around,), "week" if unit in {"week", "fortnight"} else "about", limits=exact)

    def _which(self, place: int) -> Match:  # noqa: PLR0911 - one return for each form
        """Reads "last", "this" or "next" before a unit, a number of them, a weekday, a month, a season or a holiday."""
        word, after = self.word(place), place + 1
        article = self.word(place - 1) == "the"
        if word == "recent":
            unit = UNITS.get(self.word(after))
            plural = unit is not None and self.word(after).endswith("s")
            return (self.stretch(-FEW, unit), after + 1) if unit is not None and plural else None
        ahead, rolling = WHICH[word], word == "past" or (article and word == "last")
        if word == "this" and self.word(after) in {"past", "last", "coming", "next"}:
            ahead, after = WHICH[self.word(after)], after + 1
        fiscal = self.skip(after, *FISCAL)
        after = fiscal if UNITS.get(self.word(fiscal)) in {"quarter", "year"} else after
        found = self.quantity(after)
        if found is not None and ahead:
            count, unit, end = found
            return self.stretch(ahead * count, unit), end
        name = self.word(after)
        unit = UNITS.get(name)
        if unit is not None:
            return self._which_unit(unit, ahead, after, rolling=rolling)
        if name in spans.DAY_PARTS:
            # "last night" is yesterday's.
            return self.part_of_day(self.day(ahead), name), after + 1
        if name in WEEKDAYS or name in WEEKDAY_ABBREVIATIONS:
            return self._which_weekday(ahead, after)
        named = name in MONTHS or name in SEASONS or name in FIRST_WORDS
        if named or self.token(after).kind == "quarter":
            return self._which_named(ahead, after)
        return None

    def _which_unit(  # noqa: PLR0911 - one return for each form
        self, unit: str, ahead: int, place: int, *, rolling: bool
    ) -> Match:
        plural, after = self.word(place).endswith("s"), place + 1
        if self.hyphenated(place) or self.word(after) == "of":
            # "last week of term" is no week that counts from now.
            return None
        if plural or unit in SECONDS_OF:
            if not ahead:
                return None
            return self.stretch(ahead * (FEW if plural else 1), unit), after
        if unit == "day":
            return (self.stretch(-1, unit), after) if ahead < 0 and rolling else None
        if unit == "fortnight" and ahead:
            # No calendar has fortnights.
            return self.stretch(ahead, unit), after
        if rolling and unit not in {"quarter", "weekend"}:
            return self.stretch(-1, unit), after
        if unit == "weekend" and self.word(place - 1) in {"coming", "upcoming"}:
            ahead = 0 if unit_of(unit, self.bank.today).start.date() > self.bank.today else 1
        return Point((unit_of(unit, self.bank.today, ahead),), unit if unit != "weekend" else "week"), after

    def stretch(self, count: float, unit: str) -> Point:
        """The last or next so many units, up to now or from tomorrow on; quarters and weekends are whole ones."""
        now = self.bank.now
        if unit in SECONDS_OF:
            ends = sorted((now, spans.moved(now, count, unit)))
            return Point((Span(ends[0], ends[1]),), "time")
        if unit in {"quarter", "weekend"}:
            first, last = (round(count), -1) if count < 0 else (1, round(count))
            begin, end = (unit_of(unit, self.bank.today, ahead) for ahead in (first, last))
            return Point((Span(begin.start, end.end),), unit)
        other = spans.moved(now, count, unit).date()
        if count < 0:
            return Point((spans.days(other, self.bank.today),), "stretch")
        return Point((Span(self.day(1).start, spans.days(other, other).end),), "stretch")

    def _which_weekday(self, ahead: int, place: int) -> Match:
        weekday = (WEEKDAYS | WEEKDAY_ABBREVIATIONS)[self.word(place)]
        today = self.bank.today
        if ahead == 0:
            monday = unit_of("week", today).start
            day = Span(monday + weekday * DAY, monday + (weekday + 1) * DAY)
        else:
            day = self.nearest(weekday, ahead=ahead > 0)
        return self._dated_weekday(Point((day,), "day"), weekday, place + 1)

    def day_alone(self, place: int) -> Match:
        """Reads "on the 21st": of the latest month that has it, or of the next one."""
        number, behind = int(self.token(place).text[:-2]), self.token(place + 1)
        dated = self.word(place - 1) == "the" and self.word(place - 2) in WEEKDAY_CONTEXT
        if not dated or behind.kind not in {"", "sign"}:
            # "On the 3rd floor".
            return None
        today = self.bank.today
        found = []
        for ahead in range(-2, 3):
            first = unit_of("month", today, ahead).start
            day = spans.day_of(first.year, first.month, number)
            if day is not None and (day > today if self.future else day <= today):
                found.append(spans.days(day, day))
        return (Point((found[0 if self.future else -1],), "day"), place + 1) if found else None

    def nearest(self, weekday: int, *, ahead: bool) -> Span:
        """The nearest such weekday after the reference's day, or before it."""
        today = self.bank.today
        return self.day(((weekday - today.weekday()) % 7 or 7) if ahead else -((today.weekday() - weekday) % 7 or 7))

    def _weekday(self, place: int) -> Match:
        token, before = self.token(place), self.word(place - 1)
        # "On three Monday nights".
        if before in NO_WEEKDAY or before in NUMBERS or self.word(place + 1) in PLURAL_PARTS:
            return None
        weekday = (WEEKDAYS | WEEKDAY_ABBREVIATIONS)[token.word]
        moved = self._moved_weekday(weekday, place + 1)
        if moved is not None:
            return moved
        point = Point((self.nearest(weekday, ahead=self.future),), "day", weekday=True)
        found = self._dated_weekday(point, weekday, place + 1)
        if token.word in WEEKDAY_ABBREVIATIONS and found is not None and found[0].weekday:
            unsure = token.word in CAPITAL_WEEKDAYS and token.text.islower()
            if before not in WEEKDAY_CONTEXT or unsure:
                return None
        return found

    def _moved_weekday(self, weekday: int, place: int) -> Match:
        """Reads "Monday before last", "Friday next" and "Monday week", which is a week after the next Monday."""
        words = (self.word(place), self.word(place + 1))
        if words in BEYOND and self._ends(place + 2):
            ahead = words == ("after", "next")
            return self._days_ahead(self.nearest(weekday, ahead=ahead), 7 * DAY if ahead else -7 * DAY), place + 2
        if not self._ends(place + 1):
            return None
        if words[0] == "week":
            return self._days_ahead(self.nearest(weekday, ahead=True), 7 * DAY), place + 1
        if words[0] in {"next", "last"}:
            return Point((self.nearest(weekday, ahead=words[0] == "next"),), "day"), place + 1
        return None

    def _dated_weekday(self, point: Point, weekday: int, place: int) -> Match:
        """A weekday with the date, or the week, that may follow it."""
        after = self.skip(self.skip(place, "."), ",")
        dated = self.day_first(self.skip(after, "the")) or self.absolute(after)
        if dated is not None and dated[0].grain == "day":
            return of_weekday(dated[0], weekday, self.bank.years), dated[1]
        week = self.skip(self.skip(self.skip(place, ","), "of", "in"), "the")
        found = None
        if UNITS.get(self.word(week)) == "week" or (self.word(week) in WHICH and self.word(week + 1) == "week"):
            found = self.relative(week)
        elif self.number(week) is not None:
            found = self.ago(week)
        if found is not None and found[0].grain == "week":
            return self.weekday_in(found[0], weekday), found[1]
        return point, place

    @staticmethod
    def weekday_in(week: Point, weekday: int) -> Point:
        """The weekday of a week."""
        days = [found for span in week.spans if (found := spans.nth_weekday(1, weekday, span)) is not None]
        return Point(tuple(days) or week.spans, "day")

    def _which_named(self, ahead: int, place: int) -> Match:
        """Reads "last May", "next Christmas", "this summer": the nearest one that is over, or has not begun."""
        found = self.absolute(place)
        if found is None or found[0].in_year is None:
            return found
        point, after = found
        year, today = self.bank.today.year, self.bank.today
        if ahead == 0:
            winter = point.grain == "season" and today.month <= 6 and self.word(place) == "winter"  # noqa: PLR2004
            return point.of_years([year - 1 if winter else year]), after
        candidates = replace(point, spans=()).of_years([year + move for move in range(-5, 6)]).spans
        start, end = self.day(0)
        if ahead < 0:
            return Point(tuple(span for span in candidates if span.end <= start)[-1:], point.grain), after
        return Point(tuple(span for span in candidates if span.start >= end)[:1], point.grain), after

    def _day_word(self, place: int) -> Match:
        word = self.word(place)
        if word == "tonight":
            return self.part_of_day(self.day(0), "night"), place + 1
        return Point((self.day(DAY_WORDS[word]),), "day"), place + 1

    @staticmethod
    def part_of_day(day: Span, part: str) -> Point:
        """The part of a day."""
        first, last = spans.DAY_PARTS[part]
        return Point((Span(spans.moved(day.start, first, "hour"), spans.moved(day.start, last, "hour")),), "time")

    def _recently(self, place: int) -> Match:
        return Point((Span(self.day(-RECENT_DAYS).start, self.day(0).end),), "stretch"), place

    def _rest_of(self, place: int) -> Match:
        """Reads "earlier this year", "later today"."""
        earlier, after = self.word(place) == "earlier", place + 1
        if self.word(after) == "today":
            now, day = self.bank.now, self.day(0)
            return Point((Span(day.start, now) if earlier else Span(now, day.end),), "time"), after + 1
        unit = UNITS.get(self.word(after + 1))
        if self.word(after) != "this" or unit is None or unit in SECONDS_OF or unit in {"day", "weekend"}:
            return None
        whole, today = unit_of(unit, self.bank.today), self.day(0)
        rest = Span(whole.start, today.end) if earlier else Span(today.end, whole.end)
        return Point((rest,) if rest.start < rest.end else (), "stretch"), after + 2

    def _second_next(self, place: int) -> Match:
        """Reads "the weekend before last", "the week after next"."""
        unit = UNITS[self.word(place)]
        ahead = BEYOND.get((self.word(place + 1), self.word(place + 2)))
        if ahead is None or unit in SECONDS_OF or unit == "day":
            return None
        if self.word(place + 3) in UNITS or self.word(place + 3) in WEEKDAYS or self.word(place + 3) in SEASONS:
            # "the week before last Christmas".
            return None
        return Point((unit_of(unit, self.bank.today, ahead),), unit if unit != "weekend" else "week"), place + 3

    def relative_year(self, place: int) -> tuple[list[int], int] | None:
        """The year that counts from now ("last year", "two years ago"), and the place behind it."""
        place = self.skip(place, "the")
        year = self.bank.today.year
        unit = self.skip(place + 1, *FISCAL)
        if self.word(place) in WHICH and self.word(unit) == "year":
            return [year + WHICH[self.word(place)]], unit + 1
        if self.word(place) == "year" and (second := self._second_next(place)) is not None:
            return [second[0].spans[0].start.year], second[1]
        found = self.quantity(place)
        if found is not None and found[1] == "year" and self.word(found[2]) == "ago":
            return [year - round(found[0])], found[2] + 1
        return None
