"""Groups of messages for one bank: stored together, in order, each with an outcome of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from astrocyte.errors import (
    AccessDenied,
    AstrocyteError,
    Conflict,
    MemoryNotFound,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    RequestIdReused,
    StoreError,
    Unavailable,
    ValidationError,
)
from astrocyte.ingest.messages import IngestMessage
from astrocyte.model import Caller, RetainResult, RetentionAction

# Failures of a message for what it is: it is refused at once, since another attempt ends in the same way.
OF_THE_MESSAGE = (Conflict, MemoryNotFound, MessageTooLarge, PiiRejected, ValidationError)
# States of the server or its settings: a message waits for their end, however long that takes.
PASSING = (AccessDenied, NotFound, ProviderUnavailable, QuotaExceeded, RateLimited, StoreError, Unavailable)


@dataclass(frozen=True, slots=True)
class Ready:
    """A message with its memory.

    Attributes:
        position: Where it stands in its source; no other one's.
        request_id: The idempotency key, the same whenever the message comes.
        memory: What is stored.
        memory_id: The memory of which it is a new version; None makes a new memory.
    """

    position: str
    request_id: str
    memory: IngestMessage
    memory_id: str | None = None


@dataclass(slots=True)
class Outcome:
    """The outcome of messages.

    Attributes:
        done: Positions of those that are durable, with the results of those stored now.
        refused: Positions of those that never will be, and why.
        kept: Positions of those that are to be tried again.
        failure: Why; None if there are none.
    """

    done: dict[str, RetainResult | None] = field(default_factory=dict)
    refused: dict[str, AstrocyteError] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    failure: Exception | None = None


Results: TypeAlias = Sequence[RetainResult | Exception]
# Stores messages for one bank, and returns a result for each.
Send: TypeAlias = Callable[[Caller, str, Sequence[Ready]], Awaitable[Results]]


class GroupWriter:
    """Stores messages, and tells failures of a message from states of the server.

    Args:
        send: Stores a group.
        max_tries: Attempts at a message that fails for no known reason.
    """

    def __init__(self, send: Send, max_tries: int) -> None:
        self._send = send
        self._max_tries = max_tries
        # Failed attempts for no known reason, by position.
        self._tries: dict[str, int] = {}

    async def store(self, messages: Sequence[Ready]) -> Outcome:
        """Store messages. After one that has to wait, those for its bank that follow it wait as well."""
        groups: dict[tuple[Caller, str], list[Ready]] = {}
        for message in messages:
            groups.setdefault((message.memory.caller, message.memory.bank_id), []).append(message)
        outcome = Outcome()
        # A message that failed for no known reason is tried alone, so that others do not fail with it.
        alone = bool(self._tries)
        for (caller, bank_id), group in groups.items():
            size = 1 if alone else len(group)
            for start in range(0, len(group), size):
                failed = await self._store_group(caller, bank_id, group[start : start + size], outcome)
                if failed is not None:
                    place, outcome.failure = failed
                    outcome.kept |= {one.position for one in group[start + place :]}
                    break
        return outcome

    async def _store_group(
        self, caller: Caller, bank_id: str, group: Sequence[Ready], outcome: Outcome
    ) -> tuple[int, Exception] | None:
        """Store messages for one bank; returns the place of the first that has to be tried again, and why."""
        results: Results
        try:
            results = await self._send(caller, bank_id, group)
        except Exception as error:  # noqa: BLE001 - a failure of all of them, which is told apart below
            # If it is of the message, the bank's id is wrong, which follows from each of them.
            results = [error] * len(group)
        for place, (one, result) in enumerate(zip(group, results, strict=True)):
            if isinstance(result, RetainResult):
                if result.retention_action == RetentionAction.REJECTED.value:
                    outcome.refused[one.position] = ValidationError(result.error or "is refused", field="content")
                else:
                    outcome.done[one.position] = result
            elif isinstance(result, RequestIdReused):
                # It was stored before the settings of the source changed.
                outcome.done[one.position] = None
            elif isinstance(result, OF_THE_MESSAGE):
                outcome.refused[one.position] = result
            elif isinstance(result, PASSING) or not self._given_up(one.position, last=len(group) == 1):
                return place, result
            else:
                outcome.refused[one.position] = _known(result)
            self._tries.pop(one.position, None)
        return None

    def _given_up(self, position: str, *, last: bool) -> bool:
        """Count a failed attempt for no known reason; True if there is to be no other. In a group, none is the last."""
        tries = self._tries[position] = self._tries.get(position, 0) + 1
        return last and tries >= self._max_tries


def _known(error: Exception) -> AstrocyteError:
    return error if isinstance(error, AstrocyteError) else AstrocyteError(type(error).__name__)
