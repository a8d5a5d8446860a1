"""Questions that name a time and little else, and what a memory of that time says for an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from enum import Enum

from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import may_name_time, read_dates, without
from astrocyte.pipelines.text.content_words import content_words

# Words of a question for whatever happened at a time, of which no memory need hold any.
GENERAL = frozenset(
    content_words(
        "happen happens happened happening went go goes going gone took take takes place event events anything"
        " something everything nothing things thing tell list show remember recall note notes memory memories"
        " calendar agenda schedule scheduled plan plans planned planning summary summarise summarize say said know"
        " known new news change changes changed update updates updated learn learned learnt discuss discussed talk"
        " talked recap overview recent recently latest miss missed day date time times week month year morning evening"
        " afternoon night"
    )
)
# A month.
CLOSE_MS = 31 * 86_400_000
# Which words are an expression of time does not depend on what these count from.
_SOME_DAY = Calendar.of(date(2000, 1, 1), date(2000, 1, 1), date(2000, 1, 1))


class DateEvidence(Enum):
    """The evidence that the time of the best memory gives for an answer; the value is added to the log odds."""

    # The question names no time, or the memory is of another.
    NONE = 0.0
    # The memory is of a long time that the question names beside other things, such as a year.
    MATCHED = 0.5
    # The memory is of a day, a week or a month that the question names beside other things.
    MATCHED_CLOSELY = 2.0
    # The question names nothing but a time, so that whatever happened then answers it.
    ANSWERS = 6.0


def is_general(rest: str) -> bool:
    """True if a question, without its dates, asks for any event."""
    return GENERAL.issuperset(content_words(rest))


def asks_for_time_only(text: str) -> bool:
    """True if a question names a time and nothing else."""
    if not may_name_time(text):
        return False
    places = read_dates(text, _SOME_DAY).places
    return bool(places) and is_general(without(text, places))


def evidence_of(times: Sequence[int | None], windows: Sequence[tuple[int, int]], *, only_time: bool) -> DateEvidence:
    """The evidence that the times of the found memories give for the answer to a question with these windows.

    Args:
        times: When each happened, in milliseconds, best first; None where that is not known.
        windows: First and last millisecond of each.
        only_time: Whether the question names nothing else; then any of the memories may answer it, else the first.
    """
    counted = times if only_time else times[:1]
    lengths = [last - first for at in counted if at is not None for first, last in windows if first <= at <= last]
    if not lengths:
        return DateEvidence.NONE
    if only_time:
        return DateEvidence.ANSWERS
    return DateEvidence.MATCHED_CLOSELY if min(lengths) <= CLOSE_MS else DateEvidence.MATCHED


def with_date(confidence: float, evidence: DateEvidence) -> float:
    """A confidence that knows of the date too."""
    if evidence is DateEvidence.NONE or not 0.0 < confidence < 1.0:
        return confidence
    return 1.0 / (1.0 + math.exp(-evidence.value) * (1.0 - confidence) / confidence)
