"""Metrics of the drift between agents' memories and the vocabulary, read when they are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from astrocyte.errors import StoreError


class VocabularyLevels(Collector):
    """Counts the terms and the memories of all tenants together.

    Args:
        count_proposed: The number of proposed terms; called on the thread that answers scrapes, as the other one.
        count_topics: The number of memories, and of those without a canonical topic.
    """

    def __init__(self, count_proposed: Callable[[], int], count_topics: Callable[[], tuple[int, int]]) -> None:
        self._count_proposed = count_proposed
        self._count_topics = count_topics

    def describe(self) -> list[Metric]:
        """The gauges that exist, without reading them."""
        return [*self._families()]

    def collect(self) -> Iterator[Metric]:
        """Both gauges; the share is absent where there are no memories."""
        proposed, share = self._families()
        # A store that cannot be read says so elsewhere.
        with contextlib.suppress(StoreError):
            proposed.add_metric((), self._count_proposed())
        with contextlib.suppress(StoreError):
            memories, others = self._count_topics()
            if memories:
                share.add_metric((), others / memories)
        yield from (proposed, share)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("astrocyte_canonical_terms_proposed", "Terms that wait for a review."),
            GaugeMetricFamily(
                "astrocyte_agent_memory_noncanonical_ratio", "Share of agents' memories without a canonical topic."
            ),
        )
