"""The meaning of a question's dates for one bank, in short texts."""

from datetime import date, datetime

from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import read_dates
from astrocyte.pipelines.query.spans import OPEN_END, OPEN_START

# A Friday afternoon.
NOW = datetime(2026, 11, 20, 14, 30)  # noqa: DTZ001 - local time
SINCE_2024 = Calendar.of(date(2024, 1, 1), date(2026, 11, 20), NOW)


def windows(text: str) -> list[str]:
    """Half-open windows, with empty texts for open ends."""

    def told(moment: datetime) -> str:
        if moment in {OPEN_START, OPEN_END}:
            return ""
        return moment.isoformat(timespec="minutes").removesuffix("T00:00")

    return [f"{told(start)}/{told(end)}" for start, end in read_dates(text, SINCE_2024).spans]
