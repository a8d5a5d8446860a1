"""The types of ingest sources, by the key ``type``. A new type is a class here and a member of `IngestSource`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, SecretStr

from astrocyte.config.loading.section import Count, Seconds
from astrocyte.config.sources.common import SourceSettings
from astrocyte.config.sources.polls import PollSource
from astrocyte.config.sources.proxies import ProxySource
from astrocyte.config.sources.signatures import WebhookAuth


class WebhookSource(SourceSettings):
    """Signed deliveries at POST /v1/ingest/webhook/{source_id} of the HTTP gateway."""

    type: Literal["webhook"]
    auth: WebhookAuth = Field(description="Signature of the sender.")
    # Four times the largest delivery of common senders' issue events.
    max_body_bytes: int = Field(
        262_144, ge=1_024, le=16_777_216, description="Maximum size of a body; larger ones are refused."
    )
    # Longer than senders repeat a delivery, which is about a week.
    receipt_keep_hours: Seconds = Field(
        336.0,
        le=876_000.0,
        description="Hours for which accepted deliveries are known again. Receipts of signatures without a time are "
        "kept for ever.",
    )


class StreamSource(SourceSettings):
    """Messages of a stream, read as a consumer of a group, in order, each stored once."""

    type: Literal["stream"]
    driver: str = Field(
        min_length=1, description="kafka, redis, or another entry point of astrocyte.ingest_stream_drivers."
    )
    url: SecretStr = Field(
        min_length=1, description="Address of the stream, such as localhost:9092 or redis://localhost:6379."
    )
    topic: str = Field(min_length=1, max_length=249, description="Name of the topic or stream.")
    consumer_group: str = Field("astrocyte", min_length=1, description="Group whose place in the stream is kept.")
    dead_letters: str | None = Field(
        None, min_length=1, description="Topic or stream of messages that cannot be stored. None: the topic with .dead."
    )
    batch_size: Annotated[int, Field(ge=1, le=10_000)] = Field(256, description="Messages that are stored together.")
    max_tries: Count = Field(
        5, description="Attempts at a message that fails for no known reason, before it is a dead letter."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the driver, which validates them."
    )

    @property
    def driver_options(self) -> dict[str, Any]:
        """All that the driver is made of."""
        return {
            "url": self.url,
            "topic": self.topic,
            "consumer_group": self.consumer_group,
            "dead_letters": self.dead_letters or f"{self.topic}.dead",
            **self.options,
        }


# Those that store memories; the others are asked by recalls.
StoringSource: TypeAlias = WebhookSource | StreamSource | PollSource
IngestSource: TypeAlias = Annotated[StoringSource | ProxySource, Field(discriminator="type")]


def storing(sources: Mapping[str, IngestSource]) -> dict[str, StoringSource]:
    """The sources that store memories, by id."""
    return {name: source for name, source in sources.items() if not isinstance(source, ProxySource)}
