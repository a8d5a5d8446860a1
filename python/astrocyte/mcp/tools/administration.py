"""Tools on the server, the health of banks, the lifecycle and holds."""

from __future__ import annotations

from astrocyte.api.requests import GetBankStats, GetOperation, GetServerInfo, PlaceHold, ReleaseHold, RunLifecycle
from astrocyte.config import McpSettings
from astrocyte.mcp.arguments.administration import (
    BankHealthArguments,
    HealthArguments,
    HoldReleaseArguments,
    HoldSetArguments,
    LifecycleArguments,
    OperationArguments,
)
from astrocyte.mcp.arguments.common import OneBank
from astrocyte.mcp.results.administration import BankHealthResult, HoldItem, OperationItem, ServerHealth
from astrocyte.mcp.tools.row import Target, Tool


def _exposed(settings: McpSettings) -> bool:
    return settings.expose_admin


def _health(_: HealthArguments, __: Target) -> GetServerInfo:
    return GetServerInfo()


def _bank_health(_: BankHealthArguments, target: Target) -> GetBankStats:
    return GetBankStats(target.bank_id)


def _lifecycle(given: LifecycleArguments, target: Target) -> RunLifecycle:
    return RunLifecycle(target.bank_id, given.dry_run, given.merge_duplicates)


def _operation(given: OperationArguments, target: Target) -> GetOperation:
    return GetOperation(target.bank_id, given.operation_id)


def _hold_set(given: HoldSetArguments, target: Target) -> PlaceHold:
    return PlaceHold(target.bank_id, given.reason, tuple(given.memory_ids), tuple(given.tags), given.hold_id)


def _hold_release(given: HoldReleaseArguments, target: Target) -> ReleaseHold:
    return ReleaseHold(target.bank_id, given.hold_id)


ADMINISTRATION_TOOLS = (
    Tool(
        "memory_health",
        "Check the server",
        "Check that the memory server answers; returns its version, store and embedding model.",
        GetServerInfo,
        HealthArguments,
        None,
        _health,
        ServerHealth,
    ),
    Tool(
        "memory_bank_health",
        "Read the health of a bank",
        "Read how well a bank works: a score, issues with advice, and the rates that they come from.",
        GetBankStats,
        BankHealthArguments,
        OneBank,
        _bank_health,
        BankHealthResult,
        exposed=_exposed,
    ),
    Tool(
        "memory_lifecycle",
        "Run the lifecycle of a bank",
        "Archive and forget memories by the ages that the server is configured with, in the background. dry_run, the "
        "default, only counts. memory_operation reports the outcome.",
        RunLifecycle,
        LifecycleArguments,
        OneBank,
        _lifecycle,
        OperationItem,
        read_only=False,
        destructive=True,
        idempotent=False,
        exposed=_exposed,
    ),
    Tool(
        "memory_operation",
        "Read the state of an operation",
        "Read the state and the counts of an operation on a bank, such as a run of the lifecycle.",
        GetOperation,
        OperationArguments,
        OneBank,
        _operation,
        OperationItem,
        exposed=_exposed,
    ),
    Tool(
        "memory_hold_set",
        "Place a legal hold",
        "Protect memories from being forgotten or changed, and their bank from deletion, until the hold is released.",
        PlaceHold,
        HoldSetArguments,
        OneBank,
        _hold_set,
        HoldItem,
        read_only=False,
        idempotent=False,
        exposed=_exposed,
    ),
    Tool(
        "memory_hold_release",
        "Release a legal hold",
        "Release a legal hold. Call it only if the user asks for it.",
        ReleaseHold,
        HoldReleaseArguments,
        OneBank,
        _hold_release,
        HoldItem,
        read_only=False,
        destructive=True,
        exposed=_exposed,
    ),
)
