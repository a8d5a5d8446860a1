"""Deadlines of calls: the refusal of a call whose deadline has passed, and a time limit for one without."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from astrocyte.errors import DeadlineExceeded

T = TypeVar("T")


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
