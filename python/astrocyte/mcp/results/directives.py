"""Results of the tools on directives."""

from __future__ import annotations

from datetime import datetime

from astrocyte.mcp.results.common import PageResult, ValueResult


class DirectiveItem(ValueResult):
    """A rule for all who read the bank."""

    directive_id: str
    bank_id: str
    rule_text: str
    scope: str
    priority: int
    created_by: str
    created_at: datetime


class DirectiveList(PageResult):
    """Result of memory_list_directives, the highest priority first."""

    directives: list[DirectiveItem]
