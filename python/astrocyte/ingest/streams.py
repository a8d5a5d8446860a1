"""A consumer of a stream: messages become memories in order, each once, and are acknowledged when they are durable."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from astrocyte.api import Backend
from astrocyte.api.requests import StreamRetain
from astrocyte.config.sources.kinds import StreamSource
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
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.messages import IngestMessage, message_of
from astrocyte.model import Caller, RetainResult, RetentionAction, SourceState
from astrocyte.providers.ingest.protocols import StreamDriver, StreamMessage

# A read that waits longer would delay the end of the server.
READ_SECONDS = 2.0
# Failures of a message for what it is: it is a dead letter at once, since another attempt ends in the same way.
OF_THE_MESSAGE = (Conflict, MemoryNotFound, MessageTooLarge, PiiRejected, ValidationError)
# States of the server or its settings: a message waits for their end, however long that takes.
PASSING = (AccessDenied, NotFound, ProviderUnavailable, QuotaExceeded, RateLimited, StoreError, Unavailable)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A message with its memory."""

    message: StreamMessage
    memory: IngestMessage


class StreamConsumer:
    """Moves the messages of a source into banks. Used by one task.

    A message is retained under a request id that follows from its position, so that one that is delivered again gets
    its first result. Messages for one bank keep the order of the stream: after a failure, the rest of the bank's
    messages is tried again from that one on, and no other is read before.

    Args:
        source_id: The id of the source.
        source: Its settings.
        driver: Reads the stream.
        backend: Retains.
        board: Counts and health.
    """

    def __init__(
        self, source_id: str, source: StreamSource, driver: StreamDriver, backend: Backend, board: SourceBoard
    ) -> None:
        self._id = source_id
        self._source = source
        self._driver = driver
        self._backend = backend
        self._board = board
        # Not stored yet, in the order of the stream.
        self._rest: list[StreamMessage] = []
        # Failed attempts at the first of them for no known reason.
        self._tries: dict[str, int] = {}

    async def open(self) -> None:
        """Begin with what was not acknowledged."""
        self._rest = []
        await self._driver.open()

    async def close(self) -> None:
        """Leave the stream."""
        await self._driver.close()

    async def step(self) -> None:
        """Read and store one batch, or try the rest of the last one again.

        Raises:
            AstrocyteError: Messages could not be stored for now; the next step tries them again.
            ConnectionError: The stream cannot be reached.
        """
        if not self._rest:
            self._board.now(self._id, SourceState.WAITING, lag=await self._driver.lag())
            self._rest = await self._driver.read(self._source.batch_size, READ_SECONDS)
            self._board.reached(self._id)
        if self._rest:
            self._board.now(self._id, SourceState.RUNNING)
            await self._store()

    async def _store(self) -> None:
        groups: dict[tuple[Caller, str], list[_Ready]] = {}
        done: list[StreamMessage] = []
        aside: list[tuple[StreamMessage, AstrocyteError]] = []
        kept: set[str] = set()
        failure: Exception | None = None
        # A message that failed for no known reason is tried alone, so that others do not fail with it.
        alone = bool(self._tries)
        for message in self._rest:
            try:
                ready = _Ready(message, self._memory(message))
            except ValidationError as error:
                aside.append((message, error))
            else:
                groups.setdefault((ready.memory.caller, ready.memory.bank_id), []).append(ready)
        for (caller, bank_id), group in groups.items():
            size = 1 if alone else len(group)
            for start in range(0, len(group), size):
                part = group[start : start + size]
                failed = await self._store_group(caller, bank_id, part, done, aside)
                if failed is not None:
                    place, failure = failed
                    kept |= {one.message.position for one in group[start + place :]}
                    break
        await self._settle(done, aside)
        self._rest = [message for message in self._rest if message.position in kept]
        if failure is not None:
            raise failure

    async def _store_group(
        self,
        caller: Caller,
        bank_id: str,
        group: Sequence[_Ready],
        done: list[StreamMessage],
        aside: list[tuple[StreamMessage, AstrocyteError]],
    ) -> tuple[int, Exception] | None:
        """Store messages for one bank; returns the place of the first that has to be tried again, and why."""
        ids = [_request_id(self._id, self._source.topic, one.message) for one in group]
        request = StreamRetain(bank_id, [one.memory.item for one in group], ids)
        outcomes: Sequence[RetainResult | Exception]
        try:
            outcomes = await self._backend.call(caller, request)
        except OF_THE_MESSAGE as error:
            # The bank's id is wrong, which follows from each of them.
            outcomes = [error] * len(group)
        except Exception as error:  # noqa: BLE001 - a failure of all of them, which the supervisor reports
            outcomes = [error] * len(group)
        for place, (one, outcome) in enumerate(zip(group, outcomes, strict=True)):
            if isinstance(outcome, RetainResult):
                if outcome.retention_action == RetentionAction.REJECTED.value:
                    aside.append((one.message, ValidationError(outcome.error or "is refused", field="content")))
                else:
                    done.append(one.message)
            elif isinstance(outcome, RequestIdReused):
                # It was stored before the settings of the source changed.
                done.append(one.message)
            elif isinstance(outcome, OF_THE_MESSAGE):
                aside.append((one.message, outcome))
            elif isinstance(outcome, PASSING) or not self._given_up(one.message, last=len(group) == 1):
                return place, outcome
            else:
                aside.append((one.message, _known(outcome)))
            self._tries.pop(one.message.position, None)
        return None

    def _given_up(self, message: StreamMessage, *, last: bool) -> bool:
        """Count a failed attempt for no known reason; True if there is to be no other. In a group, none is the last."""
        tries = self._tries[message.position] = self._tries.get(message.position, 0) + 1
        return last and tries >= self._source.max_tries

    async def _settle(
        self, done: Sequence[StreamMessage], aside: Sequence[tuple[StreamMessage, AstrocyteError]]
    ) -> None:
        """Acknowledge what is durable, and set aside what will never be."""
        if done:
            await self._driver.acknowledge(done)
            self._board.stored(self._id, count=len(done))
        for message, error in aside:
            await self._driver.set_aside(message, error.reason)
            self._board.refused(self._id)

    def _memory(self, message: StreamMessage) -> IngestMessage:
        document: Mapping[str, object] | None = message.document
        if document is None:
            raise ValidationError("expected a JSON object, got something else", field="payload")
        return message_of(self._source, document)


def _request_id(source_id: str, topic: str, message: StreamMessage) -> str:
    """A UUID that is the same whenever the message comes."""
    named = f"stream\x00{source_id}\x00{topic}\x00{message.position}"
    return str(uuid.UUID(bytes=hashlib.sha256(named.encode()).digest()[:16], version=5))


def _known(error: Exception) -> AstrocyteError:
    return error if isinstance(error, AstrocyteError) else AstrocyteError(type(error).__name__)
