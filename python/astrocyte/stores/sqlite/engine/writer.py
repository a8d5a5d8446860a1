"""The one thread that writes: everything that waits shares one transaction, and so one sync of the disk.

A job runs in a savepoint of its own, so that its failure undoes nothing of its neighbours. After the commit the
listeners hear of each job's changes in order, and only then do the callers. A job that has begun is not stopped by a
caller that gives up. Long jobs come in slices, and what waits gets its turn between two of them. After a failed sync
nothing is known about the disk: the writer refuses all that follows, and never syncs again; a new process reads what
is really there.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

import apsw
import structlog

from astrocyte.core import failpoint
from astrocyte.errors import AstrocyteError, DiskFull, FailedPrecondition, RateLimited, StoreError
from astrocyte.stores.protocols import BatchFlag, IndexListener
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import FENCE, Fence, Told
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.data_directory import Ballast
from astrocyte.stores.sqlite.engine.error_translation import RETRY_AFTER_SECONDS, Failure, classify, report, translate
from astrocyte.stores.sqlite.engine.sharing import Sharing, check_fence
from astrocyte.stores.sqlite.engine.transaction import Clock, Transaction

log = structlog.get_logger(__name__)

T = TypeVar("T")
# A job that gives way to others at each yield, and returns its result at the end.
Slices = Generator[None, None, T]

# Writes of one transaction: a few milliseconds' worth, so that the first of a group does not wait long for the last.
GROUP_WRITES = 512
# How often, in seconds, a writer without ballast looks whether the disk has room again.
BALLAST_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """One write, and the caller that waits for it, if any does.

    ``frees`` marks what must work on a full disk. ``sliced`` jobs get the writer itself, outside of a transaction, and
    go back to the end of the queue after each slice; ``slices`` is what such a job goes on with, once it has begun.
    ``fence`` is that of the lease under which it is made.
    """

    run: Callable[..., Any]
    future: asyncio.Future[T] | None = None
    weight: int = 1
    frees: bool = False
    sliced: bool = False
    slices: Slices[T] | None = None
    result: Any = None
    error: BaseException | None = None
    batches: list[IndexBatch] = field(default_factory=list)
    effects: list[Callable[[], None]] = field(default_factory=list)
    tells: list[Told] = field(default_factory=list)
    fence: Fence | None = None


class Writer:
    """Owns the writing connection. `submit` may be called from any event loop."""

    def __init__(
        self,
        connections: Connections,
        ballast: Ballast,
        *,
        clock: Clock,
        waiting_limit: int,
        read_only: bool = False,
        sharing: Sharing | None = None,
    ) -> None:
        self._read_only = read_only
        self.sharing = sharing
        # Held while this process writes; the other processes on the data directory wait for it.
        self.turn: AbstractContextManager[object] = nullcontext() if sharing is None else sharing.writing
        # Of the sliced job that runs.
        self._fence: Fence | None = None
        self._connections = connections
        self.connection = connections.writer
        self._ballast = ballast
        self.clock = clock
        self._waiting_limit = waiting_limit
        self._listeners: list[tuple[IndexListener, BatchFlag | None]] = []
        self._queue: deque[Job[Any]] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closing = False
        self._next_look = 0.0
        self.fault: str | None = None
        self._thread = threading.Thread(target=self._run, name="astrocyte-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The weight of the jobs that wait."""
        return self._waiting

    def subscribe(self, listener: IndexListener, flag: BatchFlag | None) -> None:
        """Call the listener from now on after every commit, or after those whose batch has a flag set."""
        self._listeners.append((listener, flag))

    async def submit(self, run: Callable[[Transaction], T], *, weight: int = 1, frees: bool = False) -> T:
        """Run a job in a transaction; returns when it is durable.

        Raises:
            RateLimited: Too much waits, or another process holds the database for too long.
            FailedPrecondition: The data directory is open read-only.
            DiskFull, StoreError: Nothing was changed, unless the message says that this is not known.
        """
        result: T = await self._enqueue(run, weight=weight, frees=frees, sliced=False)
        return result

    async def submit_sliced(self, run: Callable[[], Slices[T]]) -> T:
        """Run a job that makes its own transactions with `transact`, and lets others write wherever it yields.

        Once begun it is brought to its end, even if its caller gives up, or the store is being closed.
        """
        result: T = await self._enqueue(run, weight=1, frees=True, sliced=True)
        return result

    def transact(self, run: Callable[[Transaction], T]) -> T:
        """One committed transaction; for `submit_sliced` jobs, on the writer's thread."""
        job: Job[T] = Job(run, frees=True, fence=self._fence)
        self._commit_group([job])
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    async def _enqueue(self, run: Callable[..., Any], *, weight: int, frees: bool, sliced: bool) -> Any:  # noqa: ANN401 - what the job returns
        if self._read_only:
            raise FailedPrecondition(
                "the data directory is open read-only; nothing was changed; start without read_only"
            )
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        job: Job[Any] = Job(run, future, weight, frees, sliced, fence=FENCE.get())
        with self._changed:
            if self._closing:
                raise StoreError("the store is closed; nothing was changed")
            # A job larger than the limit still gets in when nothing else waits.
            if self._waiting and self._waiting + weight > self._waiting_limit:
                raise RateLimited(
                    f"{self._waiting} writes are queued, the limit is {self._waiting_limit}; try again",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            self._queue.append(job)
            self._waiting += weight
            self._changed.notify()
        return await future

    def _run(self) -> None:
        while group := self._take():
            done = True
            try:
                done = self._process(group)
            except Exception as error:  # noqa: BLE001 - the thread must outlive any bug in a job
                report("writer_failed", error)
                self._break(f"the writer met an unexpected {type(error).__name__}")
                for job in group:
                    job.error = job.error or self._refusal(unknown=True)
            if done:
                _resolve(group)
            # A job keeps its caller's content alive until the next one comes.
            del group

    def _take(self) -> list[Job[Any]]:
        """The next group, waited for; empty when the writer is to stop."""
        with self._changed:
            while not self._queue and not self._closing:
                self._changed.wait()
            group: list[Job[Any]] = []
            weight = 0
            while self._queue:
                job = self._queue[0]
                if group and (job.sliced or group[0].sliced or weight + job.weight > GROUP_WRITES):
                    break
                group.append(self._queue.popleft())
                weight += job.weight
            self._waiting -= weight
            return group

    def _process(self, group: Sequence[Job[Any]]) -> bool:
        """Run the jobs; False when it was one that goes on later."""
        # What was given up before it began is left out; what has begun is finished.
        live = [job for job in group if job.future is None or job.slices is not None or not job.future.cancelled()]
        if live and live[0].sliced:
            return self._run_slice(live[0])
        if live:
            self._commit_group(live)
        return True

    def _run_slice(self, job: Job[Any]) -> bool:
        """One slice of a job; returns whether it was the last."""
        self._fence = job.fence
        try:
            if job.slices is None:
                job.slices = job.run()
            next(job.slices)
        except StopIteration as end:
            job.result = end.value
        except Exception as error:  # noqa: BLE001 - it becomes the caller's
            if classify(error) is Failure.BROKEN:
                self._break(str(error))
                job.error = self._refusal(unknown=True)
            else:
                job.error = _failed(error)
        else:
            with self._changed:
                self._queue.append(job)
                self._waiting += job.weight
            return False
        return True

    def read(self, run: Callable[[apsw.Connection], T]) -> T:
        """Read in a sliced job without a transaction. In memory, readers have the same connection."""
        with self._connections.write_lock:
            return run(self.connection)

    def release_ballast(self) -> bool:
        """Give the held back space to what frees more; False when there was none."""
        released = self._ballast.release()
        if released:
            log.warning("ballast_released")
            # Not taken back before what it was released for had its turn.
            self._next_look = monotonic() + BALLAST_SECONDS
        return released

    def _commit_group(self, jobs: Sequence[Job[Any]]) -> None:
        """Commit the jobs together; each job's ``result`` or ``error`` is set when this returns."""
        jobs = self._admitted(jobs)
        if not jobs:
            return
        with self._connections.write_lock, self.turn:
            failure = self._try(jobs)
        if failure is None:
            batches: list[IndexBatch] = []
            for job in jobs:
                batches += job.batches
                for effect in job.effects:
                    effect()
            self._publish(batches)
        elif classify(failure) is Failure.FULL and len(jobs) > 1:
            # One of them may be small enough, or be the one that frees space.
            for job in jobs:
                job.error = None
                self._commit_group([job])
        elif classify(failure) is Failure.FULL and jobs[0].frees and self.release_ballast():
            jobs[0].error = None
            self._commit_group(jobs)
        else:
            self._fail(jobs, failure)

    def _admitted(self, jobs: Sequence[Job[Any]]) -> list[Job[Any]]:
        """The jobs that may be tried now; the others get their error."""
        if self.fault is not None:
            for job in jobs:
                job.error = self._refusal()
            return []
        if all(job.frees for job in jobs) or self._room():
            return list(jobs)
        for job in jobs:
            if not job.frees:
                job.error = DiskFull("the disk of the data directory is full; nothing was changed; free space")
        return [job for job in jobs if job.frees]

    def _room(self) -> bool:
        """True if the ballast is in place, or could be built again."""
        if self._ballast.held:
            return True
        if monotonic() < self._next_look:
            return False
        self._next_look = monotonic() + BALLAST_SECONDS
        return self._ballast.build()

    def _try(self, jobs: Sequence[Job[Any]]) -> BaseException | None:
        """One transaction over all jobs; returns what made the whole of it fail, if anything did."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._savepoint(job)
            if self.sharing is not None:
                batches = [batch for job in jobs for batch in job.batches]
                self.sharing.write(connection, batches, [one for job in jobs for one in job.tells])
            failpoint("commit.before")
            connection.execute("COMMIT")
            failpoint("commit.after")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is returned and answered
            # SQLite has rolled back by itself after some errors.
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except (apsw.Error, AstrocyteError) as second:
                    return second
            return error
        return None

    def _savepoint(self, job: Job[Any]) -> None:
        """Run one job. Its own failure is kept in it; one that concerns the whole transaction is raised."""
        connection = self.connection
        connection.execute("SAVEPOINT job")
        try:
            if job.fence is not None:
                check_fence(connection, job.fence)
            transaction = Transaction(connection, self.clock, has_keys=self._connections.has_keys)
            job.result = job.run(transaction)
            job.batches = transaction.finish()
            job.effects, job.tells = transaction.effects, transaction.tells
            # An engine that sends statements together tells of their failure here at the latest.
            connection.execute("RELEASE job")
        except Exception as error:
            if classify(error) is not Failure.OTHER or not connection.in_transaction:
                raise
            job.error = _failed(error)
            job.batches, job.effects, job.tells = [], [], []
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")

    def _fail(self, jobs: Sequence[Job[Any]], failure: BaseException) -> None:
        """The whole transaction failed."""
        broken = classify(failure) is Failure.BROKEN
        if broken:
            self._break(str(failure))
        for job in jobs:
            job.batches, job.effects, job.tells = [], [], []
            job.error = self._refusal(unknown=True) if broken else translate(failure)

    def _break(self, fault: str) -> None:
        log.error("store_broken", fault=fault)
        self.fault = fault

    def _refusal(self, *, unknown: bool = False) -> StoreError:
        what = "whether this write was stored is not known" if unknown else "nothing was changed"
        return StoreError(f"the store stopped writing after a failure ({self.fault}); {what}; restart the server")

    def _publish(self, batches: Sequence[IndexBatch]) -> None:
        for batch in merged(batches):
            for listener, flag in self._listeners:
                if flag is not None and not getattr(batch, flag):
                    continue
                try:
                    listener(batch)
                except Exception as error:  # noqa: BLE001 - the commit stands, whatever the listener says
                    report("listener_failed", error, bank_key=batch.bank.key, position=batch.position)


def merged(batches: Sequence[IndexBatch]) -> list[IndexBatch]:
    """Consecutive batches of one bank that only add, as one: a stream of small writes is one call into the index."""
    result: list[IndexBatch] = []
    for batch in batches:
        last = result[-1] if result else None
        if last is not None and _adds(batch) and last.bank.key == batch.bank.key and _adds(last):
            refers = last.refers or batch.refers
            upserts = last.upserts + batch.upserts
            result[-1] = IndexBatch(batch.bank, batch.position, upserts, refers=refers, after=last.after)
        else:
            result.append(batch)
    return result


def _adds(batch: IndexBatch) -> bool:
    return not (batch.ended or batch.removed or batch.moved)


def _failed(error: BaseException) -> AstrocyteError:
    """The error for a job's caller; one that nobody foresaw is logged."""
    if not isinstance(error, AstrocyteError):
        report("write_failed", error)
    return translate(error)


def _resolve(jobs: Sequence[Job[Any]]) -> None:
    """Give the callers their answers, with one wake-up for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        if job.future is not None:
            by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_answer, waiting)
        except RuntimeError:
            # The loop was closed: nobody waits any more, and the write stands.
            log.warning("callers_gone", jobs=len(waiting))


def _answer(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        if job.future is None or job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
