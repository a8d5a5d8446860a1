"""Trends follow from the times of the evidence alone."""

from __future__ import annotations

import pytest

from astrocyte.config import ObservationSettings
from astrocyte.model import Trend
from astrocyte.pipelines.knowledge.trends import DAY_MILLISECONDS, trend_of

NOW = 1_000 * DAY_MILLISECONDS
DEFAULTS = ObservationSettings().trends


@pytest.mark.parametrize(
    ("ages", "trend"),
    [
        ([], Trend.STALE),
        ([40, 100], Trend.STALE),
        ([0, 29], Trend.NEW),
        # Half of the windows' days: a density of 1/30 against 1/60 is a ratio of 2.
        ([1, 40], Trend.STRENGTHENING),
        ([1, 40, 50], Trend.STABLE),
        ([1, 2, 40, 50, 60], Trend.STABLE),
        ([1, 40, 50, 60, 70], Trend.STABLE),
        ([1, 40, 50, 60, 70, 200], Trend.WEAKENING),
    ],
)
def test_trend(ages: list[int], trend: Trend) -> None:
    assert trend_of([NOW - age * DAY_MILLISECONDS for age in ages], NOW, DEFAULTS) is trend


def test_the_thresholds_are_settings() -> None:
    times = [NOW - DAY_MILLISECONDS, NOW - 40 * DAY_MILLISECONDS]
    loose = ObservationSettings.model_validate({"trends": {"strengthening_ratio": 3}}).trends
    wide = ObservationSettings.model_validate({"trends": {"recent_days": 50}}).trends
    assert trend_of(times, NOW, loose) is Trend.STABLE
    assert trend_of(times, NOW, wide) is Trend.NEW
