"""Steps of background work with a language model: texts without what must not leave, and pauses after failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from astrocyte.errors import CircuitOpen

# Calls without a usable answer after which a text is left to the rules: its content may be what the model fails on.
MOST_ATTEMPTS = 3
# Pause after a failed call, doubled with each further one.
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 1.0, 300.0
# Pause until a spent budget is looked at again: short beside a day.
RENEWAL_SECONDS = 60.0
# The pause no longer doubles from here on, and the power stays a small number.
MOST_DOUBLINGS = 16

# Texts of a bank as a model from outside may read them.
Withheld = Callable[[str, Sequence[str]], Sequence[str]]


def rest_seconds(failures: int, error: Exception) -> float:
    """The pause after a failed call, at least as long as an open circuit asks for.

    Args:
        failures: Failed calls in a row before this one.
        error: Its failure.
    """
    rest = min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2.0 ** min(failures, MOST_DOUBLINGS))
    return max(rest, error.retry_after) if isinstance(error, CircuitOpen) else rest
