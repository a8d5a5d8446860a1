"""Logging to standard error: text on a terminal, else JSON."""

from __future__ import annotations

import logging
import sys

import structlog

from astrocyte.policy.events import trace_ids


def to_standard_error(level: int = logging.WARNING) -> None:
    """Log events of at least ``level`` to standard error; standard output carries results."""
    people = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            trace_ids,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
