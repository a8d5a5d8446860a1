"""Coverage of a bank: the topics and questions that its memories can answer, and the gaps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from astrocyte.model.recall import RecallTrace


class Severity(StrEnum):
    """The severity of a gap. HIGH: no memory. MEDIUM: one memory alone. LOW: old memories alone."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class AuditMethod(StrEnum):
    """The method of an audit: rules on the relevance of memories, or the judgement of a language model."""

    RULES = "rules"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class GapItem:
    """A gap: its topic, its severity, and the reason in a sentence."""

    topic: str
    severity: Severity
    reason: str


@dataclass(frozen=True, slots=True)
class TopicCoverage:
    """A topic or question, and its evidence.

    ``confidence`` is the calibrated probability, from 0 to 1, that memories hold an answer. ``memory_ids`` are the
    relevant memories, best first, and ``newest_at`` the time of the newest of them; None where there is none.
    """

    topic: str
    is_covered: bool
    confidence: float
    memory_ids: tuple[str, ...]
    newest_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnansweredQuery:
    """A query that recalls of the bank did not answer: how often, and when last.

    ``is_covered`` is True if a recall would answer it now. The text is as the barriers of the
    bank let it be stored.
    """

    query: str
    count: int
    last_asked_at: datetime
    is_covered: bool


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit.

    ``coverage_score`` is from 0 to 1. ``gaps`` are ordered by severity. ``topics`` have the evidence by rules, whatever
    the method. ``memories_scanned`` is the number of distinct memories that were read. ``error`` says why the language
    model did not judge; "" otherwise. ``unanswered`` are the queries without an answer that counted, most often asked
    first.
    """

    scope: str
    bank_id: str
    coverage_score: float
    gaps: tuple[GapItem, ...]
    topics: tuple[TopicCoverage, ...]
    memories_scanned: int
    method: AuditMethod
    error: str = ""
    trace: RecallTrace | None = None
    unanswered: tuple[UnansweredQuery, ...] = ()
