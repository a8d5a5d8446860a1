"""Moving banks to another embedding model while they answer.

1. embed: every version that lacks vectors of the new model gets them, beside those that it has; what is written from
   then on gets both (`preparing`), and what could not is found by the change log;
2. index: the next index is built of them, and follows the commits (`registry`);
3. compare: both indexes are asked the same (`comparing`);
4. move: one commit, which is refused while a memory lacks vectors, makes the new vectors the bank's; the index follows
   within it. The former vectors are kept for a time, then dropped.

One operation runs at a time. Each step is durable, so that a process that was killed goes on where it was; whatever
ends an operation before its last commit leaves the bank as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import ParamSpec, TypeVar

import structlog

from astrocyte.config import ReindexSettings
from astrocyte.core import failpoint
from astrocyte.errors import (
    AstrocyteError,
    BankNotFound,
    FailedPrecondition,
    ProviderUnavailable,
    Unavailable,
    frames,
)
from astrocyte.model import Bank, Comparison, OperationError, Reindex, ReindexPhase
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.reindex.embedding import VectorMaker
from astrocyte.pipelines.reindex.overlap import compare
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.operations import OperationEnded, OperationStore, Work
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import VersionRecord

# Versions that are looked at in one step, whether they lack vectors or not.
VERSIONS_AT_ONCE = 256
# Changes that are looked at in one step.
CHANGES_AT_ONCE = 256
# Builds of the next index before a move is given up: each was spoilt by writes whose vectors could not be made in time.
MOST_BUILDS = 8
# How often, in seconds, it is looked for vectors whose time is up; and rest after a failure that nobody foresaw.
TIDY_SECONDS = 60.0
HOUR_MILLISECONDS = 3_600_000

log = structlog.get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Reindexer:
    """Does the operations that wait, in the background of one event loop.

    Args:
        store: Whose banks.
        operations: What is to be done.
        registry: Their indexes.
        recall: What answers, for comparisons.
        spaces: The embedders.
        settings: How fast, and how careful.
        clock: Milliseconds since the epoch.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the composition root hands over what a reindex touches
        self,
        store: MemoryStore,
        operations: OperationStore,
        registry: IndexRegistry,
        recall: RecallPipeline,
        spaces: EmbeddingSpaces,
        settings: ReindexSettings,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._operations = operations
        self._registry = registry
        self._recall = recall
        self._spaces = spaces
        self._settings = settings
        self._clock = clock
        # One thread, apart from those that answer: what it does must not keep a recall waiting for a place.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="astrocyte-reindex")
        self._maker = VectorMaker(settings, self._thread)
        self._wake = asyncio.Event()
        self._watchers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        # The operation that is performed; its end may be stored before the indexes have changed places.
        self._performed = ""

    def start(self) -> None:
        """Work from now on, in the background of the running loop; a second call does nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work_for_ever(), name="astrocyte-reindex")

    def notify(self) -> None:
        """There is something new to do, or something was called off."""
        self._wake.set()
        self._tell()

    def progressed(self) -> None:
        """Wake those that wait for an operation: another process may have done some of it."""
        self._tell()

    def performs(self, operation_id: str) -> bool:
        """True while this process works on an operation, also where its end is stored already."""
        return operation_id == self._performed

    @contextlib.contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever any operation has come further, or ended."""
        event = asyncio.Event()
        self._watchers.add(event)
        try:
            yield event
        finally:
            self._watchers.discard(event)

    async def close(self) -> None:
        """Stop; the next process goes on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._closing = True
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def complete(self, bank: Bank, memory_id: str) -> None:
        """Give a forgotten memory that is to come back the vectors that it missed while the bank moved.

        Raises:
            ProviderUnavailable: The embedder failed.
        """
        target = self._spaces.target(bank)
        for embedder in (self._spaces.embedder(bank.embedding_model), target):
            if embedder is None:
                continue
            versions = await self._in_thread(self._operations.lacking_of, bank, embedder.model_id, [memory_id])
            if versions:
                rows = await self._maker.vectors_of(embedder, versions)
                await self._operations.put(bank, embedder.model_id, rows)

    async def _work_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._tidy()
                work = await self._in_thread(self._operations.next)
                if work is not None:
                    await self._perform(work)
                    continue
            except AstrocyteError as error:
                log.warning("reindex_interrupted", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is to be done stays to be done
                # No traceback: it could show the values of variables, which are content.
                log.error("reindex_interrupted", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TIDY_SECONDS):
                    await self._wake.wait()

    async def _tidy(self) -> None:
        """Drop vectors whose time is up."""
        for bank in await self._in_thread(self._operations.leaving, self._clock()):
            start = perf_counter()
            while await self._operations.drop_some(bank):
                failpoint("reindex.dropped")
                await self._maker.rest(perf_counter() - start)
                start = perf_counter()
            log.info("vectors_dropped", bank_key=bank.key)
            self._tell()

    async def _perform(self, work: Work) -> None:
        bank, start = work.bank, time.monotonic()
        self._performed = work.operation.operation_id
        try:
            embedder = self._embedder(work)
            self._spaces.aim(bank, embedder.model_id)
            await self._operations.begin(work.key)
            self._tell()
            await self._embed_all(work, embedder)
            await self._move(work, embedder)
            log.info("bank_reindexed", bank_key=bank.key, seconds=round(time.monotonic() - start, 3))
        except (OperationEnded, BankNotFound):
            log.info("reindex_cancelled", bank_key=bank.key)
        except ProviderUnavailable as error:
            # Not its message: an embedder of another package may repeat the text, and the row outlives an erasure.
            status = error.metadata.get("status", "")
            problem = f"status {status}" if status.isdigit() else error.reason
            await self._failed(work, OperationError(error.reason, f"the embedder failed ({problem})"))
        except AstrocyteError as error:
            await self._failed(work, OperationError(error.reason, error.message))
        except Exception as error:  # noqa: BLE001 - as above
            log.error("reindex_failed", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            await self._failed(
                work, OperationError(AstrocyteError.reason, f"the operation failed with {type(error).__name__}")
            )
        finally:
            self._spaces.aim(bank, None)
            self._registry.drop_next(bank)
            self._performed = ""
            self._tell()

    async def _failed(self, work: Work, error: OperationError) -> None:
        log.warning("reindex_failed", bank_key=work.bank.key, reason=error.reason)
        with contextlib.suppress(OperationEnded):
            await self._operations.fail(work.key, error)

    def _embedder(self, work: Work) -> Embedder:
        plan = plan_of(work)
        embedder = self._spaces.embedder(plan.to_model)
        if embedder is None or embedder.dimensions != plan.to_dimensions:
            raise FailedPrecondition(
                f"there is no embedder for {plan.to_model!r} with {plan.to_dimensions} dimensions any more; add it to "
                "embedders",
                metadata={"embedding_model": plan.to_model},
            )
        return embedder

    async def _embed_all(self, work: Work, embedder: Embedder) -> None:
        """Give every version vectors of the new model."""
        after = work.cursor
        while True:
            start = perf_counter()
            lacking, last = await self._in_thread(
                self._operations.lacking, work.bank, embedder.model_id, after=after, limit=VERSIONS_AT_ONCE
            )
            if last is None:
                return
            looked = perf_counter() - start
            rows = await self._maker.vectors_of(embedder, lacking)
            await self._operations.put(work.bank, embedder.model_id, rows, key=work.key, cursor=last)
            failpoint("reindex.embedded")
            after = last
            self._tell()
            await self._maker.rest(looked)

    async def _catch_up(self, work: Work, embedder: Embedder, position: int) -> tuple[int, bool]:
        """Give vectors to what changed after a position and lacks them; up to where that is so, and whether any did."""
        filled = False
        while changes := await self._in_thread(self._store.changes, work.bank, after=position, limit=CHANGES_AT_ONCE):
            memory_ids = list({change.memory_id: None for change in changes if change.memory_id})
            lacking = await self._in_thread(
                self._operations.lacking_of, work.bank, embedder.model_id, memory_ids, forgotten=False
            )
            if lacking:
                await self._fill(work, embedder, lacking)
                filled = True
            position = changes[-1].position
        return position, filled

    async def _fill(self, work: Work, embedder: Embedder, lacking: list[VersionRecord]) -> None:
        rows = await self._maker.vectors_of(embedder, lacking)
        await self._operations.put(work.bank, embedder.model_id, rows, key=work.key)

    async def _move(self, work: Work, embedder: Embedder) -> None:
        """Build the next index until nothing comes between it and the commit of the move."""
        position, _ = await self._catch_up(work, embedder, work.start_position)
        comparison: Comparison | None = None
        for _ in range(MOST_BUILDS):
            await self._operations.note(work.key, ReindexPhase.INDEXING)
            failpoint("reindex.indexing")
            before, after = await self._both(work.bank, embedder)
            if comparison is None:
                comparison = await self._compared(work, before, after)
            position, filled = await self._catch_up(work, embedder, position)
            if filled:
                continue
            failpoint("reindex.move")
            if not await self._operations.move(work.key, checked=position, kept_until=self._kept_until()):
                failpoint("reindex.moved")
                return
        raise Unavailable(
            f"{embedder.model_id!r} could not embed new writes of the bank fast enough; try again when the bank has "
            "fewer writes",
            metadata={"embedding_model": embedder.model_id},
        )

    async def _both(self, bank: Bank, embedder: Embedder) -> tuple[BankIndex, BankIndex]:
        """The index that answers, and the next one."""
        target = replace(bank, embedding_model=embedder.model_id, dimensions=embedder.dimensions)
        while True:
            before = await self._registry.get(bank)
            after = await self._in_thread(self._registry.build_next, target, self._pace())
            if after is not None:
                return before, after
            await self._maker.rest(self._settings.retry_seconds)

    async def _compared(self, work: Work, before: BankIndex, after: BankIndex) -> Comparison | None:
        """The comparison of both indexes.

        Raises:
            FailedPrecondition: They agree on less than they have to.
        """
        plan = plan_of(work)
        sample = await self._in_thread(self._operations.sample, work.bank, plan.sample) if plan.sample else []
        if not sample:
            return None
        await self._operations.note(work.key, ReindexPhase.COMPARING)
        comparison = await compare(self._recall, self._maker, work.bank, (before, after), sample)
        await self._operations.note(work.key, ReindexPhase.COMPARING, comparison)
        self._tell()
        if comparison.overlap < plan.min_overlap:
            raise FailedPrecondition(
                f"the overlap of the first ten memories between both models is {comparison.overlap:.3f}, "
                f"below min_overlap {plan.min_overlap:g}; the bank keeps its model",
                metadata={"overlap": f"{comparison.overlap:.3f}", "min_overlap": f"{plan.min_overlap:g}"},
            )
        return comparison

    def _kept_until(self) -> int | None:
        hours = self._settings.keep_hours
        return self._clock() + round(hours * HOUR_MILLISECONDS) if hours else None

    def _pace(self) -> Callable[[], None]:
        """Rests on the thread of the reindexer, for as long as the work since the last rest says."""
        last = perf_counter()

        def rest() -> None:
            nonlocal last
            if self._closing:
                raise Unavailable("the server is shutting down")
            time.sleep(self._maker.owed(perf_counter() - last))
            last = perf_counter()

        return rest

    def _tell(self) -> None:
        for event in tuple(self._watchers):
            event.set()

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))


def plan_of(work: Work) -> Reindex:
    """The reindex of an operation.

    Raises:
        OperationEnded: The operation is of another kind.
    """
    if work.operation.reindex is None:
        raise OperationEnded("the operation is no reindex")
    return work.operation.reindex
