"""Row of the table of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, create_model

from astrocyte.config import McpSettings
from astrocyte.mcp.arguments.common import Arguments, OneBank
from astrocyte.model import MultiBankStrategy

# Arguments that count items, with their usual values. Their maximum is `mcp.max_results_limit`.
COUNTS = {"max_results": 10, "k": 10, "page_size": 20}


@dataclass(frozen=True, slots=True)
class Target:
    """Banks of a call: one, or several with the order in which they are asked."""

    bank_id: str = ""
    banks: tuple[str, ...] = ()
    strategy: MultiBankStrategy | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """One row.

    Attributes:
        name: Name on the wire.
        title: Name for people.
        description: Text for the model that chooses a tool.
        request: Request class of the call; its RPC determines concurrency and deadline.
        arguments: Arguments without those that name the bank.
        chosen_by: Arguments that name the bank, where the session has no fixed bank; None where no bank is named.
        prepare: Makes the request from validated arguments and the target.
        result: Result class; its method ``of`` converts the response.
        read_only: True if the call changes nothing.
        destructive: True if the call can remove something.
        idempotent: True if a repeated call has no additional effect.
        exposed: Whether the settings offer the tool.
    """

    name: str
    title: str
    description: str
    request: type[Any]
    arguments: type[Arguments]
    chosen_by: type[OneBank] | None
    prepare: Callable[[Any, Target], Any]
    result: type[Any]
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    exposed: Callable[[McpSettings], bool] = lambda _: True

    def model(self, settings: McpSettings, *, fixed_bank: bool) -> type[BaseModel]:
        """The model of the tool's arguments: its input schema, and the check of a call."""
        bases = (self.arguments,) if fixed_bank or self.chosen_by is None else (self.arguments, self.chosen_by)
        fields: dict[str, Any] = {}
        for name, usual in COUNTS.items():
            if name in self.arguments.model_fields:
                most = settings.max_results_limit
                text = self.arguments.model_fields[name].description
                fields[name] = (int, Field(min(usual, most), ge=1, le=most, description=text))
        return create_model(self.name, __base__=bases, **fields)


def knowledge_exposed(settings: McpSettings) -> bool:
    """True if the settings offer the tools on observations, mental models and wiki pages."""
    return settings.expose_knowledge


def knowledge_deletion_exposed(settings: McpSettings) -> bool:
    """True if the settings offer the tools that delete observations and mental models."""
    return settings.expose_knowledge and settings.expose_forget
