"""Runs of the lifecycle in the background: on request, and by the schedules of the banks.

One run is worked on at a time, in steps of some memories, each of which is one transaction. After a crash the next
process goes on behind the last step. A run whose time came while no server ran is started by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from astrocyte.config.derived.lifecycle import LifecycleSettings
from astrocyte.config.loading.cron import Cron
from astrocyte.core import failpoint
from astrocyte.errors import AstrocyteError, BankNotFound, FailedPrecondition, frames
from astrocyte.model import Bank, Operation, OperationError
from astrocyte.pipelines.lifecycle.duplicates import STEP_MEMORIES, DuplicateSearch, Scan
from astrocyte.pipelines.lifecycle.recalls import LastRecalls
from astrocyte.pipelines.lifecycle.rules import judge, rules_of
from astrocyte.stores.lifecycle import LifecycleStore, LifecycleWork, MergeOrder, NewRun, StepOrder
from astrocyte.stores.operations import OperationEnded
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.records import RequestKey

# Memories of one step: some ten milliseconds of the writer if all of them are archived.
MEMORIES_AT_ONCE = 128
# How often, in seconds, it is looked for schedules whose time has come, and recalls are noted.
TICK_SECONDS = 30.0
BANKS_AT_ONCE = 256
# The principal of scheduled runs.
SCHEDULER = "astrocyte"

log = structlog.get_logger(__name__)

T = TypeVar("T")


class LifecycleRunner:
    """Does runs in the background of one event loop.

    Args:
        store: What is to be done.
        recalls: What was recalled meanwhile.
        duplicates: Finds near duplicates.
        most_tags: Tags that a memory may have.
        settings: The settings of a bank, by its id.
        scheduled: False if no bank has a schedule.
        keep_ms: How long forgotten memories can be undeleted, in milliseconds.
        clock: Milliseconds since the epoch.
        tell: Called when an operation has come further.
    """

    def __init__(  # noqa: PLR0913 - the composition root hands over what a run touches
        self,
        store: LifecycleStore,
        recalls: LastRecalls,
        duplicates: DuplicateSearch,
        settings: Callable[[str], LifecycleSettings],
        *,
        most_tags: int,
        scheduled: bool,
        keep_ms: int,
        clock: Callable[[], int],
        tell: Callable[[], None],
    ) -> None:
        self._store = store
        self.recalls = recalls
        self._duplicates = duplicates
        self._most_tags = most_tags
        self._settings = settings
        self._scheduled = scheduled
        self._keep_ms = keep_ms
        self._clock = clock
        self._tell = tell
        self._copies: Callable[[Bank], CopyOrder | None] = _no_copies
        self._count: Callable[[str, Mapping[str, int]], None] = _no_count
        self._copied: Callable[[str], None] = _no_engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="astrocyte-lifecycle")
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(
        self,
        copies: Callable[[Bank], CopyOrder | None],
        copied: Callable[[str], None],
        count: Callable[[str, Mapping[str, int]], None],
    ) -> None:
        """Set what a step concerns besides the store.

        Args:
            copies: The order for the engine of a bank.
            copied: Called with the name of an engine for which memories wait.
            count: Called with the id of a bank and the number of memories by fate.
        """
        self._copies, self._copied, self._count = copies, copied, count

    def start(self) -> None:
        """Work from now on, in the background of the running loop; a second call does nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work_for_ever(), name="astrocyte-lifecycle")

    def notify(self) -> None:
        """There is something new to do, or something was called off."""
        self._wake.set()

    async def request(
        self,
        bank: Bank,
        by: str,
        *,
        dry_run: bool,
        merge: bool,
        threshold: float | None = None,
        key: RequestKey | None = None,
    ) -> Operation:
        """Queue a run of a bank by its settings.

        Args:
            bank: The bank.
            by: Who asks for it.
            dry_run: Change nothing.
            merge: Merge duplicates too.
            threshold: The least cosine of two duplicates; None takes the setting.
            key: Idempotency key.

        Raises:
            FailedPrecondition: Another operation of the bank is not done.
        """
        rules = rules_of(self._settings(bank.bank_id), merge=merge, threshold=threshold)
        new = NewRun(f"op-{uuid.uuid4().hex}", dry_run, rules)
        started = await self._store.start(bank, new, by=by, request=key)
        self.notify()
        return started

    async def close(self) -> None:
        """Note what was recalled, and stop; the next process goes on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
            with contextlib.suppress(AstrocyteError):
                await self.recalls.flush()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def _work_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.recalls.flush()
                if self._scheduled:
                    await self._start_due()
                while (work := await self._in_thread(self._store.work)) is not None:
                    await self._perform(work)
            except AstrocyteError as error:
                log.warning("lifecycle_interrupted", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is to be done stays to be done
                # No traceback: it could show the values of variables, which are content.
                log.error("lifecycle_interrupted", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()

    async def _start_due(self) -> None:
        """Start runs of the banks whose time has come since their last scheduled run, or since they were created."""
        now = datetime.fromtimestamp(self._clock() / 1_000, UTC)
        after = 0
        while banks := await self._in_thread(lambda: self._store.banks(after=after, limit=BANKS_AT_ONCE)):  # noqa: B023 - awaited at once
            for bank in banks:
                settings = self._settings(bank.bank_id)
                if settings.runs_at is None:
                    continue
                last = await self._in_thread(lambda: self._store.last_start(bank, SCHEDULER))  # noqa: B023 - as above
                since = bank.created_at if last is None else datetime.fromtimestamp(last / 1_000, UTC)
                if Cron.parse(settings.runs_at).after(since) <= now:
                    # Another operation goes first; the next tick tries again.
                    with contextlib.suppress(FailedPrecondition, BankNotFound):
                        await self.request(bank, SCHEDULER, dry_run=False, merge=settings.merge_duplicates)
            after = banks[-1].key

    async def _perform(self, work: LifecycleWork) -> None:
        """All steps of a run."""
        try:
            # What was recalled since the last tick is not unused.
            await self.recalls.flush()
            if not work.merging:
                await self._archive(work)
                work = replace(work, merging=True, cursor=0)
            if work.rules["similarity_threshold"] is not None:
                await self._merge(work)
            log.info("lifecycle_completed", bank_key=work.bank.key)
        except (OperationEnded, BankNotFound):
            log.info("lifecycle_cancelled", bank_key=work.bank.key)
        except AstrocyteError as error:
            log.warning("lifecycle_failed", bank_key=work.bank.key, reason=error.reason)
            with contextlib.suppress(OperationEnded):
                await self._store.fail(work, OperationError(error.reason, error.message))
        self._tell()

    async def _archive(self, work: LifecycleWork) -> None:
        """The steps of a run that judge memories by their ages."""
        decide = judge(work.rules)
        done = False
        while not done:
            copies = self._copies(work.bank)
            order = StepOrder(decide, MEMORIES_AT_ONCE, self._clock() + self._keep_ms, copies)
            failpoint("lifecycle.step")
            done, counts = await self._store.step(work, order)
            failpoint("lifecycle.stepped")
            self._told(work, copies, counts)

    async def _merge(self, work: LifecycleWork) -> None:
        """The steps of a run that look for duplicates."""
        threshold: float = work.rules["similarity_threshold"]
        scan = await self._resumed(work)
        done = False
        while not done:
            at = work
            records = await self._in_thread(lambda: self._store.current(at, STEP_MEMORIES))  # noqa: B023 - awaited at once
            exempt = work.rules["exempt_tags"]
            merges = await self._duplicates.merges(work.bank, records, threshold, scan, exempt)
            done = len(records) < STEP_MEMORIES
            cursor = records[-1].row_key if records else work.cursor
            copies = self._copies(work.bank)
            order = MergeOrder(merges, cursor, len(records), done, self._most_tags, copies)
            failpoint("lifecycle.step")
            counts = await self._store.merge(work, order)
            failpoint("lifecycle.stepped")
            work = replace(work, cursor=cursor)
            self._told(work, copies, counts)

    async def _resumed(self, work: LifecycleWork) -> Scan:
        """The state of a run, as it was before the run was interrupted."""
        scan = Scan()
        done = replace(work, cursor=0, last_row=work.cursor)
        while done.cursor < done.last_row:
            at = done
            records = await self._in_thread(lambda: self._store.current(at, STEP_MEMORIES))  # noqa: B023 - awaited at once
            if not records:
                break
            await self._in_thread(lambda: scan.add(records))  # noqa: B023 - as above
            done = replace(done, cursor=records[-1].row_key)
        return scan

    def _told(self, work: LifecycleWork, copies: CopyOrder | None, counts: Mapping[str, int]) -> None:
        """Tell whom a step concerns."""
        if copies is not None and any(counts.values()):
            self._copied(copies.engine)
        self._count(work.bank.bank_id, counts)
        self._tell()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _no_copies(_: Bank) -> CopyOrder | None:
    return None


def _no_engine(_: str) -> None:
    return


def _no_count(_: str, __: Mapping[str, int]) -> None:
    return
