"""Kafka: a real broker, consumers that are killed, dead letters, rebalances, and a restart of the broker."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from astrocyte.api.requests import ListMemories
from astrocyte.errors import ConfigError
from astrocyte.model import Caller
from astrocyte.providers.ingest import kafka
from astrocyte.providers.ingest.kafka import create
from astrocyte.providers.ingest.payloads import parse_value
from astrocyte.providers.ingest.protocols import StreamMessage
from external.kafka_server import KafkaBroker, create_topic, or_skip
from harness.streaming import (
    PATIENCE_SECONDS,
    contents,
    info_of,
    ingesting,
    killed_server,
    stored,
    text,
    until,
    wait_until,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

GROUP = "astrocyte"
KEYS = 20
# For thousands of messages on a machine that has much else to do.
LONG_SECONDS = 1_800
# What a broker answers that has just started, and what the client says of one that has much else to do.
STARTING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError._TIMED_OUT,
)
# Until a broker answers one.
ANSWER_SECONDS = 10
# Between two questions to a broker that stores thousands of messages meanwhile.
ASK_SECONDS = 0.2


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    or_skip()
    made = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    with made.running():
        yield made


@pytest.fixture
def admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address, "log_level": 0})


@pytest.fixture
def topic(request: pytest.FixtureRequest, admin: AdminClient) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)
    create_topic(admin, name)
    return name


def source(broker: KafkaBroker, topic: str, **values: Any) -> dict[str, Any]:
    # The least that a broker allows, so that a killed consumer is soon known to be gone.
    options = {"session_timeout_seconds": 6, **values.pop("options", {})}
    named = {"driver": "kafka", "url": broker.address, "topic": topic, "target_bank": "ships"}
    return {"type": "stream", **named, "options": options, **values}


def produce(broker: KafkaBroker, topic: str, values: list[bytes | None], keys: Sequence[str] | None = None) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=None if keys is None else keys[number], headers=[("trace", b"7")])
    assert producer.flush(60) == 0


def messages(numbers: range) -> list[bytes | None]:
    return [json.dumps({"content": text(number)}).encode() for number in numbers]


def committed(broker: KafkaBroker, topic: str, partitions: int = 1, group: str = GROUP) -> int:
    """The number of messages that the group has acknowledged; -1 if the broker cannot tell for now."""
    # It subscribes to nothing, so it is no member of the group. The same question of an AdminClient ends the process
    # where the answer is that the coordinator is another (librdkafka 2.16).
    reader = Consumer({"bootstrap.servers": broker.address, "group.id": group, "log_level": 0})
    try:
        places = reader.committed([TopicPartition(topic, one) for one in range(partitions)], timeout=ANSWER_SECONDS)
        return sum(max(0, one.offset) for one in places)
    except KafkaException as error:
        if not error.args[0].retriable() and error.args[0].code() not in STARTING:
            raise
        return -1
    finally:
        reader.close()


def acknowledged(
    broker: KafkaBroker, topic: str, count: int, partitions: int = 1, group: str = GROUP
) -> Callable[[], bool]:
    """True once the group has acknowledged so many messages."""
    return lambda: committed(broker, topic, partitions, group) >= count


def read_all(broker: KafkaBroker, topic: str, count: int) -> list[Message]:
    """The first messages of a topic."""
    settings = {"group.id": "a test", "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": broker.address, **settings})
    consumer.subscribe([topic])
    found: list[Message] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < end:
        found += consumer.consume(count, 0.5)
    consumer.close()
    return found


async def test_messages_become_memories_in_order(broker: KafkaBroker, admin: AdminClient, topic: str) -> None:
    odd = [{"text": text(number), "tags": ["odd"], "metadata": {"n": number}} for number in range(100)]
    produce(broker, topic, [json.dumps(one).encode() for one in odd])
    async with ingesting(source(broker, topic)) as served:
        await until(acknowledged(broker, topic, 100))
        page = await served.app.gate.call(Caller(), ListMemories("ships", page_size=1_000))
        assert [memory.content for memory in page.memories] == [text(number) for number in range(100)]
        assert (page.memories[7].tags, page.memories[7].metadata) == (("odd",), {"n": 7})
        # What comes later is taken as well.
        produce(broker, topic, messages(range(100, 101)))
        await until(acknowledged(broker, topic, 101))
        await until(lambda: served.app.sources.board.listed()[0].lag == 0)
        assert len(await contents(served)) == 101
        info = await info_of(served)
        assert (info.driver, info.stored, info.refused, info.failed) == ("kafka", 101, 0, 0)


async def test_messages_that_cannot_be_stored_are_dead_letters(
    broker: KafkaBroker, admin: AdminClient, topic: str
) -> None:
    card = json.dumps({"content": "My card is 4111 1111 1111 1111."}).encode()
    values = [messages(range(1))[0], b"no json", None, card, messages(range(1, 2))[0]]
    produce(broker, topic, values, [str(number) for number in range(len(values))])
    sections = {"barriers": {"pii": {"mode": "regex", "action": "reject"}}}
    async with ingesting(source(broker, topic), sections) as served:
        await until(acknowledged(broker, topic, 5))
        assert await contents(served) == [text(0), text(1)]
        assert (await info_of(served)).refused == 3
    dead = read_all(broker, f"{topic}.dead", 3)
    headers = [dict(cast("list[tuple[str, bytes]]", one.headers())) for one in dead]
    assert [(one.key(), one.value()) for one in dead] == [(b"1", b"no json"), (b"2", None), (b"3", card)]
    reasons = [b"INVALID_ARGUMENT", b"INVALID_ARGUMENT", b"PII_REJECTED"]
    assert [one["astrocyte_reason"] for one in headers] == reasons
    assert headers[2] == {
        "trace": b"7",
        "astrocyte_reason": b"PII_REJECTED",
        "astrocyte_topic": topic.encode(),
        "astrocyte_partition": b"0",
        "astrocyte_offset": b"3",
    }


async def test_a_message_that_waits_holds_the_offset_of_its_partition(
    broker: KafkaBroker, admin: AdminClient, topic: str
) -> None:
    """A later message of another bank is stored, and yet the commit stays before the one that waits."""
    values = [{"content": text(0), "principal": "a"}, {"content": text(1), "principal": "b"}]
    produce(broker, topic, [json.dumps(one).encode() for one in values])
    with_template = source(broker, topic, target_bank_template="ships-{principal}", principal="service:ships")
    del with_template["target_bank"]
    grants = [{"bank_id": "ships-b", "principal": "service:ships", "permissions": ["write"]}]
    sections = {"access_control": {"enabled": True, "default_policy": "deny"}, "access_grants": grants}
    async with ingesting(with_template, sections) as served:
        await until(lambda: served.app.sources.board.listed()[0].stored == 1)
        await until(lambda: not served.app.sources.board.healthy)
        assert committed(broker, topic) == 0
        assert (served.app.sources.board.listed()[0].refused) == 0


async def test_two_consumers_of_a_group_share_the_partitions(broker: KafkaBroker, admin: AdminClient) -> None:
    topic = "shared"
    create_topic(admin, topic, 4)
    produce_keyed(broker, topic, range(200))
    settings = source(broker, topic)
    async with ingesting(settings) as first, ingesting(settings) as second:
        # Both have partitions before the rest comes.
        await until(lambda: len(members(admin)) == 2 and all(members(admin)))
        produce_keyed(broker, topic, range(200, 400))
        await until(acknowledged(broker, topic, 400, 4))
        halves = [await contents(first), await contents(second)]
        assert sorted(halves[0] + halves[1]) == sorted(map(text, range(400)))
        assert all(halves)


def members(admin: AdminClient) -> list[int]:
    """The number of partitions of each member of the group."""
    (described,) = admin.describe_consumer_groups([GROUP]).values()
    return [len(one.assignment.topic_partitions) for one in described.result().members]


def test_a_topic_that_was_made_anew_is_read_again(
    tmp_path: Path, broker: KafkaBroker, admin: AdminClient, topic: str
) -> None:
    """Its first message has the offset of another that the same server has stored."""
    expected: list[str] = []
    for group in ("first", "second"):
        produce(broker, topic, [json.dumps({"content": group}).encode()])
        with killed_server(tmp_path, source(broker, topic, consumer_group=group)) as (gateway, _):
            wait_until(acknowledged(broker, topic, 1, group=group))
            expected.append(group)
            assert stored(gateway) == expected
        for deleted in admin.delete_topics([topic]).values():
            deleted.result()
        wait_until(lambda: topic not in admin.list_topics(timeout=10).topics)
        create_topic(admin, topic)


async def test_a_broker_that_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    or_skip()
    broker = KafkaBroker(tmp_path)
    async with ingesting(source(broker, "ships")) as served:
        await until(lambda: not served.app.sources.board.healthy)
        assert (await info_of(served)).detail == "ConnectionError"
        for beginning in (0, 10):
            # The second time, the broker comes back with what it had.
            with broker.running():
                produce(broker, "ships", messages(range(beginning, beginning + 10)))
                await until(acknowledged(broker, "ships", beginning + 10))
                await until(lambda: served.app.sources.board.healthy)
            await until(lambda: not served.app.sources.board.healthy)
        assert await contents(served) == [text(number) for number in range(20)]


def test_a_consumer_that_is_killed_stores_each_message_once(
    tmp_path: Path, broker: KafkaBroker, admin: AdminClient, topic: str
) -> None:
    kill_consumers(tmp_path, broker, topic, kills=3, share=100)
    with killed_server(tmp_path, source(broker, topic)) as (gateway, _):
        wait_until(acknowledged(broker, topic, 300))
        assert stored(gateway) == [text(number) for number in range(300)]
    assert f"{topic}.dead" not in admin.list_topics(timeout=10).topics


@pytest.mark.slow
@pytest.mark.timeout(10_800)
def test_a_hundred_thousand_messages_are_stored_once_in_the_order_of_their_keys(tmp_path: Path) -> None:
    """Twenty kills of the consumer, and one of the broker while a consumer reads."""
    or_skip()
    kills, share = 20, 4_750
    total = 100_000
    broker = KafkaBroker(tmp_path)
    with broker.running() as admin:
        create_topic(admin, "ships", 4)
        kill_consumers(tmp_path, broker, "ships", kills=kills, share=share, partitions=4)
    with killed_server(tmp_path, source(broker, "ships")) as (gateway, _):
        with broker.running():
            produce_keyed(broker, "ships", range(kills * share, total))
            wait_until(acknowledged(broker, "ships", kills * share + 1, 4), patience=LONG_SECONDS, every=ASK_SECONDS)
        with broker.running():
            wait_until(acknowledged(broker, "ships", total, 4), patience=LONG_SECONDS, every=ASK_SECONDS)
        found = stored(gateway)
    numbers = [int(content.split()[1]) for content in found]
    assert sorted(numbers) == list(range(total))
    for key in range(KEYS):
        of_key = [number for number in numbers if number % KEYS == key]
        assert of_key == sorted(of_key)


def produce_keyed(broker: KafkaBroker, topic: str, numbers: range) -> None:
    """Produce messages whose keys follow from their numbers."""
    produce(broker, topic, messages(numbers), [f"key {number % KEYS}" for number in numbers])


def kill_consumers(
    folder: Path, broker: KafkaBroker, topic: str, *, kills: int, share: int, partitions: int = 1
) -> None:
    rng = random.Random(3)
    settings = source(broker, topic, batch_size=50)
    for kill in range(kills):
        produce_keyed(broker, topic, range(kill * share, (kill + 1) * share))
        with killed_server(folder, settings) as (_, server):
            # Killed while messages are on their way: some of this round are acknowledged, and not all.
            taken = kill * share + rng.randrange(1, share - 50)
            wait_until(acknowledged(broker, topic, taken, partitions), patience=LONG_SECONDS, every=ASK_SECONDS)
            server.kill()


def test_values_that_are_no_message_are_none() -> None:
    assert [parse_value(value) for value in (None, b"", b"[]", b"\xff", b"[" * 100_000)] == [None] * 5
    assert parse_value(b'{"content": "a"}') == {"content": "a"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sesion_timeout_seconds": 9}, r"sources\.options\.sesion_timeout_seconds is not an option; did you mean"),
        ({"topic": "^all"}, r"sources\.options\.topic"),
        ({"session_timeout_seconds": 1}, r"sources\.options\.session_timeout_seconds"),
        ({"username": "a"}, "sasl_mechanism, username and password are set together or not at all"),
        ({"ca_file": "/etc/hosts"}, "ca_file has an effect with tls: true only"),
        ({"ca_file": "/nowhere/ca.pem", "tls": True}, "/nowhere/ca.pem is no file"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create({"url": "localhost:1", "topic": "t", "consumer_group": "g", "dead_letters": "d", **options})


@pytest.mark.parametrize("keeps", [True, False])
async def test_messages_that_cannot_be_stored_for_long_do_not_cost_the_partitions(
    broker: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    # Less than the session's is not allowed, which is 6 s at least.
    monkeypatch.setattr(kafka, "POLL_SECONDS", 6)
    produce(broker, topic, messages(range(10)))
    options = {"url": broker.address, "topic": topic, "consumer_group": GROUP, "dead_letters": f"{topic}.dead"}
    driver = create({**options, "session_timeout_seconds": 6})
    await driver.open()
    try:
        read: list[StreamMessage] = []
        while len(read) < 4:
            read += await driver.read(4 - len(read), 2.0)
        end = time.monotonic() + 12
        while time.monotonic() < end:
            # As the consumer does between its attempts.
            if keeps:
                await driver.keep_place()
            await asyncio.sleep(0.5)
        if keeps:
            assert await driver.lag() == 10
            await driver.acknowledge(read)
            while len(read) < 10:
                read += await driver.read(10, 2.0)
            assert [cast("dict[str, Any]", one.document)["content"] for one in read] == [text(n) for n in range(10)]
        else:
            with pytest.raises(ConnectionError, match="MAX_POLL_EXCEEDED"):
                await driver.read(10, 2.0)
    finally:
        await driver.close()


async def test_values_of_plain_text_are_contents(broker: KafkaBroker, admin: AdminClient, topic: str) -> None:
    values: list[bytes | None] = [f"Ship {number} is grün.".encode() for number in range(3)]
    create_topic(admin, f"{topic}.dead")
    produce(broker, topic, [*values, b"\xff", None])
    telemetry = {"observability": {"prometheus_enabled": True, "metrics_port": 0}}
    async with ingesting(source(broker, topic, options={"value": "text"}), telemetry) as served:
        await until(acknowledged(broker, topic, 5))
        assert await contents(served) == [f"Ship {number} is grün." for number in range(3)]
        await until(lambda: served.app.sources.board.listed()[0].lag == 0)
        info = await info_of(served)
        assert (info.lag, info.refused) == (0, 2)
        metrics = served.app.telemetry.metrics
        assert metrics is not None
        assert metrics.registry.get_sample_value("astrocyte_ingest_lag", {"source": "ships"}) == 0
    assert [one.value() for one in read_all(broker, f"{topic}.dead", 2)] == [b"\xff", None]
