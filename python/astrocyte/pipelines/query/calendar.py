"""English words of dates as numbers, and the calendar that an expression is resolved on."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo

# A bank that spans more years than this would turn "in May" into noise; the latest ones are asked about most.
MOST_YEARS = 30
# Years that leave room for arithmetic on both sides within what `datetime` can hold.
EARLIEST, LATEST = date(1000, 1, 1), date(9000, 12, 31)
MONTH_NAMES = list(calendar.month_name)
MONTHS = {name.lower(): number for number, name in enumerate(MONTH_NAMES) if name}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WEEKDAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}
WEEKDAY_ABBREVIATIONS = {name[:3]: number for name, number in WEEKDAYS.items()}
WEEKDAY_ABBREVIATIONS |= {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
)
NUMBERS = {name: number for number, name in enumerate(_NUMBER_WORDS.split())}
NUMBERS |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
NUMBERS |= {"a": 1, "an": 1, "few": 3, "several": 4, "couple": 2, "dozen": 12}
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
# The last of a unit.
FINAL = -1
ORDINALS = {name: number for number, name in enumerate(_ORDINAL_WORDS.split(), 1)} | {"last": FINAL, "final": FINAL}
PARTS = {"early": "early", "mid": "mid", "late": "late"}
# Followed by "of".
PARTS_OF = {"beginning": "start", "start": "start", "middle": "mid", "end": "end"}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
DECADES = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70}
DECADES |= {"eighties": 80, "nineties": 90, "noughties": 100}
_UNIT_NAMES = "second minute hour day week weekend fortnight month quarter year decade"
UNITS = {name: name for name in _UNIT_NAMES.split()} | {f"{name}s": name for name in _UNIT_NAMES.split()}
UNITS |= {"min": "minute", "mins": "minute", "hrs": "hour"}


@dataclass(frozen=True, slots=True)
class Calendar:
    """The years of a bank, and the local time that relative dates count from.

    Attributes:
        years: Years that an expression without a year stands for.
        now: Local time of the reference, without its zone.
        zone: The zone that local times are in.
    """

    years: Sequence[int]
    now: datetime
    zone: tzinfo = UTC

    @classmethod
    def of(cls, first: date, last: date, reference: date | datetime) -> Calendar:
        """The calendar of a bank.

        Args:
            first: Earliest day of its memories.
            last: Latest day of its memories.
            reference: What relative dates count from. The zone of an aware datetime is the zone of the calendar.
        """
        first, last = (min(max(day, EARLIEST), LATEST) for day in (first, last))
        zone: tzinfo = UTC
        if isinstance(reference, datetime):
            zone = reference.tzinfo or UTC
            now = reference.replace(tzinfo=None)
        else:
            now = datetime.combine(reference, time())
        if now.date() < EARLIEST or now.date() > LATEST:
            now = datetime.combine(min(max(now.date(), EARLIEST), LATEST), now.time())
        return cls(range(first.year, last.year + 1)[-MOST_YEARS:] or [now.year], now, zone)

    @property
    def today(self) -> date:
        """The day of the reference."""
        return self.now.date()
