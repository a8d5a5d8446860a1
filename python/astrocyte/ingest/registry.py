"""The configured sources, with what they need to store memories."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from astrocyte.api import Backend
from astrocyte.config.sources.kinds import IngestSource, StreamSource, WebhookSource
from astrocyte.config.sources.polls import PollSource
from astrocyte.errors import (
    AlreadyExists,
    AuthorizationError,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    RequestIdReused,
    ValidationError,
)
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.polls import PollConsumer
from astrocyte.ingest.streams import StreamConsumer
from astrocyte.ingest.supervisor import Consumer, Supervisor
from astrocyte.ingest.versions import Complete
from astrocyte.ingest.webhooks import WebhookAnswer, handle_webhook_ingest
from astrocyte.providers.registry import create_poll_driver, create_stream_driver
from astrocyte.stores.ingest import IngestStore

# Failures of a message for what it is. After others, the source is not healthy.
OF_THE_MESSAGE = (
    AlreadyExists,
    AuthorizationError,
    MessageTooLarge,
    PiiRejected,
    RequestIdReused,
    ValidationError,
)


class SourceRegistry:
    """All sources of a server.

    Args:
        sources: The sources by id.
        backend: Retains.
        store: Receipts of webhooks, cursors of polls.
        board: Counts and health.
        clock: Seconds since 1970.
        runs: Whether sources that are read may run; not where nothing is stored.
        complete: Adds to an item that is updated what a retain adds by itself.

    Raises:
        ConfigError: A driver cannot be made.
    """

    def __init__(  # noqa: PLR0913 - the parts of the application that sources use
        self,
        sources: Mapping[str, IngestSource],
        backend: Backend,
        store: IngestStore,
        board: SourceBoard,
        clock: Callable[[], float] = time.time,
        *,
        runs: bool = True,
        complete: Complete = lambda _, item: item,
    ) -> None:
        self._backend = backend
        self._store = store
        self._clock = clock
        self._complete = complete
        self.board = board
        self.webhooks = {name: source for name, source in sources.items() if isinstance(source, WebhookSource)}
        consumers: dict[str, Consumer] = {}
        for name, source in sources.items():
            if isinstance(source, StreamSource):
                consumers[name] = self._stream(name, source)
            elif isinstance(source, PollSource):
                consumers[name] = self._poll(name, source)
        self._supervisor = Supervisor(consumers if runs else {}, board)

    @classmethod
    def from_sources_config(
        cls, sources: Mapping[str, IngestSource], *, retain: Backend, store: IngestStore
    ) -> SourceRegistry:
        """The registry of a program with a gateway of its own; ``retain`` answers Retain requests."""
        return cls(sources, retain, store, SourceBoard(sources))

    def start(self) -> None:
        """Start the sources that are read, on the running loop; a second call does nothing."""
        self._supervisor.start()

    async def stop(self) -> None:
        """Stop them. A second call does nothing."""
        await self._supervisor.stop()

    def webhook(self, source_id: str) -> WebhookSource:
        """The settings of a webhook.

        Raises:
            NotFound: There is no webhook of that id.
        """
        source = self.webhooks.get(source_id)
        if source is None:
            raise NotFound("there is no webhook source of this id", metadata={"source_id": source_id[:64]})
        return source

    async def receive(self, source_id: str, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        """Answer a delivery, and count it; raises what `handle_webhook_ingest` does, and NotFound."""
        source = self.webhook(source_id)
        try:
            answer = await handle_webhook_ingest(
                source_id, source, body, headers, backend=self._backend, receipts=self._store, clock=self._clock
            )
        except OF_THE_MESSAGE:
            self.board.refused(source_id)
            raise
        except Exception as error:
            self.board.failed(source_id, error)
            raise
        duplicate = answer.status == "duplicate"
        self.board.stored(source_id, count=0 if duplicate else 1, duplicates=1 if duplicate else 0)
        return answer

    def _stream(self, source_id: str, source: StreamSource) -> StreamConsumer:
        driver = create_stream_driver(f"sources.{source_id}.driver", source.driver, source.driver_options)
        return StreamConsumer(source_id, source, driver, self._backend, self.board)

    def _poll(self, source_id: str, source: PollSource) -> PollConsumer:
        driver = create_poll_driver(f"sources.{source_id}.driver", source.driver, source.driver_options)
        return PollConsumer(source_id, source, driver, self._backend, self._store, self.board, self._complete)
