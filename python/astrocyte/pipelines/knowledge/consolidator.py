"""Consolidating banks in the background: on request, and after retains where that is on.

One bank is worked on at a time, in steps of some changes, each of which is one transaction. After a crash the next
process goes on behind the last step.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

import structlog

from astrocyte.config import ObservationSettings
from astrocyte.core import failpoint
from astrocyte.errors import AstrocyteError, BankNotFound, Conflict, MemoryNotFound, frames
from astrocyte.model import OperationError
from astrocyte.pipelines.knowledge.consolidation import plan
from astrocyte.stores.consolidation import ConsolidationStore, ConsolidationWork
from astrocyte.stores.operations import OperationEnded
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

# Changes of one step: some ten milliseconds' worth, after which others have their turn.
CHANGES_AT_ONCE = 64
# How often, in seconds, it is looked for work that nobody told of.
IDLE_SECONDS = 60.0
SECONDS_PER_MINUTE = 60.0

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Consolidator:
    """Does consolidations in the background of one event loop.

    Args:
        store: Whose banks.
        consolidations: What is to be done.
        settings: Whether banks are consolidated after retains, and how fast.
        tell: Called when an operation has come further.
    """

    def __init__(
        self,
        store: MemoryStore,
        consolidations: ConsolidationStore,
        settings: ObservationSettings,
        tell: Callable[[], None],
    ) -> None:
        self._store = consolidations
        self._most = settings.max_per_bank
        self._settings = settings.consolidation
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="astrocyte-consolidation")
        self._wake = asyncio.Event()
        # Wakes from a gathering: somebody waits.
        self._requested = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        if self._settings.enabled:
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
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

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
                elif told.topic is Topic.CHANGES and self._settings.enabled:
                    loop.call_soon_threadsafe(self._wake.set)

    async def _work_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                work = await self._in_thread(lambda: self._store.work(enabled=self._settings.enabled))
                if work is not None:
                    await self._perform(work)
                    continue
            except AstrocyteError as error:
                log.warning("consolidation_interrupted", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is to be done stays to be done
                # No traceback: it could show the values of variables, which are content.
                log.error("consolidation_interrupted", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._wake.wait()
            await self._gather()

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
            memory_ids, position = await self._in_thread(
                lambda: self._store.changed(work.bank, after=work.position, until=work.target, limit=CHANGES_AT_ONCE)
            )
            actions = await self._in_thread(lambda: plan(self._store, work.bank, memory_ids, self._most))
            failpoint("consolidation.planned")
            done, left_out = await self._store.step(work, actions, position)
            failpoint("consolidation.stepped")
        except (OperationEnded, BankNotFound):
            log.info("consolidation_cancelled", bank_key=work.bank.key)
        except (Conflict, MemoryNotFound):
            # An observation changed, or a memory was forgotten, between reading and writing: the step is planned again.
            return
        except AstrocyteError as error:
            if not work.key:
                raise
            await self._failed(work, OperationError(error.reason, error.message))
        else:
            if left_out:
                log.warning("observations_left_out", bank_key=work.bank.key, count=left_out, limit=self._most)
            if done:
                log.info("bank_consolidated", bank_key=work.bank.key)
            await self._rest(len(memory_ids), perf_counter() - start)
        self._tell()

    async def _failed(self, work: ConsolidationWork, error: OperationError) -> None:
        log.warning("consolidation_failed", bank_key=work.bank.key, reason=error.reason)
        with contextlib.suppress(OperationEnded):
            await self._store.fail(work, error)

    async def _rest(self, count: int, spent: float) -> None:
        """Keep to the rate of memories a minute."""
        await asyncio.sleep(max(0.0, count * SECONDS_PER_MINUTE / self._settings.memories_per_minute - spent))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
