"""Events of the policies: a line of the log for each, and listeners.

Fields are ids, names, numbers and reasons. Content, queries, metadata and what callers wrote never are. Each line of
the log has ``provider``, the store of the memories where the event names no other provider, and ``trace_id``, None
outside of a trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import structlog

PREFIX = "astrocyte.policy."
# Those that tell of personal data.
PII_EVENTS = frozenset({"pii_redacted", "pii_rejected", "pii_detected"})

Fields: TypeAlias = Mapping[str, str | float | None]
Listener: TypeAlias = Callable[[str, Fields], None]

log = structlog.get_logger("astrocyte.policy")

# Replaced, never changed, so that events of other threads see one or the other.
_listeners: tuple[Listener, ...] = ()
# The store of the memories, as metrics and spans call it.
_provider = ""


def emit(event: str, /, **fields: str | float | None) -> None:
    """Tell that something happened.

    Args:
        event: Its name, in the past tense, without a prefix: ``rate_limited``.
        fields: What it was about; ``bank_id`` and ``operation`` where there is one.
    """
    name = f"{PREFIX}{event}"
    current = current_trace()
    log.info(name, **{"provider": _provider, **fields}, trace_id=None if current is None else current[0])
    for listener in _listeners:
        listener(event, fields)


def set_provider(name: str) -> None:
    """Set the ``provider`` of events that name none; the process has one store of memories."""
    global _provider  # noqa: PLW0603 - events are the process's
    _provider = name


def subscribe(listener: Listener) -> None:
    """Call the listener with each event's name and fields, where it happens; it is short, and raises nothing."""
    global _listeners  # noqa: PLW0603 - events are the process's
    _listeners = (*_listeners, listener)


def unsubscribe(listener: Listener) -> None:
    """Remove the listener."""
    global _listeners  # noqa: PLW0603 - as above
    _listeners = tuple(one for one in _listeners if one != listener)


def current_trace() -> tuple[str, str] | None:
    """The ids of the trace and of the span that run here, in hexadecimal digits; None where none does."""
    # Whoever makes spans has imported it.
    api = sys.modules.get("opentelemetry.trace")
    context = None if api is None else api.get_current_span().get_span_context()
    if api is None or context is None or not context.is_valid:
        return None
    return api.format_trace_id(context.trace_id), api.format_span_id(context.span_id)


def trace_ids(_: object, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: where a line was written within a span, it says which, and of which trace."""
    current = current_trace()
    if current is not None:
        line["trace_id"], line["span_id"] = current
    return line
