"""Candidates between the core and the answer: what the core ranked, with what the database knows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from astrocyte.core import Hit
from astrocyte.model import Boost, RecallQuery
from astrocyte.stores.records import HydratedRow


@dataclass(slots=True)
class Candidate:
    """A hit of the core on its way. ``boosts`` say what was added to the core's score."""

    hit: Hit
    row: HydratedRow
    score: float
    boosts: list[Boost] = field(default_factory=list)
    utility: float | None = None

    def add(self, name: str, value: float) -> None:
        """Change the score, and write it down."""
        self.score += value
        self.boosts.append(Boost(name, value))


@dataclass(frozen=True, slots=True)
class Asked:
    """The question as stages see it.

    Attributes:
        query: What was asked.
        today: What ages count from, in milliseconds since the epoch; None in a bank without memories.
        unit: What one deviation of an arm's scores, or with rrf one first place, is in the candidates' scores.
    """

    query: RecallQuery
    today: int | None
    unit: float


class Stage(Protocol):
    """A stage after the core.

    It may change scores, by `Candidate.add`, and leave candidates out. Their order is made by their scores afterwards.
    """

    @property
    def name(self) -> str:
        """The name of the stage in traces."""

    def wanted(self, query: RecallQuery) -> bool:
        """True if it has anything to do for this query; where no stage has, the core's answer stands."""

    def apply(self, asked: Asked, candidates: list[Candidate]) -> list[Candidate]:
        """Those that stay."""


def happened(row: HydratedRow) -> int:
    """The time of the event, or of the storage if that is unknown."""
    return row.retained_at if row.occurred_at is None else row.occurred_at
