"""What the policies did, told in one place: a line of the log for each event, and whoever else wants to know.

Fields are ids, names, numbers and reasons. Content, queries, metadata and what callers wrote never are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import structlog

PREFIX = "astrocyte.policy."

Fields: TypeAlias = Mapping[str, str | float | None]
Listener: TypeAlias = Callable[[str, Fields], None]

log = structlog.get_logger("astrocyte.policy")

# Replaced, never changed, so that events of other threads see one or the other.
_listeners: tuple[Listener, ...] = ()


def emit(event: str, /, **fields: str | float | None) -> None:
    """Tell that something happened.

    Args:
        event: Its name, in the past tense, without a prefix: ``rate_limited``.
        fields: What it was about; ``bank_id`` and ``operation`` where there is one.
    """
    name = f"{PREFIX}{event}"
    log.info(name, **fields)
    for listener in _listeners:
        listener(event, fields)


def subscribe(listener: Listener) -> None:
    """Call the listener with each event's name and fields, where it happens; it is short, and raises nothing."""
    global _listeners  # noqa: PLW0603 - events are the process's
    _listeners = (*_listeners, listener)


def unsubscribe(listener: Listener) -> None:
    """Call the listener no more."""
    global _listeners  # noqa: PLW0603 - as above
    _listeners = tuple(one for one in _listeners if one != listener)
