"""Retains that wait for a provider: put into a durable queue, and stored in order when the provider is back.

A memory in the queue has its id already. It is stored in the transaction that takes it out of the queue, so it is
stored once, whatever dies in between; one that is forgotten while it waits is never stored. While anything waits for a
bank, all that comes for it waits behind, so the order of a bank is the order in which its retains were answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from itertools import groupby

from astrocyte.config import Settings
from astrocyte.errors import (
    AstrocyteError,
    BankNotFound,
    CircuitOpen,
    Conflict,
    NotFound,
    ProviderUnavailable,
    RateLimited,
    StoreError,
    frames,
)
from astrocyte.model import Bank, Caller, RetainResult, RetentionAction
from astrocyte.pipelines.retain.drafts import Draft, new_memory_id
from astrocyte.pipelines.retain.pipeline import Replay, RetainPipeline
from astrocyte.policy.engines.outbox_relay import OutboxRelay
from astrocyte.policy.events import emit
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.queue import QueuedItem, RetryQueue
from astrocyte.stores.sharing import Told, Topic

# Items that are stored with one commit; a group that came together is never divided.
ITEMS_AT_ONCE = 64
# How long the queue rests after a failure that says no other time: providers and disks come back in seconds.
REST_SECONDS = 1.0
# What may pass by itself; anything else would fail again in the same way.
PASSING = (ProviderUnavailable, RateLimited, StoreError, Conflict)


class Retries:
    """The retry queue and what empties it.

    Args:
        settings: How much may wait.
        overrides: How the banks deduplicate.
        queue: Where it is kept.
        pipeline: What stores it.
        outbox_relay: Delivers copies of stored memories to the engines.
    """

    def __init__(
        self,
        settings: Settings,
        overrides: Overrides,
        queue: RetryQueue,
        pipeline: RetainPipeline,
        outbox_relay: OutboxRelay,
    ) -> None:
        self._limit = settings.escalation.queue_limit
        self._overrides = overrides
        self._queue = queue
        self._pipeline = pipeline
        self._outbox_relay = outbox_relay
        # Banks for which something waits, or is about to.
        self.waiting = {bank.key for bank in queue.queued_banks()}
        # Up to which key nothing of a bank can be stored; it stays on disk, and the next process tries it again.
        self._stuck: dict[int, int] = {}
        self._changed = asyncio.Event()
        # Whether there is nothing to do before a time that is known.
        self._resting = False
        self._draining: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Empty the queue from now on, in the background of the running loop; a second call does nothing."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain_for_ever(), name="astrocyte-retries")

    async def close(self) -> None:
        """Stop; the queued work is durable and continues in the next process."""
        if self._draining is not None:
            self._draining.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._draining
            self._draining = None

    def wake(self) -> None:
        """Look at the queue now."""
        self._changed.set()

    def on_told(self, told: Told) -> None:
        """Read which banks wait, where another process changed the queue."""
        if told.topic in {Topic.QUEUE, Topic.DELETED}:
            self.waiting = {bank.key for bank in self._queue.queued_banks()}
            if not self._resting:
                self.wake()

    def holds(self, bank: Bank) -> bool:
        """True if something waits for the bank."""
        return bank.key in self.waiting

    async def put(
        self, caller: Caller, bank: Bank, drafts: Sequence[Draft], principal: str, replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Let memories of a caller, who counts as a principal, wait together; durable when this returns.

        Raises:
            RateLimited: The queue is full; nothing was changed.
            BankNotFound: It was deleted.
        """
        behalf, hops = caller.on_behalf_of or "", caller.hops
        items = [QueuedItem(new_memory_id(), principal, draft.item, behalf=behalf, hops=hops) for draft in drafts]
        results = [
            RetainResult(
                stored=False,
                memory_id=queued.memory_id,
                retention_action=RetentionAction.QUEUED.value,
                memory_layer=draft.layer,
                token_count=draft.tokens,
            )
            for queued, draft in zip(items, drafts, strict=True)
        ]
        responses = [
            (replay.key, replay.encode(results if replay.place is None else [results[replay.place]]))
            for replay in replays
        ]
        await self._queue.enqueue(bank, items, limit=self._limit, responses=responses)
        # Before the caller hears of it: what comes after that waits behind.
        self.waiting.add(bank.key)
        if not self._resting:
            self.wake()
        emit("queued", operation="retain", bank_id=bank.bank_id, amount=len(items))
        return results

    async def _drain_for_ever(self) -> None:
        while True:
            self._changed.clear()
            rest = await self._drain_all()
            self._resting = rest is not None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._changed.wait()
            self._resting = False

    async def _drain_all(self) -> float | None:
        """Store what waits for each bank; the failure of one does not keep the others waiting.

        Returns:
            Seconds until the next attempt, the fewest that a failed bank asks for; None where nothing failed.
        """
        rests: list[float] = []
        try:
            for bank in self._queue.queued_banks():
                try:
                    await self._drain(bank)
                except Exception as error:  # noqa: BLE001 - what waits is still there, and may be stored next time
                    rests.append(_rest_after(error))
            self.waiting = {bank.key for bank in self._queue.queued_banks() if self._first(bank, 1)}
        except Exception as error:  # noqa: BLE001 - the queue itself cannot be read; it may be next time
            rests.append(_rest_after(error))
        return min(rests, default=None)

    async def _drain(self, bank: Bank) -> None:
        """Store what waits for a bank.

        Raises:
            AstrocyteError: Something failed that may pass; the rest still waits.
        """
        stored = 0
        while items := self._first(bank, ITEMS_AT_ONCE):
            # A commit has one principal, and so has a group.
            _, same = next(groupby(items, _of_whom))
            stored += await self._store_or_set_aside(bank, list(same))
        if stored:
            emit("queue_drained", bank_id=bank.bank_id, amount=stored)

    def _first(self, bank: Bank, limit: int) -> list[QueuedItem]:
        return self._queue.queued(bank, after=self._stuck.get(bank.key, 0), limit=limit)

    async def _store_or_set_aside(self, bank: Bank, items: Sequence[QueuedItem]) -> int:
        """The number of items that were stored."""
        try:
            await self._store(bank, items)
        except PASSING:
            raise
        except BankNotFound:
            # And its part of the queue with it.
            return 0
        except NotFound:
            # Something was forgotten since it was read: the next look shows what is left.
            return 0
        except AstrocyteError as error:
            groups = [list(group) for _, group in groupby(items, lambda queued: queued.group)]
            if len(groups) > 1:
                return sum([await self._store_or_set_aside(bank, group) for group in groups])
            self._stuck[bank.key] = items[-1].key
            emit("retry_stuck", bank_id=bank.bank_id, reason=error.reason, amount=len(items))
            return 0
        return len(items)

    async def _store(self, bank: Bank, items: Sequence[QueuedItem]) -> None:
        drafts = await self._pipeline.prepare(bank, [(queued.item, "") for queued in items])
        for draft, queued in zip(drafts, items, strict=True):
            draft.memory_id = queued.memory_id
        dedup = self._overrides.of[bank.bank_id].signal_quality.dedup
        principal, behalf, hops = _of_whom(items[0])
        copies = self._outbox_relay.order(bank.tenant, bank.bank_id, principal, behalf, hops)
        keys = [queued.key for queued in items]
        await self._pipeline.store(bank, drafts, principal, dedup, dequeue=keys, copies=copies)
        if copies is not None:
            self._outbox_relay.note(copies.engine)


def _rest_after(error: Exception) -> float:
    """Return the seconds to wait after a failure, and report it if it is not one of the expected kinds."""
    if isinstance(error, CircuitOpen) and error.retry_after is not None:
        return error.retry_after
    if not isinstance(error, AstrocyteError):
        emit("retry_failed", error=type(error).__name__, place=frames(error)[-1])
    return REST_SECONDS


def _of_whom(queued: QueuedItem) -> tuple[str, str, int]:
    """The origin of an item: principal, on whose behalf, and hops. All items of a commit share one."""
    return queued.principal, queued.behalf, queued.hops
