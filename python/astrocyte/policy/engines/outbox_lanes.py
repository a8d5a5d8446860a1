"""The copies that wait for one engine: what it refused, what goes together, and what is copied."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from astrocyte.errors import (
    AstrocyteError,
    LimitReached,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
)
from astrocyte.model import (
    ALSO_RELEVANT_TO,
    Bank,
    Memory,
    RetainItem,
)
from astrocyte.policy.engines.registry import Engine
from astrocyte.providers.engines import EngineItem
from astrocyte.stores.outbox import LOSING, CopyAction, WaitingCopy

# Refusals that pass by themselves.
PASSING = (RateLimited.reason, LimitReached.reason, QuotaExceeded.reason)

WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that an engine refused, the time of the next try (by the loop's clock), and the reason."""

    position: int
    again: float
    error: AstrocyteError


@dataclass(slots=True)
class Lane:
    """The state of the delivery to an engine.

    ``failures`` counts those since its last success. ``refused`` is by bank and memory. ``resting`` says that there is
    nothing to do before a time that is known.
    """

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0
    error: AstrocyteError | None = None
    refused: dict[tuple[int, str], Refusal] = field(default_factory=dict)
    resting: bool = False
    task: asyncio.Task[None] | None = None


def is_copied(memory: Memory | None) -> bool:
    """True if an engine is to have a copy of a memory, given its latest version: it is there, and not archived."""
    return memory is not None and memory.archived_at is None


def still_waits(engine: Engine) -> ProviderUnavailable:
    """The error of a change whose copy waits behind others."""
    return ProviderUnavailable(
        f"engine {engine.name!r} does not have it yet; it waits behind other changes",
        metadata={"engine": engine.name, "cause": WAITING},
    )


def set_aside(lane: Lane, bank: Bank, one: WaitingCopy, now: float) -> bool:
    """True if this change was refused a short time ago."""
    refusal = lane.refused.get((bank.key, one.memory_id))
    return refusal is not None and refusal.position == one.position and now < refusal.again


def group_of(one: WaitingCopy) -> tuple[object, ...]:
    """The grouping key of changes for one call: deletions and writes are not mixed."""
    return one.principal, one.hops, one.action if one.action in LOSING else CopyAction.COPY


def copy_of(memory: Memory, one: WaitingCopy) -> EngineItem:
    """The current version of a memory, as it is stored elsewhere, where this server's other banks mean nothing."""
    item = RetainItem(
        content=memory.content,
        content_type=memory.content_type,
        metadata={key: value for key, value in memory.metadata.items() if key != ALSO_RELEVANT_TO},
        tags=memory.tags,
        occurred_at=memory.occurred_at,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        source=memory.source,
        session_id=memory.session_id,
        speaker=memory.speaker,
        fact_type=memory.fact_type,
    )
    request_id = f"{memory.memory_id}.{one.position}"
    if one.action is CopyAction.REPLACE:
        # An earlier try may have stored it, and this one has forgotten that: it must not be taken for a repetition.
        request_id = f"{request_id}.{secrets.token_hex(8)}"
    return EngineItem(item, memory.memory_id, request_id)
