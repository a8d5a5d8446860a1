"""One process of several on a data directory: it hears what the others commit, and takes over background work.

Every call begins with `MemoryStore.refresh`, so what others acknowledged before is known to it. What runs here is for
what nobody calls for: an erasure must leave the memory of every process before it is acknowledged, watchers must wake,
and one process must do the background work. That one holds a lease, which it renews; its writes carry the number of the
lease, so that a process that was taken for dead cannot write when it comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from time import monotonic

import structlog

from astrocyte.errors import AstrocyteError, Unavailable, frames
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.sharing import Fence, Leases, Told, Topic

# Between two beats: four fit into the time after which a process is taken for dead.
BEAT_SECONDS = 2.5
# Without a beat that succeeded for so long, the lease may be another's: less than the store gives.
TRUSTED_SECONDS = 9.0
# Between two looks whether the others have let go of what was erased.
CONFIRM_SECONDS = 0.005
# How long an erasure waits for the others: a dead process is left out long before.
LONGEST_CONFIRM_SECONDS = 30.0
# Between two calls of what is done now and then.
TICK_SECONDS = 0.25
# Between two lines of the log about failures of one kind: a database that is away would fill it with twenty a second.
REPEAT_SECONDS = 60.0

log = structlog.get_logger(__name__)


class _Failures:
    """Logs the failures of a loop: the first of each kind, then one in `REPEAT_SECONDS`, and that they have ended.

    Args:
        loop: The name of the loop, with which the events begin.
    """

    def __init__(self, loop: str) -> None:
        self._loop = loop
        # When a failure of a kind is logged again.
        self._next: dict[str, float] = {}
        self._count = 0

    def failed(self, error: Exception) -> None:
        """Count a failure, and log it unless one of its kind was logged a moment ago."""
        self._count += 1
        kind = error.reason if isinstance(error, AstrocyteError) else type(error).__name__
        now = monotonic()
        if now < self._next.get(kind, 0.0):
            return
        self._next[kind] = now + REPEAT_SECONDS
        event = f"{self._loop}_failed"
        if isinstance(error, AstrocyteError):
            log.warning(event, reason=kind, failures=self._count)
        else:
            # No traceback: it could show the values of variables, which are content.
            log.error(event, error=kind, frames=frames(error), failures=self._count)

    def ended(self) -> None:
        """Say so after failures."""
        if self._count:
            event = f"{self._loop}_resumed"
            log.info(event, failures=self._count)
            self._next.clear()
            self._count = 0


class Follower:
    """Follows the other processes of a data directory on the running event loop.

    Args:
        store: The store that they share.
        leases: Which processes live, and which of them does the background work.
        let_go: Keeps nothing of a bank in which something was erased, by its key.
        take_over: Starts the background work under a fence.
        tick: Called every `TICK_SECONDS`.
    """

    def __init__(
        self,
        store: MemoryStore,
        leases: Leases,
        let_go: Callable[[int], Awaitable[None]],
        take_over: Callable[[Fence], None],
        tick: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._leases = leases
        self._let_go = let_go
        self._take_over = take_over
        self._tick = tick
        self._erased: dict[int, None] = {}
        # Up to which place everything that was told is done.
        self._settled = store.heard
        self._tasks: list[asyncio.Task[None]] = []
        self._trusted_until = 0.0
        self._left = False
        self.fence: Fence | None = None
        # Set when another process took the lease: background work may still run here, so this process has to end.
        self.lost = asyncio.Event()
        store.follow(self._on_told)

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._beat_for_ever(), name="astrocyte-beat"),
                loop.create_task(self._follow_for_ever(), name="astrocyte-follow"),
                loop.create_task(self._tick_for_ever(), name="astrocyte-tick"),
            ]

    async def stop(self) -> None:
        """Follow no longer."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def leave(self) -> None:
        """Let another process take over at once. Background work must have ended here."""
        if not self._left and not self.lost.is_set():
            self._left = True
            with contextlib.suppress(AstrocyteError):
                await self._leases.leave()

    async def confirm(self, bank_key: int) -> None:
        """Return when every other process keeps nothing of what was erased in a bank.

        Raises:
            Unavailable: One that lives has not confirmed it. It is erased in the database.
        """
        place = self._leases.last_erasure(bank_key)
        end = monotonic() + LONGEST_CONFIRM_SECONDS
        while deaf := self._leases.deaf(place):
            if monotonic() > end:
                numbers = ", ".join(map(str, deaf))
                raise Unavailable(
                    f"the rows are erased, but worker {numbers} has not confirmed that its memory is; erase again",
                    metadata={"workers": numbers},
                )
            await asyncio.sleep(CONFIRM_SECONDS)

    def _on_told(self, told: Told) -> None:
        if told.topic is Topic.DELETED or told.erased:
            self._erased[told.bank] = None

    async def _follow_for_ever(self) -> None:
        failures = _Failures("following")
        while True:
            try:
                self._store.refresh()
                await self._settle()
            except Exception as error:  # noqa: BLE001 - what was not done is tried again
                failures.failed(error)
            else:
                failures.ended()
            await self._store.wait_for_others()

    async def _settle(self) -> None:
        """Let go of what was erased, and say so."""
        # Calls may hear of more while this waits.
        place, erased = self._store.heard, list(self._erased)
        for bank_key in erased:
            del self._erased[bank_key]
            try:
                await self._let_go(bank_key)
            except BaseException:
                self._erased[bank_key] = None
                raise
        self._settled = place
        if erased:
            await self._leases.note_heard(place)

    async def _beat_for_ever(self) -> None:
        while not self.lost.is_set():
            began = monotonic()
            try:
                fence = await self._leases.beat(self._settled)
                self._trusted_until = began + TRUSTED_SECONDS
                self._hold(fence)
            except AstrocyteError as error:
                log.warning("beat_failed", reason=error.reason)
                # A write under a lease that another took is refused; while nobody can write, nobody can take it.
                outlasts = self._store.outlasts_outages
                if self.fence is not None and monotonic() > self._trusted_until and not outlasts:
                    self._lose()
            await asyncio.sleep(BEAT_SECONDS)

    def _hold(self, fence: Fence | None) -> None:
        if self.fence is None and fence is not None:
            self.fence = fence
            log.info("background_work_taken", fence=fence.number)
            self._take_over(fence)
        elif self.fence is not None and fence != self.fence:
            self._lose()

    def _lose(self) -> None:
        log.error("background_work_lost")
        self.lost.set()

    async def _tick_for_ever(self) -> None:
        failures = _Failures("tick")
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._tick()
            except Exception as error:  # noqa: BLE001 - the next one may fare better
                failures.failed(error)
            else:
                failures.ended()
