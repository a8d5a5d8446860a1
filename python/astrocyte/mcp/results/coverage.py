"""Results of the tool on coverage."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from astrocyte.mcp.results.common import ValueResult
from astrocyte.model import AuditMethod, Severity


class GapEntry(ValueResult):
    """A topic that the bank should cover and does not."""

    topic: str
    severity: Severity
    reason: str


class TopicEntry(ValueResult):
    """A topic or question, and the memories that are relevant to it."""

    topic: str
    is_covered: bool
    confidence: float
    memory_ids: list[str]
    newest_at: datetime | None


class CoverageAudit(ValueResult):
    """Result of memory_audit."""

    bank_id: str
    coverage_score: float = Field(description="From 0, nothing is covered, to 1.")
    gaps: list[GapEntry] = Field(description="Gaps, by severity.")
    topics: list[TopicEntry]
    memories_scanned: int
    method: AuditMethod
    error: str = Field(description="Why the language model did not judge; empty otherwise.")
