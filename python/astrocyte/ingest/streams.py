"""A consumer of a stream: messages become memories in order, each once, and are acknowledged when they are durable."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence

from astrocyte.api import Backend
from astrocyte.api.requests import StreamRetain
from astrocyte.config.sources.kinds import StreamSource
from astrocyte.errors import AstrocyteError, ValidationError
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.groups import GroupWriter, Ready, Results
from astrocyte.ingest.messages import IngestMessage, message_of
from astrocyte.model import Caller, SourceState
from astrocyte.providers.ingest.protocols import KeepsPlace, StreamDriver, StreamMessage

# A read that waits longer would delay the end of the server.
READ_SECONDS = 2.0


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
        self._writer = GroupWriter(self._retain, source.max_tries)
        # Not stored yet, in the order of the stream.
        self._rest: list[StreamMessage] = []

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
        elif isinstance(self._driver, KeepsPlace):
            # A rest after a failure is short for this; a server that cannot store for long must not lose its place.
            await self._driver.keep_place()
        if self._rest:
            self._board.now(self._id, SourceState.RUNNING)
            await self._store()

    async def _store(self) -> None:
        ready: list[Ready] = []
        refused: dict[str, AstrocyteError] = {}
        for message in self._rest:
            request_id = _request_id(self._id, self._source.topic, message)
            try:
                ready.append(Ready(message.position, request_id, self._memory(message)))
            except ValidationError as error:
                refused[message.position] = error
        outcome = await self._writer.store(ready)
        refused.update(outcome.refused)
        await self._settle(
            [message for message in self._rest if message.position in outcome.done],
            [(message, refused[message.position]) for message in self._rest if message.position in refused],
        )
        self._rest = [message for message in self._rest if message.position in outcome.kept]
        if outcome.failure is not None:
            raise outcome.failure

    async def _retain(self, caller: Caller, bank_id: str, group: Sequence[Ready]) -> Results:
        ids = [one.request_id for one in group]
        return await self._backend.call(caller, StreamRetain(bank_id, [one.memory.item for one in group], ids))

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
