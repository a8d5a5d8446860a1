"""Parameter types: times with a zone, time zones, and metadata pairs."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo

import click

from astrocyte.config.loading.time_zone import zone_of
from astrocyte.model import MetadataValue


class Moment(click.ParamType[datetime]):
    """ISO 8601 time with a time zone."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse a time."""
        if isinstance(value, datetime):
            return value
        try:
            return parse_moment(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Pair(click.ParamType[tuple[str, MetadataValue]]):
    """``key=value``. JSON numbers, true, false and null are typed; other values are text."""

    name = "key=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, MetadataValue]:
        """Parse a pair."""
        if isinstance(value, tuple):
            return value
        key, separator, text = str(value).partition("=")
        if not separator or not key:
            self.fail(f"expected key=value, got {value!r}", param, ctx)
        return key, _scalar(text)


class Zone(click.ParamType[tzinfo]):
    """Time zone: an IANA name or an offset."""

    name = "zone"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        """Find a zone."""
        if isinstance(value, tzinfo):
            return value
        try:
            return zone_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


MOMENT = Moment()
ZONE = Zone()
PAIR = Pair()


def parse_moment(text: str) -> datetime:
    """Parse a time with a time zone.

    Raises:
        ValueError: The text is not an ISO 8601 time, or has no time zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write it like 2025-06-01T09:30:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write it like 2025-06-01T09:30:00Z")
    return moment


def _scalar(text: str) -> MetadataValue:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, (bool, int, float)) else text
