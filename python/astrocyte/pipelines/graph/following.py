"""Keeps the entity graphs up to date: derives the rows of new versions, finishes rebuilds, resolves names.

Versions are taken in the order of their row keys, in batches; each batch and the note of how far it reached are one
transaction, so a crash loses no version and repeats none. Work waits in the database: nothing is lost by a stop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

import structlog

from astrocyte.config import EntityResolutionSettings
from astrocyte.errors import AstrocyteError, frames
from astrocyte.model import Bank, KnownEntity, Resolution
from astrocyte.pipelines.graph.derivation import derive_or_none
from astrocyte.pipelines.graph.llm.judgement import ModelJudgement
from astrocyte.pipelines.graph.llm.reader import ModelReader
from astrocyte.pipelines.graph.resolution import resolve_each
from astrocyte.stores.graph.entity_graph import DerivedVersion, EntityGraphStore, Rebuild, Resolve, SourceVersion
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

log = structlog.get_logger(__name__)

T = TypeVar("T")
# Versions of one transaction: some milliseconds of the writer, which other writes wait for.
VERSIONS_AT_ONCE = 64
# New entities of one transaction: each is compared with those that share a word with it.
ENTITIES_AT_ONCE = 8
# Pause between a commit and the derivation, in which further commits join the batch.
GATHER_SECONDS = 0.05
# Entities that are passed over after a failed call of the language model.
MOST_FAILED = 32
# Pause after a failure.
REST_SECONDS = 1.0
# Between two looks whether another process has derived what a read waits for.
ELSEWHERE_SECONDS = 0.01


class GraphFollower:
    """Follows the commits of the store.

    Args:
        store: Reports the commits.
        graph: Takes the rows.
        executor: Runs the derivation, which would hold the event loop.
        resolve: Decides on names of one entity; None links none.
        judgement: Asks a language model about names that the rules leave open; None asks none.
        reader: Lets a language model read memories; None lets none.
    """

    def __init__(
        self,
        store: MemoryStore,
        graph: EntityGraphStore,
        executor: Executor,
        resolve: Resolve | None,
        judgement: ModelJudgement | None = None,
        reader: ModelReader | None = None,
    ) -> None:
        self._graph = graph
        self._resolve = resolve or _nothing
        self._judgement = judgement
        self._reader = reader
        self._judging: asyncio.Task[None] | None = None
        # Entities of which the model gave no usable answer.
        self._failed: set[int] = set()
        self._executor = executor
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._moved = asyncio.Condition()
        # Row key up to which versions are derived, and up to which their names are resolved too.
        self._done = 0
        self._settled = 0
        # Number of the last request to look for work, and of the last one that was followed.
        self._asked = 1
        self._followed = 0
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shared = store.shared
        store.subscribe(self._on_commit)
        store.follow(self._on_told)

    def start(self) -> None:
        """Start in the background of the running loop; a second call does nothing."""
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._changed.set()
            self._task = self._loop.create_task(self._follow_for_ever(), name="astrocyte-entity-graph")
            if self._reader is not None:
                self._reader.start(self.notify)

    async def close(self) -> None:
        """Stop; the next process goes on where this one stopped."""
        self._loop = None
        if self._reader is not None:
            await self._reader.close()
        for task in (self._task, self._judging):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._task = None

    def notify(self) -> None:
        """Look for work."""
        self._asked += 1
        self._changed.set()

    def unread(self, bank: Bank) -> int:
        """Number of a bank's versions that a language model has yet to read; reads the store."""
        reader = self._reader
        return reader.count(bank.key) if reader is not None and reader.reads(bank.bank_id) else 0

    async def caught_up(self, seconds: float) -> bool:
        """Wait until every version that is committed now is in its graph and names are resolved; False on timeout."""
        last = (await self._run(self._graph.progress))[1]
        asked = self._asked
        if self._reached(last, asked):
            return True
        if self._task is None:
            return self._shared and await self._caught_up_elsewhere(last, seconds)
        self._urgent.set()
        self.notify()
        try:
            async with asyncio.timeout(seconds), self._moved:
                await self._moved.wait_for(lambda: self._reached(last, asked))
        except TimeoutError:
            return False
        return True

    async def _caught_up_elsewhere(self, row_key: int, seconds: float) -> bool:
        """As `caught_up`, where another process derives."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # The other process tells no place up to which it came.
                while not await self._run(partial(self._reached_elsewhere, row_key)):  # noqa: ASYNC110
                    await asyncio.sleep(ELSEWHERE_SECONDS)
                return True
        return False

    def _reached_elsewhere(self, row_key: int) -> bool:
        return self._graph.progress()[0] >= row_key and not self._graph.rebuilds() and not self._graph.unresolved()

    def _on_told(self, told: Told) -> None:
        loop = self._loop
        if loop is not None and (told.topic is Topic.WORK or told.topic is Topic.CHANGES):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.notify)

    def _reached(self, row_key: int, asked: int) -> bool:
        # Work that came since the call is not waited for, or steady writes would keep every reader.
        return self._settled >= row_key and self._followed >= asked

    def _on_commit(self, batch: IndexBatch) -> None:
        loop = self._loop
        if loop is not None and (batch.upserts or batch.erased):
            # A loop that closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.notify)

    async def _follow_for_ever(self) -> None:
        while True:
            try:
                await self._changed.wait()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_SECONDS):
                        await self._urgent.wait()
                self._urgent.clear()
                self._changed.clear()
                await self._work()
                continue
            except AstrocyteError as error:
                log.warning("entity_graph_behind", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what has not been derived still waits
                # No traceback: it could show the values of variables, which are content.
                log.error("entity_graph_behind", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            self._changed.set()
            await asyncio.sleep(REST_SECONDS)

    async def _work(self) -> None:
        """Do all that waits: new versions first."""
        asked = self._asked
        while await self._derive_some():
            pass
        for rebuild in await self._run(self._graph.rebuilds):
            await self._rebuild(rebuild)
        while await self._graph.resolve(self._resolve, limit=ENTITIES_AT_ONCE):
            pass
        async with self._moved:
            self._settled, self._followed = self._done, asked
            self._moved.notify_all()
        if self._reader is not None:
            self._reader.notify()
        if self._judgement is not None and (self._judging is None or self._judging.done()):
            # A model takes its time, and what is derived does not wait for it.
            self._judging = asyncio.create_task(self._judge(self._judgement), name="astrocyte-entity-names")

    async def _judge(self, judgement: ModelJudgement) -> None:
        """Ask the language model, until the budget is spent, nothing is left, or it fails."""
        while judgement.affordable:
            waiting = await self._run(partial(self._graph.unjudged, len(self._failed) + 1))
            one = next((one for one in waiting if one.key not in self._failed), None)
            if one is None:
                # With the next work they are tried again.
                self._failed.clear()
                return
            try:
                await judgement.judge(one, await self._run(partial(self._graph.comparable, one)))
            except AstrocyteError as error:
                # The others get their turn first, with the next work.
                self._failed = {one.key} if len(self._failed) >= MOST_FAILED else {*self._failed, one.key}
                log.warning("entity_names_not_judged", reason=error.reason)
                return

    async def _derive_some(self) -> bool:
        """Derive a batch of new versions; returns whether there may be more."""
        done, last = await self._run(self._graph.progress)
        versions, through = await self._run(partial(self._derived, done, None, None))
        if versions or through > done:
            await self._graph.put(versions, through=through)
        full = len(versions) == VERSIONS_AT_ONCE
        self._done = through if full else max(through, last)
        return full

    async def _rebuild(self, rebuild: Rebuild) -> None:
        at = rebuild.row_key
        while at < rebuild.until_row_key:
            versions, through = await self._run(partial(self._derived, at, rebuild.until_row_key, rebuild.bank_key))
            # Versions that were erased are passed over with the last batch.
            at = through if len(versions) == VERSIONS_AT_ONCE else rebuild.until_row_key
            await self._graph.put(versions, through=at, rebuild=rebuild.bank_key)
            await self._derive_some()

    def _derived(self, after: int, until: int | None, bank_key: int | None) -> tuple[Sequence[DerivedVersion], int]:
        sources = list(self._graph.sources(after, limit=VERSIONS_AT_ONCE, until=until, bank_key=bank_key))
        return [self._derive(source) for source in sources], sources[-1].row_key if sources else after

    def _derive(self, source: SourceVersion) -> DerivedVersion:
        """The rows of a version by the rules, and by a language model where its bank wants that."""
        reader = self._reader
        if reader is None or not reader.reads(source.bank_id):
            return derive_or_none(source._replace(reading=None))
        return derive_or_none(source)._replace(unread=reader.wants(source))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def resolver(settings: EntityResolutionSettings) -> Resolve | None:
    """The rules on names, from the configured confidence on; None where they are switched off."""
    if not settings.enabled:
        return None

    def decide(entities: Mapping[int, KnownEntity], known: Mapping[int, Sequence[int]]) -> Sequence[Resolution]:
        found = resolve_each(entities, known)
        return [one for one in found if one.confidence >= settings.confirmation_threshold]

    return decide


def _nothing(*_: object) -> Sequence[Resolution]:
    return ()
