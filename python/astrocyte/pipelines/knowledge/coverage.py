"""Coverage by rules: topics of a description, and gaps of topics with no, few or old evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from astrocyte.model import GapItem, Severity, TopicCoverage, UnansweredQuery
from astrocyte.pipelines.text.content_words import content_words

# Topics of one description.
MOST_TOPICS = 20
# Where one topic of a description ends and another begins.
_SEPARATORS = re.compile(
    r"[,;:/\n\u2022]|[.!?](?:\s|$)|\s[-\u2013\u2014]\s"
    r"|\b(?:and|or|as well as|including|such as|for|about|of|with|in|on|by|from|at|to)\b",
    re.IGNORECASE,
)
# A topic with fewer is thin; a question is answered by one memory.
ENOUGH_OF_TOPIC, ENOUGH_OF_QUESTION = 2, 1
# Share of the score of a topic with a gap of this severity.
SHARES = {Severity.HIGH: 0.0, Severity.MEDIUM: 0.5, Severity.LOW: 0.75}
_ORDER = tuple(Severity)


def topics_of(scope: str) -> list[str]:
    """The topics of a description: its phrases with words that carry content, without repeats."""
    found: dict[str, str] = {}
    for part in _SEPARATORS.split(scope):
        topic = " ".join(part.split())
        if content_words(topic):
            found.setdefault(topic.casefold(), topic)
    return list(found.values())[:MOST_TOPICS] or ([" ".join(scope.split())] if scope.strip() else [])


def gap_of(topic: TopicCoverage, now: datetime, outdated_days: float, *, is_question: bool) -> GapItem | None:
    """The gap of a topic; None where it is covered."""
    count = len(topic.memory_ids)
    if not count:
        return GapItem(topic.topic, Severity.HIGH, "No memory is relevant.")
    if count < (ENOUGH_OF_QUESTION if is_question else ENOUGH_OF_TOPIC):
        return GapItem(topic.topic, Severity.MEDIUM, "Only one memory is relevant.")
    if topic.newest_at is not None and now - topic.newest_at > timedelta(days=outdated_days):
        reason = f"The newest relevant memory is of {topic.newest_at:%Y-%m-%d}."
        return GapItem(topic.topic, Severity.LOW, reason)
    return None


def gap_of_query(query: UnansweredQuery) -> GapItem | None:
    """The gap of a query that had no answer; None where it would have one now. Asked more than once, it is high."""
    if query.is_covered:
        return None
    often = query.count > 1
    times = f"{query.count} recalls" if often else "One recall"
    reason = f"{times} had no answer, the last on {query.last_asked_at:%Y-%m-%d}."
    return GapItem(query.query, Severity.HIGH if often else Severity.MEDIUM, reason)


def ranked(gaps: Sequence[GapItem]) -> tuple[GapItem, ...]:
    """Gaps by severity; equal ones in their order."""
    return tuple(sorted(gaps, key=lambda gap: _ORDER.index(gap.severity)))


def score(count: int, gaps: Sequence[GapItem]) -> float:
    """The share of so many topics that is covered."""
    return (count - sum(1.0 - SHARES[gap.severity] for gap in gaps)) / count if count else 0.0
