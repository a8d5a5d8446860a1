"""Driver ``redis``: Redis Streams with a consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Literal

import redis.asyncio as redis
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from redis.exceptions import RedisError, ResponseError

from astrocyte.providers.ingest.payloads import parse_stream_fields
from astrocyte.providers.ingest.protocols import StreamMessage
from astrocyte.providers.options import read_options

GROUP_EXISTS = "BUSYGROUP"
# Beyond the wait of a read, which blocks for it.
TIMEOUT_SECONDS = 10.0
CONNECT_SECONDS = 5.0
# Between looks for consumers that are gone.
LEAST_CLAIM_SECONDS = 1.0
BEGINNING, NEW = "0-0", ">"


class RedisOptions(BaseModel):
    """Options of the driver, from the keys of the source and its ``options``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr = Field(min_length=1)
    topic: str = Field(min_length=1)
    consumer_group: str = Field(min_length=1)
    dead_letters: str = Field(min_length=1)
    consumer: str = Field("astrocyte", min_length=1)
    start: Literal["first", "last"] = "first"
    # A consumer that acknowledged nothing for so long is taken to be gone.
    claim_idle_seconds: float = Field(60.0, ge=0.0, le=86_400.0)


class RedisStream:
    """Implements `StreamDriver`; see there for what each method does.

    Acknowledged entries stay in the stream; its owner trims it.
    """

    def __init__(self, options: RedisOptions) -> None:
        self._options = options
        self._client: Any = None
        # Where the next read begins: behind an entry that was delivered before, or at the new ones.
        self._after = BEGINNING
        self._claimed = False
        self._claim_at = 0.0

    async def open(self) -> None:
        """Connect, and make the group if there is none."""
        options = self._options
        # A retry of the client could acknowledge or copy twice; the supervisor retries as a whole.
        client = redis.Redis.from_url(
            options.url.get_secret_value(),
            decode_responses=True,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=None,
        )
        self._client = client
        self._after, self._claimed = BEGINNING, False
        try:
            start = "0" if options.start == "first" else "$"
            await client.xgroup_create(options.topic, options.consumer_group, id=start, mkstream=True)
        except ResponseError as error:
            if not str(error).startswith(GROUP_EXISTS):
                raise _unreachable(error) from error
        except RedisError as error:
            raise _unreachable(error) from error

    async def read(self, limit: int, wait_seconds: float) -> list[StreamMessage]:
        """Entries that were delivered before, then those of consumers that are gone, then new ones."""
        if self._after == NEW and monotonic() > self._claim_at:
            # All that was delivered to this consumer is acknowledged by now.
            self._after, self._claimed = BEGINNING, False
        try:
            while self._after != NEW:
                entries = await self._entries(limit, self._after, None)
                if entries:
                    self._after = entries[-1][0]
                    if found := await self._present(entries):
                        return found
                elif self._claimed or not await self._claim(limit):
                    self._after = NEW
                else:
                    # What was claimed is this consumer's own now, and is read as such.
                    self._after = BEGINNING
            entries = await self._entries(limit, NEW, max(1, round(wait_seconds * 1_000)))
            return await self._present(entries)
        except RedisError as error:
            raise _unreachable(error) from error

    async def acknowledge(self, messages: Sequence[StreamMessage]) -> None:
        """Acknowledge entries."""
        await self._acknowledge([message.position for message in messages])

    async def set_aside(self, message: StreamMessage, reason: str) -> None:
        """Add an entry to the stream of dead letters and acknowledge the first one, in one transaction."""
        options = self._options
        try:
            kept = await self._client.xrange(options.topic, message.position, message.position)
            fields = dict(kept[0][1]) if kept else {}
            told = {"astrocyte_reason": reason, "astrocyte_stream": options.topic, "astrocyte_id": message.position}
            async with self._client.pipeline(transaction=True) as both:
                both.xadd(options.dead_letters, {**fields, **told})
                both.xack(options.topic, options.consumer_group, message.position)
                await both.execute()
        except RedisError as error:
            raise _unreachable(error) from error

    async def lag(self) -> int | None:
        """Entries behind the group, and those that it was given and did not acknowledge."""
        options = self._options
        try:
            groups = await self._client.xinfo_groups(options.topic)
        except RedisError as error:
            raise _unreachable(error) from error
        group = next((one for one in groups if one["name"] == options.consumer_group), None)
        if group is None or group.get("lag") is None:
            return None
        return int(group["lag"]) + int(group["pending"])

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _entries(self, limit: int, after: str, block: int | None) -> list[tuple[str, dict[str, str] | None]]:
        options = self._options
        answer = await self._client.xreadgroup(
            options.consumer_group, options.consumer, {options.topic: after}, count=limit, block=block
        )
        # A list of streams in the second version of the protocol, a mapping in the third.
        streams = answer.values() if isinstance(answer, Mapping) else [entries for _, entries in answer or ()]
        return [(str(entry), fields) for entries in streams for entry, fields in _flat(entries)]

    async def _claim(self, limit: int) -> bool:
        """Take over entries of consumers that are gone; True if there were any. Looks at all of them once."""
        options, start, found = self._options, BEGINNING, False
        while True:
            start, entries, *_ = await self._client.xautoclaim(
                options.topic,
                options.consumer_group,
                options.consumer,
                min_idle_time=round(options.claim_idle_seconds * 1_000),
                start_id=start,
                count=limit,
            )
            found = found or bool(entries)
            if start == BEGINNING:
                self._claimed = True
                self._claim_at = monotonic() + max(options.claim_idle_seconds, LEAST_CLAIM_SECONDS)
                return found

    async def _present(self, entries: Sequence[tuple[str, dict[str, str] | None]]) -> list[StreamMessage]:
        """Entries as messages; those that were deleted from the stream are acknowledged."""
        gone = [position for position, fields in entries if not fields]
        if gone:
            await self._acknowledge(gone)
        return [StreamMessage(position, parse_stream_fields(fields)) for position, fields in entries if fields]

    async def _acknowledge(self, positions: Sequence[str]) -> None:
        if not positions:
            return
        try:
            await self._client.xack(self._options.topic, self._options.consumer_group, *positions)
        except RedisError as error:
            raise _unreachable(error) from error


def create(options: Mapping[str, Any]) -> RedisStream:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    return RedisStream(read_options(RedisOptions, options, "sources.options"))


def _flat(entries: Any) -> Sequence[tuple[str, dict[str, str] | None]]:  # noqa: ANN401 - as the client has it
    """Entries of one stream; the third version of the protocol nests them once more."""
    if len(entries) == 1 and isinstance(entries[0], list):
        entries = entries[0]
    return [(entry, fields) for entry, fields in entries]


def _unreachable(error: RedisError) -> ConnectionError:
    # The client's message may hold the URL with its password.
    return ConnectionError(f"the stream cannot be read: {type(error).__name__}")
