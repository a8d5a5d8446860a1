"""Directions: the time on one side of a date ("before 2025"), and what several of them mean together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from astrocyte.pipelines.query.composed_dates import ComposedDates
from astrocyte.pipelines.query.date_parts import Match
from astrocyte.pipelines.query.spans import DAY, OPEN_END, OPEN_START, TICK, Point, Span

PREPOSITIONS = {"in", "on", "at", "during", "of", "around", "about"}
DIRECTIONS = {
    ("before",): "before",
    ("prior", "to"): "before",
    ("earlier", "than"): "before",
    ("sooner", "than"): "before",
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
    ("pre",): "before",
    ("post",): "after",
}
# Before a time that counts back from now: "more than two years ago", "less than a week ago".
OF_AGE = {
    ("more", "than"): "before",
    ("longer", "than"): "before",
    ("over",): "before",
    ("at", "least"): "until",
    ("less", "than"): "after",
    ("fewer", "than"): "after",
    ("under",): "after",
    ("at", "most"): "since",
}
DIRECTION_WORDS = {words[0] for words in (*DIRECTIONS, *OF_AGE)}
# Behind a date.
BEHIND = {
    ("or", "later"): "since",
    ("and", "later"): "since",
    ("or", "earlier"): "until",
    ("and", "earlier"): "until",
    ("at", "the", "earliest"): "since",
    ("at", "the", "latest"): "until",
    ("and", "onward"): "since",
    ("and", "onwards"): "since",
    ("onward",): "since",
    ("onwards",): "since",
    ("and", "forward"): "since",
    ("forward",): "since",
    ("forwards",): "since",
    ("and", "beyond"): "since",
    ("or", "after"): "since",
    ("and", "after"): "since",
    ("or", "before"): "until",
    ("and", "before"): "until",
}
# "In 2024 or later this year" has two dates.
GOES_ON = {"this", "that", "than", "today"}
# These stand before a date too.
BOTH_SIDES = {"after", "before", "forward", "forwards", "beyond"}
NEGATIONS = {"not", "neither", "nor"}
COMPARATIVES = {"earlier", "sooner", "later"}
# "It wasn't before 2025"; with other verbs, what follows is not what is negated.
NEGATED_VERBS = {"isn", "aren", "wasn", "weren"}
# The other side. "Not until May" begins in May, and "not since May" was in May for the last time.
OTHER_SIDE = {"before": "since", "after": "until", "since": "until", "until": "after"}
# "On or before".
INCLUDING = {"before": "until", "after": "since"}
NOT_UNTIL = {"until", "till", "til"}
# Between two expressions these say that each is a time of its own.
APART = {"or", "than", "versus", "vs", "compared", "who", "what", "which", "where", "how", "why", "?", ".", ";"}
# Between a date and a direction beside it: "in 2025, but before June".
CLOSE = {",", "but", "in", "on", "during", "at"}
# Years around the reference, and around another date, in which a date without a year is looked for.
NEAR_YEARS, BESIDE_YEARS = range(-5, 6), range(-1, 2)


class Side(NamedTuple):
    """A direction and what it counts from.

    Attributes:
        point: The date.
        name: A value of `DIRECTIONS`.
        lead: Number of words before its own that change it: "not before", "on or before".
        carried: Whether the word that turned it around stands before another one: "not before 2022 or after 2024".
    """

    point: Point
    name: str
    lead: int = 0
    carried: bool = False

    @property
    def excluding(self) -> bool:
        """True where the date itself is left out."""
        return self.name in {"before", "after"}

    @property
    def begins(self) -> bool:
        """True where the time begins with the date; else it ends there."""
        return self.name in {"since", "after"}


class Expression(NamedTuple):
    """An expression of time in a text.

    Attributes:
        windows: What it names by itself.
        first: Place of its first token.
        after: Place behind its last token.
        side: Its direction, if it begins with one.
    """

    windows: tuple[Span, ...]
    first: int
    after: int
    side: Side | None


class DirectedDates(ComposedDates):
    """Reads directions; arguments as of `DatedTokens`."""

    # Of the expression that was read last; None if it has none.
    side: Side | None = None
    # The place behind the last direction that was turned around.
    _negated_end = -1

    @property
    def lead(self) -> int:
        """The number of words before the last expression that belong to its direction."""
        return 0 if self.side is None else self.side.lead

    def direction(self, place: int) -> tuple[Sequence[Span], int] | None:
        """The time that the direction at a place names, and the place behind its date."""
        for length in (2, 1):
            name = DIRECTIONS.get(tuple(self.word(place + number) for number in range(length)))
            if name is not None:
                after = place + length
                break
        else:
            return self._of_age(place)
        if name in {"before", "after"} and self.word(place) in {"pre", "post"}:
            return self._prefixed(place, name)
        if (self.word(after), self.word(after + 1)) == ("and", "including"):
            after += 2
        if self.word(after) == "now" and name != "after":
            return [Span(OPEN_START, self.bank.now)], after + 1
        while self.word(after) in PREPOSITIONS:
            after += 1
        match = self.point(self.article(after)) or self._lone_clock(after, name)
        if match is None:
            return None
        point, end = match
        carried = name in INCLUDING and self.word(place - 1) == "or" and self._negated_end == place - 1
        negated, lead = self._is_negated(place), 0
        if negated or carried:
            name = "since" if self.word(place) in NOT_UNTIL else OTHER_SIDE[name]
            self._negated_end = end
            # Of "wasn't" nothing is left out.
            lead = int(negated and self.word(place - 1) != "t")
        elif name in INCLUDING and self.word(place - 1) == "or" and self.word(place - 2) in {"on", "in", "at"}:
            name, lead = INCLUDING[name], 2
        self.side = Side(point, name, lead, carried)
        return self.directed(point, name), end

    def direction_behind(self, point: Point, place: int) -> tuple[Sequence[Span], int] | None:
        """Reads "in 2025 or later", "by Friday at the latest": the direction stands behind the date."""
        for length in (3, 2, 1):
            name = BEHIND.get(tuple(self.word(place + number) for number in range(length)))
            behind = place + length
            if name is None or self.word(behind) in GOES_ON:
                continue
            goes_on = self.token(behind).kind not in {"", "sign"}
            if not goes_on or self.word(behind - 1) not in BOTH_SIDES:
                self.side = Side(point, name)
                return self.directed(point, name), behind
        return None

    def _of_age(self, place: int) -> tuple[Sequence[Span], int] | None:
        for length in (2, 1):
            name = OF_AGE.get(tuple(self.word(place + number) for number in range(length)))
            match = None if name is None else self.ago(place + length)
            if name is not None and match is not None and self.word(match[1] - 1) == "ago":
                negated = self.word(place - 1) in {"no", "not"}
                name = OTHER_SIDE[name] if negated else name
                self.side = Side(match[0], name, int(negated))
                return self.directed(match[0], name), match[1]
        return None

    def _prefixed(self, place: int, name: str) -> tuple[Sequence[Span], int] | None:
        """Reads "pre-2024"."""
        match = self.point(place + 2, joined=True) if self.token(place + 1).word == "-" else None
        if match is None:
            return None
        self.side = Side(match[0], name)
        return self.directed(match[0], name), match[1]

    def _is_negated(self, place: int) -> bool:
        before = self.word(place - 1)
        if before == "t":
            return self.word(place - 3) in NEGATED_VERBS and self.token(place - 2).word in {"'", "\u2019"}
        return before in NEGATIONS or (before == "no" and self.word(place) in COMPARATIVES)

    def _lone_clock(self, place: int, direction: str) -> Match:
        """Reads "since 9 am": of today, or of yesterday where that is still to come."""
        clock = self.clock(place) if direction == "since" else None
        if clock is None:
            return None
        start = self.day(0).start + clock[0].start
        start = start if start <= self.bank.now else start - DAY
        return Point((Span(start, start),), "time"), clock[1]

    def directed(self, point: Point, direction: str) -> list[Span]:
        """The time on one side of a point."""
        day = point.within or Span(OPEN_START, OPEN_END)
        found = []
        for limits in self.limits(point):
            start, end = {
                "before": (day.start, limits.start),
                "after": (limits.end, day.end),
                "since": (limits.start, day.end),
                "until": (day.start, limits.end),
            }[direction]
            if start < end:
                found.append(Span(start, end))
        return found

    def limits(self, point: Point) -> list[Span]:
        """The origins of a direction: without a year, the latest one that has begun, or the next one to end."""
        if point.limits is not None:
            return [point.limits]
        found = point.spans
        if point.in_year is not None:
            near, now = self._in_years(point, NEAR_YEARS, self.bank.today.year).spans, self.bank.now
            ahead, begun = [span for span in near if span.end > now], [span for span in near if span.start <= now]
            found = tuple(ahead[:1] if self.future else begun[-1:])
        return [limits_of(span, point.edge) for span in found]

    @staticmethod
    def _in_years(point: Point, moves: range, year: int) -> Point:
        return point.of_years([year + move for move in moves])

    def together(self, found: Sequence[Expression]) -> list[Span]:
        """The windows of all expressions: directions narrow one another, other dates stand side by side."""
        groups: list[tuple[Span, ...]] = []
        for place, expression in enumerate(found):
            narrowed = self._narrowed(groups[-1], found[place - 1], expression) if groups else ()
            if narrowed:
                groups[-1] = narrowed
            else:
                groups.append(expression.windows)
        return [window for group in groups for window in group]

    def _narrowed(self, group: tuple[Span, ...], last: Expression, expression: Expression) -> tuple[Span, ...]:
        """Return the windows that an expression leaves of those before it; none where it is a time of its own."""
        words = {self.token(place).word for place in range(last.after, expression.first)}
        one, other = last.side, expression.side
        if one is not None and other is not None:
            if words & APART and not other.carried:
                return ()
            # With three of them, the years that the first two have together are settled.
            exact = self._between_sides(one, other) if group == last.windows else []
            return tuple(exact) or common(group, expression.windows)
        if (one is None) == (other is None) or words - CLOSE:
            return ()
        if other is not None and other.point.in_year is not None and len(group) == 1:
            year = group[0].start.year
            if (group[0].end - TICK).year == year:
                return common(group, self.directed(other.point.of_years([year]), other.name))
        return common(group, expression.windows)

    def _between_sides(self, one: Side, other: Side) -> list[Span]:
        """The time between two directions of which one has no year, or a weekday: "after May and before July 2025"."""
        if one.begins == other.begins:
            return []
        lower, upper = (one, other) if one.begins else (other, one)
        fixed = [side for side in (lower, upper) if side.point.in_year is None]
        if not fixed:
            return self._of_one_year(lower, upper) if one.begins else []
        limits = self.limits(fixed[0].point)
        if len(fixed) == 1 and limits:
            # "Before May and after July 2025" has two sides of one year.
            moves = BESIDE_YEARS if one.begins else range(1)
            pairs = self._pairs(lower, upper, moves, limits[0].start.year)
            return pairs[:1] if fixed[0] is lower else pairs[-1:]
        return self._in_weeks(lower, upper) if one.begins and upper.point.weekday else []

    def _of_one_year(self, lower: Side, upper: Side) -> list[Span]:
        """The latest such time that has begun, or the next one to end."""
        pairs, now = self._pairs(lower, upper, NEAR_YEARS, self.bank.today.year), self.bank.now
        if self.future:
            return [pair for pair in pairs if pair.end > now][:1]
        return [pair for pair in pairs if pair.start <= now][-1:]

    def _pairs(self, lower: Side, upper: Side, moves: range, year: int) -> list[Span]:
        """From each date of one side to the next of the other, in the years around one."""
        begins = self.directed(self._in_years(lower.point, moves, year), lower.name)
        ends = self.directed(self._in_years(upper.point, moves, year), upper.name)
        return [
            Span(begin.start, min(later))
            for begin in begins
            if (later := [span.end for span in ends if span.end > begin.start])
        ]

    def _in_weeks(self, lower: Side, upper: Side) -> list[Span]:
        """Up to the next such weekday: "since Wednesday until Monday"."""
        found = []
        for begin in self.directed(lower.point, lower.name):
            for end in self.directed(upper.point, upper.name):
                weeks = max(0, -((end.end - begin.start - TICK).days // 7)) if end.end <= begin.start else 0
                found.append(Span(begin.start, end.end + weeks * 7 * DAY))
        return [span for span in found if span.start < span.end]


def common(first: Sequence[Span], second: Sequence[Span]) -> tuple[Span, ...]:
    """The time that windows of both have."""
    return tuple(
        Span(max(one.start, other.start), min(one.end, other.end))
        for one in first
        for other in second
        if one.start < other.end and other.start < one.end
    )


def limits_of(span: Span, edge: str) -> Span:
    """The origin of a direction: the span, or one of its edges."""
    if not edge:
        return span
    moment = span.start if edge == "start" else span.end
    return Span(moment, moment)
