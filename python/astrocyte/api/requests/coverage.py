"""Requests on the coverage of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import AuditResult


@dataclass(slots=True)
class AuditCoverage(Request[AuditResult]):
    """Find the topics that a bank should cover and does not.

    The topics are the parts of ``scope``, a description of what the bank is about, and ``questions``; one of the two is
    needed. ``max_memories`` bounds the memories that a language model judges and those of a topic; 0 is 50. None as
    ``max_tokens`` is the ceiling of a recall. A memory has any of ``tags``.
    """

    bank_id: str
    scope: str = ""
    questions: Sequence[str] = ()
    max_memories: int = 0
    max_tokens: int | None = None
    tags: Sequence[str] = ()
