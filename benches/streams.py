"""Messages of a stream that a server stores in a second, each durable before it is acknowledged.

    python -m benches.streams --driver kafka --url localhost:9092 --messages 20000
    python -m benches.streams --driver redis --url redis://localhost:6379 --messages 20000

The messages are in the stream before the server starts to read, and its bank is on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence

from astrocyte.app import App
from astrocyte.config import Settings
from benches.corpus import english_texts
from benches.machine import describe

WORDS = 16
SEED = 20_261_127
LOOK_SECONDS = 0.01


def produce_kafka(url: str, topic: str, values: Sequence[str]) -> None:
    """Fill a topic."""
    from confluent_kafka import Producer  # noqa: PLC0415 - one of the drivers is enough

    producer = Producer({"bootstrap.servers": url, "queue.buffering.max.messages": len(values) + 1})
    for value in values:
        producer.produce(topic, value)
    producer.flush()


def produce_redis(url: str, topic: str, values: Sequence[str]) -> None:
    """Fill a stream."""
    from redis import Redis  # noqa: PLC0415 - as above

    with Redis.from_url(url) as client, client.pipeline(transaction=False) as pipeline:
        for value in values:
            pipeline.xadd(topic, {"payload": value})
        pipeline.execute()


PRODUCE: dict[str, Callable[[str, str, Sequence[str]], None]] = {"kafka": produce_kafka, "redis": produce_redis}


async def measure(driver: str, url: str, topic: str, messages: int) -> tuple[float, float]:
    """Seconds on the clock and of the processor from the start of the source until all are stored."""
    with tempfile.TemporaryDirectory() as folder:
        source = {"type": "stream", "driver": driver, "url": url, "topic": topic, "target_bank": "bench"}
        app = App(Settings.from_mapping({"data_dir": folder, "sources": {"bench": source}}))
        try:
            started, processor = time.perf_counter(), time.process_time()
            app.sources.start()
            while True:
                (info,) = app.sources.board.listed()
                assert info.refused + info.failed == 0, info
                if info.stored == messages:
                    return time.perf_counter() - started, time.process_time() - processor
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await app.sources.stop()
            await app.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", choices=sorted(PRODUCE), required=True)
    parser.add_argument("--url", required=True, help="address of a broker or server that may be written to")
    parser.add_argument("--messages", type=int, default=20_000)
    given = parser.parse_args()
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    texts = english_texts(given.messages, words=WORDS, seed=SEED)
    PRODUCE[given.driver](given.url, topic, [json.dumps({"content": text}) for text in texts])
    print(describe(), f"{given.driver}, {given.messages:,} messages of {WORDS} words, seed {SEED}", sep="\n")
    wall, processor = asyncio.run(measure(given.driver, given.url, topic, given.messages))
    print(f"{given.messages / wall:,.0f} messages/s, {given.messages / processor:,.0f} per second of the processor")


if __name__ == "__main__":
    main()
