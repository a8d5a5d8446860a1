"""Who waits outside is let in: how a loop that is never idle learns how many calls there are for it.

gRPC hands calls over one by one, each when the loop asks for the next, and calls that need no waiting are done in the
turn of the loop in which they begin. So where more calls come than can be done they wait in gRPC's own queue, which
nobody sees from here: no limit is ever reached, every call is late, and each is done although another is waited for.

A loop that was idle has an empty queue. One that was not for a while therefore takes calls in for a moment without
beginning any, until nothing more comes. Then they are done in their order. Those for which the admission has no room
are refused meanwhile, unread (`shedding`).

A refusal costs a tenth to a third of what answering a small recall does, so refusing everybody could leave no time for
answers. That moment is therefore never more than a fifth of the time: where it is too short, the rest waits with gRPC
until its deadlines, which costs nothing here.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Iterable

from astrocyte.services.admission import Admission

# A loop that waits for less than this share of its time may have a queue outside.
IDLE_SHARE = 0.25
# The share is that of so long; and so long passes between taking in and taking in.
BUSY_SECONDS = 0.2
# The longest that nothing but taking in is done.
TAKING_IN_SECONDS = 0.05
# Waiting for so long says that all are in: a call that gRPC has already comes sooner.
QUIET_SECONDS = 0.003
# Where calls came twice for as long as they could, as many may wait as are done in so long, but not fewer than these:
# those of gRPC's queue are old already.
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
    """

    def __init__(self, loop: ServingLoop, admissions: Iterable[Admission]) -> None:
        self._loop = loop
        self._admissions = list(admissions)
        self._timer: asyncio.TimerHandle | None = None
        self._began_at = loop.time()
        self._crowded = False
        # How many calls each had let in by when their number was looked at last.
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
            self.start()
            return
        self._began_at = now
        for admission in self._admissions:
            admission.hold()
        self._timer = self._loop.call_later(QUIET_SECONDS, self._check)

    def _check(self) -> None:
        """End it when all are in, or when it has lasted long enough."""
        quiet = self._loop.quiet_at > self._began_at
        if not quiet and self._loop.time() - self._began_at < TAKING_IN_SECONDS:
            self._timer = self._loop.call_later(QUIET_SECONDS, self._check)
            return
        narrow = self._crowded and not quiet
        self._crowded = not quiet
        for place, admission in enumerate(self._admissions):
            done = admission.entered - self._entered[place]
            self._entered[place] += done
            # Where calls wait for something else, such as a model, the loop is not what they wait for.
            if narrow and admission.running <= admission.limit // 2:
                admission.narrow(max(LEAST_WAITING, int(done / BUSY_SECONDS * WAIT_SECONDS)))
            else:
                admission.widen()
            admission.release()
        self.start()
