"""Who waits outside is let in: how a loop that is never idle learns how many calls there are for it.

gRPC hands calls over one by one, each when the loop asks for the next, and calls that need no waiting are done in the
turn of the loop in which they begin. So where more calls come than can be done they wait in gRPC's own queue, which
nobody sees from here: no limit is ever reached, every call is late, and each is done although another is waited for.

A loop that was idle has an empty queue. One that was not for a while therefore takes calls in for a moment without
beginning any, until nothing more comes, or no more than comes anyway. Then they are done in their order. Those for
which the admission has no room are refused meanwhile, unread (`shedding`).

A refusal costs a tenth to a quarter of what answering a small recall does, but a call that is not refused costs as
much: it is handed over all the same, when it is too old for an answer. So the moment lasts for as long as calls are
left outside, up to half of the time: what remains is for answers, and those that are given are young.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Iterable

from astrocyte.services.admission import Admission

# A loop that waits for less than this share of its time may have a queue outside.
IDLE_SHARE = 0.25
# The share is that of so long; and so long passes between taking in and taking in.
BUSY_SECONDS = 0.2
# The longest that nothing but taking in is done.
TAKING_IN_SECONDS = 0.2
# How often it is looked whether all are in. They are when the loop has waited for so long at once: a call that gRPC has
# already comes sooner; or when no more came since than usual, give or take: from gRPC's queue they come faster.
CHECK_SECONDS = 0.01
QUIET_SECONDS = 0.003
USUAL = 1.2
# It is looked for the first time as soon as quiet can be told: one caller that asks without a rest may keep the loop as
# busy as a crowd does, and waits for so long each time.
FIRST_CHECK_SECONDS = 0.004
# Where calls came for so long at once, and did so twice of late, as many may wait as are done in so long, but not fewer
# than these: those of gRPC's queue are old already. What is of late is counted up to so many times, and down again.
CROWDED_SECONDS = 0.04
CROWDED, CROWDED_MOST = 2, 4
WAIT_SECONDS = 0.25
LEAST_WAITING = 64


class IdleSelector(selectors.DefaultSelector):
    """Counts the time in which there was nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self.idle_seconds = 0.0
        self.quiet_at = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As its base; the wait is counted."""
        began = time.monotonic()
        ready = super().select(timeout)
        now = time.monotonic()
        self.idle_seconds += now - began
        if now - began >= QUIET_SECONDS:
            self.quiet_at = now
        return ready


class ServingLoop(asyncio.SelectorEventLoop):
    """An event loop that knows when it was idle: what `Pressure` needs."""

    def __init__(self) -> None:
        self._idle = IdleSelector()
        super().__init__(self._idle)

    @property
    def idle_seconds(self) -> float:
        """How long it has waited for something to do, altogether."""
        return self._idle.idle_seconds

    @property
    def quiet_at(self) -> float:
        """When it last had waited for at least `QUIET_SECONDS`, by its clock."""
        return self._idle.quiet_at


class Pressure:
    """Takes calls in before they are done, whenever the loop has been busy for a while.

    Args:
        loop: Where the calls run.
        admissions: Where they wait.
        arrived: How many calls gRPC has handed over so far.
    """

    def __init__(self, loop: ServingLoop, admissions: Iterable[Admission], arrived: Callable[[], int]) -> None:
        self._loop = loop
        self._admissions = list(admissions)
        self._arrived = arrived
        self._timer: asyncio.TimerHandle | None = None
        self._crowded = 0
        # When calls were taken in last, and how many had come and how many each had let in by then.
        self._last = loop.time(), arrived()
        self._entered = [admission.entered for admission in self._admissions]

    def start(self) -> None:
        """Look at the loop from now on."""
        self._timer = self._loop.call_later(BUSY_SECONDS, self._look, self._loop.time(), self._loop.idle_seconds)

    def stop(self) -> None:
        """Let everybody in, and look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for admission in self._admissions:
            admission.release()

    def _look(self, since: float, idle_seconds: float) -> None:
        """Begin to take in, unless the loop had time to spare since then."""
        now = self._loop.time()
        if self._loop.idle_seconds - idle_seconds > IDLE_SHARE * (now - since):
            self._crowded = 0
            for admission in self._admissions:
                admission.widen()
            self.start()
            return
        for admission in self._admissions:
            admission.hold()
        self._timer = self._loop.call_later(FIRST_CHECK_SECONDS, self._check, now, now, self._arrived())

    def _check(self, began: float, since: float, arrived: int) -> None:
        """End it when all are in, or when it has lasted long enough."""
        now, there = self._loop.time(), self._arrived()
        last, before = self._last
        usual = (there - before) / (now - last) * USUAL
        drained = self._loop.quiet_at > since or (there - arrived) / (now - since) <= usual
        if not drained and now - began < TAKING_IN_SECONDS:
            self._timer = self._loop.call_later(CHECK_SECONDS, self._check, began, now, there)
            return
        self._last = now, there
        crowded = now - began >= CROWDED_SECONDS
        self._crowded = min(self._crowded + 1, CROWDED_MOST) if crowded else max(self._crowded - 1, 0)
        for place, admission in enumerate(self._admissions):
            done = admission.entered - self._entered[place]
            self._entered[place] += done
            # Where calls wait for something else, such as a model, the loop is not what they wait for.
            if self._crowded >= CROWDED and admission.running <= admission.limit // 2:
                admission.narrow(max(LEAST_WAITING, int(done / BUSY_SECONDS * WAIT_SECONDS)))
            else:
                admission.widen()
            admission.release()
        self.start()
