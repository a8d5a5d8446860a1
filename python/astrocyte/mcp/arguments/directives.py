"""Arguments of the tools on directives."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments, Paged
from astrocyte.mcp.arguments.observations import SCOPE
from astrocyte.model import BANK_SCOPE


class CreateDirectiveArguments(Arguments):
    """Arguments of memory_create_directive."""

    rule_text: str = Field(description="Rule for all who read the bank, in the imperative.")
    scope: str = Field(BANK_SCOPE, description=f"Part of the bank to which it applies: {SCOPE}")
    priority: int = Field(0, description="Directives with a higher priority come first.")
    directive_id: str | None = Field(None, description="Id; generated if absent.")


class ListDirectivesArguments(Paged):
    """Arguments of memory_list_directives."""

    scope: str = Field("", description=f"Only this scope: {SCOPE} Empty for all scopes.")


class DeleteDirectiveArguments(Arguments):
    """Arguments of memory_delete_directive."""

    directive_id: str = Field(description="Id of the directive.")
