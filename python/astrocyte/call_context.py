"""The deadline of the current call, for steps that are left out where there is no time for them."""

from __future__ import annotations

import time
from contextvars import ContextVar

# An instant of `time.monotonic`; None where the caller set no end.
_until: ContextVar[float | None] = ContextVar("astrocyte_until", default=None)


def ends_in(seconds: float | None) -> None:
    """Note, for the task that runs, in how many seconds its caller stops waiting."""
    _until.set(None if seconds is None else time.monotonic() + seconds)


def seconds_left() -> float | None:
    """Seconds that the caller still waits; None where nobody said."""
    until = _until.get()
    return None if until is None else until - time.monotonic()
