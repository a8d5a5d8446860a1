"""When a request to a provider is tried again, and how long to wait before."""

from __future__ import annotations

import math
import random
import time
from email.utils import parsedate_to_datetime

# Too much, or the server's own trouble: the same request may pass later. 529 is one vendor's "overloaded".
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# Waits between tries grow from here, doubled each time, with jitter so that clients do not return together.
FIRST_WAIT_SECONDS = 0.25


def wait_seconds(attempt: int, retry_after: str | None, longest: float) -> float:
    """Seconds until the next try: what the server asked for, however long, or a growing time of at most ``longest``.

    Args:
        attempt: How many tries were made before the last one.
        retry_after: The header of that name.
        longest: Seconds.
    """
    asked = _seconds(retry_after) if retry_after else None
    if asked is not None:
        return asked
    grown = FIRST_WAIT_SECONDS * 2.0**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - jitter is no secret
    return min(grown, longest)


def _seconds(retry_after: str) -> float | None:
    """Seconds out of a Retry-After header, which holds a number or a date; None when it is neither."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
