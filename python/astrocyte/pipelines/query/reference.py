"""The instant and the time zone that the relative dates of a query count from."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from astrocyte.config.loading.time_zone import zone_of
from astrocyte.model import RecallQuery
from astrocyte.pipelines.query.date_parser import may_name_time
from astrocyte.pipelines.query.time_windows import from_ms

# With one of these the minute counts, and not only the day.
MINUTE_WORDS = re.compile(r"\b(?:seconds?|mins?|minutes?|hours?|hrs|now|earlier|later|since)\b", re.IGNORECASE)
NO_OFFSET = timedelta()


class ReferenceClock:
    """Resolves the reference of queries.

    The instant is the query's ``query_reference_date``, else the clock's. The zone is the query's ``time_zone``, else
    the offset of ``query_reference_date`` where that is not UTC, else the bank's. UTC is how an instant without an
    offset is written, so that it says nothing of where the caller is.

    Args:
        clock: Milliseconds since the epoch.
        zone_name: The name of a bank's time zone, by the bank's id.
    """

    def __init__(self, clock: Callable[[], int], zone_name: Callable[[str], str]) -> None:
        self._clock = clock
        self._zone_name = zone_name

    def of(self, query: RecallQuery, bank_id: str) -> datetime:
        """The reference of a query to a bank, in the zone of its days."""
        given = query.query_reference_date
        if query.time_zone is None and given is not None and given.utcoffset() != NO_OFFSET:
            return given
        name = self._zone_name(bank_id) if query.time_zone is None else query.time_zone
        moment = from_ms(self._clock()) if given is None else given
        try:
            return moment.astimezone(zone_of(name))
        except OverflowError:
            # At the ends of time there is no room for an offset.
            return moment.astimezone(UTC)

    def mark(self, query: RecallQuery, bank_id: str, *, always: bool) -> str:
        """The part of the clock that an answer depends on: nothing, the day, or the minute.

        Args:
            query: What is asked.
            bank_id: The bank.
            always: Whether others read dates in the question, of which the rules here know nothing.
        """
        if query.query_reference_date is not None or not (always or may_name_time(query.query)):
            return ""
        now = self.of(query, bank_id)
        return now.isoformat(timespec="minutes") if MINUTE_WORDS.search(query.query) else str(now.date())
