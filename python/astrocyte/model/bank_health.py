"""Bank health: the score of a bank, its issues, and the rates that they follow from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HealthStatus(StrEnum):
    """The range of a score: healthy from .7, warning from .4, critical below."""

    HEALTHY = "healthy"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class HealthIssue:
    """A rate of a bank that is out of range. ``code`` is a stable name; the texts are for people."""

    severity: HealthStatus
    code: str
    message: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class HealthMetrics:
    """Counts and rates of a bank over the days that are kept. A rate is None where nothing was counted for it.

    ``avg_recall_score`` is the mean confidence, from 0 to 1, of the recalls with hits. ``avg_content_length`` is in
    characters.
    """

    retain_count: int = 0
    recall_count: int = 0
    reflect_count: int = 0
    recall_hit_rate: float | None = None
    avg_recall_score: float | None = None
    dedup_rate: float | None = None
    reflect_success_rate: float | None = None
    avg_content_length: float | None = None
    recalls_per_retain: float | None = None


@dataclass(frozen=True, slots=True)
class QualityDataPoint:
    """The counts and rates of one day, in UTC. ``date`` has the form 2026-11-26."""

    date: str
    retain_count: int
    recall_count: int
    recall_hit_rate: float | None = None
    avg_recall_score: float | None = None
    dedup_rate: float | None = None
    reflect_success_rate: float | None = None


@dataclass(frozen=True, slots=True)
class BankHealth:
    """The health of a bank over the last two weeks.

    ``score`` is from 0 to 1, and .5 for a bank without calls. ``trend`` has the days with calls, oldest first.
    """

    score: float
    status: HealthStatus
    issues: tuple[HealthIssue, ...]
    metrics: HealthMetrics
    trend: tuple[QualityDataPoint, ...]
    assessed_at: datetime
