"""Consolidating banks in the background: on request, and after retains where that is on.

One bank is worked on at a time by rules, and one by a language model, in steps of which each is one transaction. After
a crash the next process goes on behind the last step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Protocol, TypeVar

import structlog

from astrocyte.config import ObservationSettings
from astrocyte.core import failpoint
from astrocyte.errors import AstrocyteError, BankNotFound, Conflict, FailedPrecondition, NotFound, frames
from astrocyte.model import Bank, OperationError
from astrocyte.stores.knowledge.consolidation import ConsolidationStore, ConsolidationWork
from astrocyte.stores.operations import OperationEnded
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

# How often, in seconds, it is looked for work that nobody told of.
IDLE_SECONDS = 60.0
SECONDS_PER_MINUTE = 60.0

log = structlog.get_logger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """A step: the memories that were read, the observations that found no room, and whether the work is done."""

    memories: int
    left_out: int
    done: bool


class Writer(Protocol):
    """Writes the observations of some banks."""

    def takes(self, bank: Bank) -> bool:
        """True if this writes the bank's observations, and can go on with it now."""

    def rest(self) -> float | None:
        """Seconds until a bank that was put off can go on; None where there is none."""

    async def write(self, work: ConsolidationWork) -> Written | None:
        """Do one step; None where the bank was put off.

        Raises:
            As `ConsolidationStore.step`.
        """


class Consolidator:
    """Does the consolidations of one writer in the background of one event loop.

    Args:
        store: Whose banks.
        consolidations: What is to be done.
        writer: Does a step.
        settings: Those that all banks share.
        enabled: True for a bank that is consolidated after retains; None where none is.
        tell: Called when an operation has come further.
    """

    def __init__(
        self,
        store: MemoryStore,
        consolidations: ConsolidationStore,
        writer: Writer,
        settings: ObservationSettings,
        enabled: Callable[[Bank], bool] | None,
        tell: Callable[[], None],
    ) -> None:
        self._store = consolidations
        self._writer = writer
        self._most = settings.max_per_bank
        self._settings = settings.consolidation
        self._enabled = enabled
        self._tell = tell
        self._wake = asyncio.Event()
        # Wakes from a gathering: somebody waits.
        self._requested = asyncio.Event()
        # Banks that cannot be read, and until when they are left out.
        self._left_out: dict[int, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        if enabled is not None:
            store.subscribe(self._on_commit)
        store.follow(self._on_told)

    def start(self) -> None:
        """Work from now on, in the background of the running loop; a second call does nothing."""
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._work_for_ever(), name="astrocyte-consolidation")

    def notify(self) -> None:
        """There is something new to do, or something was called off."""
        self._requested.set()
        self._wake.set()

    async def close(self) -> None:
        """Stop; the next process goes on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = self._loop = None

    def _on_commit(self, batch: IndexBatch) -> None:
        """Wake the worker after a commit; on the thread of the writer."""
        del batch
        loop = self._loop
        if loop is not None and not self._wake.is_set():
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake.set)

    def _on_told(self, told: Told) -> None:
        """Wake the worker after a commit of another process."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                if told.topic is Topic.WORK:
                    loop.call_soon_threadsafe(self.notify)
                elif told.topic is Topic.CHANGES and self._enabled is not None:
                    loop.call_soon_threadsafe(self._wake.set)

    async def _work_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                work = await run(None, self._next)
                if work is not None:
                    await self._perform(work)
                    continue
            except AstrocyteError as error:
                log.warning("consolidation_interrupted", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is to be done stays to be done
                # No traceback: it could show the values of variables, which are content.
                log.error("consolidation_interrupted", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            rest = self._writer.rest()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS if rest is None else min(rest, IDLE_SECONDS)):
                    await self._wake.wait()
            await self._gather()

    def _next(self) -> ConsolidationWork | None:
        enabled, takes, now = self._enabled, self._writer.takes, monotonic()
        self._left_out = {key: until for key, until in self._left_out.items() if until > now}
        out = self._left_out
        return self._store.work(
            takes, None if enabled is None else lambda bank: enabled(bank) and bank.key not in out and takes(bank)
        )

    async def _gather(self) -> None:
        """Wait for more changes after a commit, unless somebody asks for an operation."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.delay_seconds):
                await self._requested.wait()
        self._requested.clear()

    async def _perform(self, work: ConsolidationWork) -> None:
        """One step of a work; the next one may be of another bank."""
        start = perf_counter()
        try:
            written = await self._writer.write(work)
            failpoint("consolidation.stepped")
        except (OperationEnded, BankNotFound):
            log.info("consolidation_cancelled", bank_key=work.bank.key)
        except (Conflict, NotFound):
            # An observation or a memory changed, or went, between reading and writing: the step is planned again.
            return
        except AstrocyteError as error:
            if isinstance(error, FailedPrecondition) and "scope" in error.metadata:
                # A memory left the scope between reading and writing.
                return
            if not work.key and not isinstance(error, FailedPrecondition):
                raise
            await self._failed(work, error)
        else:
            if written is None:
                return
            if written.left_out:
                log.warning("observations_left_out", bank_key=work.bank.key, count=written.left_out, limit=self._most)
            if written.done:
                log.info("bank_consolidated", bank_key=work.bank.key)
            await self._rest(written.memories, perf_counter() - start)
        self._tell()

    async def _failed(self, work: ConsolidationWork, error: AstrocyteError) -> None:
        log.warning("consolidation_failed", bank_key=work.bank.key, reason=error.reason)
        if not work.key:
            # The key of the bank is lost: the others do not wait for it.
            self._left_out[work.bank.key] = monotonic() + IDLE_SECONDS
            return
        with contextlib.suppress(OperationEnded):
            await self._store.fail(work, OperationError(error.reason, error.message))

    async def _rest(self, count: int, spent: float) -> None:
        """Keep to the rate of memories a minute."""
        await asyncio.sleep(max(0.0, count * SECONDS_PER_MINUTE / self._settings.memories_per_minute - spent))


class Consolidators:
    """The consolidators of all writers.

    Args:
        parts: One of each writer.
        executor: The thread that they share for what takes long; it is shut down with them.
    """

    def __init__(self, parts: Sequence[Consolidator], executor: Executor) -> None:
        self._parts = parts
        self._executor = executor

    def start(self) -> None:
        """Work from now on, in the background of the running loop; a second call does nothing."""
        for part in self._parts:
            part.start()

    def notify(self) -> None:
        """There is something new to do, or something was called off."""
        for part in self._parts:
            part.notify()

    async def close(self) -> None:
        """Stop; the next process goes on."""
        for part in self._parts:
            await part.close()
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)


async def run(executor: Executor | None, work: Callable[[], T]) -> T:
    """The result of a work that would hold the event loop."""
    return await asyncio.get_running_loop().run_in_executor(executor, work)
