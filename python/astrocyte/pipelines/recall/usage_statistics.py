"""Usage statistics: how often, when and how high memories were among the hits.

Counted in this process and gone with it: a read that writes to the disk would cost every recall a commit. Only ids and
numbers are held; what leaves a bank leaves here with its index.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from astrocyte.config.boosts import UtilitySettings
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.stores.records import HydratedRow, IndexBatch

# Finds from which on more of them say no more.
MANY = 100


@dataclass(slots=True)
class _Count:
    found: int = 0
    last: int = 0
    places: float = 0.0


class Usage:
    """The counts of the memories used last. Safe to use from any thread.

    Args:
        settings: Shares, half-lives, how many memories are counted.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, settings: UtilitySettings, clock: Callable[[], int]) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        # By row: a changed memory is another one.
        self._counts: OrderedDict[int, _Count] = OrderedDict()

    def note(self, rows: Iterable[HydratedRow]) -> None:
        """Count the memories of an answer, best first."""
        now = self._clock()
        with self._lock:
            for place, row in enumerate(rows, 1):
                count = self._counts.setdefault(row.row_key, _Count())
                count.found += 1
                count.last = now
                count.places += 1 / place
                self._counts.move_to_end(row.row_key)
            while len(self._counts) > self._settings.entries:
                self._counts.popitem(last=False)

    def on_commit(self, batch: IndexBatch) -> None:
        """Drop what is gone; the store calls it after each commit."""
        with self._lock:
            for row_key in (*batch.removed, *(row_key for row_key, _ in batch.ended)):
                self._counts.pop(row_key, None)

    def doublings(self, candidate: Candidate) -> float:
        """0 for what was never found, then one more for each doubling: 1 for once, 2 for three times."""
        with self._lock:
            count = self._counts.get(candidate.row.row_key)
            return 0.0 if count is None else math.log2(1 + count.found)

    def utility(self, candidate: Candidate) -> float:
        """From 0 to 1; what was never found has its freshness alone."""
        settings, now = self._settings, self._clock()
        age = (now - candidate.row.retained_at) / DAY_MS
        parts = [(settings.freshness, math.exp2(-max(age, 0.0) / settings.freshness_half_life_days))]
        with self._lock:
            count = self._counts.get(candidate.row.row_key)
            if count is not None:
                since = (now - count.last) / DAY_MS
                parts += [
                    (settings.recency, math.exp2(-max(since, 0.0) / settings.recency_half_life_days)),
                    (settings.frequency, min(count.found / MANY, 1.0)),
                    (settings.relevance, count.places / count.found),
                ]
        whole = settings.recency + settings.frequency + settings.relevance + settings.freshness
        return sum(share * value for share, value in parts) / whole if whole else 0.0
