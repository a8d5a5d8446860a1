"""Dates in questions of other languages than English, by dateparser (extra `dates`).

The rules of `date_parser` know English and ISO dates, in microseconds. dateparser knows two hundred languages, in tens
of milliseconds, so it runs in the executor, for the languages that the settings name, and is asked for nothing else. It
takes short words for weekdays ("die" is Tuesday to it), so an expression must hold a digit or a word of five letters.
"""

from __future__ import annotations

import calendar
import re
import threading
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from dateparser.data.languages_info import language_order
from dateparser.date import DateDataParser
from dateparser.search import search_dates

from astrocyte.config import Settings
from astrocyte.pipelines.query.spans import days
from astrocyte.pipelines.query.time_windows import window_of

# Longer texts are not questions, and the search takes time by their length.
MOST_CHARS = 500
TELLING = re.compile(r"\d|[^\W\d_]{5}")
# A word at the end of what the search cut out that belongs to what follows ("vor drei Tagen in").
TRAILING = re.compile(r"\s+[^\W\d_]{1,3}\W*$")
# What dateparser raises at texts that it should have refused.
FAILURES = (ValueError, OverflowError, TypeError, AttributeError, RecursionError)


class MultilingualDates:
    """Finds windows of time in a question. Safe to use from any thread, one question at a time.

    Args:
        settings: The languages, by their codes.

    Raises:
        ConfigError: dateparser does not know one of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._languages = list(settings.recall.date_languages)
        self._lock = threading.Lock()
        strange = [language for language in self._languages if language not in language_order]
        if strange:
            raise settings.refusal(
                ("recall", "date_languages"), f"dateparser does not know {strange[0]!r}; use codes such as de, fr"
            )

    def windows(self, text: str, reference: datetime) -> list[tuple[int, int]]:
        """Windows (first, last) in milliseconds, in the order of the text.

        Args:
            text: The question.
            reference: What relative dates count from, in the zone of their days.
        """
        if len(text) > MOST_CHARS:
            return []
        base = {
            "RELATIVE_BASE": datetime.combine(reference.date(), time()),
            "PREFER_DATES_FROM": "past",
            "RETURN_AS_TIMEZONE_AWARE": False,
        }
        with self._lock:
            try:
                found = search_dates(text, languages=self._languages, settings=base) or []
                parser = DateDataParser(languages=self._languages, settings=base)
                spans = [parser.get_date_data(TRAILING.sub("", said)) for said, _ in found if TELLING.search(said)]
            except FAILURES:
                return []
        zone = reference.tzinfo or UTC
        return [
            _window(span.date_obj.date(), span.period, zone) for span in spans if span is not None and span.date_obj
        ]


def _window(day: date, period: str, zone: tzinfo) -> tuple[int, int]:
    first = last = day
    if period == "week":
        first = day - timedelta(days=day.weekday())
        last = first + timedelta(days=6)
    elif period == "month":
        first, last = day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
    elif period == "year":
        first, last = date(day.year, 1, 1), date(day.year, 12, 31)
    return window_of(days(first, last), zone)
