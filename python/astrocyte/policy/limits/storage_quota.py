"""Storage quotas: bytes of content of a bank, counted from the rows once and then kept up with every commit."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from astrocyte.errors import QuotaExceeded
from astrocyte.model import Bank
from astrocyte.policy.events import emit
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch


class StorageQuota:
    """Admits writes while their bank has room for them.

    What is being written counts as written, so that two writes at once do not take the same room.

    Args:
        store: Where the contents are.
        overrides: The limit of each bank.
    """

    def __init__(self, store: MemoryStore, overrides: Overrides) -> None:
        self._store = store
        # Bytes and the position that they are true for, by bank; the writer's thread and the loop both change these.
        self._known: dict[int, tuple[int, int]] = {}
        self._changing = threading.Lock()
        self._coming: Counter[tuple[str, str]] = Counter()
        # Set when a write of the bank has ended, for those that wait for its room.
        self._ended: dict[tuple[str, str], asyncio.Event] = {}
        if any(own.homeostasis.quotas.storage_bytes_per_bank is not None for own in overrides.every):
            store.subscribe(self._follow)

    @asynccontextmanager
    async def room(self, bank: Bank, size: int, limit: int | None) -> AsyncIterator[None]:
        """Hold room for a write of so many bytes of content while it is made.

        Where only writes that are being made stand in the way, this waits for what becomes of them.

        Raises:
            QuotaExceeded: The bank has not so much.
        """
        if limit is None:
            yield
            return
        name = (bank.tenant, bank.bank_id)
        while size > 0 and (held := self._bytes(bank)) + self._coming[name] + size > limit:
            if not self._coming[name] or held + size > limit:
                raise _full(bank, held, size, limit)
            await self._ended.setdefault(name, asyncio.Event()).wait()
        self._coming[name] += size
        try:
            yield
        finally:
            self._coming[name] -= size
            if not self._coming[name]:
                del self._coming[name]
            ended = self._ended.pop(name, None)
            if ended is not None:
                ended.set()

    def _bytes(self, bank: Bank) -> int:
        # A bank that does not exist yet holds nothing.
        if not bank.key:
            return 0
        with self._changing:
            known = self._known.get(bank.key)
            if known is None:
                known = self._known[bank.key] = self._store.content_bytes(bank)
            return known[0]

    def _follow(self, batch: IndexBatch) -> None:
        """Add what a commit added; where it took something away, count anew when it is next asked for."""
        with self._changing:
            known = self._known.get(batch.bank.key)
            if known is None or batch.position <= known[1]:
                return
            if batch.ended or batch.removed:
                del self._known[batch.bank.key]
                return
            added = sum(len(record.memory.content.encode()) for record in batch.upserts if record.known_until is None)
            self._known[batch.bank.key] = (known[0] + added, batch.position)


def _full(bank: Bank, held: int, size: int, limit: int) -> QuotaExceeded:
    emit("storage_refused", bank_id=bank.bank_id, limit=limit)
    return QuotaExceeded(
        f"bank {bank.bank_id!r} holds {held:,} of the {limit:,} bytes that it may; no room for {size:,}",
        metadata={"kind": "storage_bytes", "limit": str(limit), "bank_id": bank.bank_id},
    )
