"""The protocols of drivers of ingest sources.

A distribution registers a function of the options, which returns a driver, under the entry point group
``astrocyte.ingest_stream_drivers`` (a `StreamDriver`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

STREAM_DRIVERS = "astrocyte.ingest_stream_drivers"


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
