"""Logging to standard error: text on a terminal, else JSON, unless --log-format says which."""

from __future__ import annotations

import logging
import sys

import click
import structlog

from astrocyte.policy.events import trace_ids


def to_standard_error(level: int = logging.WARNING) -> None:
    """Log events of at least ``level`` to standard error; standard output carries results."""
    context = click.get_current_context(silent=True)
    form = "auto" if context is None else context.find_root().obj["log_format"]
    people = sys.stderr.isatty() if form == "auto" else form == "text"
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
