"""The protocol of the retry queue: memories that wait for a provider, durable, in order by bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from astrocyte.model import Bank, RetainItem
from astrocyte.stores.records import RequestKey


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """A memory that waits, with the id and the owner that it will have.

    ``key`` orders the items of a bank; ``group`` is the key of the first item that came with it, and all of a group are
    stored together. Both are the queue's to give: 0 in an item that is not in it yet. ``behalf`` is on whose behalf
    the call was made, "" for nobody, and ``hops`` counts the servers that it had passed: for an engine's copy.
    """

    memory_id: str
    principal: str
    item: RetainItem
    key: int = 0
    group: int = 0
    behalf: str = ""
    hops: int = 0


class RetryQueue(Protocol):
    """The queue of all banks.

    An item leaves it in the commit that stores it (`MemoryStore.commit`), or when it is forgotten, erased, or its bank
    deleted (by the methods of `MemoryStore` for these).
    """

    async def enqueue(
        self, bank: Bank, items: Sequence[QueuedItem], *, limit: int, responses: Sequence[tuple[RequestKey, bytes]] = ()
    ) -> None:
        """Put items at the end of their bank's queue, together; durable when this returns.

        Args:
            bank: Where they will be stored.
            items: At least one.
            limit: How many items may wait in all banks together.
            responses: Answers to the requests that brought them, kept beside them.

        Raises:
            RateLimited: The queue is full; nothing was changed.
            BankNotFound: It was deleted.
            Conflict: One of the requests has been answered before; nothing was changed.
        """

    def queued_count(self) -> int:
        """The number of items that wait."""

    def queued_banks(self) -> list[Bank]:
        """Banks for which items wait, the one whose first item is oldest first."""

    def queued(self, bank: Bank, *, after: int, limit: int) -> list[QueuedItem]:
        """The first items with keys above ``after``, in order: whole groups, at least one, about ``limit`` items."""
