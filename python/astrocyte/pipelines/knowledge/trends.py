"""The trend of an observation, from the times of its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from astrocyte.model import Trend

DAY_MILLISECONDS = 86_400_000


class TrendThresholds(Protocol):
    """The settings of trends, in days and as ratios of densities."""

    @property
    def recent_days(self) -> float:
        """Evidence of at most this age is recent."""

    @property
    def old_days(self) -> float:
        """Evidence of more than this age is old; the rest is in between."""

    @property
    def strengthening_ratio(self) -> float:
        """Density of recent evidence over that of other evidence above which an observation is strengthening."""

    @property
    def weakening_ratio(self) -> float:
        """The ratio below which it is weakening."""


def trend_of(times: Iterable[int], now: int, thresholds: TrendThresholds) -> Trend:
    """The trend of evidence.

    The density of recent evidence, per day of the recent window, is compared with the density of all earlier evidence,
    per day between the ends of the two windows.

    Args:
        times: When the evidence was observed, in milliseconds since the epoch; without any, the trend is stale.
        now: The present, likewise.
        thresholds: Windows and ratios.
    """
    since = now - thresholds.recent_days * DAY_MILLISECONDS
    recent = earlier = 0
    for time in times:
        if time > since:
            recent += 1
        else:
            earlier += 1
    if not recent:
        return Trend.STALE
    if not earlier:
        return Trend.NEW
    ratio = (recent / thresholds.recent_days) / (earlier / (thresholds.old_days - thresholds.recent_days))
    if ratio > thresholds.strengthening_ratio:
        return Trend.STRENGTHENING
    return Trend.WEAKENING if ratio < thresholds.weakening_ratio else Trend.STABLE
