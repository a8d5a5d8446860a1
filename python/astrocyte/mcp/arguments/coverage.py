"""Arguments of the tool on coverage."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Tagged


class AuditArguments(Tagged):
    """Arguments of memory_audit."""

    scope: str = Field("", description="Description of what the bank is supposed to cover.")
    questions: list[str] = Field(default_factory=list, description="Questions that the bank should answer.")
