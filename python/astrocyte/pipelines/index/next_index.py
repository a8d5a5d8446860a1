"""The next index of a bank that moves to another embedding model: built beside the one that answers, fed by commits."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.slot_loading import CATCH_UP_ROUNDS
from astrocyte.pipelines.index.slots import Slot, in_space
from astrocyte.stores.records import IndexBatch

log = structlog.get_logger(__name__)


def build(slot: Slot, load: Callable[[], BankIndex]) -> BankIndex | None:
    """Load the next index of a slot, which follows the commits from now on.

    Args:
        slot: Of a bank whose index is in memory.
        load: Reads the index of the other model from the store.

    Returns:
        None where the bank's own index left the memory meanwhile.
    """
    with slot.lock:
        slot.next, slot.next_pending = None, []
    index = load()
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
            feed(slot, batch)
        slot.next_bytes = index.measure()
    return index


def feed(slot: Slot, batch: IndexBatch) -> None:
    """Apply a commit to the next index; the caller holds the slot's lock."""
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
