"""The outbox relay: delivers queued changes to the engines, in the call that queued them or in the background.

Per engine and bank one delivery runs at a time, in the order of the changes, so that a copy never arrives after its
deletion. A delivery sends the current version: a memory that was forgotten or archived while queued is forgotten
there, and never sent. A change that is sent twice, because a server died before it noted the arrival, is stored once:
a new memory has one request id, and a changed one is forgotten first. Deliveries to a failing engine pause, longer
each time; a refused change is set aside for a while, and later changes go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile
from weakref import WeakValueDictionary

from astrocyte.errors import (
    AstrocyteError,
    CircuitOpen,
    FailedPrecondition,
    ProviderUnavailable,
    frames,
)
from astrocyte.model import (
    DEFAULT_PRINCIPAL,
    Bank,
    EngineOutbox,
    ForgetSelector,
    Memory,
    OutboxState,
)
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.engines.outbox_lanes import (
    PASSING,
    Lane,
    Refusal,
    copy_of,
    group_of,
    is_copied,
    set_aside,
    still_waits,
)
from astrocyte.policy.engines.registry import Engine, Engines, cause_of
from astrocyte.policy.events import emit
from astrocyte.providers.engines import EngineCall
from astrocyte.stores.outbox import LOSING, START, CopyAction, CopyOrder, Outbox, WaitingCopy
from astrocyte.stores.protocols import MemoryStore

BOTH = "both"

# Of memories that one call of an engine stores: enough to catch up at some hundreds a second over any network.
ITEMS_AT_ONCE = 32

# Of ids in one call that forgets.
IDS_AT_ONCE = 512

# Where more wait before it, a call does not wait for its own copies, unless both sides are required.
AHEAD = 256

# How long an engine rests after its first failure, and at the most; and when to look again where nothing failed, for a
# caller may give up between its commit and its delivery.
REST_SECONDS, LONGEST_REST_SECONDS = 1.0, 60.0

# When what was refused is offered again: until then somebody may have given the right that was missing.
REFUSED_SECONDS = 600.0


class OutboxRelay:
    """Delivers queued changes to the engines.

    Args:
        engines: All of them.
        store: What the memories are.
        outbox: What waits.
    """

    def __init__(self, engines: Engines, store: MemoryStore, outbox: Outbox) -> None:
        self._engines = engines
        self._store = store
        self._outbox = outbox
        self._lanes: dict[str, Lane] = {}
        # By engine and bank; who holds or awaits one keeps it alive.
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._started = False

    def start(self) -> None:
        """Deliver in the background of the running loop from now on; a second call does nothing."""
        self._started = True
        for engine in self._engines:
            self._lane(engine)

    async def close(self) -> None:
        """Stop; the queued work is durable and continues in the next process."""
        self._started = False
        for lane in self._lanes.values():
            if lane.task is not None:
                lane.task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await lane.task
                lane.task = None

    def wake(self) -> None:
        """Deliver the queued changes of an engine that recovered."""
        for lane in self._lanes.values():
            lane.changed.set()

    def note(self, engine: str) -> None:
        """Deliver a new change of an engine, unless its deliveries pause."""
        lane = self._lanes.get(engine)
        if lane is not None and not lane.resting:
            lane.changed.set()

    def order(self, tenant: str, bank_id: str, principal: str, behalf: str | None, hops: int) -> CopyOrder | None:
        """The engine that gets copies of a call's changes in a bank, if any.

        Args:
            tenant: The bank's.
            bank_id: The bank.
            principal: Who the caller counts as.
            behalf: For whom it acts; None or "" for nobody.
            hops: Servers that the call had passed.
        """
        engine = self._engines.beside(tenant, bank_id)
        if engine is None or engine.settings.retain_target != BOTH or hops >= engine.settings.most_hops:
            return None
        self._lane(engine)
        name = behalf or principal
        return CopyOrder(engine.name, "" if name == DEFAULT_PRINCIPAL else name, hops + 1, engine.settings.outbox_limit)

    def turn(self, engine: Engine, bank_id: str) -> asyncio.Lock:
        """The lock that is held while anything about a bank is changed at an engine; it is fair."""
        key = (engine.name, bank_id)
        lock = self._turns.get(key)
        if lock is None:
            lock = self._turns[key] = asyncio.Lock()
        return lock

    async def bring(self, engine: Engine, bank: Bank, memory_ids: Sequence[str]) -> None:
        """Deliver these memories to an engine now, after the earlier changes in its queue.

        Raises:
            AstrocyteError: It does not have all of it; what is left waits.
        """
        lane = self._lane(engine)
        place: tuple[int, str] | None = START
        try:
            while place is not None and self._outbox.still_waiting(engine.name, bank, memory_ids):
                if place == START and not engine.settings.require_both and self._far(engine, bank, memory_ids):
                    raise still_waits(engine)
                async with self._in_turn(engine, lane, bank):
                    place = await self._step(engine, lane, bank, place)
        except (AstrocyteError, asyncio.CancelledError):
            self.note(engine.name)
            raise
        left = self._outbox.still_waiting(engine.name, bank, memory_ids)
        refusals = [lane.refused.get((bank.key, memory_id)) for memory_id in memory_ids if memory_id in left]
        if left:
            self.note(engine.name)
            raise next((one.error for one in refusals if one is not None), still_waits(engine))

    def left(self, engine: Engine, bank: Bank, memory_ids: Sequence[str]) -> set[str]:
        """The memories of these that are still queued."""
        return self._outbox.still_waiting(engine.name, bank, memory_ids)

    async def forgotten(
        self, engine: Engine, call: EngineCall, bank: Bank, selector: ForgetSelector, position: int
    ) -> int:
        """After an engine forgot the selected memories, forget there what else was forgotten here by then.

        The caller holds the bank's turn. Returns how many memories more went.

        Raises:
            AstrocyteError: It may still hold some of it, which waits.
        """
        if selector == ForgetSelector(scope=selector.scope) and selector.scope:
            await self._outbox.forgotten(engine.name, bank, position)
            return 0
        gone = frozenset(selector.memory_ids) if selector == ForgetSelector(memory_ids=selector.memory_ids) else set()
        count, place = 0, START
        while rows := self._outbox.waiting(engine.name, bank, after=place, limit=IDS_AT_ONCE, actions=LOSING):
            due = list(takewhile(lambda one: one.position <= position, rows))
            for action in LOSING:
                ids = tuple(one.memory_id for one in due if one.action is action and one.memory_id not in gone)
                if ids:
                    erasing = action is CopyAction.ERASE
                    count += await engine.forget(call, ForgetSelector(memory_ids=ids), compliance=erasing)
            await self._outbox.delivered(engine.name, bank, due)
            if len(due) < len(rows):
                break
            place = rows[-1].place
        return count

    def state(self, engine: Engine) -> EngineOutbox | None:
        """The state of an engine's outbox; None for one that keeps no copies."""
        if engine.settings.retain_target != BOTH:
            return None
        lane = self._lanes.get(engine.name, Lane())
        waiting, limit = self._outbox.waiting_count(engine.name), engine.settings.outbox_limit
        since = self._outbox.waiting_since(engine.name) if waiting else None
        state = OutboxState.DRAINING
        if not waiting:
            state = OutboxState.EMPTY
        elif waiting >= limit:
            state = OutboxState.FULL
        elif lane.failures or lane.resting:
            state = OutboxState.RESTING
        return EngineOutbox(
            state, waiting, min(waiting, len(lane.refused)), limit, None if since is None else from_ms(since)
        )

    def _lane(self, engine: Engine) -> Lane:
        """The state of the delivery to an engine, which is emptied in the background from now on."""
        lane = self._lanes.setdefault(engine.name, Lane())
        if lane.task is None and self._started and engine.settings.retain_target == BOTH:
            work = self._drain_for_ever(engine, lane)
            lane.task = asyncio.get_running_loop().create_task(work, name=f"astrocyte-outbox-{engine.name}")
        return lane

    def _far(self, engine: Engine, bank: Bank, memory_ids: Sequence[str]) -> bool:
        """True if the queue before a bank's memories is too long for a call to wait."""
        first = {one.memory_id for one in self._outbox.waiting(engine.name, bank, limit=AHEAD)}
        return len(first) == AHEAD and first.isdisjoint(memory_ids)

    @asynccontextmanager
    async def _in_turn(self, engine: Engine, lane: Lane, bank: Bank) -> AsyncIterator[None]:
        """Hold a bank's turn; waits at most as long as for the engine itself.

        Raises:
            ProviderUnavailable: It did not come, or the engine failed for who was before: it would fail again.
        """
        before, turn = lane.failures, self.turn(engine, bank.bank_id)
        try:
            async with asyncio.timeout(engine.settings.write_timeout_seconds):
                await turn.acquire()
        except TimeoutError as error:
            raise still_waits(engine) from error
        try:
            if lane.failures > before and lane.error is not None:
                raise ProviderUnavailable(lane.error.message, metadata=lane.error.metadata) from lane.error
            yield
        finally:
            turn.release()

    async def _drain_for_ever(self, engine: Engine, lane: Lane) -> None:
        while True:
            lane.changed.clear()
            try:
                rest = await self._drain(engine, lane)
            except CircuitOpen as error:
                rest = max(error.retry_after, REST_SECONDS)
            except AstrocyteError:
                rest = min(REST_SECONDS * 2 ** max(0, min(lane.failures, 16) - 1), LONGEST_REST_SECONDS)
            except Exception as error:  # noqa: BLE001 - what waits is still there, and the next round may fare better
                emit("delivery_failed", engine=engine.name, error=type(error).__name__, place=frames(error)[-1])
                rest = LONGEST_REST_SECONDS
            lane.resting = rest is not None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_REST_SECONDS if rest is None else rest):
                    await lane.changed.wait()
            lane.resting = False

    async def _drain(self, engine: Engine, lane: Lane) -> float | None:
        """Deliver all queued changes; returns the seconds until a refused change is tried again.

        Raises:
            AstrocyteError: Something failed that may pass; the rest still waits.
        """
        now = asyncio.get_running_loop().time()
        before = self._outbox.waiting_count(engine.name)
        for bank in self._outbox.waiting_banks(engine.name) if before else ():
            # What was put in under other settings waits for these to come back.
            place = START if self._engines.of_bank(bank) is engine else None
            while place is not None:
                async with self._in_turn(engine, lane, bank):
                    place = await self._step(engine, lane, bank, place)
        moved = before - self._outbox.waiting_count(engine.name)
        if moved > 0:
            emit("outbox_drained", engine=engine.name, amount=moved)
        # What was due by then was offered again in this round, or is there no more.
        lane.refused = {key: one for key, one in lane.refused.items() if one.again > now}
        now = asyncio.get_running_loop().time()
        return min((max(0.0, one.again - now) for one in lane.refused.values()), default=None)

    async def _step(self, engine: Engine, lane: Lane, bank: Bank, place: tuple[int, str]) -> tuple[int, str] | None:
        """Deliver the next few changes of a bank after a place; returns the place of the last, None after the end."""
        rows = self._outbox.waiting(engine.name, bank, after=place, limit=ITEMS_AT_ONCE)
        if not rows:
            return None
        now = asyncio.get_running_loop().time()
        due = [one for one in rows if not set_aside(lane, bank, one, now)]
        if not due:
            return rows[-1].place
        run = list(takewhile(lambda one: group_of(one) == group_of(due[0]), due))
        await self._hand_over(engine, lane, bank, run)
        return run[-1].place

    async def _hand_over(self, engine: Engine, lane: Lane, bank: Bank, run: Sequence[WaitingCopy]) -> None:
        """Apply changes of one kind at an engine and dequeue them; set aside those that it refuses.

        Raises:
            AstrocyteError: It failed, and may not fail again.
        """
        try:
            await self._tell(engine, bank, run)
        except AstrocyteError as error:
            if not isinstance(error, FailedPrecondition) or cause_of(error) in PASSING:
                lane.failures, lane.error = lane.failures + 1, error
                raise
            lane.failures = 0
            if len(run) > 1:
                for one in run:
                    await self._hand_over(engine, lane, bank, [one])
                return
            again = asyncio.get_running_loop().time() + REFUSED_SECONDS
            lane.refused[bank.key, run[0].memory_id] = Refusal(run[0].position, again, error)
            emit("copy_refused", bank_id=bank.bank_id, engine=engine.name, reason=cause_of(error))
            return
        lane.failures = 0
        for one in run:
            lane.refused.pop((bank.key, one.memory_id), None)
        await self._outbox.delivered(engine.name, bank, run)

    async def _tell(self, engine: Engine, bank: Bank, run: Sequence[WaitingCopy]) -> None:
        """Replace memories at an engine by their current versions: forget the old ones, then store the new."""
        first, seconds = run[0], engine.settings.write_timeout_seconds
        call = EngineCall(bank.bank_id, bank.tenant, first.principal, first.hops, seconds)
        now = {one.memory_id: None if one.action in LOSING else self._current(bank, one.memory_id) for one in run}
        old = tuple(one.memory_id for one in run if now[one.memory_id] is None or one.action is not CopyAction.COPY)
        if old:
            erasing = first.action is CopyAction.ERASE
            await engine.forget(call, ForgetSelector(memory_ids=old), compliance=erasing)
        items = [copy_of(memory, one) for one in run if (memory := now[one.memory_id]) is not None]
        if items:
            await engine.retain(call, items)

    def _current(self, bank: Bank, memory_id: str) -> Memory | None:
        memory = self._store.memory(bank, memory_id)
        return memory if is_copied(memory) else None
