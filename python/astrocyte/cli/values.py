"""Parameter types of the commands: times with a zone, and metadata pairs."""

from __future__ import annotations

import json
from datetime import datetime

import click

from astrocyte.model import MetadataValue


class Moment(click.ParamType[datetime]):
    """An ISO 8601 time with its zone."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse, or say which form is wanted."""
        if isinstance(value, datetime):
            return value
        try:
            return parse_moment(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Pair(click.ParamType[tuple[str, MetadataValue]]):
    """``key=value``; a value that is a JSON number, true, false or null is one, everything else is text."""

    name = "key=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, MetadataValue]:
        """Split and type."""
        if isinstance(value, tuple):
            return value
        key, separator, text = str(value).partition("=")
        if not separator or not key:
            self.fail(f"{value!r} is not of the form key=value", param, ctx)
        return key, _scalar(text)


MOMENT = Moment()
PAIR = Pair()


def parse_moment(text: str) -> datetime:
    """A time with its zone.

    Raises:
        ValueError: It is no ISO 8601 time, or has no zone.
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
