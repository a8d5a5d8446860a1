"""Metrics that are read when they are asked for: queues, recall of graphs, health of banks."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from astrocyte.config import IndexSettings
from astrocyte.errors import StoreError
from astrocyte.model import EngineOutbox
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.policy.observability.cardinality import BankLabels, Room
from astrocyte.policy.quality.bank_activity import BankActivity
from astrocyte.policy.quality.bank_health import ISSUE_CODES, assess
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.queue import RetryQueue


class Levels(Collector):
    """Reads on the thread that answers scrapes.

    Args:
        queue: Where memories wait for a provider.
        store: Where writes wait.
        registry: Whose graphs are compared with a scan.
        settings: When there are graphs, and what they have to find.
        outboxes: What waits for engines, by their names.
    """

    def __init__(
        self,
        queue: RetryQueue,
        store: MemoryStore,
        registry: IndexRegistry,
        settings: IndexSettings,
        outboxes: Callable[[], Mapping[str, EngineOutbox]],
    ) -> None:
        self._queues: dict[str, Callable[[], int]] = {
            "retry": queue.queued_count,
            "writes": lambda: store.waiting_writes,
        }
        self._quarantine = store.quarantine
        self._registry = registry
        self._settings = settings
        self._outboxes = outboxes

    def add(self, queues: Mapping[str, Callable[[], int]]) -> None:
        """Tell what waits in these queues too, by their names; each is read on the thread that answers scrapes."""
        # Another mapping: a scrape may be going over this one.
        self._queues = {**self._queues, **queues}

    def describe(self) -> list[Metric]:
        """The gauges that exist, without reading them."""
        return [*self._families()]

    def collect(self) -> Iterator[Metric]:
        """All of it."""
        depth, floor, sampled, behind, damaged = self._families()
        banks = Counter(row.bank_key for row in self._quarantine.rows)
        for bank_key, count in banks.items():
            damaged.add_metric((str(bank_key),), count)
        for queue, read in self._queues.items():
            # A store that cannot be read says so elsewhere; the other metrics are wanted then more than ever.
            with contextlib.suppress(StoreError):
                depth.add_metric((queue,), read())
        floor.add_metric((), self._settings.recall_floor)
        graph_rows = self._settings.graph_rows
        large = self._registry.statistics(graph_rows) if graph_rows else []
        shares = [stats.sampled_recall for stats in large if stats.sampled_recall is not None]
        if shares:
            sampled.add_metric((), min(shares))
        with contextlib.suppress(StoreError):
            for engine, state in self._outboxes().items():
                depth.add_metric((f"engine:{engine}",), state.waiting)
                waited = 0.0 if state.since is None else (datetime.now(UTC) - state.since).total_seconds()
                behind.add_metric((engine,), max(0.0, waited))
        yield from (depth, floor, sampled, behind, damaged)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("astrocyte_queue_depth", "What waits, by queue.", labels=("queue",)),
            GaugeMetricFamily("astrocyte_recall_floor", "Share of the nearest rows that graphs have to find."),
            GaugeMetricFamily("astrocyte_sampled_recall", "Share that they found, in the bank where it is least."),
            GaugeMetricFamily(
                "astrocyte_engine_behind_seconds", "How long an engine has not had what it should.", labels=("engine",)
            ),
            GaugeMetricFamily("astrocyte_damaged_rows", "Damaged rows in quarantine.", labels=("bank_key",)),
        )


class HealthLevels(Collector):
    """The health of the banks, computed on the thread that answers scrapes.

    Args:
        activity: The counts of the banks.
        banks: The labels of banks; those without one share the lowest of their scores.
        room: The budget of series by bank.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, activity: BankActivity, banks: BankLabels, room: Room, clock: Callable[[], int]) -> None:
        self._activity = activity
        self._banks = banks
        self._room = room
        self._clock = clock
        self._labels: set[str] = set()

    def describe(self) -> list[Metric]:
        """The gauges that exist, without reading them."""
        return [*self._families()]

    def collect(self) -> Iterator[Metric]:
        """The score by bank, and the number of banks by issue."""
        score, issues = self._families()
        lowest: dict[str, float] = {}
        found = dict.fromkeys(ISSUE_CODES, 0)
        # A store that cannot be read says so elsewhere.
        with contextlib.suppress(StoreError):
            for (_, bank_id), days in self._activity.recent().items():
                health = assess(days, self._clock())
                label = self._label(bank_id)
                lowest[label] = min(health.score, lowest.get(label, 1.0))
                for issue in health.issues:
                    found[issue.code] += 1
        for label, least in lowest.items():
            score.add_metric((label,), least)
        for code, count in found.items():
            issues.add_metric((code,), count)
        yield from (score, issues)

    def _label(self, bank_id: str) -> str:
        label = self._banks.known(bank_id)
        if label != self._banks.rest and label not in self._labels:
            if not self._room.take(1):
                return self._banks.rest
            self._labels.add(label)
        return label

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("astrocyte_bank_health_score", "Health of a bank, from 0 to 1.", labels=("bank_id",)),
            GaugeMetricFamily("astrocyte_bank_health_issues", "Banks that have an issue.", labels=("issue",)),
        )
