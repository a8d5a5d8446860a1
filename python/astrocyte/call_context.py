"""How long the caller of a call still waits, for steps that are left out where there is no time for them."""

from __future__ import annotations

import time
from collections.abc import Callable
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


# Where nobody knows, there may be others.
_lone: ContextVar[Callable[[], bool]] = ContextVar("astrocyte_lone", default=lambda: False)


def lone_while(asked: Callable[[], bool]) -> None:
    """Let ``asked`` tell it, for the task that runs and those that it begins."""
    _lone.set(asked)


def is_lone() -> bool:
    """Whether nobody but the caller of this call waits for the loop."""
    return _lone.get()()
