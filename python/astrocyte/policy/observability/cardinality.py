"""Bounds the number of series of the metrics: each pair of a metric and its labels is one."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import Metric

OTHER = "other"
# Series that are there whatever the banks: of `other`, gauges, hooks and engines. Somewhat more than there can be.
UNBOUND = 240
# The sum and the count of a histogram, and its last bucket, which has no bound.
BESIDE_BUCKETS = 3

M = TypeVar("M", Counter, Histogram)


class BankLabels:
    """The value of the label ``bank_id``: the bank's, for the first so many banks that answered a call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rest = OTHER if most else ""
        self._names: set[str] = set()

    def of(self, bank_id: str) -> str:
        """The label of a bank that there is."""
        if bank_id not in self._names:
            if len(self._names) >= self._most:
                return self.rest
            self._names.add(bank_id)
        return bank_id

    def known(self, bank_id: str) -> str:
        """The label of a bank that may be a caller's invention: it takes no place of another."""
        return bank_id if bank_id in self._names else self.rest


class Room:
    """The budget of further series. Used from several threads."""

    def __init__(self, series: int) -> None:
        self._left = series
        self._lock = threading.Lock()

    def take(self, series: int) -> bool:
        """Take room for these, or none and False where there is not enough."""
        with self._lock:
            fits = series <= self._left
            if fits:
                self._left -= series
        return fits


class Family(Generic[M]):
    """A metric by bank: a bank's share of it is its own while there is room, and that of `OTHER` from then on.

    Args:
        metric: It; its first label is ``bank_id``.
        banks: Whose `rest` takes what finds no room.
        room: What is left, for all metrics of the kind.
        series: How many each share is.
    """

    def __init__(self, metric: M, banks: BankLabels, room: Room, series: int = 1) -> None:
        self._metric: M = metric
        self._rest = banks.rest
        self._room = room
        self._series = series
        # Finding them anew costs as much as counting.
        self._shares: dict[tuple[str, ...], M] = {}

    def of(self, *labels: str) -> M:
        """The share of these labels, ``bank_id`` first."""
        share = self._shares.get(labels)
        if share is None:
            bank_id, *others = labels
            if bank_id != self._rest and not self._room.take(self._series):
                bank_id = self._rest
            share = self._shares[labels] = self._metric.labels(bank_id, *others)
        return share


class PlainRegistry(CollectorRegistry):
    """A registry without the times at which series began, which double the number of counters and tell nobody much."""

    def collect(self) -> list[Metric]:
        """All metrics."""
        metrics = list(super().collect())
        for metric in metrics:
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
        return metrics
