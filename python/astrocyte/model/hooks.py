"""Events for hooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

HookValue: TypeAlias = str | int | float | bool | tuple[str, ...] | None


class HookKind(StrEnum):
    """The kinds of events for hooks: calls that were answered, and actions of policies."""

    RETAIN = "on_retain"
    UPDATE = "on_update"
    RECALL = "on_recall"
    REFLECT = "on_reflect"
    FORGET = "on_forget"
    UNDELETE = "on_undelete"
    BANK_DELETED = "on_bank_deleted"
    PII_DETECTED = "on_pii_detected"
    RATE_LIMITED = "on_rate_limited"
    DEGRADED = "on_degraded"
    CIRCUIT_CHANGED = "on_circuit_changed"


# Those that policies tell of: in the process that decides, and nowhere else.
POLICY_KINDS = frozenset({HookKind.PII_DETECTED, HookKind.RATE_LIMITED, HookKind.DEGRADED, HookKind.CIRCUIT_CHANGED})


@dataclass(frozen=True, slots=True)
class HookEvent:
    """Something that happened.

    ``event_id`` is its own. ``bank_id``, ``tenant`` and ``principal`` are None where it is about none, or that is not
    known. ``data`` holds ids, numbers and words of ours, never content: who wants that asks for the memory.
    ``trace_id`` is that of the OpenTelemetry trace in which it happened.
    """

    event_id: str
    type: HookKind
    timestamp: datetime
    bank_id: str | None = None
    tenant: str | None = None
    principal: str | None = None
    data: Mapping[str, HookValue] = field(default_factory=dict)
    trace_id: str | None = None
