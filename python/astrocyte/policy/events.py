"""What the policies did, told in one place: a line of the log for each event, and later whoever else wants to know.

Fields are ids, names, numbers and reasons. Content, queries, metadata and what callers wrote never are.
"""

from __future__ import annotations

import structlog

PREFIX = "astrocyte.policy."

log = structlog.get_logger("astrocyte.policy")


def emit(event: str, /, **fields: str | float | None) -> None:
    """Tell that something happened.

    Args:
        event: Its name, in the past tense, without a prefix: ``rate_limited``.
        fields: What it was about; ``bank_id`` and ``operation`` where there is one.
    """
    name = f"{PREFIX}{event}"
    log.info(name, **fields)
