"""The circuit breaker: a provider that fails repeatedly gets no calls for a while.

Closed, all calls pass; failures in a row open it. Open, none passes. After its time a few trial calls pass, half open:
all of them must succeed for it to close, one failure opens it again. Time is counted in whole nanoseconds of a clock
that never goes back. What a call turns out to be counts only for the period in which it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from astrocyte.config import CircuitBreakerSettings
from astrocyte.errors import CircuitOpen

NANOSECONDS = 1_000_000_000
# When to ask again while the trial calls are being made: most of them take less.
TRIAL_SECONDS = 1.0


class State(StrEnum):
    """The state of a breaker: all calls pass, none, or a few."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """The breaker of one provider. Used from one event loop.

    Args:
        provider: What events and errors call it.
        settings: When it opens, and for how long.
        clock: Nanoseconds that never go back.
    """

    def __init__(
        self, provider: str, settings: CircuitBreakerSettings, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.provider = provider
        self.state = State.CLOSED
        self._threshold = settings.failure_threshold
        self._recovery = round(settings.recovery_timeout_seconds * NANOSECONDS)
        self._most_trials = settings.half_open_max_calls
        self._clock = clock
        self._listeners: list[Callable[[Breaker], None]] = []
        # Grows with every change of state, so that late results are told from current ones.
        self._period = 0
        self._failures = 0
        self._opened = 0
        self._trials = 0
        self._passed = 0

    def subscribe(self, listener: Callable[[Breaker], None]) -> None:
        """Call the listener after every change of state; it is short, and raises nothing."""
        self._listeners.append(listener)

    def wait_seconds(self) -> float:
        """The expected seconds until a call may pass."""
        if self.state is State.OPEN:
            return max(0, self._opened + self._recovery - self._clock()) / NANOSECONDS
        if self.state is State.HALF_OPEN and self._trials >= self._most_trials:
            return TRIAL_SECONDS
        return 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Guard the block that calls the provider.

        Any exception is a failure of the provider. What the caller gives up (a cancellation) is neither that nor a
        success.

        Raises:
            CircuitOpen: No call may pass now.
        """
        period = self._admit()
        try:
            yield
        except Exception:
            self._failed(period)
            raise
        except BaseException:
            self._given_up(period)
            raise
        self._succeeded(period)

    def _admit(self) -> int:
        if self.state is State.OPEN and self._clock() - self._opened >= self._recovery:
            self._change(State.HALF_OPEN)
        if self.state is State.CLOSED:
            return self._period
        if self.state is State.OPEN or self._trials >= self._most_trials:
            raise CircuitOpen(self.provider, self.wait_seconds())
        self._trials += 1
        return self._period

    def _failed(self, period: int) -> None:
        if period != self._period:
            return
        self._failures += 1
        if self.state is State.HALF_OPEN or self._failures >= self._threshold:
            self._opened = self._clock()
            self._change(State.OPEN)

    def _succeeded(self, period: int) -> None:
        if period != self._period:
            return
        self._failures = 0
        self._passed += 1
        if self.state is State.HALF_OPEN and self._passed == self._most_trials:
            self._change(State.CLOSED)

    def _given_up(self, period: int) -> None:
        if period == self._period and self.state is State.HALF_OPEN:
            self._trials -= 1

    def _change(self, state: State) -> None:
        self.state = state
        self._period += 1
        self._failures = self._trials = self._passed = 0
        for listener in self._listeners:
            listener(self)
