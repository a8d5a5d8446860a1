"""Curated ranking: relevance combined with the freshness, reliability and salience of a memory.

Each is a number from 0 to 1, and their weighted mean orders the candidates. It is laid over the span of the candidates'
scores, so that a score stays what it was: in one answer higher is better, and several banks can be fused.
"""

from __future__ import annotations

from astrocyte.config.recall import CuratedRecallSettings
from astrocyte.model import RecallQuery
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.recall.boosts import halved
from astrocyte.pipelines.search.candidates import Asked, Candidate, happened

# What is not known is half of it.
UNKNOWN = 0.5
# What a known source adds to reliability.
SOURCED = 0.1


class CuratedStage:
    """Orders candidates by the settings' shares."""

    name = "curated"

    def __init__(self, settings: CuratedRecallSettings) -> None:
        self._settings = settings
        self._whole = settings.original + settings.freshness + settings.reliability + settings.salience

    def wanted(self, query: RecallQuery) -> bool:
        """Always true: the stage does not depend on the query."""
        del query
        return True

    def apply(self, asked: Asked, candidates: list[Candidate]) -> list[Candidate]:
        """Those that reach ``min_score``, with new scores."""
        if not candidates:
            return candidates
        scores = [candidate.score for candidate in candidates]
        low, high = min(scores), max(scores)
        # Candidates that are all alike still differ in kind.
        span = high - low or asked.unit
        kept = []
        for candidate in candidates:
            original = (candidate.score - low) / span if high > low else 1.0
            value = self._value(asked, candidate, original)
            if self._settings.min_score is not None and value < self._settings.min_score:
                continue
            candidate.add(self.name, low + span * value - candidate.score)
            kept.append(candidate)
        return kept

    def _value(self, asked: Asked, candidate: Candidate, original: float) -> float:
        settings, row = self._settings, candidate.row
        freshness = UNKNOWN
        if asked.today is not None and row.occurred_at is not None:
            freshness = halved((asked.today - happened(row)) / DAY_MS, settings.freshness_half_life_days)
        reliability = settings.reliability_by_fact_type.get(row.fact_type, UNKNOWN)
        if row.source:
            reliability = min(1.0, reliability + SOURCED)
        salience = settings.salience_by_layer.get(row.memory_layer, UNKNOWN)
        return (
            settings.original * original
            + settings.freshness * freshness
            + settings.reliability * reliability
            + settings.salience * salience
        ) / self._whole
