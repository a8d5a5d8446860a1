"""Driver ``kafka``: a topic of Apache Kafka with a consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from astrocyte.errors import ConfigError
from astrocyte.providers.ingest.payloads import parse_value
from astrocyte.providers.ingest.protocols import StreamMessage
from astrocyte.providers.options import read_options

# A broker that does not answer for so long counts as unreachable.
CONNECT_SECONDS = 10.0
# A dead letter that is not stored in so long has failed.
DELIVERY_SECONDS = 30.0
# Kafka gives the partitions of a consumer that neither reads nor keeps its place for so long to another. A rest after
# failures, of at most a minute, must not cost them.
POLL_SECONDS = 300
# Between heartbeats, as a share of the session timeout; Kafka recommends a third.
HEARTBEATS = 3
# Names that Kafka allows. The client takes one that begins with ^ for a pattern.
TOPIC = r"^[A-Za-z0-9._-]+$"
# What the client answers, and brokers do not.
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - public in spite of its name, as the next ones
ASSIGNMENT_LOST = KafkaError._ASSIGNMENT_LOST  # noqa: SLF001
TIMED_OUT = KafkaError._MSG_TIMED_OUT  # noqa: SLF001
# A commit that fails so is repeated after the next read, which takes part in the rebalance.
REBALANCING = frozenset(
    {ASSIGNMENT_LOST, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}
)

Result = TypeVar("Result")


class KafkaOptions(BaseModel):
    """Options of the driver, from the keys of the source and its ``options``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Servers of the cluster to ask first: host:port, separated by commas.
    url: SecretStr = Field(min_length=1)
    topic: str = Field(pattern=TOPIC, max_length=249)
    consumer_group: str = Field(min_length=1)
    dead_letters: str = Field(pattern=TOPIC, max_length=249)
    # Where a group begins that has no place in the topic yet.
    start: Literal["first", "last"] = "first"
    # A record's value: a message in JSON, or the content itself.
    value: Literal["json", "text"] = "json"
    # A consumer that does not answer for so long is taken to be gone. Kafka's brokers allow 6 to 1,800 by default.
    session_timeout_seconds: float = Field(45.0, ge=6.0, le=1_800.0)
    tls: bool = False
    ca_file: Path | None = None
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = Field(None, min_length=1)
    password: SecretStr | None = None

    @model_validator(mode="after")
    def _check(self) -> KafkaOptions:
        given = (self.sasl_mechanism is not None, self.username is not None, self.password is not None)
        if any(given) and not all(given):
            raise ValueError("sasl_mechanism, username and password are set together or not at all")
        if self.ca_file is not None and not self.tls:
            raise ValueError("ca_file has an effect with tls: true only")
        return self

    @property
    def client(self) -> dict[str, Any]:
        """The settings of librdkafka that its consumers and producers share."""
        sasl = self.sasl_mechanism is not None
        settings: dict[str, Any] = {
            "bootstrap.servers": self.url.get_secret_value(),
            "security.protocol": ("SASL_" if sasl else "") + ("SSL" if self.tls else "PLAINTEXT"),
            "socket.connection.setup.timeout.ms": round(CONNECT_SECONDS * 1_000),
            # Its messages may hold addresses; failures are reported by the source.
            "log_level": 0,
        }
        if self.ca_file is not None:
            settings["ssl.ca.location"] = str(self.ca_file)
        if sasl and self.password is not None:
            settings["sasl.mechanism"] = self.sasl_mechanism
            settings["sasl.username"] = self.username
            settings["sasl.password"] = self.password.get_secret_value()
        return settings


class KafkaStream:
    """Implements `StreamDriver`; see there for what each method does.

    Kafka keeps one offset per partition: all messages before it are acknowledged. Therefore an offset is committed when
    all messages before it are. The client's calls block, so one thread makes them all, one after the other.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._thread = ThreadPoolExecutor(1, "astrocyte-kafka")
        self._consumer: Any = None
        self._producer: Any = None
        # By partition: messages that were read and are not acknowledged, in order, and the offset behind the last read.
        self._open: dict[int, dict[int, Message]] = {}
        self._next: dict[int, int] = {}
        # Partitions whose offset is to be committed.
        self._due: set[int] = set()
        # Messages that came while nothing was to be read, and whether partitions are paused for that.
        self._ahead: list[Any] = []
        self._paused = False
        # Set by the client while no broker answers.
        self._lost = ""

    async def open(self) -> None:
        """Connect, and join the group."""
        await self._call(self._connect)

    async def read(self, limit: int, wait_seconds: float) -> list[StreamMessage]:
        """Messages of the partitions that the group gave to this consumer."""
        return await self._call(lambda: self._read(limit, wait_seconds))

    async def keep_place(self) -> None:
        """Tell the group that this consumer is there, without messages."""
        await self._call(self._keep_place)

    async def acknowledge(self, messages: Sequence[StreamMessage]) -> None:
        """Commit the offsets before which nothing is open."""
        await self._call(lambda: self._acknowledge([message.position for message in messages]))

    async def set_aside(self, message: StreamMessage, reason: str) -> None:
        """Produce a dead letter, and acknowledge the message when a broker has it.

        A consumer that is killed in between makes it twice.
        """
        await self._call(lambda: self._set_aside(message.position, reason))

    async def lag(self) -> int | None:
        """Messages of this consumer's partitions that are not acknowledged; None before their first read."""
        return await self._call(self._lag)

    async def close(self) -> None:
        """Leave the group, so that others take over at once."""
        # Behind a call that still runs, though nobody waits for it any more.
        await self._call(self._disconnect)

    async def _call(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except KafkaException as error:
            raise _unreachable(error.args[0]) from error

    def _connect(self) -> None:
        options = self._options
        self._open, self._next, self._due, self._lost = {}, {}, set(), ""
        self._ahead, self._paused = [], False
        session = round(options.session_timeout_seconds * 1_000)
        self._consumer = Consumer(
            {
                **options.client,
                "group.id": options.consumer_group,
                "auto.offset.reset": "earliest" if options.start == "first" else "latest",
                "enable.auto.commit": False,
                "session.timeout.ms": session,
                "heartbeat.interval.ms": session // HEARTBEATS,
                "max.poll.interval.ms": max(POLL_SECONDS * 1_000, session),
                # A rebalance takes no partition from a consumer that keeps it.
                "partition.assignment.strategy": "cooperative-sticky",
                "error_cb": self._failed,
            }
        )
        topic = self._consumer.list_topics(options.topic, timeout=CONNECT_SECONDS).topics[options.topic]
        if topic.error is not None:
            raise _unreachable(topic.error)
        self._consumer.subscribe([options.topic], on_revoke=self._forget, on_lost=self._forget)

    def _disconnect(self) -> None:
        consumer, self._consumer, self._producer = self._consumer, None, None
        if consumer is not None:
            consumer.close()

    def _failed(self, error: KafkaError) -> None:
        if error.code() == ALL_BROKERS_DOWN or error.fatal():
            self._lost = error.name()

    def _forget(self, _consumer: object, partitions: Sequence[TopicPartition]) -> None:
        for one in partitions:
            self._open.pop(one.partition, None)
            self._next.pop(one.partition, None)
            self._due.discard(one.partition)
        gone = {one.partition for one in partitions}
        self._ahead = [message for message in self._ahead if message.partition() not in gone]

    def _read(self, limit: int, wait_seconds: float) -> list[StreamMessage]:
        if self._paused:
            self._consumer.resume(self._consumer.assignment())
            self._paused = False
        found: list[StreamMessage] = []
        end = monotonic() + wait_seconds
        while len(found) < limit:
            # The first is waited for; others are taken if they are there.
            message = self._ahead.pop(0) if self._ahead else self._polled(0 if found else max(0.0, end - monotonic()))
            if message is None:
                break
            partition, offset = message.partition(), message.offset()
            self._open.setdefault(partition, {})[offset] = message
            self._next[partition] = offset + 1
            document = parse_value(message.value(), text=self._options.value == "text")
            found.append(StreamMessage(position_of(message), document))
        if not found and self._lost:
            raise ConnectionError(f"the stream cannot be read: {self._lost}")
        self._commit()
        return found

    def _polled(self, wait_seconds: float) -> Any:  # noqa: ANN401 - a record, whose fields the client's types leave open
        message = self._consumer.poll(wait_seconds)
        if message is not None:
            if message.error() is not None:
                raise _unreachable(message.error())
            self._lost = ""
        return message

    def _keep_place(self) -> None:
        # Also those that came to this consumer since the last time.
        self._consumer.pause(self._consumer.assignment())
        self._paused = True
        # A partition that comes to this consumer just now is not paused.
        message = self._polled(0)
        if message is not None:
            self._ahead.append(message)

    def _acknowledge(self, positions: Sequence[str]) -> None:
        for position in positions:
            partition, offset = _place(position)
            # Not there any more if the partition was given to another consumer, which reads it from the last commit.
            if self._open.get(partition, {}).pop(offset, None) is not None:
                self._due.add(partition)
        self._commit()

    def _commit(self) -> None:
        if not self._due:
            return
        offsets = [TopicPartition(self._options.topic, one, self._done(one)) for one in self._due]
        try:
            committed = self._consumer.commit(offsets=offsets, asynchronous=False)
            errors = [one.error for one in committed if one.error is not None]
        except KafkaException as error:
            errors = [error.args[0]]
        for one in errors:
            if one.code() not in REBALANCING:
                raise _unreachable(one)
        if not errors:
            self._due.clear()

    def _set_aside(self, position: str, reason: str) -> None:
        partition, offset = _place(position)
        message = self._open.get(partition, {}).get(offset)
        if message is None:
            return
        if self._producer is None:
            settings = {"enable.idempotence": True, "message.timeout.ms": round(DELIVERY_SECONDS * 1_000)}
            self._producer = Producer({**self._options.client, **settings})
        told = {"reason": reason, "topic": self._options.topic, "partition": str(partition), "offset": str(offset)}
        headers = [*(message.headers() or ()), *((f"astrocyte_{name}", value) for name, value in told.items())]
        outcome: list[KafkaError | None] = []
        self._producer.produce(
            self._options.dead_letters,
            key=message.key(),
            value=message.value(),
            headers=headers,
            on_delivery=lambda error, _message: outcome.append(error),
        )
        self._producer.flush(DELIVERY_SECONDS)
        if outcome != [None]:
            raise _unreachable(outcome[0] if outcome and outcome[0] else KafkaError(TIMED_OUT))
        self._acknowledge([position])

    def _lag(self) -> int | None:
        total = 0
        assigned = self._consumer.assignment()
        for one in assigned:
            # What the last answer of the broker said; asking would cost a round trip before each read.
            _, high = self._consumer.get_watermark_offsets(one, cached=True)
            if high < 0 or one.partition not in self._next:
                continue
            total += max(0, high - self._done(one.partition))
        return total if assigned else None

    def _done(self, partition: int) -> int:
        """The offset before which all messages of a partition are acknowledged."""
        return next(iter(self._open.get(partition, ())), self._next[partition])


def position_of(message: Message) -> str:
    """Partition, offset and time of a record.

    The time tells records of a topic from those of one of the same name that was deleted.
    """
    _, time = message.timestamp()
    return f"{message.partition()}:{message.offset()}:{time}"


def create(options: Mapping[str, Any]) -> KafkaStream:
    """The driver of these options.

    Raises:
        ConfigError: They cannot be used.
    """
    given = read_options(KafkaOptions, options, "sources.options")
    if given.ca_file is not None and not given.ca_file.is_file():
        raise ConfigError(
            f"sources.options.ca_file: {given.ca_file} is no file", metadata={"key": "sources.options.ca_file"}
        )
    return KafkaStream(given)


def _place(position: str) -> tuple[int, int]:
    partition, offset, _ = position.split(":")
    return int(partition), int(offset)


def _unreachable(error: KafkaError) -> ConnectionError:
    # The client's text may hold addresses.
    return ConnectionError(f"the stream cannot be read: {error.name()}")
