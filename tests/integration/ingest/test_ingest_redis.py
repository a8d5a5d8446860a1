"""Redis Streams: a real server, consumers that are killed, dead letters, claims, and a restart of the server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from astrocyte.api.requests import ListMemories
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller
from astrocyte.providers.ingest.payloads import parse_stream_fields
from astrocyte.providers.ingest.redis import create
from external.ports import free_port
from external.redis_server import needs_redis, redis_server
from harness.streaming import contents, info_of, ingesting, killed_server, stored, text, until, wait_until

pytestmark = [pytest.mark.process, needs_redis]

TOPIC, GROUP = "ships", "astrocyte"
# For thousands of messages on a machine that has much else to do.
LONG_SECONDS = 1_800


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with redis_server(tmp_path) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url, decode_responses=True) as opened:
        yield opened


def source(url: str, **values: Any) -> dict[str, Any]:
    return {"type": "stream", "driver": "redis", "url": url, "topic": TOPIC, "target_bank": "ships", **values}


def acknowledged(client: Any, topic: str = TOPIC) -> bool:
    """True if the group has taken and acknowledged everything."""
    groups = client.xinfo_groups(topic) if client.exists(topic) else []
    # Redis does not always know the lag of a group after it was started again.
    last = client.xinfo_stream(topic)["last-generated-id"] if groups else None
    return bool(groups) and groups[0]["pending"] == 0 and groups[0]["last-delivered-id"] == last


async def settled(client: Any) -> None:
    await until(lambda: acknowledged(client))


async def test_entries_become_memories_in_order(url: str, client: Any) -> None:
    for number in range(100):
        if number % 2:
            client.xadd(TOPIC, {"payload": json.dumps({"text": text(number), "tags": ["odd"]})})
        else:
            client.xadd(TOPIC, {"content": text(number), "tags": '["even"]', "metadata": json.dumps({"n": number})})
    async with ingesting(source(url)) as served:
        await settled(client)
        page = await served.app.gate.call(Caller(), ListMemories("ships", page_size=1_000))
        assert [memory.content for memory in page.memories] == [text(number) for number in range(100)]
        assert (page.memories[0].tags, page.memories[0].metadata) == (("even",), {"n": 0})
        assert page.memories[1].tags == ("odd",)
        # What comes later is taken as well.
        client.xadd(TOPIC, {"content": text(100)})
        await settled(client)
        assert len(await contents(served)) == 101
        info = await info_of(served)
        assert (info.driver, info.stored, info.refused, info.failed) == ("redis", 101, 0, 0)


async def test_entries_that_cannot_be_stored_are_dead_letters(url: str, client: Any) -> None:
    ids = [
        client.xadd(TOPIC, fields)
        for fields in (
            {"content": text(0)},
            {"payload": "no json"},
            {"nothing": "here"},
            {"content": "My card is 4111 1111 1111 1111."},
            {"content": text(1)},
        )
    ]
    sections = {"barriers": {"pii": {"mode": "regex", "action": "reject"}}}
    async with ingesting(source(url), sections) as served:
        await settled(client)
        assert await contents(served) == [text(0), text(1)]
        dead = [fields for _, fields in client.xrange(f"{TOPIC}.dead")]
        told = [(one["astrocyte_id"], one["astrocyte_reason"]) for one in dead]
        assert told == [(ids[1], "INVALID_ARGUMENT"), (ids[2], "INVALID_ARGUMENT"), (ids[3], "PII_REJECTED")]
        assert dead[1]["nothing"] == "here"
        assert (await info_of(served)).refused == 3


async def test_entries_of_a_consumer_that_is_gone_are_taken_over(url: str, client: Any) -> None:
    client.xgroup_create(TOPIC, GROUP, id="0", mkstream=True)
    for number in range(10):
        client.xadd(TOPIC, {"content": text(number)})
    client.xreadgroup(GROUP, "another", {TOPIC: ">"}, count=5)
    async with ingesting(source(url, options={"claim_idle_seconds": 0})) as served:
        await settled(client)
        assert await contents(served) == [text(number) for number in range(10)]


async def test_an_entry_that_was_deleted_is_passed_over(url: str, client: Any) -> None:
    client.xgroup_create(TOPIC, GROUP, id="0", mkstream=True)
    ids = [client.xadd(TOPIC, {"content": text(number)}) for number in range(4)]
    client.xreadgroup(GROUP, GROUP, {TOPIC: ">"}, count=4)
    client.xdel(TOPIC, ids[1])
    async with ingesting(source(url)) as served:
        await until(lambda: client.xinfo_groups(TOPIC)[0]["pending"] == 0)
        assert await contents(served) == [text(number) for number in (0, 2, 3)]


async def test_a_stream_that_cannot_be_reached_is_unhealthy_until_it_can(tmp_path: Path) -> None:
    port = free_port()
    url = f"redis://127.0.0.1:{port}"
    async with ingesting(source(url)) as served:
        await until(lambda: not served.app.sources.board.healthy)
        assert (await info_of(served)).detail == "ConnectionError"
        for beginning in (0, 10):
            # The second time, the server comes back with what it had.
            with redis_server(tmp_path, port), redis.Redis.from_url(url, decode_responses=True) as client:
                for number in range(beginning, beginning + 10):
                    client.xadd(TOPIC, {"content": text(number)})
                await settled(client)
                assert (await info_of(served)).healthy
        assert await contents(served) == [text(number) for number in range(20)]


def test_fields_that_are_no_message_are_none() -> None:
    assert parse_stream_fields({"payload": "[]"}) is None
    assert parse_stream_fields({"content": "a", "tags": "no json"}) is None
    assert parse_stream_fields({"content": "a", "speaker": "1"}) == {"content": "a", "speaker": "1"}


def test_options_that_are_wrong_are_named() -> None:
    for options, message in (
        ({"consumr": "a"}, r"sources\.options\.consumr is not an option; did you mean consumer"),
        ({"start": "middle"}, r"sources\.options\.start"),
    ):
        with pytest.raises(ConfigError, match=message):
            create({"url": "redis://x", "topic": "t", "consumer_group": "g", "dead_letters": "d", **options})
    stream = source("redis://x", driver="reddis")
    with pytest.raises(
        ConfigError, match=r"sources\.ships\.driver: there is no provider 'reddis'; did you mean 'redis'"
    ):
        App(Settings.from_mapping({"vector_store": "in_memory", "sources": {"ships": stream}}))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_a_consumer_that_is_killed_stores_each_entry_once_in_order(
    tmp_path: Path, url: str, client: Any, kills: int
) -> None:
    total = 100 * kills
    kill_consumers(tmp_path, url, client, kills=kills, share=100, batch_size=50)
    with killed_server(tmp_path, source(url, batch_size=50)) as (gateway, _):
        wait_until(lambda: acknowledged(client))
        found = stored(gateway)
    assert found == [text(number) for number in range(total)]
    assert not client.exists(f"{TOPIC}.dead")


@pytest.mark.slow
@pytest.mark.timeout(10_800)
def test_a_hundred_thousand_entries_are_stored_once_in_order(tmp_path: Path) -> None:
    """Twenty kills of the consumer, and one of Redis while a consumer reads."""
    kills, share, total = 20, 4_500, 100_000
    port = free_port()
    with redis_server(tmp_path, port) as url, redis.Redis.from_url(url, decode_responses=True) as client:
        kill_consumers(tmp_path, url, client, kills=kills, share=share)
    with killed_server(tmp_path, source(url)) as (gateway, _):
        with redis_server(tmp_path, port), redis.Redis.from_url(url, decode_responses=True) as client:
            ids = add(client, range(kills * share, total))
            wait_until(delivered(client, ids[0]), patience=LONG_SECONDS)
        with redis_server(tmp_path, port), redis.Redis.from_url(url, decode_responses=True) as client:
            wait_until(lambda: acknowledged(client), patience=LONG_SECONDS)
            assert not client.exists(f"{TOPIC}.dead")
        found = stored(gateway)
    assert found == [text(number) for number in range(total)]


def add(client: Any, numbers: range) -> list[str]:
    """Add entries, and know that the server has them; their ids."""
    with client.pipeline(transaction=False) as pipeline:
        for number in numbers:
            pipeline.xadd(TOPIC, {"content": text(number)})
        return [str(one) for one in pipeline.execute()]


def kill_consumers(folder: Path, url: str, client: Any, *, kills: int, share: int, **settings: Any) -> None:
    rng = random.Random(3)
    client.xgroup_create(TOPIC, GROUP, id="0", mkstream=True)
    for kill in range(kills):
        ids = add(client, range(kill * share, (kill + 1) * share))
        with killed_server(folder, source(url, **settings)) as (_, server):
            # Killed while entries are on their way: some of this round are taken, and not all are acknowledged.
            wait_until(delivered(client, ids[rng.randrange(share - 1)]), patience=LONG_SECONDS)
            server.kill()


def delivered(client: Any, entry_id: str) -> Callable[[], bool]:
    """True once the group has taken an entry."""
    return lambda: _order(client.xinfo_groups(TOPIC)[0]["last-delivered-id"]) >= _order(entry_id)


def _order(entry_id: str) -> tuple[int, ...]:
    return tuple(map(int, entry_id.split("-")))
