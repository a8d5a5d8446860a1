"""Metrics of the ingest sources, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from astrocyte.model import SourceInfo


class SourceLevels(Collector):
    """Reads the state of the ingest sources. Their ids are of the settings, so the number of series is known.

    Args:
        sources: The sources; called on the thread that answers scrapes.
    """

    def __init__(self, sources: Callable[[], list[SourceInfo]]) -> None:
        self._sources = sources

    def describe(self) -> list[Metric]:
        """The metrics that exist, without reading them."""
        return [*self._families()]

    def collect(self) -> Iterator[Metric]:
        """All of it."""
        messages, healthy, lag = self._families()
        for one in self._sources():
            counts = {"stored": one.stored, "duplicate": one.duplicates, "refused": one.refused, "failed": one.failed}
            for outcome, count in counts.items():
                messages.add_metric((one.source_id, outcome), count)
            healthy.add_metric((one.source_id,), one.healthy)
            if one.lag is not None:
                lag.add_metric((one.source_id,), one.lag)
        yield from (messages, healthy, lag)

    @staticmethod
    def _families() -> tuple[CounterMetricFamily | GaugeMetricFamily, ...]:
        return (
            CounterMetricFamily(
                "astrocyte_ingest_messages", "Messages of sources by outcome.", labels=("source", "outcome")
            ),
            GaugeMetricFamily("astrocyte_ingest_healthy", "1 unless the source failed last.", labels=("source",)),
            GaugeMetricFamily("astrocyte_ingest_lag", "Messages that wait at the source.", labels=("source",)),
        )
