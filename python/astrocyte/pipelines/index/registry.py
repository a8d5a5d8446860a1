"""The indexes of all banks: loaded on first use, from a checkpoint or rows, kept equal to the store by its commits.

The store calls `IndexRegistry.on_commit` after each commit, in order. A bank that is being loaded collects those
batches; the loader replays them over what it read before the index is shown, so none is lost. A batch that the loader
had read already is replayed over its own effect, which changes nothing: the core ignores positions that it holds, and
puts a version in the place of its like. An index that failed to take a batch is dropped and built anew on next use.

All indexes together stay within a budget of memory. What passes it lets go of the least recently used ones, down to a
lower mark, so that not every load evicts. An evicted bank loses nothing, since its rows are the truth: commits pass it
by, and its next use loads it again. A call that holds an evicted index finishes on it.

What another process commits makes the index fall behind, and so does an own commit that comes after it: positions are
applied in order. The next use of the index replays the changes since, from the store, before it answers.

A bank that moves to another embedding model has two indexes for a while: the one that answers, and the next one, which
follows the commits too. The commit of the move puts the next one in the place of the other, so that every recall is
answered by one of the two, and none that begins later by the first. Where there is no next one, because it was evicted
or missed vectors, the first use after the move loads it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import structlog

from astrocyte.core import Core, IndexOptions, failpoint
from astrocyte.errors import BankNotFound, FailedPrecondition, frames
from astrocyte.model import Bank, BankIndexStats, IndexMemory
from astrocyte.pipelines.index import next_index
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.checkpoints import GROWN_SHARE, LEFT_SHARE, Checkpoints
from astrocyte.pipelines.index.loading import load_index, load_slowly
from astrocyte.pipelines.index.slot_loading import caught_up, replayed, scrub
from astrocyte.pipelines.index.slot_table import SlotTable
from astrocyte.pipelines.index.slots import Slot
from astrocyte.pipelines.index.waiters import Waiters
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

log = structlog.get_logger(__name__)


class IndexRegistry:
    """Looks up, loads, updates and evicts the indexes. Used by one event loop; the store's writer thread updates it.

    Args:
        store: Whose banks.
        core: What makes the indexes.
        executor: Where they are loaded and let go.
        memory_bytes: Bytes that all indexes together may hold; 0 is without bounds. The bank that was used last stays
            in memory whatever its size.
        checkpoints: Where large banks are kept over a restart; None keeps none.
        options_of: The options of a bank's index, by its id.
    """

    def __init__(
        self,
        store: MemoryStore,
        core: Core,
        executor: Executor,
        *,
        memory_bytes: int = 0,
        checkpoints: Checkpoints | None = None,
        options_of: Callable[[str], IndexOptions] = lambda _: IndexOptions(),
    ) -> None:
        self._options_of = options_of
        self._checkpoints = checkpoints
        self._store = store
        self._core = core
        self._executor = executor
        self._slots = SlotTable(memory_bytes)
        self._shedding = False
        self._waiters = Waiters()
        store.subscribe(self.on_commit)
        store.follow(self.on_told)

    def loaded(self, bank: Bank) -> BankIndex | None:
        """The bank's index, if it is in memory; counts as a use."""
        slot = self._slots.get(bank.key)
        if slot is None:
            return None
        slot.used = self._slots.next_use()
        index = slot.index
        return None if index is not None and index.core.position < slot.wanted else index

    def peek(self, bank: Bank) -> BankIndex | None:
        """The bank's index, if it is in memory; does not count as a use."""
        slot = self._slots.get(bank.key)
        return None if slot is None else slot.index

    async def refreshed(self, bank: Bank) -> BankIndex | None:
        """As `peek`, with what other processes committed before this call.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """
        slot = self._slots.get(bank.key)
        return await self.get(bank) if slot is not None and slot.wanted else self.peek(bank)

    @property
    def checkpoints(self) -> Checkpoints | None:
        """Where large banks are kept over a restart, if anywhere."""
        return self._checkpoints

    @property
    def memory(self) -> IndexMemory:
        """The memory that the indexes use."""
        return self._slots.memory

    def statistics(self, rows: int = 0) -> list[BankIndexStats]:
        """The statistics of the loaded indexes that ever had so many rows."""
        indexes = [slot.index for slot in self._slots]
        return [index.stats() for index in indexes if index is not None and not index.small(rows - 1)]

    async def get(self, bank: Bank) -> BankIndex:
        """The bank's index, loaded if necessary; concurrent callers share one load.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """
        while True:
            index = self.loaded(bank)
            if index is not None:
                return index
            slot = self._slots.get_or_add(bank)
            slot.used = self._slots.next_use()
            wanted = slot.wanted
            if slot.loading is None or slot.loading.done():
                loop = asyncio.get_running_loop()
                slot.loading = loop.run_in_executor(self._executor, self._load, bank, slot)
                slot.loading.add_done_callback(partial(self._loaded, bank.key, slot))
            # A caller that gives up must not stop the load for the others.
            index = await asyncio.shield(slot.loading)
            # A load that had begun may have read less.
            if index.core.position >= wanted:
                return index

    def charge(self, bank: Bank) -> None:
        """Count the memory of the bank's index anew: it has grown by more than commits."""
        slot = self._slots.get(bank.key)
        if slot is None:
            return
        with slot.lock:
            if slot.index is not None:
                self._slots.charge(slot, slot.index.measure())
        if self._slots.over_budget:
            self._shed()

    async def scrub(self, bank: Bank) -> None:
        """Drop what files of the bank's index still have of removed memories.

        A removal overwrites vectors at once. Words of forgotten memories may stay in files until this is called: after
        an erasure and before its confirmation, and after a purge.
        """
        slot = self._slots.get(bank.key)
        if slot is not None:
            await scrub(slot)

    async def scrub_all(self) -> None:
        """As `scrub`, for every bank in memory."""
        for slot in self._slots:
            await scrub(slot)

    def drop(self, bank: Bank) -> None:
        """Remove the bank's index from memory; the next use loads it again."""
        slot = self._slots.get(bank.key)
        if slot is not None:
            self._slots.discard(bank.key, slot)
        self._waiters.notify(bank.key)

    async def rebuild(self, bank: Bank) -> None:
        """Build the bank's index anew from the rows, without its checkpoints.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """
        if self._checkpoints is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._checkpoints.hold, bank.key)
            self._checkpoints.release(bank.key)
        self.drop(bank)
        await self.get(bank)

    async def discard(self, bank: Bank) -> None:
        """Remove the checkpoints of a deleted bank."""
        self.drop(bank)
        if self._checkpoints is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._checkpoints.discard, bank.key)

    def close(self) -> None:
        """Write checkpoints of the large changed banks, and wait for them. The indexes stay."""
        if self._checkpoints is None:
            return
        # One that is being written may lack what was built meanwhile.
        self._checkpoints.wait()
        for slot in self._slots:
            if slot.index is not None:
                self._keep(slot.bank, slot.index, LEFT_SHARE)
        self._checkpoints.close()

    def on_commit(self, batch: IndexBatch) -> None:
        """Apply one commit; called by the store after each, in order, from its writer thread."""
        slot = self._slots.get(batch.bank.key)
        failpoint("apply.before")
        if slot is not None:
            with slot.lock:
                if slot.index is None:
                    slot.pending.append(batch)
                elif batch.after > slot.index.core.position:
                    self._slots.want(slot, batch.position)
                elif batch.position <= slot.index.core.position:
                    # A replay had it already.
                    pass
                elif batch.moved:
                    self._move(slot, slot.index, batch)
                else:
                    self._apply(slot, batch)
                    if slot.next is not None or slot.next_pending is not None:
                        next_index.feed(slot, batch)
            if self._slots.over_budget and not self._shedding:
                self._shedding = True
                # Not here: every write of the store waits for this.
                self._executor.submit(self._shed)
        failpoint("apply.after")
        if self._waiters.wakes:
            self._waiters.notify(batch.bank.key)

    def on_told(self, told: Told) -> None:
        """Take note of what another process committed."""
        if told.topic is Topic.DELETED:
            slot = self._slots.get(told.bank)
            if slot is not None:
                self._slots.discard(told.bank, slot)
        elif told.topic is Topic.CHANGES:
            slot = self._slots.get(told.bank)
            if slot is not None and told.moved:
                # Its vectors are those of another model.
                with slot.lock:
                    slot.index = slot.next = None
                    self._slots.discard(told.bank, slot)
            elif slot is not None:
                self._slots.want(slot, told.position)
        else:
            return
        self._waiters.notify(told.bank)

    async def let_go(self, bank_key: int) -> None:
        """Keep nothing of a bank, in memory or in checkpoints, that another process has erased by now."""
        if self._checkpoints is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._checkpoints.hold, bank_key)
            if self._store.bank_of_key(bank_key) is not None:
                self._checkpoints.release(bank_key)
        slot = self._slots.get(bank_key)
        if slot is not None:
            with contextlib.suppress(BankNotFound):
                await self.get(slot.bank)
            await scrub(slot)

    def build_next(self, bank: Bank, pace: Callable[[], None]) -> BankIndex | None:
        """The index of the bank's vectors of another model, which follows the commits from now on.

        Args:
            bank: With the model that it moves to.
            pace: Called between two steps of some milliseconds, to leave time for others.

        Returns:
            None where the bank's own index is not in memory, or left it meanwhile: then get it, and try again.
        """
        slot = self._slots.get(bank.key)
        if slot is None or slot.index is None:
            return None

        def load() -> BankIndex:
            current = self._store.get_bank(bank.tenant, bank.bank_id)
            if current is None or current.key != bank.key:
                raise BankNotFound(bank.bank_id)
            options = self._options_of(bank.bank_id)
            return load_slowly(self._store, self._core, replace(bank, position=current.position), pace, options)

        index = next_index.build(slot, load)
        if index is None:
            return None
        self.charge(bank)
        return index

    def drop_next(self, bank: Bank) -> None:
        """Drop the index of `build_next`, unless the bank has moved to it."""
        slot = self._slots.get(bank.key)
        if slot is None:
            return
        with slot.lock:
            slot.next, slot.next_pending, slot.next_bytes = None, None, 0
            if slot.index is not None:
                self._slots.charge(slot, slot.index.measure())

    async def wait_for(self, bank: Bank, position: int, timeout_seconds: float) -> None:
        """Return when the bank's index has reached ``position``.

        Raises:
            FailedPrecondition: It had not in time.
        """
        index = await self.get(bank)
        if index.core.position >= position:
            return
        try:
            async with asyncio.timeout(timeout_seconds):
                with self._waiters.subscribed(bank.key) as changed:
                    while (index := await self.get(bank)).core.position < position:
                        changed.clear()
                        if index.core.position < position:
                            await changed.wait()
        except TimeoutError:
            raise FailedPrecondition(
                f"bank {bank.bank_id!r} is at position {index.core.position}; min_position {position} was not reached "
                f"in {timeout_seconds:g} s; use a position that a retain into this bank returned",
                metadata={"bank_id": bank.bank_id, "position": str(index.core.position), "min_position": str(position)},
            ) from None

    def subscribed(self, bank: Bank) -> AbstractContextManager[asyncio.Event]:
        """An event that is set after each commit in the bank, and at its deletion."""
        return self._waiters.subscribed(bank.key)

    def _load(self, bank: Bank, slot: Slot) -> BankIndex:
        """Load the index, then apply the commits since. Runs in the executor."""
        index = None
        while index is None:
            current = self._store.get_bank(bank.tenant, bank.bank_id)
            if current is None or current.key != bank.key:
                raise BankNotFound(bank.bank_id)
            slot.bank = current
            index = replayed(self._store, slot, current)
            if index is None:
                index = load_index(
                    self._store, self._core, self._checkpoints, current, self._options_of(current.bank_id)
                )
                self._slots.count_load()
            index = index if caught_up(slot, index, self._slots) else None
        self._keep(slot.bank, index)
        if self._slots.over_budget:
            self._shed()
        return index

    def _move(self, slot: Slot, former: BankIndex, batch: IndexBatch) -> None:
        """Replace the index by the next one."""
        index, slot.next = slot.next, None
        slot.next_pending, slot.next_bytes = None, 0
        slot.index = None
        # What it held is freed elsewhere: every write of the store waits for this.
        self._executor.submit(self._released, former)
        if self._checkpoints is not None:
            self._checkpoints.outdate(batch.bank.key)
        if index is None or index.model != batch.bank.embedding_model:
            self._slots.discard(batch.bank.key, slot)
            return
        slot.bank = batch.bank
        slot.index = index
        self._apply(slot, batch)

    def _released(self, former: BankIndex) -> None:
        """Release an index, unless a call still uses it."""
        del former
        self._core.release_memory()

    def _keep(self, bank: Bank, index: BankIndex, share: float = GROWN_SHARE) -> None:
        """Schedule a checkpoint, if one is due."""
        if self._checkpoints is not None and self._checkpoints.due(bank.key, index, share):
            self._checkpoints.write(bank, index.core)

    def _let_go(self, bank: Bank, index: BankIndex, size: int) -> None:
        """Schedule a checkpoint of an evicted bank, if it is worth it and the queue is short."""
        if self._checkpoints is not None and self._checkpoints.due_evicted(bank.key, index, self._slots.room):
            self._checkpoints.write(bank, index.core, size)

    def _loaded(self, bank_key: int, slot: Slot, done: asyncio.Future[BankIndex]) -> None:
        if slot.loading is done:
            slot.loading = None
        if done.cancelled() or done.exception() is not None:
            # The slot would collect batches for ever; the next use starts afresh.
            self._slots.discard(bank_key, slot)

    def _apply(self, slot: Slot, batch: IndexBatch) -> None:
        index = slot.index
        if index is None:
            return
        try:
            index.apply(batch)
            if index.grown:
                self._slots.charge(slot, index.measure())
            if self._checkpoints is not None and index.row_count >= self._checkpoints.rows:
                self._keep(batch.bank, index)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the answer is the same
            # The commit stands, whatever the index says: the rows are the truth, and the index is built anew from them.
            slot.index = None
            self._slots.discard(batch.bank.key, slot)
            # No traceback: it could show the values of variables, which are content.
            log.error(  # noqa: TRY400
                "index_dropped",
                bank_key=batch.bank.key,
                position=batch.position,
                error=type(error).__name__,
                frames=frames(error),
            )

    def _shed(self) -> None:
        """Evict the least recently used indexes beyond the memory budget. Runs in the executor."""
        self._shedding = False
        evicted = self._slots.evict()
        if not evicted:
            return
        # Freed without the lock, for which every look-up of a bank waits.
        while evicted:
            self._let_go(*evicted.pop())
        self._core.release_memory()
