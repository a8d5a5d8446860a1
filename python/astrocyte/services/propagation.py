"""Propagation of the current trace to the called server."""

from __future__ import annotations

import sys


def trace_headers() -> tuple[tuple[str, str], ...]:
    """Metadata that name the current span, such as `traceparent`; none where this program makes no spans."""
    # Whoever makes spans has imported it.
    api = sys.modules.get("opentelemetry.trace")
    if api is None or not api.get_current_span().get_span_context().is_valid:
        return ()
    from opentelemetry import propagate  # noqa: PLC0415 - not everybody has it

    headers: dict[str, str] = {}
    propagate.inject(headers)
    return tuple(headers.items())
