"""Arguments of the tools on the server, the lifecycle and holds."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments


class HealthArguments(Arguments):
    """Arguments of memory_health."""


class BankHealthArguments(Arguments):
    """Arguments of memory_bank_health."""


class LifecycleArguments(Arguments):
    """Arguments of memory_lifecycle."""

    dry_run: bool = Field(True, description="Only count what would be archived and forgotten.")
    merge_duplicates: bool = Field(False, description="Merge near duplicates too.")


class OperationArguments(Arguments):
    """Arguments of memory_operation."""

    operation_id: str = Field(description="Id that memory_lifecycle returned.")


class HoldSetArguments(Arguments):
    """Arguments of memory_hold_set."""

    reason: str = Field(description="Why the memories are held, such as a case number. It is in the audit log.")
    memory_ids: list[str] = Field(default_factory=list, description="Memories to hold.")
    tags: list[str] = Field(
        default_factory=list, description="Hold memories with any of these tags. Without tags and ids, the whole bank."
    )
    hold_id: str | None = Field(None, description="Id of the hold. Without it, the server makes one.")


class HoldReleaseArguments(Arguments):
    """Arguments of memory_hold_release."""

    hold_id: str = Field(description="Id of the hold.")
