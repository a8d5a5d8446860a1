"""Brings the index of a slot up to date with the commits that it has not seen, and publishes it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from astrocyte.model import Bank
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.loading import replay
from astrocyte.pipelines.index.slot_table import SlotTable
from astrocyte.pipelines.index.slots import Slot
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch

# Each round applies what came during the one before, which is less every time; a few leave next to nothing.
CATCH_UP_ROUNDS = 4


def replayed(store: MemoryStore, slot: Slot, current: Bank) -> BankIndex | None:
    """The index that is in memory, with what other processes committed; None where reading all rows is faster."""
    with slot.lock:
        index, slot.index = slot.index, None
        if index is None:
            return None
        # It has missed the same, and is built again if a reindex still wants it.
        slot.next, slot.next_pending, slot.next_bytes = None, None, 0
    if index.model != current.embedding_model or not replay(store, current, index):
        return None
    return index


def caught_up(slot: Slot, index: BankIndex, slots: SlotTable) -> bool:
    """Apply the queued commits to a loaded index and publish it; False if its bank has moved to another model."""
    want = partial(slots.want, slot)
    for _ in range(CATCH_UP_ROUNDS):
        with slot.lock:
            batches, slot.pending = slot.pending, []
        if not _applied(index, batches, want):
            return False
    with slot.lock:
        # The writer waits for this short rest: a load must end even where commits come faster than it applies them.
        batches, slot.pending = slot.pending, []
        if not _applied(index, batches, want):
            return False
        slot.index = index
        if not slot.bytes or index.grown:
            slots.charge(slot, index.measure())
    return True


async def scrub(slot: Slot) -> None:
    """Drop what files of the slot's indexes still have of removed memories."""
    if slot.loading is not None and not slot.loading.done():
        # What it read may be older than the removal.
        with contextlib.suppress(Exception):
            await asyncio.shield(slot.loading)
    for index in (slot.index, slot.next):
        if index is not None:
            await asyncio.get_running_loop().run_in_executor(None, index.core.scrub)


def _applied(index: BankIndex, batches: Sequence[IndexBatch], want: Callable[[int], None]) -> bool:
    """Apply commits to a loaded index; False if they come from after a move to another model.

    Those behind a commit of another process are left out: ``want`` is told the position of each.
    """
    for batch in batches:
        if batch.position <= index.core.position:
            continue
        if batch.bank.embedding_model != index.model:
            return False
        if batch.after > index.core.position:
            want(batch.position)
        else:
            index.apply(batch)
    return True
