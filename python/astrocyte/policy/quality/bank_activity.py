"""Counts of retains, recalls and reflects by bank and day, from which the health of a bank is computed.

A commit for each recall would cost it more than the search, so counts are gathered and stored some time later. What was
counted in the last ten seconds is lost if the process is killed. Only numbers are kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from astrocyte.model import RecallResult, ReflectResult, RetainItem, RetainResult
from astrocyte.stores.activity import ActivityStore, BankName, Counts, Days

# Days and banks of which counts are kept: two weeks show a trend, and all of it together takes a few megabytes.
KEPT_DAYS = 14
KEPT_BANKS = 2_000
DAY_MS = 86_400_000


class BankActivity:
    """The counts of the banks that were used last. Safe to use from any thread.

    Args:
        clock: Milliseconds since the epoch.
        store: Where they are stored; None keeps them in memory.
    """

    def __init__(self, clock: Callable[[], int], store: ActivityStore | None = None) -> None:
        self._clock = clock
        self._store = store
        self._lock = threading.Lock()
        # Not stored yet: by tenant and bank, then by the number of the day since the epoch, oldest first.
        self._days: OrderedDict[BankName, Days] = OrderedDict()
        # On the way to the store; counted again where that fails.
        self._leaving: OrderedDict[BankName, Days] = OrderedDict()
        self._flushing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._days)

    def retained(self, tenant: str, bank_id: str, items: Sequence[RetainItem], results: Sequence[RetainResult]) -> None:
        """Count items that passed the barriers, with what became of each."""
        with self._lock:
            today = self._today(tenant, bank_id)
            for item, result in zip(items, results, strict=True):
                today.retains += 1
                today.duplicates += result.deduplicated
                today.characters += len(item.content)

    def recalled(self, tenant: str, bank_id: str, result: RecallResult) -> None:
        """Count a recall of this bank alone."""
        with self._lock:
            today = self._today(tenant, bank_id)
            today.recalls += 1
            if result.hits:
                today.recalls_with_hits += 1
                today.scored += result.confidence or 0.0

    def reflected(self, tenant: str, bank_id: str, result: ReflectResult) -> None:
        """Count a reflect on this bank alone; it succeeded if it did not abstain."""
        with self._lock:
            today = self._today(tenant, bank_id)
            today.reflects += 1
            today.answered += not result.abstained

    def days(self, tenant: str, bank_id: str) -> Days:
        """The counts of a bank by the number of the day since the epoch, oldest first. Reads the store."""
        name, since = (tenant, bank_id), self._since()
        found = {} if self._store is None else self._store.days(name, since=since)
        with self._lock:
            return _merged(found, self._days.get(name, {}), since)

    def recent(self) -> dict[BankName, Days]:
        """The counts of the banks that were used last, as `days`. Reads the store."""
        since = self._since()
        found = {} if self._store is None else self._store.recent(since=since, limit=KEPT_BANKS)
        with self._lock:
            for name, days in self._days.items():
                found[name] = _merged(found.get(name, {}), days, since)
        return found

    def forget(self, tenant: str, bank_id: str) -> None:
        """A bank is gone; one that is made by its name later is another one."""
        with self._lock:
            self._days.pop((tenant, bank_id), None)
            self._leaving.pop((tenant, bank_id), None)

    async def flush(self) -> None:
        """Store what was counted; what cannot be stored is kept. A caller that gives up does not end it.

        Raises:
            StoreError, RateLimited: It could not be stored; the next flush tries again.
        """
        if self._store is not None:
            await asyncio.shield(self._flush(self._store))

    async def _flush(self, store: ActivityStore) -> None:
        async with self._flushing:
            if not self._days:
                return
            with self._lock:
                self._leaving, self._days = self._days, OrderedDict()
                counted = dict(self._leaving)
            try:
                await store.add(counted, since=self._since())
            except BaseException:
                self._put_back()
                raise
            finally:
                self._leaving = OrderedDict()

    def _put_back(self) -> None:
        with self._lock:
            for name, days in self._days.items():
                self._leaving[name] = _merged(self._leaving.pop(name, {}), days, self._since())
            self._days = self._leaving
            while len(self._days) > KEPT_BANKS:
                self._days.popitem(last=False)

    def _since(self) -> int:
        """The last day whose counts are not kept."""
        return self._clock() // DAY_MS - KEPT_DAYS

    def _today(self, tenant: str, bank_id: str) -> Counts:
        day = self._clock() // DAY_MS
        days = self._days.get((tenant, bank_id))
        if days is None:
            days = self._days[tenant, bank_id] = {}
            if len(self._days) > KEPT_BANKS:
                self._days.popitem(last=False)
        else:
            self._days.move_to_end((tenant, bank_id))
        counts = days.get(day)
        if counts is None:
            counts = days[day] = Counts()
            while len(days) > KEPT_DAYS:
                del days[min(days)]
        return counts


def _merged(stored: Days, counted: Days, since: int) -> Days:
    """The sums of two counts by day, of the days after one."""
    sums: Days = {}
    for day in sorted({*stored, *counted}):
        if day > since:
            sums[day] = Counts()
            for part in (stored, counted):
                if day in part:
                    sums[day].add(part[day])
    return sums
