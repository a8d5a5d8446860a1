"""The retry queue under kill -9: what was accepted is stored once, in order; what was forgotten, never."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import Forget, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import Caller, ForgetSelector, RetainItem
from astrocyte.policy.gate import Gate
from doubles.remote_embedders import RemoteEmbedder, remote_app

pytestmark = pytest.mark.process

ME = Caller()
BANKS = ("a", "b", "c")
# One of so many is forgotten while it waits.
FORGOTTEN = 10


def settings(folder: Path) -> dict[str, Any]:
    breaker = {"failure_threshold": 1, "recovery_timeout_seconds": 0.2, "half_open_max_calls": 1}
    return {"vector_store": "sqlite", "data_dir": str(folder), "escalation": {"circuit_breaker": breaker}}


def serve(folder: Path, count: int, down: bool, pipe: Connection) -> None:
    """Send what a client sends, in order by bank, from the beginning, with its request ids; tell what was answered.

    While the embedder is down everything waits; when it is up, tell how many are stored, until nothing waits.
    """

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            app = remote_app(patch, RemoteEmbedder(down=down), **settings(folder))
        telling = None if down else asyncio.create_task(tell(app.gate, pipe))
        await asyncio.gather(*(send(app.gate, bank, count, pipe) for bank in BANKS))
        while not down and app.gate._memories._store.queued_banks():  # type: ignore[attr-defined]  # noqa: ASYNC110 - a queue without an event
            await asyncio.sleep(0.002)
        if telling is not None:
            telling.cancel()
        await app.close()
        pipe.send(("done", 0))

    asyncio.run(run())


async def tell(gate: Gate, pipe: Connection) -> None:
    """The number stored from the beginning: on a busy machine all may be before the last is sent again."""
    while True:
        pipe.send(("stored", sum(len(stored(gate, bank)) for bank in BANKS)))
        await asyncio.sleep(0.002)


async def send(gate: Gate, bank: str, count: int, pipe: Connection) -> None:
    for n in range(count):
        result = None
        while result is None:
            try:
                result = await gate.call(ME, Retain(bank, RetainItem(f"{bank} {n}"), request_id=f"{bank}-{n}"))
            except AstrocyteError:
                await asyncio.sleep(0.001)
        pipe.send(("accepted", n))
        if n % FORGOTTEN == 0:
            # A second time it may be gone, or be stored by now: forgotten is forgotten.
            selector = ForgetSelector(memory_ids=(result.memory_id or "",))
            await gate.call(ME, Forget(bank, selector))
            pipe.send(("forgotten", n))


def stored(gate: Gate, bank: str) -> list[str]:
    """Contents in order of arrival."""
    found = gate._memories._store.get_bank("default", bank)
    if found is None:
        return []
    rows, _ = gate._memories._store.list_memories(
        found, tags=(), session_id=None, at_position=found.position, after=0, limit=100_000
    )
    return [memory.content for _, memory in rows]


def run(folder: Path, count: int, *, down: bool, kill_at: tuple[str, int] | None) -> None:
    """A server's life; it is killed when it has told of so many of something."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(folder, count, down, theirs))
    process.start()
    theirs.close()
    told = dict.fromkeys(("accepted", "forgotten", "stored", "done"), 0)
    for kind, number in messages(ours):
        told[kind] = max(told[kind], number) if kind == "stored" else told[kind] + 1
        if kill_at is not None and told[kill_at[0]] >= kill_at[1]:
            os.kill(process.pid or 0, signal.SIGKILL)
            break
    process.join()
    assert process.exitcode == (0 if kill_at is None else -signal.SIGKILL), told


def messages(pipe: Connection) -> Iterator[tuple[str, int]]:
    while True:
        try:
            yield pipe.recv()
        except EOFError:
            return


def check(folder: Path, count: int) -> None:
    run(folder, count, down=True, kill_at=("accepted", count * len(BANKS) * 2 // 3))
    run(folder, count, down=False, kill_at=("stored", count))
    run(folder, count, down=False, kill_at=None)

    async def look() -> dict[str, list[str]]:
        app = App(Settings.from_mapping(settings(folder)))
        try:
            return {bank: stored(app.gate, bank) for bank in BANKS}
        finally:
            await app.close()

    expected = {bank: [f"{bank} {n}" for n in range(count) if n % FORGOTTEN] for bank in BANKS}
    assert asyncio.run(look()) == expected


# Three processes start one after the other, which takes its time on a crowded machine.
@pytest.mark.timeout(300)
def test_two_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    check(tmp_path / "data", 60)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_kills_of_five_thousand(tmp_path: Path) -> None:
    check(tmp_path / "data", 1_667)
