"""Diagnosis of a bank: problems of its memories and of its derived rows, each with evidence and a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from astrocyte.model.derived.coverage import Severity


class Check(StrEnum):
    """A check of a diagnosis; docs/doctor.md says what each one finds."""

    DUPLICATES = "duplicates"
    CONTRADICTIONS = "contradictions"
    EXPIRED = "expired"
    STALE_KNOWLEDGE = "stale_knowledge"
    ORPHANED_ROWS = "orphaned_rows"
    MISSING_EMBEDDINGS = "missing_embeddings"
    UNREACHABLE = "unreachable"
    PERSONAL_DATA = "personal_data"
    OVERSIZE = "oversize"
    ONE_SIDED = "one_sided"
    NEAR_DUPLICATES = "near_duplicates"
    INDEX_RECALL = "index_recall"
    EXPIRED_HOLDS = "expired_holds"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem: the memories or items that it is about, and the call that mends it.

    ``detail`` has no content of a memory. ``is_repairable`` is True if RepairBank mends it.
    """

    check: Check
    severity: Severity
    detail: str
    ids: tuple[str, ...]
    remedy: str
    is_repairable: bool = False


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The extent of a check: ``examined`` memories, items or rows of ``total``, and the number of findings."""

    check: Check
    examined: int
    total: int
    found: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a diagnosis. ``findings`` are by severity, some of each check; `CheckReport.found` counts all."""

    bank_id: str
    findings: tuple[Finding, ...]
    checks: tuple[CheckReport, ...]


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair: orphaned rows that were deleted, and stale wiki pages that were compiled or deleted.

    ``index_rebuilt`` is True if the index had lost memories, or found too few, and was built anew.
    """

    bank_id: str
    rows_deleted: int
    pages_compiled: int
    pages_deleted: int
    index_rebuilt: bool = False
