"""Storing of items that may be known: new ones are retained, others become the next version of their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from astrocyte.api import Backend
from astrocyte.api.requests import StreamRetain, UpdateMemory
from astrocyte.errors import NotFound
from astrocyte.ingest.groups import PASSING, Ready, Results
from astrocyte.model import Caller, MemoryUpdate, RetainItem, RetainResult, RetentionAction

# All that an update can set of a message.
FIELDS = frozenset({"content", "tags", "metadata", "source", "occurred_at"})
# An item with what the extraction profile and the bank add.
Complete: TypeAlias = Callable[[str, RetainItem], RetainItem]


class VersionSender:
    """Stores a group of items for one bank; called as `Send`.

    Args:
        backend: Retains and updates.
        complete: Adds to an updated item what a retain adds by itself.
    """

    def __init__(self, backend: Backend, complete: Complete) -> None:
        self._backend = backend
        self._complete = complete

    async def __call__(self, caller: Caller, bank_id: str, group: Sequence[Ready]) -> Results:
        """A result for each of the group; raises where all of them failed."""
        found: dict[str, RetainResult | Exception] = {}
        stopped: Exception | None = None
        for one in group:
            if one.memory_id is None:
                continue
            if stopped is None:
                found[one.position] = result = await self._updated(caller, bank_id, one, one.memory_id)
                stopped = result if isinstance(result, PASSING) and not isinstance(result, NotFound) else None
            else:
                # What stopped one of them stops all.
                found[one.position] = stopped
        # A memory that is gone is made anew, since its item says something new.
        fresh = [one for one in group if one.position not in found or isinstance(found[one.position], NotFound)]
        if fresh:
            items = [one.memory.item for one in fresh]
            request = StreamRetain(bank_id, items, [one.request_id for one in fresh])
            results = await self._backend.call(caller, request)
            found.update({one.position: result for one, result in zip(fresh, results, strict=True)})
        return [found[one.position] for one in group]

    async def _updated(self, caller: Caller, bank_id: str, one: Ready, memory_id: str) -> RetainResult | Exception:
        item = self._complete(bank_id, one.memory.item)
        update = MemoryUpdate(
            memory_id,
            FIELDS,
            content=item.content,
            tags=item.tags,
            metadata=item.metadata,
            source=item.source,
            occurred_at=item.occurred_at,
        )
        try:
            memory = await self._backend.call(caller, UpdateMemory(bank_id, update, one.request_id))
        except Exception as error:  # noqa: BLE001 - the failure of this item, which its caller tells apart
            return error
        action = RetentionAction.UPDATED.value
        return RetainResult(stored=True, memory_id=memory.memory_id, retention_action=action, was_update=True)
