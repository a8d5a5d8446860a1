"""Requests on the health of a bank's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import Check, Diagnosis, RepairResult


@dataclass(slots=True)
class DiagnoseBank(Request[Diagnosis]):
    """Look for problems; empty ``checks`` are all. Nothing is changed, and the report holds no content.

    ``max_memories`` bounds the memories that a check reads, the newest; 0 is 10,000.
    """

    bank_id: str
    checks: Sequence[Check] = ()
    max_memories: int = 0


@dataclass(slots=True)
class RepairBank(Request[RepairResult]):
    """Mend what can be mended without loss: delete orphaned rows, compile stale wiki pages."""

    bank_id: str
    request_id: str | None = None
    validate_only: bool = False
