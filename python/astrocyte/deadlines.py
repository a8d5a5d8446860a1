"""Deadlines: that of the current call, the refusal of calls that come too late, and a limit for those without one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from astrocyte.errors import DeadlineExceeded

T = TypeVar("T")
# An instant of `time.monotonic`; None where the caller set no end.
_until: ContextVar[float | None] = ContextVar("astrocyte_until", default=None)


def ends_in(seconds: float | None) -> None:
    """Note, for the task that runs, in how many seconds its caller stops waiting."""
    _until.set(None if seconds is None else time.monotonic() + seconds)


def seconds_left() -> float | None:
    """Seconds that the caller still waits; None where nobody said."""
    until = _until.get()
    return None if until is None else until - time.monotonic()


def check_time(left: float | None) -> None:
    """Refuse a call whose deadline has passed: in a queue, running it would delay the next ones.

    Raises:
        DeadlineExceeded: No second is left.
    """
    if left is not None and left <= 0.0:
        raise DeadlineExceeded("the deadline passed before the call started")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work`` within the limit.

    Raises:
        DeadlineExceeded: It did not.
    """
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except TimeoutError:
        if not timer.expired():
            raise
        raise DeadlineExceeded(
            f"the call took longer than {seconds:g} s, the limit for calls without a deadline",
            metadata={"timeout_seconds": f"{seconds:g}"},
        ) from None
