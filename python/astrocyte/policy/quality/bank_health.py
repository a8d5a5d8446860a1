"""The health of a bank, computed from its counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from astrocyte.model import BankHealth, HealthIssue, HealthMetrics, HealthStatus, QualityDataPoint
from astrocyte.policy.quality.bank_activity import DAY_MS
from astrocyte.stores.activity import Counts

# From these scores on a bank is healthy, or only to be watched.
HEALTHY, WARNING = 0.7, 0.4
# The value of a part of the score that nothing was counted for: a bank without calls scores .5.
UNKNOWN = 0.5
# From here on longer contents, or more recalls of each memory, say no more.
LONG_CONTENT, MANY_RECALLS = 200, 2
# Fewer calls than these say nothing about a rate.
FEWEST_RECALLS, FEWEST_RETAINS, FEWEST_REFLECTS, FEWEST_CONTENTS = 5, 10, 3, 5
# Names of the issues.
ISSUE_CODES = ("low_hit_rate", "high_dedup_rate", "low_reflect_success", "short_content")
# Rates beyond which there is an issue.
FEW_HITS, SOME_HITS, MANY_DUPLICATES, FEW_ANSWERS, SHORT_CONTENT = 0.3, 0.6, 0.5, 0.5, 20


def assess(days: Mapping[int, Counts], now_ms: int) -> BankHealth:
    """The health of a bank with these counts, by the number of the day since the epoch.

    Args:
        days: The counts, oldest day first.
        now_ms: Milliseconds since the epoch.
    """
    whole = Counts()
    for counts in days.values():
        whole.add(counts)
    metrics = _metrics(whole)
    score = _score(metrics)
    return BankHealth(
        score=score,
        status=_status(score),
        issues=tuple(_issues(whole, metrics)),
        metrics=metrics,
        trend=tuple(_point(day, counts) for day, counts in days.items()),
        assessed_at=datetime.fromtimestamp(now_ms / 1_000, UTC),
    )


def _metrics(counts: Counts) -> HealthMetrics:
    return HealthMetrics(
        retain_count=counts.retains,
        recall_count=counts.recalls,
        reflect_count=counts.reflects,
        recall_hit_rate=_share(counts.recalls_with_hits, counts.recalls),
        avg_recall_score=_share(counts.scored, counts.recalls_with_hits),
        dedup_rate=_share(counts.duplicates, counts.retains),
        reflect_success_rate=_share(counts.answered, counts.reflects),
        avg_content_length=_share(counts.characters, counts.retains),
        recalls_per_retain=_share(counts.recalls, counts.retains),
    )


def _score(metrics: HealthMetrics) -> float:
    length, recalls = metrics.avg_content_length, metrics.recalls_per_retain
    parts = (
        (0.30, metrics.recall_hit_rate),
        (0.20, metrics.avg_recall_score),
        (0.15, None if metrics.dedup_rate is None else 1 - metrics.dedup_rate),
        (0.15, metrics.reflect_success_rate),
        (0.10, None if length is None else min(length / LONG_CONTENT, 1.0)),
        (0.10, None if recalls is None else min(recalls / MANY_RECALLS, 1.0)),
    )
    # Rounded, so that sums of fractions reach the bounds of a status.
    return round(sum(share * (UNKNOWN if value is None else value) for share, value in parts), 4)


def _status(score: float) -> HealthStatus:
    if score >= HEALTHY:
        return HealthStatus.HEALTHY
    return HealthStatus.WARNING if score >= WARNING else HealthStatus.CRITICAL


def _issues(counts: Counts, metrics: HealthMetrics) -> list[HealthIssue]:
    issues: list[HealthIssue] = []
    hits, duplicates, answers = metrics.recall_hit_rate, metrics.dedup_rate, metrics.reflect_success_rate
    if counts.recalls >= FEWEST_RECALLS and hits is not None and hits < SOME_HITS:
        severity = HealthStatus.CRITICAL if hits < FEW_HITS else HealthStatus.WARNING
        message = f"{hits:.0%} of {counts.recalls} recalls had hits"
        advice = "Check that callers name the bank that they retain in, and that their filters match its memories."
        issues.append(HealthIssue(severity, "low_hit_rate", message, advice))
    if counts.retains >= FEWEST_RETAINS and duplicates is not None and duplicates > MANY_DUPLICATES:
        message = f"{duplicates:.0%} of {counts.retains} retains were duplicates"
        advice = "Look for a client that retains the same content again."
        issues.append(HealthIssue(HealthStatus.WARNING, "high_dedup_rate", message, advice))
    if counts.reflects >= FEWEST_REFLECTS and answers is not None and answers < FEW_ANSWERS:
        message = f"{answers:.0%} of {counts.reflects} reflects had an answer"
        advice = "Retain what is asked for, or ask another bank."
        issues.append(HealthIssue(HealthStatus.WARNING, "low_reflect_success", message, advice))
    length = metrics.avg_content_length
    if counts.retains >= FEWEST_CONTENTS and length is not None and length < SHORT_CONTENT:
        message = f"contents have {length:.0f} characters on average"
        advice = "Retain whole sentences that can be understood on their own."
        issues.append(HealthIssue(HealthStatus.WARNING, "short_content", message, advice))
    return issues


def _point(day: int, counts: Counts) -> QualityDataPoint:
    metrics = _metrics(counts)
    return QualityDataPoint(
        date=datetime.fromtimestamp(day * DAY_MS / 1_000, UTC).date().isoformat(),
        retain_count=metrics.retain_count,
        recall_count=metrics.recall_count,
        recall_hit_rate=metrics.recall_hit_rate,
        avg_recall_score=metrics.avg_recall_score,
        dedup_rate=metrics.dedup_rate,
        reflect_success_rate=metrics.reflect_success_rate,
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
