"""The slots of all banks, and the memory that their indexes use of a budget."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from astrocyte.model import Bank, IndexMemory
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.slots import Slot

# Down to this share of the budget, least recently used first: each eviction then pays for many loads.
LOW_MARK = 0.9


class SlotTable:
    """Slots by the key of their bank. Safe to use from any thread; its lock is taken after a slot's, never before it.

    Args:
        budget: Bytes that all indexes together may hold; 0 is without bounds.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        # Guards the dictionary and the counts.
        self._lock = threading.Lock()
        self._slots: dict[int, Slot] = {}
        self._bytes = self._loads = self._evictions = 0
        # Each use of an index has the next number, and so the slot that was used last has the highest.
        self.next_use = itertools.count(1).__next__
        # The slot of a bank's key, if there is one.
        self.get = self._slots.get
        # True if the indexes use more than the budget.
        self.over_budget = False

    def __iter__(self) -> Iterator[Slot]:
        """The slots of now."""
        with self._lock:
            return iter(tuple(self._slots.values()))

    def get_or_add(self, bank: Bank) -> Slot:
        """The slot of a bank, an empty one if there is none."""
        with self._lock:
            slot = self._slots.get(bank.key)
            if slot is None:
                slot = self._slots[bank.key] = Slot(bank)
            return slot

    def want(self, slot: Slot, position: int) -> None:
        """Set the position that the index must have for its next use, unless a later one is wanted."""
        with self._lock:
            slot.wanted = max(slot.wanted, position)

    def count_load(self) -> None:
        """Count a load of an index."""
        with self._lock:
            self._loads += 1

    @property
    def memory(self) -> IndexMemory:
        """The memory that the indexes use."""
        with self._lock:
            loaded = sum(slot.index is not None for slot in self._slots.values())
            return IndexMemory(loaded, self._bytes, self._budget, self._loads, self._evictions)

    @property
    def room(self) -> int:
        """Bytes of the budget above the mark down to which indexes are evicted."""
        return round(self._budget * (1.0 - LOW_MARK))

    def charge(self, slot: Slot, size: int) -> None:
        """Set the size of a slot's index in bytes, beside that of its next index."""
        size += slot.next_bytes
        with self._lock:
            if not slot.gone:
                self._count(slot, size)

    def discard(self, bank_key: int, slot: Slot) -> None:
        """Remove a slot, if it is still there."""
        with self._lock:
            self._take_out(bank_key, slot)

    def evict(self) -> list[tuple[Bank, BankIndex, int]]:
        """Remove the least recently used indexes beyond the budget; returns each with its bank and size in bytes."""
        with self._lock:
            if not self.over_budget:
                return []
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
            return evicted

    def _take_out(self, bank_key: int, slot: Slot) -> None:
        if self._slots.get(bank_key) is slot:
            del self._slots[bank_key]
        self._count(slot, 0)
        slot.gone = True

    def _count(self, slot: Slot, size: int) -> None:
        self._bytes += size - slot.bytes
        slot.bytes = size
        self.over_budget = 0 < self._budget < self._bytes
