"""Detects runaway writers per bank: rate spikes, short or duplicate content.

Kept are the last 50 retains and how many came in each ten seconds of the last hour: some kilobytes of a bank, and of
the banks that were written to last.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from astrocyte.config import NoisyBankSettings

# Banks of which something is kept.
KEPT_BANKS = 10_000
# Retains that averages are taken over, and how many there must be.
RECENT, FEWEST = 50, 20
WINDOW_SECONDS = 3_600
SLOT_SECONDS = 10
SPIKE_SECONDS = 60
# Below so many in a minute nothing is a spike, and before so long there is no earlier rate.
SPIKE_RETAINS = 10
HISTORY_SECONDS = 300


class Retain(NamedTuple):
    """One retain: its time, length, and whether it was a duplicate."""

    at: float
    length: int
    duplicate: bool


class Pattern:
    """The latest retains of a bank."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._recent: deque[Retain] = deque(maxlen=RECENT)
        # Slot number and retains in it, oldest first.
        self._slots: deque[tuple[int, int]] = deque()

    def note(self, now: float, length: int, *, duplicate: bool) -> None:
        """One more."""
        self._recent.append(Retain(now, length, duplicate))
        slot = int(now // SLOT_SECONDS)
        count = self._slots.pop()[1] if self._slots and self._slots[-1][0] == slot else 0
        self._slots.append((slot, count + 1))
        while self._slots[0][0] <= slot - WINDOW_SECONDS // SLOT_SECONDS:
            self._slots.popleft()

    def flags(self, now: float, settings: NoisyBankSettings) -> tuple[str, ...]:
        """The flags that hold: any of retain_spike, short_content and high_dedup."""
        flags = []
        if self._spike(now, settings.retain_spike_multiplier):
            flags.append("retain_spike")
        recent = [one for one in self._recent if one.at > now - WINDOW_SECONDS]
        if len(recent) >= FEWEST:
            if sum(one.length for one in recent) < settings.min_avg_content_length * len(recent):
                flags.append("short_content")
            if sum(one.duplicate for one in recent) > settings.max_dedup_rate * len(recent):
                flags.append("high_dedup")
        return tuple(flags)

    def _spike(self, now: float, multiplier: float) -> bool:
        history = min(now - self._began, WINDOW_SECONDS)
        if history < HISTORY_SECONDS:
            return False
        first = int(now // SLOT_SECONDS) - SPIKE_SECONDS // SLOT_SECONDS
        oldest = int(now // SLOT_SECONDS) - WINDOW_SECONDS // SLOT_SECONDS
        last = sum(count for slot, count in self._slots if slot > first)
        earlier = sum(count for slot, count in self._slots if oldest < slot <= first)
        per_minute = earlier / (history - SPIKE_SECONDS) * SPIKE_SECONDS
        return last >= SPIKE_RETAINS and last > multiplier * max(per_minute, 1.0)


class Noise:
    """The patterns of all banks.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._patterns: OrderedDict[tuple[str, str], Pattern] = OrderedDict()

    def __len__(self) -> int:
        return len(self._patterns)

    def flags(self, tenant: str, bank_id: str, settings: NoisyBankSettings) -> tuple[str, ...]:
        """The flags that hold for a bank now."""
        pattern = self._patterns.get((tenant, bank_id))
        return () if pattern is None else pattern.flags(self._clock(), settings)

    def note(self, tenant: str, bank_id: str, length: int, *, duplicate: bool) -> None:
        """One more retain of a bank."""
        now = self._clock()
        pattern = self._patterns.get((tenant, bank_id))
        if pattern is None:
            pattern = self._patterns[tenant, bank_id] = Pattern(now)
            if len(self._patterns) > KEPT_BANKS:
                self._patterns.popitem(last=False)
        else:
            self._patterns.move_to_end((tenant, bank_id))
        pattern.note(now, length, duplicate=duplicate)

    def forget(self, tenant: str, bank_id: str) -> None:
        """Know nothing of a bank any longer."""
        self._patterns.pop((tenant, bank_id), None)

    def reset(self) -> None:
        """Begin anew: what was an outage's doing is not held against a bank."""
        self._patterns.clear()
