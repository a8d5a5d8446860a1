"""Dates that a question leaves out: "in 2025 but not in May", "last week except on Wednesday"."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.pipelines.query import spans
from astrocyte.pipelines.query.calendar import WEEKDAYS
from astrocyte.pipelines.query.directions import DirectedDates, Expression, common
from astrocyte.pipelines.query.spans import DAY, OPEN_END, OPEN_START, TICK, Span

# Before a date that is left out; prepositions may follow.
LEAVING_OUT = {
    ("but", "not"),
    ("and", "not"),
    ("just", "not"),
    ("though", "not"),
    ("not",),
    ("but", "except"),
    ("except",),
    ("excepting",),
    ("excluding",),
    ("apart", "from"),
    ("aside", "from"),
    ("other", "than"),
    ("outside", "of"),
    ("without",),
    ("minus",),
}
# Of these, the ones that say so before the date that they leave something out of: "except in May, what of 2025?"
BEFOREHAND = LEAVING_OUT - {("but", "not"), ("and", "not"), ("just", "not"), ("without",), ("minus",)}
# Of these, the ones that leave all other time where no other date is named.
OF_ALL_TIME = {("except",), ("excepting",), ("excluding",), ("outside", "of")}
BETWEEN = {"in", "on", "at", "during", "of", "for", "over", "the", "month", "year"}
OPENING = {",", "(", "-", "\u2013", "\u2014", ":"}
# Behind a date that is left out, another one that is left out too may follow these.
ALSO = {"and", "or", "nor", ",", "&"} | BETWEEN
# A weekday is that of a week, and a day by its number is one of a month, where no more than this is named.
WEEK, MONTH = 7 * DAY, 31 * DAY


class ExcludedDates(DirectedDates):
    """Reads dates that are left out; arguments as of `DatedTokens`."""

    # Places of the expressions that are left out, by their first token.
    left_out: frozenset[int] = frozenset()

    def together(self, found: Sequence[Expression]) -> list[Span]:
        """The windows of all expressions, without those that are left out of them."""
        kept: list[Expression] = []
        # What is left out, and how many of the kept expressions stand before it.
        without: list[tuple[Expression, int]] = []
        pending: list[Expression] = []
        for place, expression in enumerate(found):
            last = found[place - 1] if place else None
            words = self._words_before(last, expression)
            taken = kept and _leaves_out(words, LEAVING_OUT)
            also = without and without[-1][0] is last and {*words} <= ALSO and self._takes(expression, kept)
            if taken or also:
                without.append((expression, len(kept)))
            elif not kept and _leaves_out(words, BEFOREHAND):
                pending.append(expression)
            else:
                kept.append(expression)
        if not without and not pending:
            return super().together(found)
        return self._remaining(kept, without, pending)

    def _remaining(
        self, kept: Sequence[Expression], without: Sequence[tuple[Expression, int]], pending: Sequence[Expression]
    ) -> list[Span]:
        windows = super().together(kept)
        if not kept:
            if not _leaves_out(self._words_before(None, pending[0]), OF_ALL_TIME):
                return super().together(pending)
            windows = [Span(OPEN_START, OPEN_END)]
        gone = [*((expression, len(kept)) for expression in pending), *without]
        self.left_out = frozenset(expression.first for expression, _ in gone)
        for expression, count in gone:
            before = windows if count == len(kept) else super().together(kept[:count])
            beside = [common([window], before) != () for window in windows]
            windows = [
                rest
                for window, taken in zip(windows, beside, strict=True)
                for rest in minus(window, self._beside_window(expression, window) if taken else ())
            ]
        return windows

    def _words_before(self, last: Expression | None, expression: Expression) -> list[str]:
        first = 0 if last is None else last.after
        # "Apart from May": an expression may begin with "from".
        return [self.token(place).word for place in range(first, self._date_of(expression))]

    def _date_of(self, expression: Expression) -> int:
        return self.article(self.skip(expression.first, "from"))

    def _takes(self, expression: Expression, kept: Sequence[Expression]) -> bool:
        windows = [window for one in kept for window in one.windows]
        return any(minus(window, self._beside_window(expression, window)) != [window] for window in windows)

    def _beside_window(self, expression: Expression, window: Span) -> Sequence[Span]:
        """The windows of an expression, as they are meant beside another window: a weekday is one of its week."""
        place, length = self._date_of(expression), window.end - window.start
        token = self.token(place)
        if window.start == OPEN_START or window.end == OPEN_END:
            return expression.windows
        if expression.after - place == 1:
            if token.word in WEEKDAYS and length <= WEEK:
                day = spans.nth_weekday(1, WEEKDAYS[token.word], window)
                return () if day is None else (day,)
            if token.kind == "ordinal" and length <= MONTH:
                day_ = spans.day_of(window.start.year, window.start.month, int(token.text[:-2]))
                return () if day_ is None else (spans.days(day_, day_),)
        side = expression.side
        if side is not None and side.point.in_year is not None:
            years = range(window.start.year, (window.end - TICK).year + 1)
            return [span for year in years for span in self.directed(side.point.of_years([year]), side.name)]
        return expression.windows


def _leaves_out(words: Sequence[str], among: set[tuple[str, ...]]) -> bool:
    """True if the words before a date end with words that leave it out."""
    rest = list(words)
    while rest and rest[-1] in BETWEEN and tuple(rest[-2:]) not in among:
        rest.pop()
    return tuple(rest[-2:]) in among or tuple(rest[-1:]) in among


def minus(window: Span, others: Sequence[Span]) -> list[Span]:
    """Return the parts of a window that are left without others."""
    rest = [window]
    for other in others:
        rest = [
            part
            for one in rest
            for part in (Span(one.start, min(one.end, other.start)), Span(max(one.start, other.end), one.end))
            if part.start < part.end
        ]
    return rest
