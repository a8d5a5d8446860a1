"""Costs of one server on PostgreSQL, measured, and a mixed run that they must predict."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import psycopg
import structlog
from psycopg import pq

from astrocyte.api.requests import BatchRetain, Recall, Retain
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.stores.postgres.engine import connection
from astrocyte.stores.postgres.engine.exchange import Message, exchange
from benches.fleet.model import Costs
from benches.machine import processor_seconds, resident_bytes

ME = Caller()
WORDS = [f"word{number}" for number in range(2_000)]
# Calls of a block; blocks of all kinds take turns, so that other load of the machine meets all of them.
BLOCK = 60
ROUNDS = 8
# Calls at a time: the server is never without work.
CALLERS = 4
WARM_CALLS = 200
# Of a mixed run: retains for each recall.
RETAIN_SHARE = 0.1

Call = Callable[[RemoteBackend, random.Random], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs, and a mixed run.

    Attributes:
        costs: Of pure blocks.
        predicted, measured: Calls in a second of the server's processor, in mixed blocks.
        per_second: The same in a second of the clock, beside the load of the machine and of the client.
    """

    costs: Costs
    predicted: float
    measured: float
    per_second: float


def _sentence(chosen: random.Random) -> str:
    return f"Note {chosen.getrandbits(60)}: " + " ".join(chosen.choices(WORDS, k=12))


def _bank(chosen: random.Random, banks: int) -> str:
    """A bank by Zipf's law, of those that are filled."""
    return f"bank-{min(banks - 1, int(banks ** chosen.random()))}"


class Bench:
    """A server in a process of its own on a schema of its own.

    Args:
        dsn: Of the database.
        schema: Of the tables.
        banks: Filled banks.
        memories: Of each.
    """

    def __init__(self, dsn: str, schema: str, banks: int, memories: int) -> None:
        self._dsn, self._schema, self._banks, self._memories = dsn, schema, banks, memories
        self._start()

    def _start(self) -> None:
        store = {"BACKEND": "postgres", "DSN": self._dsn, "SCHEMA_NAME": self._schema}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "astrocyte", "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **{f"ASTROCYTE_STORE__{name}": value for name, value in store.items()}},
        )
        stdout = self._process.stdout
        self._backend = RemoteBackend(stdout.readline().split()[-1] if stdout is not None else "")

    async def measure(self, seed: int) -> Measured:
        """Fill, restart, load the banks, then take turns between the kinds of calls."""
        chosen = random.Random(seed)
        for bank in range(self._banks):
            items = [RetainItem(_sentence(chosen)) for _ in range(self._memories)]
            await self._backend.call(ME, BatchRetain(f"bank-{bank}", items))
        await self.close()
        self._start()
        await self._recall(self._backend, chosen)
        before, used = resident_bytes(self._process.pid), processor_seconds(self._process.pid)
        for bank in range(self._banks):
            await self._recall_of(bank, chosen)
        loading = (processor_seconds(self._process.pid) - used) / self._banks
        growth = (resident_bytes(self._process.pid) - before) / self._banks
        await self._calls(self._recall, chosen, WARM_CALLS)
        blocks: dict[str, list[tuple[float, float, float]]] = {"recall": [], "retain": [], "mixed": []}
        kinds = {"recall": self._recall, "retain": self._retain, "mixed": self._mixed}
        spent: list[float] = []
        for _ in range(ROUNDS):
            for name, call in kinds.items():
                blocks[name].append(await self._block(call, chosen, spent if name == "recall" else []))
        cost = {name: sum(block[0] for block in found) / (ROUNDS * BLOCK) for name, found in blocks.items()}
        database = {name: sum(block[1] for block in found) / (ROUNDS * BLOCK) for name, found in blocks.items()}
        counted = await _statements(self._dsn, f"{self._schema}_counted")
        costs = Costs(
            recall_ms=cost["recall"] * 1_000,
            retain_ms=cost["retain"] * 1_000,
            recall_statements=counted["recall"],
            retain_statements=counted["retain"],
            statement_ms=database["recall"] * 1_000 / counted["recall"],
            retain_database_ms=database["retain"] * 1_000,
            load_ms=max(0.0, loading - cost["recall"]) * 1_000,
            bank_kb=growth / 1_024,
            process_mb=before / 1_024**2,
            variation=_variation(spent),
        )
        predicted = (1 + RETAIN_SHARE) / (cost["recall"] + RETAIN_SHARE * cost["retain"])
        seconds = sum(block[2] for block in blocks["mixed"])
        return Measured(costs, predicted, 1 / cost["mixed"], ROUNDS * BLOCK / seconds)

    async def _block(self, call: Call, chosen: random.Random, spent: list[float]) -> tuple[float, float, float]:
        """Seconds of the server's processor, of the database's, and of the clock."""
        began, used, database = time.monotonic(), processor_seconds(self._process.pid), self._database_seconds()
        await self._calls(call, chosen, BLOCK, spent)
        server = processor_seconds(self._process.pid) - used
        return server, self._database_seconds() - database, time.monotonic() - began

    async def _calls(self, call: Call, chosen: random.Random, count: int, spent: list[float] | None = None) -> None:
        left = iter(range(count))

        async def caller() -> None:
            for _ in left:
                began = time.monotonic()
                await call(self._backend, chosen)
                if spent is not None:
                    spent.append(time.monotonic() - began)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    def _database_seconds(self) -> float:
        """Processor time of the sessions of the server so far; 0 where the database is on another machine."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'astrocyte' AND datname = current_database()"
            ).fetchall()
        return sum(processor_seconds(pid) for (pid,) in rows)

    async def _recall(self, backend: RemoteBackend, chosen: random.Random) -> object:
        query = " ".join(chosen.choices(WORDS, k=4))
        return await backend.call(ME, Recall(RecallQuery(query, _bank(chosen, self._banks))))

    async def _recall_of(self, bank: int, chosen: random.Random) -> None:
        query = " ".join(chosen.choices(WORDS, k=4))
        await self._backend.call(ME, Recall(RecallQuery(query, f"bank-{bank}")))

    async def _retain(self, backend: RemoteBackend, chosen: random.Random) -> object:
        return await backend.call(ME, Retain(_bank(chosen, self._banks), RetainItem(_sentence(chosen))))

    async def _mixed(self, backend: RemoteBackend, chosen: random.Random) -> object:
        writes = chosen.random() < RETAIN_SHARE / (1 + RETAIN_SHARE)
        return await (self._retain if writes else self._recall)(backend, chosen)

    async def close(self) -> None:
        """End the server."""
        await self._backend.close()
        self._process.terminate()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


async def _statements(dsn: str, schema: str) -> dict[str, float]:
    """Statements of a recall and of a retain, counted in this process, each the median of several."""
    count = 0

    def counted(pg: pq.abc.PGconn, messages: Sequence[Message], silence_seconds: float | None) -> list[pq.abc.PGresult]:
        nonlocal count
        count += len(messages)
        return exchange(pg, messages, silence_seconds)

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    store = {"backend": "postgres", "dsn": dsn, "schema_name": schema}
    app = App(Settings.from_mapping({"store": store}))
    found: dict[str, list[int]] = {"recall": [], "retain": []}
    try:
        await app.backend.call(ME, Retain("b", RetainItem("The first note")))
        with patch.object(connection, "exchange", counted):
            for number in range(30):
                for name, request in (
                    ("retain", Retain("b", RetainItem(f"Note {number}"))),
                    ("recall", Recall(RecallQuery("note", "b"))),
                ):
                    before = count
                    await app.backend.call(ME, request)
                    found[name].append(count - before)
    finally:
        await app.close()
        _drop(dsn, schema)
    return {name: float(statistics.median(counts)) for name, counts in found.items()}


def _variation(spent: list[float]) -> float:
    """Deviation over mean, of the middle nine tenths: the rest is other load of the machine."""
    middle = sorted(spent)[len(spent) // 20 : -max(1, len(spent) // 20)]
    return statistics.pstdev(middle) / statistics.mean(middle)


def _drop(dsn: str, schema: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())


async def measured(dsn: str, *, banks: int, memories: int, seed: int) -> Measured:
    """Measure on schemas that are dropped at the end."""
    schema = f"bench_{uuid.uuid4().hex}"
    bench = Bench(dsn, schema, banks, memories)
    try:
        return await bench.measure(seed)
    finally:
        await bench.close()
        _drop(dsn, schema)
