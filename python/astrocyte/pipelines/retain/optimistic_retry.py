"""Trying again what was decided on a state that another write has changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from astrocyte.errors import AstrocyteError, Conflict, RequestIdReused

T = TypeVar("T")

# Each lost race means that another write of the same memory went through; so many in a row mean that the caller had
# better wait.
ATTEMPTS = 10


async def persist(
    attempt: Callable[[], Awaitable[T]],
    lost: Callable[[], T | None] = lambda: None,
    *,
    changed: tuple[type[AstrocyteError], ...] = (Conflict,),
) -> T:
    """The result of the first attempt that no other write got in the way of.

    Args:
        attempt: Looks, decides and commits.
        lost: Called after an attempt that failed so; what it returns is the result, None means to try again.
        changed: What an attempt raises where what it looked at has changed.

    Raises:
        Conflict: The last attempt failed too.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except RequestIdReused:
            raise
        except changed:
            result = lost()
            if result is not None:
                return result
    return await attempt()
