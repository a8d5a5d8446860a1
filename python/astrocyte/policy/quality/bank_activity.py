"""Counts of retains, recalls and reflects by bank and day, from which the health of a bank is computed.

Counted in this process and gone with it: a count on the disk would cost every recall a commit. Only numbers are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from astrocyte.model import RecallResult, ReflectResult, RetainItem, RetainResult

# Days and banks of which counts are kept: two weeks show a trend, and all of it together takes a few megabytes.
KEPT_DAYS = 14
KEPT_BANKS = 2_000
DAY_MS = 86_400_000


@dataclass(slots=True)
class Counts:
    """The counts of one bank over some time. ``characters`` and ``scored`` are sums."""

    retains: int = 0
    duplicates: int = 0
    characters: int = 0
    recalls: int = 0
    recalls_with_hits: int = 0
    scored: float = 0.0
    reflects: int = 0
    answered: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another time."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_NAMES = tuple(field.name for field in fields(Counts))


class BankActivity:
    """The counts of the banks that were used last. Safe to use from any thread.

    Args:
        clock: Milliseconds since the epoch.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # By tenant and bank, then by the number of the day since the epoch, oldest first.
        self._days: OrderedDict[tuple[str, str], dict[int, Counts]] = OrderedDict()

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

    def days(self, tenant: str, bank_id: str) -> dict[int, Counts]:
        """Copies of the counts of a bank by the number of the day since the epoch, oldest first."""
        oldest = self._clock() // DAY_MS - KEPT_DAYS
        with self._lock:
            return {
                day: Counts(*(getattr(counts, name) for name in _NAMES))
                for day, counts in self._days.get((tenant, bank_id), {}).items()
                if day > oldest
            }

    def banks(self) -> list[tuple[str, str]]:
        """Tenant and id of the banks that have counts."""
        with self._lock:
            return list(self._days)

    def forget(self, tenant: str, bank_id: str) -> None:
        """A bank is gone; one that is made by its name later is another one."""
        with self._lock:
            self._days.pop((tenant, bank_id), None)

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
