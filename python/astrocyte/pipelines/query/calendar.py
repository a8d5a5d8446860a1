"""The words of dates, as numbers, and the calendar of a bank."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

# A bank that spans more years than this would turn "in May" into noise; the latest ones are asked about most.
MOST_YEARS = 30
# Years that leave room for arithmetic on both sides within what `datetime.date` can hold.
EARLIEST, LATEST = date(1000, 1, 1), date(9000, 12, 31)
_MONTH_NAMES = [name.lower() for name in calendar.month_name]
MOST_MONTHS = 12
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES) if name}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WEEKDAYS = [name.lower() for name in calendar.day_name]
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {name: number for number, name in enumerate(_NUMBER_WORDS.split())}
NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}
# Days of a unit, and how far around "N units ago" may have been meant.
UNIT_DAYS = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.44, "year": 365.25}
UNIT_SLACK = {"day": 0, "week": 3, "weekend": 3, "month": 15, "year": 90}
PARTS = {
    "early": (1, 10),
    "beginning of": (1, 10),
    "start of": (1, 10),
    "mid": (11, 20),
    "middle of": (11, 20),
    "late": (21, 31),
    "end of": (21, 31),
    "first half of": (1, 15),
    "second half of": (16, 31),
}
# Months of a part of a year.
YEAR_PARTS = {"early": (1, 4), "beginning of": (1, 3), "start of": (1, 3), "mid": (5, 8), "middle of": (5, 8)}
YEAR_PARTS |= {"late": (9, 12), "end of": (10, 12), "first half of": (1, 6), "second half of": (7, 12)}
# Years of a part of a decade.
DECADE_PARTS = {"early": (0, 3), "mid": (3, 6), "late": (6, 9), None: (0, 9)}
ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": 4}
# Units from the reference's own; any other word is the one before.
AHEAD = {"this": 0, "next": 1, "the coming": 1, "this coming": 1}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


@dataclass(frozen=True, slots=True)
class Calendar:
    """What the bank's own dates say: its years, and the day that "yesterday" counts from."""

    years: Sequence[int]
    reference: date

    @classmethod
    def of(cls, first: date, last: date, reference: date) -> Calendar:
        """The calendar of a bank whose memories are dated from ``first`` to ``last``."""
        first, last, reference = (min(max(day, EARLIEST), LATEST) for day in (first, last, reference))
        return cls(range(first.year, last.year + 1)[-MOST_YEARS:] or [reference.year], reference)
