"""Whether the call that runs is alone, so that it may hold the event loop for some milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Where nobody knows, there may be others.
_lone: ContextVar[Callable[[], bool]] = ContextVar("astrocyte_lone", default=lambda: False)


def lone_while(asked: Callable[[], bool]) -> None:
    """Let ``asked`` tell it, for the task that runs and those that it begins."""
    _lone.set(asked)


def is_lone() -> bool:
    """Whether nobody but the caller of this call waits for the loop."""
    return _lone.get()()
