"""Tool on coverage."""

from __future__ import annotations

from astrocyte.api.requests import AuditCoverage
from astrocyte.mcp.arguments.common import OneBank
from astrocyte.mcp.arguments.coverage import AuditArguments
from astrocyte.mcp.results.coverage import CoverageAudit
from astrocyte.mcp.tools.row import Target, Tool, knowledge_exposed


def _audit(given: AuditArguments, target: Target) -> AuditCoverage:
    return AuditCoverage(target.bank_id, given.scope, tuple(given.questions), tags=tuple(given.tags))


COVERAGE_TOOLS = (
    Tool(
        "memory_audit",
        "Audit the coverage of a bank",
        "Find out which topics of a description, and which questions, the memories of a bank can answer, and the gaps.",
        AuditCoverage,
        AuditArguments,
        OneBank,
        _audit,
        CoverageAudit,
        exposed=knowledge_exposed,
    ),
)
