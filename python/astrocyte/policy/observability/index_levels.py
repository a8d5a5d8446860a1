"""Metrics of the tiers of bank indexes, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from astrocyte.pipelines.index.registry import IndexRegistry


class IndexLevels(Collector):
    """Reads the loaded indexes on the thread that answers scrapes.

    Args:
        registry: Whose indexes.
    """

    def __init__(self, registry: IndexRegistry) -> None:
        self._registry = registry

    def describe(self) -> list[Metric]:
        """The gauges that exist, without reading them."""
        return [*self._families()]

    def collect(self) -> Iterator[Metric]:
        """Rows by tier, and bytes in mapped files and in memory."""
        rows, mapped, resident = self._families()
        by_tier = {"memory": 0, "disk": 0}
        mapped_bytes = resident_bytes = 0
        for stats in self._registry.statistics():
            by_tier[stats.tier] += stats.rows
            mapped_bytes += stats.mapped_bytes
            resident_bytes += stats.resident_bytes
        for tier, count in by_tier.items():
            rows.add_metric((tier,), count)
        mapped.add_metric((), mapped_bytes)
        resident.add_metric((), resident_bytes)
        yield from (rows, mapped, resident)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("astrocyte_index_tier_rows", "Rows of loaded indexes by tier.", labels=("tier",)),
            GaugeMetricFamily("astrocyte_index_mapped_bytes", "Bytes of loaded indexes in mapped files."),
            GaugeMetricFamily("astrocyte_index_resident_bytes", "Bytes of loaded indexes in memory."),
        )
