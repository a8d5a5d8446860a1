"""The outbox under kill -9: an engine ends up with what was acknowledged, once, in order, and nothing forgotten."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import Forget, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    Caller,
    ForgetResult,
    ForgetSelector,
    RecallQuery,
    ReflectQuery,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.gate import Gate
from astrocyte.providers.engines import (
    EngineAnswer,
    EngineCall,
    EngineCapabilities,
    EngineHealth,
    EngineItem,
    EngineReflection,
)
from astrocyte.providers.hybrid import HybridEngineProvider

pytestmark = pytest.mark.process

ME = Caller()
BANKS = ("a", "b")
# One of so many is forgotten, the one after it erased.
FORGOTTEN = 7


class Log:
    """An engine that outlives the server: it writes down what it is told, and reads it to know what it holds."""

    def __init__(self, path: Path, *, down: bool = False) -> None:
        self._path, self._down = path, down

    def capabilities(self) -> EngineCapabilities:
        return EngineCapabilities()

    async def health(self) -> EngineHealth:
        return EngineHealth(healthy=True)

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        return EngineAnswer(())

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        raise AssertionError("this engine is never asked to reflect")

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        for one in items:
            self._write("retain", call.bank_id, one.request_id, one.origin, one.item.content)
        return [RetainResult(stored=True) for _ in items]

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        for memory_id in selector.memory_ids:
            self._write("forget", call.bank_id, memory_id)
        return ForgetResult(len(selector.memory_ids))

    async def close(self) -> None:
        return

    def _write(self, *line: str | None) -> None:
        if self._down:
            raise ConnectionRefusedError
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def told(self) -> list[list[str]]:
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]

    def holds(self, bank: str) -> list[str]:
        """Its memories, in the order in which it first received them."""
        held: dict[str, str] = {}
        requests = set[str]()
        for kind, where, *rest in self.told():
            if where != bank:
                continue
            if kind == "forget":
                held.pop(rest[0], None)
            elif rest[0] not in requests:
                requests.add(rest[0])
                held[rest[1]] = rest[2]
        return list(held.values())


def application(folder: Path, *, down: bool) -> App:
    breaker = {"failure_threshold": 3, "recovery_timeout_seconds": 0.1, "half_open_max_calls": 1}
    values = {"vector_store": "sqlite", "data_dir": str(folder / "data"), "escalation": {"circuit_breaker": breaker}}
    app = App(Settings.from_mapping(values))
    engine = Log(folder / "engine", down=down)
    app.providers.engines.attach(HybridEngineProvider(engine, name="log", options={"retain_target": "both"}))
    return app


def serve(folder: Path, count: int, down: bool, pipe: Connection) -> None:
    """Do what a client asks for, in order by bank, from the beginning, with its request ids; tell what was answered."""

    async def run() -> None:
        app = application(folder, down=down)
        await asyncio.gather(*(send(app.gate, bank, count, pipe) for bank in BANKS))
        while not down and app.storage.store.outbox.waiting_count("log"):  # noqa: ASYNC110 - an outbox without an event
            await asyncio.sleep(0.002)
        await app.close()
        pipe.send("done")

    asyncio.run(run())


async def send(gate: Gate, bank: str, count: int, pipe: Connection) -> None:
    for n in range(count):
        # An unfinished forget is finished in the background, or by the next life of the client.
        result = await gate.call(ME, Retain(bank, RetainItem(f"{bank} {n}"), request_id=f"{bank}-{n}"))
        if n % FORGOTTEN in {0, 1}:
            selector = ForgetSelector(memory_ids=(result.memory_id or "",))
            try:
                await gate.call(
                    ME, Forget(bank, selector, compliance=bool(n % FORGOTTEN), request_id=f"{bank}-{n}-forget")
                )
            except AstrocyteError as error:
                if error.reason not in {"PROVIDER_UNAVAILABLE", "CIRCUIT_OPEN"}:
                    raise
        pipe.send("answered")


def run(folder: Path, count: int, *, down: bool, kill_at: int | None) -> None:
    """A server's life; it is killed when it has told of so many answers."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(folder, count, down, theirs))
    process.start()
    theirs.close()
    told: list[Any] = []
    try:
        while True:
            told.append(ours.recv())
            if len(told) == kill_at:
                os.kill(process.pid or 0, signal.SIGKILL)
                break
    except EOFError:
        pass
    process.join()
    assert process.exitcode == (0 if kill_at is None else -signal.SIGKILL), told[-1:]


# Processes start one after the other, which takes its time on a crowded machine.
@pytest.mark.timeout(300)
def test_two_kills_leave_an_engine_with_what_the_server_has(tmp_path: Path) -> None:
    count = 40
    run(tmp_path, count, down=True, kill_at=count)
    # In the middle of catching up: what was away is told, and more is coming.
    run(tmp_path, count, down=False, kill_at=count)
    run(tmp_path, count, down=False, kill_at=None)
    log = Log(tmp_path / "engine")
    for bank in BANKS:
        assert log.holds(bank) == [f"{bank} {n}" for n in range(count) if n % FORGOTTEN not in {0, 1}]

    async def waiting() -> int:
        app = application(tmp_path, down=True)
        try:
            return app.storage.store.outbox.waiting_count("log")
        finally:
            await app.close()

    assert asyncio.run(waiting()) == 0
