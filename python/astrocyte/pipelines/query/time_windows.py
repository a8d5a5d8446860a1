"""Windows of instants for the dates of a question, in milliseconds since the epoch."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from astrocyte.model import TimeRange
from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import DateReading, read_dates
from astrocyte.pipelines.query.spans import OPEN_END, OPEN_START, Span

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = EPOCH.toordinal()
DAY_MS = 86_400_000
MILLISECOND = timedelta(milliseconds=1)
# The instants that datetime can hold, in milliseconds since the epoch.
EARLIEST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LOCAL_YEARS = (MINYEAR, MAXYEAR)
LATEST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def to_ms(value: datetime) -> int:
    """Milliseconds since the epoch, finer digits cut off."""
    return (value - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    """The instant in UTC, or the nearest that there is."""
    if not EARLIEST_MS <= value <= LATEST_MS:
        value = min(max(value, EARLIEST_MS), LATEST_MS)
    return EPOCH + value * MILLISECOND


class QuestionTimes(NamedTuple):
    """The time windows of a question.

    Attributes:
        windows: First and last millisecond of each window.
        problems: Its impossible dates, each as a sentence.
        reading: Its expressions.
    """

    windows: list[tuple[int, int]]
    problems: tuple[str, ...]
    reading: DateReading


def question_times(text: str, *, first: int, last: int, reference: datetime) -> QuestionTimes:
    """The times that a question asks about.

    Args:
        text: The question.
        first: The bank's earliest time of happening.
        last: Its latest.
        reference: What relative dates count from, in the zone of the question's days.
    """
    bank = Calendar.of(_day_of(first, reference.tzinfo), _day_of(last, reference.tzinfo), reference)
    found = read_dates(text, bank)
    return QuestionTimes([window_of(span, bank.zone) for span in found.spans], found.problems, found)


def _day_of(milliseconds: int, zone: tzinfo | None) -> date:
    moment = from_ms(milliseconds)
    # At the ends of time there is no room for an offset.
    return moment.astimezone(zone).date() if LOCAL_YEARS[0] < moment.year < LOCAL_YEARS[1] else moment.date()


def range_window(time_range: TimeRange) -> tuple[int, int]:
    """The window of a caller's own range."""
    return (
        EARLIEST_MS if time_range.start is None else to_ms(time_range.start),
        LATEST_MS if time_range.end is None else to_ms(time_range.end),
    )


def window_of(span: Span, zone: tzinfo) -> tuple[int, int]:
    """The window of a span of local time; an instant that no clock of the zone shows is the one an hour later."""
    start = EARLIEST_MS if span.start == OPEN_START else to_ms(span.start.replace(tzinfo=zone))
    end = LATEST_MS if span.end == OPEN_END else to_ms(span.end.replace(tzinfo=zone)) - 1
    return start, end


def optional_ms(value: datetime | None) -> int | None:
    """Milliseconds since the epoch, or None."""
    return None if value is None else to_ms(value)
