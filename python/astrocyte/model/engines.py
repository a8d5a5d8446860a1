"""Engines beside the pipeline: what became of each in a call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EngineOutcome(StrEnum):
    """The outcome of a side in a call."""

    ANSWERED = "answered"
    NOT_ASKED = "not_asked"
    FAILED = "failed"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class EngineTrace:
    """The trace of one side of a hybrid recall: an engine, or "pipeline" for the server's own.

    ``found`` counts the hits that it offered, ``dropped`` those of them that were not right, did not meet the query's
    filter, or were refused by a barrier, ``kept`` those in the answer. ``weight`` is its factor with that of the bank
    and that of the router. ``reason`` is an error's reason where it failed or was late, and says why where it was not
    asked: "hop_limit", "weight", "not_supported" or "not_needed". ``bank_id`` is "" where the side answered for all
    banks of the call. ``signals`` are what the router saw in the query.
    """

    engine: str
    outcome: EngineOutcome
    bank_id: str = ""
    weight: float = 1.0
    found: int = 0
    kept: int = 0
    dropped: int = 0
    latency_ms: float = 0.0
    reason: str = ""
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineForget:
    """The forget at an engine; `EngineOutcome.NOT_ASKED` where it is read only, or the call was a dry run."""

    engine: str
    outcome: EngineOutcome
    deleted_count: int = 0
    reason: str = ""


class OutboxState(StrEnum):
    """The state of an engine's outbox: empty, being emptied, resting after a failure, or full."""

    EMPTY = "empty"
    DRAINING = "draining"
    RESTING = "resting"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class EngineOutbox:
    """The changes that an engine with copies has not received yet.

    ``waiting`` counts memories of all banks, ``refused`` those of them that it refused, which are offered again now and
    then. ``since`` is when the one that waits longest began to.
    """

    state: OutboxState
    waiting: int
    refused: int
    limit: int
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine of the configuration, and how it is. ``circuit`` is closed, half_open or open.

    ``outbox`` is None where it keeps no copies, or stands beside banks of another tenant than the caller's.
    """

    name: str
    provider: str
    banks: tuple[str, ...]
    retain_target: str
    read_only: bool
    healthy: bool
    circuit: str
    capabilities: tuple[str, ...] = ()
    detail: str = ""
    outbox: EngineOutbox | None = None
