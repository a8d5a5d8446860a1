"""What a question says beyond its words: rules only, no model.

Dates become windows for the temporal arm. Names and speakers are left to the keyword arm, which holds them already: a
further boost for them gained nothing on development data.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from astrocyte.model import RecallQuery, TimeRange
from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import hinted_windows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = EPOCH.toordinal()
DAY_MS = 86_400_000
MILLISECOND = timedelta(milliseconds=1)
# The instants that datetime can hold, in milliseconds since the epoch.
EARLIEST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LATEST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def to_ms(value: datetime) -> int:
    """Milliseconds since the epoch, finer digits cut off."""
    return (value - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    """The instant in UTC, or the nearest that there is."""
    if not EARLIEST_MS <= value <= LATEST_MS:
        value = min(max(value, EARLIEST_MS), LATEST_MS)
    return EPOCH + value * MILLISECOND


def time_windows(
    text: str | None, *, first: int, last: int, reference: datetime | None, time_range: TimeRange | None
) -> list[tuple[int, int]]:
    """Windows (first, last) in milliseconds that the question asks about.

    Args:
        text: The question, where it may name a time; else None.
        first: The bank's earliest time of happening.
        last: Its latest; "yesterday" counts from there unless ``reference`` is given.
        reference: What relative dates count from.
        time_range: The caller's own range; it is a window too.
    """
    windows = []
    if time_range is not None:
        windows.append(
            (
                EARLIEST_MS if time_range.start is None else to_ms(time_range.start),
                LATEST_MS if time_range.end is None else to_ms(time_range.end),
            )
        )
    if text is None:
        return windows
    today = reference.astimezone(UTC).date() if reference is not None else _day_of(last)
    for start, end in hinted_windows(text, Calendar.of(_day_of(first), _day_of(last), today)):
        windows.append(((start - EPOCH_ORDINAL) * DAY_MS, (end + 1 - EPOCH_ORDINAL) * DAY_MS - 1))
    return windows


def today_of(query: RecallQuery, last: int | None) -> date | None:
    """What relative dates of a query count from: its own date, else the bank's latest day; None in an empty bank."""
    if query.query_reference_date is not None:
        return query.query_reference_date.astimezone(UTC).date()
    return None if last is None else _day_of(last)


def _day_of(milliseconds: int) -> date:
    return from_ms(milliseconds).date()


def optional_ms(value: datetime | None) -> int | None:
    """Milliseconds since the epoch, or None."""
    return None if value is None else to_ms(value)
