"""The protocols of drivers of ingest sources.

A distribution registers a function of the options, which returns a driver, under the entry point group
``astrocyte.ingest_stream_drivers`` (a `StreamDriver`) or ``astrocyte.ingest_poll_drivers`` (a `PollDriver`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

STREAM_DRIVERS = "astrocyte.ingest_stream_drivers"
POLL_DRIVERS = "astrocyte.ingest_poll_drivers"


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a stream.

    Attributes:
        position: Where it stands in the stream; the same whenever it is delivered.
        document: What it says, as an object of JSON; None where it is no such object.
    """

    position: str
    document: Mapping[str, Any] | None


@runtime_checkable
class StreamDriver(Protocol):
    """Reads a stream as one consumer of a group. Used by one task at a time.

    Every method raises ``ConnectionError`` or ``TimeoutError`` where the stream cannot be reached; the driver is then
    closed, and opened again later.
    """

    async def open(self) -> None:
        """Connect, and join the group."""

    async def read(self, limit: int, wait_seconds: float) -> list[StreamMessage]:
        """The next messages in the order of the stream, at most ``limit``.

        After `open`, messages that were delivered to this consumer and not acknowledged come first, then those of
        consumers that are gone. Empty if none came in ``wait_seconds``.
        """

    async def acknowledge(self, messages: Sequence[StreamMessage]) -> None:
        """Mark messages as processed, so that they are not delivered again."""

    async def set_aside(self, message: StreamMessage, reason: str) -> None:
        """Copy a message to the dead letters with the reason, then acknowledge it.

        A message that is acknowledged is among the dead letters; a driver that is killed may copy it again.
        """

    async def lag(self) -> int | None:
        """The number of messages that are not acknowledged; None where the stream does not tell."""

    async def close(self) -> None:
        """Leave the stream. A second call does nothing."""


@runtime_checkable
class KeepsPlace(Protocol):
    """A `StreamDriver` whose stream gives its messages to others unless it is heard of."""

    async def keep_place(self) -> None:
        """Stay a consumer of the group without reading, while messages that were read wait to be stored."""


@dataclass(frozen=True, slots=True)
class PollItem:
    """An item of a polled service.

    Attributes:
        item_id: The same whenever the item comes, and no other item's.
        version: Another one if and only if the item changed in something that its memory may show.
        document: The item as its service has it, which a mapping of the source reads.
        message: The item with the fields of a message, which is stored where the source has no mapping; None if the
            document has such fields itself.
    """

    item_id: str
    version: str
    document: Mapping[str, Any]
    message: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PollPage:
    """Some items, and where to go on after them.

    Attributes:
        items: The items, each at most once.
        cursor: A small object of JSON. It is written when the items are durable, and given to `PollDriver.pages` then.
        refused: Number of further items that cannot be read for what they are, and are passed over.
    """

    items: Sequence[PollItem]
    cursor: Mapping[str, Any]
    refused: int = 0


@runtime_checkable
class PollDriver(Protocol):
    """Asks a service for new and changed items. Used by one task at a time."""

    @property
    def place(self) -> str:
        """Name of the polled place, such as an address and a repository: cursors and ids hold for it only."""

    async def open(self) -> None:
        """Prepare to ask. Raises ``OSError`` where that is not possible now."""

    def pages(self, cursor: Mapping[str, Any], limit: int) -> AsyncIterator[PollPage]:
        """Poll once: the pages of at most ``limit`` items that follow a cursor, until there are no more for now.

        An item that is new or changed comes in at least one page. Others may come again; they are known by id and
        version. The first cursor is empty.

        Raises:
            RateLimited: The service asks to wait; the next poll begins after that, at the last cursor.
            AstrocyteError: The service failed, or refused.
            OSError: It cannot be reached; the driver is then closed, and opened again later.
        """

    async def close(self) -> None:
        """Release connections. A second call does nothing."""
