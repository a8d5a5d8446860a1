"""Whether a call has company: others that run, or came a moment ago and had to wait for the loop."""

from __future__ import annotations

import time
from collections.abc import Callable

# A call that waited so long to be taken waited for another one, not for the loop to wake.
WAITED_SECONDS = 0.001
# How long calls are not alone after two of them met: callers that take turns meet again within milliseconds.
MET_SECONDS = 0.25


class Company:
    """Counts the calls that take one request and give one answer, those that only wait among them.

    Streams may be open for hours and do nothing: it is told when they stir.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open = 0
        self._met_until = 0.0

    def came(self, waited: float) -> None:
        """A call came, which waited so many seconds to be taken."""
        if self._open or waited > WAITED_SECONDS:
            self.stirred()
        self._open += 1

    def left(self) -> None:
        """A call is done."""
        self._open -= 1

    def only(self) -> bool:
        """Whether there is no other such call; streams may be open."""
        return self._open <= 1

    def stirred(self) -> None:
        """Something else has to do with the loop."""
        self._met_until = self._clock() + MET_SECONDS

    def alone(self) -> bool:
        """Whether there is one call, and was nothing else lately."""
        return self._open == 1 and self._clock() >= self._met_until
