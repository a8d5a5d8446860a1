"""Time zones by name: IANA names and offsets from UTC."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?")
IANA = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
# The longest name of the IANA database has 32 characters.
MOST_CHARS = 64
# Beyond this no place on earth has its clocks; `datetime` allows less than a day.
MOST_HOURS = 18
# There are some six hundred zones, and a caller may name each offset.
KEPT_ZONES = 1_024


@lru_cache(maxsize=KEPT_ZONES)
def zone_of(name: str) -> tzinfo:
    """The time zone of a name.

    Args:
        name: An IANA name ("Europe/Berlin"), "UTC", or an offset ("+09:00", "-0330", "UTC+2").

    Raises:
        ValueError: There is no such zone.
    """
    refusal = "expected an IANA time zone such as Europe/Berlin, or an offset such as +02:00"
    if len(name) > MOST_CHARS:
        raise ValueError(f"{refusal}; got {len(name)} characters")
    if name in {"UTC", "Z"}:
        return UTC
    offset = OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours > MOST_HOURS or minutes > 59:  # noqa: PLR2004
            raise ValueError(f"{refusal}; got an offset of more than {MOST_HOURS} hours")
        length = timedelta(hours=hours, minutes=minutes)
        return timezone(-length if offset[1] == "-" else length)
    if IANA.fullmatch(name) is None:
        raise ValueError(refusal)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{refusal}; there is no zone of this name") from error


def _checked(name: str) -> str:
    zone_of(name)
    return name


# The name of a zone in settings.
ZoneName = Annotated[str, AfterValidator(_checked)]
