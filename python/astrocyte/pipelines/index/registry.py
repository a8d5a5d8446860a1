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
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import structlog

from astrocyte.core import ENGLISH, Core, failpoint
from astrocyte.errors import BankNotFound, FailedPrecondition, frames
from astrocyte.model import Bank, IndexMemory
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.checkpoints import GROWN_SHARE, LEFT_SHARE, Checkpoints
from astrocyte.pipelines.index.loading import load_index, load_slowly, replay
from astrocyte.pipelines.index.slots import Slot, applied, in_space
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch
from astrocyte.stores.sharing import Told, Topic

# Each round applies what came during the one before, which is less every time; a few leave next to nothing.
CATCH_UP_ROUNDS = 4

# Down to this share of the budget, least recently used first: each eviction then pays for many loads.
LOW_MARK = 0.9

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
        language_of: The language of a bank's Latin words, by its id.
    """

    def __init__(
        self,
        store: MemoryStore,
        core: Core,
        executor: Executor,
        *,
        memory_bytes: int = 0,
        checkpoints: Checkpoints | None = None,
        language_of: Callable[[str], str] = lambda _: ENGLISH,
    ) -> None:
        self._language_of = language_of
        self._checkpoints = checkpoints
        self._store = store
        self._core = core
        self._executor = executor
        self._budget = memory_bytes
        # Guards the dictionary and the counts; taken after a slot's lock, never before it.
        self._lock = threading.Lock()
        self._slots: dict[int, Slot] = {}
        self._bytes = self._loads = self._evictions = self._uses = 0
        self._shedding = False
        self._waiters: dict[int, set[Callable[[], None]]] = {}
        store.subscribe(self.on_commit)
        store.follow(self.on_told)

    def loaded(self, bank: Bank) -> BankIndex | None:
        """The bank's index, if it is in memory; counts as a use."""
        slot = self._slots.get(bank.key)
        if slot is None:
            return None
        slot.used = self._uses = self._uses + 1
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
        if slot is None or not slot.wanted:
            return None if slot is None else slot.index
        return await self.get(bank)

    @property
    def checkpoints(self) -> Checkpoints | None:
        """Where large banks are kept over a restart, if anywhere."""
        return self._checkpoints

    @property
    def memory(self) -> IndexMemory:
        """The memory that the indexes use."""
        with self._lock:
            loaded = sum(slot.index is not None for slot in self._slots.values())
            return IndexMemory(loaded, self._bytes, self._budget, self._loads, self._evictions)

    def sampled_recall(self, rows: int) -> float | None:
        """The lowest `sampled_recall` of the banks that ever had so many rows; None if there is none."""
        with self._lock:
            indexes = [slot.index for slot in self._slots.values()]
        large = [index.stats() for index in indexes if index is not None and not index.small(rows - 1)]
        return min((stats.sampled_recall for stats in large if stats.sampled_recall is not None), default=None)

    async def get(self, bank: Bank) -> BankIndex:
        """The bank's index, loaded if necessary; concurrent callers share one load.

        Raises:
            BankNotFound: It was deleted meanwhile.
        """
        while True:
            with self._lock:
                slot = self._slots.get(bank.key)
                if slot is None:
                    slot = self._slots[bank.key] = Slot(bank)
            index = self.loaded(bank)
            if index is not None:
                return index
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

    async def scrub(self, bank: Bank) -> None:
        """Drop what files of the bank's index still have of removed memories.

        A removal overwrites vectors at once. Words of forgotten memories may stay in files until this is called: after
        an erasure and before its confirmation, and after a purge.
        """
        slot = self._slots.get(bank.key)
        if slot is not None:
            await self._scrub(slot)

    async def scrub_all(self) -> None:
        """As `scrub`, for every bank in memory."""
        for slot in tuple(self._slots.values()):
            await self._scrub(slot)

    async def _scrub(self, slot: Slot) -> None:
        if slot.loading is not None and not slot.loading.done():
            # What it read may be older than the removal.
            with contextlib.suppress(Exception):
                await asyncio.shield(slot.loading)
        for index in (slot.index, slot.next):
            if index is not None:
                await asyncio.get_running_loop().run_in_executor(None, index.core.scrub)

    def drop(self, bank: Bank) -> None:
        """Remove the bank's index from memory; the next use loads it again."""
        slot = self._slots.get(bank.key)
        if slot is not None:
            self._discard(bank.key, slot)
        self._notify(bank.key)

    async def discard(self, bank: Bank) -> None:
        """Remove the checkpoints of a deleted bank."""
        self.drop(bank)
        if self._checkpoints is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._checkpoints.discard, bank.key)

    def close(self) -> None:
        """Write checkpoints of the large changed banks, and wait for them. The indexes stay."""
        if self._checkpoints is None:
            return
        for slot in tuple(self._slots.values()):
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
                    self._want(slot, batch.position)
                elif batch.position <= slot.index.core.position:
                    # A replay had it already.
                    pass
                elif batch.moved:
                    self._move(slot, slot.index, batch)
                else:
                    self._apply(slot, batch)
                    if slot.next is not None or slot.next_pending is not None:
                        self._feed(slot, batch)
            if 0 < self._budget < self._bytes and not self._shedding:
                self._shedding = True
                # Not here: every write of the store waits for this.
                self._executor.submit(self._shed)
        failpoint("apply.after")
        if self._waiters:
            self._notify(batch.bank.key)

    def on_told(self, told: Told) -> None:
        """Take note of what another process committed."""
        if told.topic is Topic.DELETED:
            slot = self._slots.get(told.bank)
            if slot is not None:
                self._discard(told.bank, slot)
        elif told.topic is Topic.CHANGES:
            slot = self._slots.get(told.bank)
            if slot is not None and told.moved:
                # Its vectors are those of another model.
                with slot.lock:
                    slot.index = slot.next = None
                    self._discard(told.bank, slot)
            elif slot is not None:
                self._want(slot, told.position)
        else:
            return
        self._notify(told.bank)

    def _want(self, slot: Slot, position: int) -> None:
        with self._lock:
            slot.wanted = max(slot.wanted, position)

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
            await self._scrub(slot)

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
        with slot.lock:
            slot.next, slot.next_pending = None, []
        position = self._store.get_bank(bank.tenant, bank.bank_id)
        if position is None or position.key != bank.key:
            raise BankNotFound(bank.bank_id)
        language = self._language_of(bank.bank_id)
        index = load_slowly(self._store, self._core, replace(bank, position=position.position), pace, language)
        for _ in range(CATCH_UP_ROUNDS):
            with slot.lock:
                batches, slot.next_pending = slot.next_pending or [], []
            for batch in batches:
                index.apply(in_space(batch, index.model) or batch)
        # Not earlier: what was erased meanwhile has left it by now.
        index.core.scrub()
        with slot.lock:
            rest, slot.next_pending = slot.next_pending or [], None
            if slot.gone or slot.index is None:
                return None
            slot.next = index
            for batch in rest:
                self._feed(slot, batch)
            slot.next_bytes = index.measure()
            self._charge(slot, slot.index.measure())
        if self._over_budget:
            self._shed()
        return index

    def drop_next(self, bank: Bank) -> None:
        """Drop the index of `build_next`, unless the bank has moved to it."""
        slot = self._slots.get(bank.key)
        if slot is None:
            return
        with slot.lock:
            slot.next, slot.next_pending, slot.next_bytes = None, None, 0
            if slot.index is not None:
                self._charge(slot, slot.index.measure())

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
                with self.subscribed(bank) as changed:
                    while (index := await self.get(bank)).core.position < position:
                        changed.clear()
                        if index.core.position < position:
                            await changed.wait()
        except TimeoutError:
            raise FailedPrecondition(
                f"bank {bank.bank_id!r} is at position {index.core.position}; min_position {position} was not reached "
                f"in {timeout_seconds:g} s; use a position that a retain into this bank returned",
                metadata={
                    "bank_id": bank.bank_id,
                    "position": str(index.core.position),
                    "min_position": str(position),
                },
            ) from None

    @contextlib.contextmanager
    def subscribed(self, bank: Bank) -> Iterator[asyncio.Event]:
        """An event that is set after each commit in the bank, and at its deletion."""
        event = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            # A loop that closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

        self._waiters.setdefault(bank.key, set()).add(wake)
        try:
            yield event
        finally:
            waiters = self._waiters[bank.key]
            waiters.discard(wake)
            if not waiters:
                del self._waiters[bank.key]

    def _notify(self, bank_key: int) -> None:
        for wake in tuple(self._waiters.get(bank_key, ())):
            wake()

    def _load(self, bank: Bank, slot: Slot) -> BankIndex:
        """Load the index, then apply the commits since. Runs in the executor."""
        index = None
        while index is None:
            current = self._store.get_bank(bank.tenant, bank.bank_id)
            if current is None or current.key != bank.key:
                raise BankNotFound(bank.bank_id)
            slot.bank = current
            index = self._replayed(slot, current)
            if index is None:
                index = load_index(
                    self._store, self._core, self._checkpoints, current, self._language_of(current.bank_id)
                )
                with self._lock:
                    self._loads += 1
            index = self._caught_up(slot, index)
        self._keep(slot.bank, index)
        if self._over_budget:
            self._shed()
        return index

    def _replayed(self, slot: Slot, current: Bank) -> BankIndex | None:
        """The index that is in memory, with what other processes committed; None where reading all rows is faster."""
        with slot.lock:
            index, slot.index = slot.index, None
            if index is None:
                return None
            # It has missed the same, and is built again if a reindex still wants it.
            slot.next, slot.next_pending, slot.next_bytes = None, None, 0
        if index.model != current.embedding_model or not replay(self._store, current, index):
            return None
        return index

    def _caught_up(self, slot: Slot, index: BankIndex) -> BankIndex | None:
        """The loaded index, published when it is up to date; None if its bank has moved to another model."""
        for _ in range(CATCH_UP_ROUNDS):
            with slot.lock:
                batches, slot.pending = slot.pending, []
            if not applied(index, batches, partial(self._want, slot)):
                return None
        with slot.lock:
            # The writer waits for this short rest: a load must end even where commits come faster than it applies them.
            batches, slot.pending = slot.pending, []
            if not applied(index, batches, partial(self._want, slot)):
                return None
            slot.index = index
            if not slot.bytes or index.grown:
                self._charge(slot, index.measure())
        return index

    def _feed(self, slot: Slot, batch: IndexBatch) -> None:
        """Apply a commit to the next index of a bank in a reindex."""
        if slot.next_pending is not None:
            slot.next_pending.append(batch)
        elif slot.next is not None:
            fitting = in_space(batch, slot.next.model)
            try:
                if fitting is not None:
                    slot.next.apply(fitting)
            except Exception as error:  # noqa: BLE001 - it answers nobody yet, and can be built again
                log.warning("next_index_dropped", bank_key=slot.bank.key, error=type(error).__name__)
                fitting = None
            if fitting is None:
                slot.next = None

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
            self._discard(batch.bank.key, slot)
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
        room = round(self._budget * (1.0 - LOW_MARK))
        if self._checkpoints is not None and self._checkpoints.due_evicted(bank.key, index, room):
            self._checkpoints.write(bank, index.core, size)

    def _loaded(self, bank_key: int, slot: Slot, done: asyncio.Future[BankIndex]) -> None:
        if slot.loading is done:
            slot.loading = None
        if done.cancelled() or done.exception() is not None:
            # The slot would collect batches for ever; the next use starts afresh.
            self._discard(bank_key, slot)

    def _apply(self, slot: Slot, batch: IndexBatch) -> None:
        index = slot.index
        if index is None:
            return
        try:
            index.apply(batch)
            if index.grown:
                self._charge(slot, index.measure())
            if self._checkpoints is not None and index.row_count >= self._checkpoints.rows:
                self._keep(batch.bank, index)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the answer is the same
            # The commit stands, whatever the index says: the rows are the truth, and the index is built anew from them.
            slot.index = None
            self._discard(batch.bank.key, slot)
            # No traceback: it could show the values of variables, which are content.
            log.error(  # noqa: TRY400
                "index_dropped",
                bank_key=batch.bank.key,
                position=batch.position,
                error=type(error).__name__,
                frames=frames(error),
            )

    @property
    def _over_budget(self) -> bool:
        return 0 < self._budget < self._bytes

    def _charge(self, slot: Slot, size: int) -> None:
        """Set the size of a slot in bytes, beside that of its next index."""
        size += slot.next_bytes
        with self._lock:
            if not slot.gone:
                self._bytes += size - slot.bytes
                slot.bytes = size

    def _discard(self, bank_key: int, slot: Slot) -> None:
        """Remove a slot from the registry, if it is still there."""
        with self._lock:
            self._take_out(bank_key, slot)

    def _take_out(self, bank_key: int, slot: Slot) -> None:
        if self._slots.get(bank_key) is slot:
            del self._slots[bank_key]
        self._bytes -= slot.bytes
        slot.bytes = 0
        slot.gone = True

    def _shed(self) -> None:
        """Evict the least recently used indexes beyond the memory budget. Runs in the executor."""
        with self._lock:
            self._shedding = False
            if not self._over_budget:
                return
            by_use = sorted(
                ((key, slot) for key, slot in self._slots.items() if slot.index is not None),
                key=lambda place: place[1].used,
            )
            evicted: list[tuple[Bank, BankIndex, int]] = []
            # The last one stays: somebody is about to use it.
            for key, slot in by_use[:-1]:
                if self._bytes <= self._budget * LOW_MARK:
                    break
                size = slot.bytes
                self._take_out(key, slot)
                if slot.index is not None:
                    evicted.append((slot.bank, slot.index, size))
                # A commit that found the slot before it went out has the index in its hands, or finds none.
                slot.index = slot.next = None
            self._evictions += len(evicted)
        # Freed without the lock, for which every look-up of a bank waits.
        while evicted:
            self._let_go(*evicted.pop())
        self._core.release_memory()
