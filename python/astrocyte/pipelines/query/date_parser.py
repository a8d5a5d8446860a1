"""Date expressions in a question, as windows of days. Rules only, for English and ISO dates; see `date_rules`.

A window is (first day, last day), both included, as proleptic Gregorian ordinals. An expression without a year stands
for every year of the bank; one such as "last week" counts from a reference day.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_rules import DIGIT, RULES, Resolver, Window

# Each may stand for a window of every year of the bank. Questions have one or two; a pasted text has any number, and
# many windows together tell no memory from another.
MOST_EXPRESSIONS = 16
# Two ends of a range without years belong together when they are at most a year apart.
LONGEST_RANGE_DAYS = 366

WORD = re.compile(r"[a-z]+")
HAS_DIGIT = re.compile(r"\d")
# One of these must begin a word before any rule can match; most questions stop here.
HINTS = (
    "jan feb mar apr may jun jul aug sep oct nov dec last next coming this past previous ago week today tonight"
    " yesterday spring summer autumn fall winter quarter christmas valentine halloween thanksgiving"
)


def _by_first_letter(words: Iterable[str]) -> str:
    """A pattern of alternatives that share their first letters: it is tried at each word of a question."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in rests.items())


# Of a text in small letters.
HINT = re.compile(rf"\d|\b(?:{_by_first_letter([*HINTS.split(), 'new year'])}|q[1-4]\b)")
# A question for a date cannot be narrowed by one.
ASKS_FOR_DATE = re.compile(r"\W*when did\b", re.IGNORECASE)
JOINERS = frozenset({"to", "-", "\u2013", "\u2014", "through", "until", "till", "up to", "to the"})
BETWEEN_JOINERS = frozenset({"and", "and the"})


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    windows: list[Window]
    year: int | None
    match: re.Match[str]
    resolve: Resolver

    def in_year(self, year: int, bank: Calendar) -> list[Window]:
        """The windows that the expression would have with that year named."""
        return self.resolve(self.match, Calendar([year], bank.reference))


def may_name_time(text: str) -> bool:
    """True if a question may have an expression of time; False is sure."""
    return HINT.search(text.lower()) is not None


def find_windows(text: str, bank: Calendar) -> list[Window]:
    """Windows of the date expressions in ``text``, ascending, without repeats; none where it asks for a date.

    Of more than `MOST_EXPRESSIONS` the most precise are taken.
    """
    return hinted_windows(text, bank) if may_name_time(text) else []


def hinted_windows(text: str, bank: Calendar) -> list[Window]:
    """As `find_windows`, of a text that `may_name_time`."""
    if ASKS_FOR_DATE.match(text):
        return []
    return sorted(set(_joined(text, _expressions(text, bank), bank)))


def _expressions(text: str, bank: Calendar) -> list[_Found]:
    """Date expressions in the order of the text; none overlaps another."""
    found: list[_Found] = []
    words = set(WORD.findall(text.lower()))
    if HAS_DIGIT.search(text):
        words.add(DIGIT)
    for rule in RULES:
        if rule.cues.isdisjoint(words):
            continue
        resolve = rule.resolve
        for match in rule.pattern.finditer(text):
            place = bisect_left(found, match.end(), key=_start)
            if place and found[place - 1].end > match.start():
                continue
            windows = resolve(match, bank)
            if not windows:
                continue
            year = match.groupdict().get("year")
            found.insert(
                place, _Found(match.start(), match.end(), windows, int(year) if year else None, match, resolve)
            )
            if len(found) == MOST_EXPRESSIONS:
                return found
    return found


def _start(found: _Found) -> int:
    return found.start


def _joined(text: str, found: list[_Found], bank: Calendar) -> list[Window]:
    """All windows, where two expressions with "to" between them make one."""
    windows: list[Window] = []
    index = 0
    while index < len(found):
        pairs = _range(text, found[index], found[index + 1], bank) if index + 1 < len(found) else []
        windows.extend(pairs or found[index].windows)
        index += 2 if pairs else 1
    return windows


def _range(text: str, first: _Found, second: _Found, bank: Calendar) -> list[Window]:
    gap = text[first.end : second.start].strip().lower()
    between = text[: first.start].lower().rstrip().endswith("between")
    if gap not in JOINERS and not (between and gap in BETWEEN_JOINERS):
        return []
    # A year named once holds for both ends.
    starts, ends = first.windows, second.windows
    if first.year is None and second.year is not None:
        starts = first.in_year(second.year, bank)
    if second.year is None and first.year is not None:
        ends = second.in_year(first.year, bank)
    certain = len(starts) == len(ends) == 1
    return [
        (start[0], end[1])
        for start in starts
        for end in ends
        if start[0] <= end[1] and (certain or end[1] - start[0] <= LONGEST_RANGE_DAYS)
    ]
