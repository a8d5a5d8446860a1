"""Last recalls: the memories that answers held, noted in the database some time later.

A commit for each recall would cost it more than the search. What was recalled in the last half minute is lost if the
process is killed, which matters only to a memory that nobody had recalled for as long as its bank allows.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from astrocyte.stores.lifecycle import LifecycleStore

# Memories that wait to be noted; of more, those that were recalled first are dropped.
MOST_WAITING = 100_000
# Memories of one transaction.
NOTED_AT_ONCE = 1_000


class LastRecalls:
    """Gathers recalls. Safe to use from any thread.

    Args:
        store: Where they are noted.
        wanted: True for banks that archive unused memories; None if no bank does.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, store: LifecycleStore, wanted: Callable[[str], bool] | None, clock: Callable[[], int]) -> None:
        self._store = store
        self.wanted = wanted
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._flushing = asyncio.Lock()

    def note(self, tenant: str, bank_id: str, memory_ids: Iterable[str]) -> None:
        """Gather memories of an answer."""
        with self._lock:
            for memory_id in memory_ids:
                self._waiting[tenant, bank_id, memory_id] = None
            self._drop_oldest()

    async def flush(self) -> None:
        """Note what was gathered; what cannot be noted is kept. A caller that gives up does not end it.

        Raises:
            StoreError, RateLimited: It could not be noted; the next flush tries again.
        """
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._flushing:
            with self._lock:
                waiting, self._waiting = self._waiting, OrderedDict()
            banks: dict[tuple[str, str], list[str]] = {}
            for tenant, bank_id, memory_id in waiting:
                banks.setdefault((tenant, bank_id), []).append(memory_id)
            now = self._clock()
            try:
                for (tenant, bank_id), memory_ids in banks.items():
                    for start in range(0, len(memory_ids), NOTED_AT_ONCE):
                        part = memory_ids[start : start + NOTED_AT_ONCE]
                        await self._store.note_recalls(tenant, bank_id, part, now)
                        for memory_id in part:
                            del waiting[tenant, bank_id, memory_id]
            finally:
                self._put_back(waiting)

    def _put_back(self, waiting: OrderedDict[tuple[str, str, str], None]) -> None:
        """Keep memories as those that were recalled first."""
        with self._lock:
            waiting.update(self._waiting)
            self._waiting = waiting
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
