"""The configured sources, with what they need to store memories."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from astrocyte.config import Settings
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
from astrocyte.ingest.target import HasTarget, IngestTarget, target_of
from astrocyte.ingest.webhooks import WebhookAnswer, handle_webhook_ingest
from astrocyte.providers.registry import create_poll_driver, create_stream_driver

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
        target: Where memories, receipts and cursors are stored.
        board: Counts and health.
        clock: Seconds since 1970.

    Raises:
        ConfigError: A driver cannot be made.
    """

    def __init__(
        self,
        sources: Mapping[str, IngestSource],
        target: IngestTarget,
        board: SourceBoard,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.target = target
        self._clock = clock
        self.board = board
        self.webhooks = {name: source for name, source in sources.items() if isinstance(source, WebhookSource)}
        consumers: dict[str, Consumer] = {}
        for name, source in sources.items():
            if isinstance(source, StreamSource):
                consumers[name] = self._stream(name, source)
            elif isinstance(source, PollSource):
                consumers[name] = self._poll(name, source)
        self._supervisor = Supervisor(consumers if target.writes else {}, board)

    @classmethod
    def from_sources_config(
        cls, sources: Mapping[str, IngestSource | Mapping[str, Any]], *, retain: HasTarget | IngestTarget
    ) -> SourceRegistry:
        """The registry of a program that runs sources by itself, besides those of the configuration.

        Args:
            sources: Settings by the id of the source: as `Settings.sources` has them, or dictionaries of the same keys.
            retain: The `Astrocyte` of this process, or its `IngestTarget` (`retain_callable_for_astrocyte`).

        Raises:
            ConfigError: A setting is wrong, or a driver cannot be made.
            CapabilityNotSupported: ``retain`` is a connection to a server.
        """
        plain = {name: source for name, source in sources.items() if isinstance(source, Mapping)}
        read = Settings.from_mapping({"sources": plain}).sources if plain else {}
        known = {name: read[name] if isinstance(source, Mapping) else source for name, source in sources.items()}
        return cls(known, target_of(retain), SourceBoard(known))

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
                source_id, source, body, headers, retain=self.target, clock=self._clock
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
        return StreamConsumer(source_id, source, driver, self.target.backend, self.board)

    def _poll(self, source_id: str, source: PollSource) -> PollConsumer:
        target = self.target
        driver = create_poll_driver(f"sources.{source_id}.driver", source.driver, source.driver_options)
        return PollConsumer(source_id, source, driver, target.backend, target.store, self.board, target.complete)
