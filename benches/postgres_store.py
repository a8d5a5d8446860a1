"""The store over PostgreSQL beside the embedded one: recalls and durable writes, in one process and one run.

    python -m benches.postgres_store --dsn postgresql://user@host/database
    python -m benches.postgres_store --dsn postgresql://user@host/database --encrypted

With --encrypted, they are a plain and an encrypted bank in PostgreSQL, without the entity graph. The two stores get
the same English texts as `StreamRetain` stores them, by several callers, and are called in turns, so that both meet
the same load of the machine. Calls enter at the gate, without gRPC. The schema is dropped at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg

from astrocyte.api.requests import CreateBank, Recall, StreamRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from benches.corpus import english_texts

ME = Caller()
WORDS = 16
SEED = 20_261_128
# Items of a call, as the server gathers those of a stream; and callers.
BATCH = 64
WRITERS = 4
# Texts of a turn.
TURN = 1_024


async def fill(app: App, contents: Sequence[str]) -> float:
    """Retain texts in batches by several callers; returns the seconds until all were acknowledged."""
    starts = iter(range(0, len(contents), BATCH))

    async def writer() -> None:
        for start in starts:
            items = [RetainItem(content) for content in contents[start : start + BATCH]]
            await app.backend.call(ME, StreamRetain("b", items, [None] * len(items)))

    began = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(WRITERS)))
    return time.perf_counter() - began


async def recalled(app: App, query: str) -> float:
    """Seconds of a recall."""
    began = time.perf_counter()
    found = await app.backend.call(ME, Recall(RecallQuery(query, "b", max_results=10)))
    assert found.hits
    return time.perf_counter() - began


def sides(dsn: str, schema: str, folder: str, *, encrypted: bool) -> dict[str, App]:
    """The two applications by name; the first is the one that the other is compared with."""
    store: dict[str, Any] = {"backend": "postgres", "dsn": dsn, "schema_name": schema}
    if not encrypted:
        return {
            "sqlite": App(Settings.from_mapping({"data_dir": folder})),
            "postgres": App(Settings.from_mapping({"store": store})),
        }
    graph = {"entity_graph": {"enabled": False}}
    sealed = {**store, "schema_name": f"{schema}_e", "encryption": {"enabled": True, "directory": folder}}
    return {
        "plain": App(Settings.from_mapping({"store": store, **graph})),
        "encrypted": App(Settings.from_mapping({"store": sealed, **graph})),
    }


async def compare(dsn: str, schema: str, memories: int, recalls: int, *, encrypted: bool) -> dict[str, Any]:
    """Figures of both stores."""
    contents = english_texts(memories, words=WORDS, seed=SEED)
    with tempfile.TemporaryDirectory() as folder:
        apps = sides(dsn, schema, folder, encrypted=encrypted)
        try:
            figures: dict[str, Any] = {name: {} for name in apps}
            seconds = dict.fromkeys(apps, 0.0)
            for app in apps.values():
                app.start_purging()
                await app.backend.call(ME, CreateBank("b"))
            for start in range(0, memories, TURN):
                for name, app in apps.items():
                    seconds[name] += await fill(app, contents[start : start + TURN])
            for name, took in seconds.items():
                figures[name]["retains_per_second"] = round(memories / took)
            chosen = random.Random(SEED)
            times: dict[str, list[float]] = {name: [] for name in apps}
            for number in range(recalls + 20):
                query = " ".join(chosen.sample(chosen.choice(contents).split(), 4))
                # Either is first as often: what the first one reads is warm for the other.
                for name in sorted(apps, reverse=bool(number % 2)):
                    took = await recalled(apps[name], query)
                    if number >= 20:
                        times[name].append(took)
            for name, own in times.items():
                figures[name]["recall_p50_ms"] = round(statistics.median(own) * 1_000, 3)
                figures[name]["recall_p90_ms"] = round(statistics.quantiles(own, n=10)[-1] * 1_000, 3)
        finally:
            for app in apps.values():
                await app.close()
    first, second = figures.values()
    figures["recall_p50_ratio"] = round(second["recall_p50_ms"] / first["recall_p50_ms"], 2)
    figures["retains_ratio"] = round(second["retains_per_second"] / first["retains_per_second"], 2)
    return figures


def main() -> None:
    """Measure, print, drop the schema."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--recalls", type=int, default=500)
    parser.add_argument("--encrypted", action="store_true", help="compare an encrypted bank with a plain one")
    asked = parser.parse_args()
    schema = f"bench_{uuid.uuid4().hex}"
    try:
        figures = asyncio.run(compare(asked.dsn, schema, asked.memories, asked.recalls, encrypted=asked.encrypted))
        print(json.dumps(figures, indent=1))
    finally:
        with psycopg.connect(asked.dsn, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}", "{schema}_e" CASCADE')


if __name__ == "__main__":
    main()
