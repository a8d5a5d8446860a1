"""Stopping: what was acknowledged is kept, what runs finishes, what waits is told, and the process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from astrocyte.api.requests import ListMemories, Recall
from astrocyte.app import App
from astrocyte.client import translate
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, Unavailable
from astrocyte.model import Caller
from astrocyte.v1 import memory_pb2, memory_pb2_grpc
from harness.serving import Served, reason, serving

BANK = "ledger"


class Ledger:
    """Clients that retain without pause and note what was acknowledged."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory: Any = memory_pb2_grpc.MemoryServiceStub(channel)
        self.acknowledged: list[str] = []
        self.failures: list[AstrocyteError] = []

    async def run(self, name: int) -> None:
        try:
            for number in range(1_000_000):
                content = f"Clerk {name} stamped parcel {number} at the counter."
                result = await self._memory.Retain(memory_pb2.RetainRequest(bank_id=BANK, content=content), timeout=20)
                self.acknowledged.append(result.memory_id)
        except grpc.aio.AioRpcError as error:
            self.failures.append(translate(error))

    async def stream(self) -> None:
        async def requests() -> AsyncIterator[memory_pb2.StreamRetainRequest]:
            for number in range(1_000_000):
                item = memory_pb2.RetainItem(content=f"Letter {number} went out with the evening post.")
                yield memory_pb2.StreamRetainRequest(sequence=number, bank_id=BANK, item=item)
                await asyncio.sleep(0.001)

        try:
            async for answer in self._memory.StreamRetain(requests()):
                assert answer.HasField("result"), answer.error.message
                self.acknowledged.append(answer.result.memory_id)
        except grpc.aio.AioRpcError as error:
            self.failures.append(translate(error))

    def load(self) -> list[asyncio.Task[None]]:
        runs = [self.run(name) for name in range(8)]
        return [asyncio.create_task(work) for work in (*runs, self.stream())]


async def kept(folder: Path) -> set[str]:
    """Ids of all memories in a data directory."""
    app = App(Settings.from_mapping({"data_dir": str(folder)}))
    ids, token = set(), ""
    while True:
        page = await app.gate.call(Caller(), ListMemories(BANK, page_size=1_000, page_token=token))
        ids |= {memory.memory_id for memory in page.memories}
        token = page.next_page_token
        if not token:
            break
    await app.close()
    return ids


@pytest.mark.parametrize("count", [21, 200])
async def test_stopping_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, count: int) -> None:
    async with serving(vector_store="sqlite", data_dir=str(tmp_path)) as served:
        ledger = Ledger(served.channel)
        load = ledger.load()
        async with asyncio.timeout(60):
            while len(ledger.acknowledged) < count:  # noqa: ASYNC110 - however long that takes
                await asyncio.sleep(0.01)
        await asyncio.wait_for(served.server.stop(), 60)
        await asyncio.wait_for(asyncio.gather(*load), 60)
    assert {type(failure) for failure in ledger.failures} == {Unavailable}, ledger.failures
    missing = set(ledger.acknowledged) - await kept(tmp_path)
    assert not missing


async def test_calls_that_run_finish_and_new_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        await served.memory.Retain(memory_pb2.RetainRequest(bank_id=BANK, content="A letter."))
        release, entered = asyncio.Event(), asyncio.Event()
        recall = served.app.gate._handlers[Recall]

        async def held(*arguments: Any) -> Any:
            entered.set()
            await release.wait()
            return await recall(*arguments)

        monkeypatch.setitem(served.app.gate._handlers, Recall, held)
        request = memory_pb2.RecallRequest(bank_id=BANK, query="letter")
        running = asyncio.ensure_future(served.memory.Recall(request))
        await entered.wait()
        stopping = asyncio.create_task(served.server.stop(10))
        await asyncio.sleep(0.2)
        # The connection takes no more calls, and there is no other one to be had.
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await served.memory.Recall(request, timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not stopping.done()
        release.set()
        assert (await running).hits
        await asyncio.wait_for(stopping, 5)


async def test_a_call_that_does_not_end_is_cut_off_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        entered = asyncio.Event()

        async def stuck(*_: Any) -> None:
            entered.set()
            await asyncio.sleep(600)

        monkeypatch.setitem(served.app.gate._handlers, Recall, stuck)
        running = asyncio.ensure_future(served.memory.Recall(memory_pb2.RecallRequest(bank_id=BANK, query="q")))
        await entered.wait()
        begun = time.monotonic()
        await served.server.stop(0.3)
        assert time.monotonic() - begun < 60
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running
        assert caught.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


async def watch_health(served: Served, begun: asyncio.Event) -> list[int]:
    seen = []
    watch = health_pb2_grpc.HealthStub(served.channel).Watch(health_pb2.HealthCheckRequest(service=""))
    try:
        async for answer in watch:
            seen.append(answer.status)
            begun.set()
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017 - the code after the answers
    return seen


async def test_what_only_waits_is_told_and_does_not_hold_up_the_stop() -> None:
    async with serving() as served:
        await served.memory.Retain(memory_pb2.RetainRequest(bank_id=BANK, content="A letter."))
        watching = asyncio.Event()
        health = asyncio.create_task(watch_health(served, watching))
        await watching.wait()
        watch = served.memory.Watch(memory_pb2.WatchRequest(bank_id=BANK))
        await watch.wait_for_connection()
        begun = time.monotonic()
        await served.server.stop(120)
        assert time.monotonic() - begun < 60
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await watch.read()
        assert (ended.value.code(), reason(ended.value)) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        statuses = health_pb2.HealthCheckResponse
        assert await health == [statuses.SERVING, statuses.NOT_SERVING]


PROGRAM = """
import asyncio, sys
import structlog
from astrocyte.app import App
from astrocyte.client import translate
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, Unavailable
from astrocyte.server import serve

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
settings = Settings.from_mapping({"data_dir": sys.argv[1], "server": {"port": 0}})
asyncio.run(serve(App(settings), announce=lambda address: print(address, flush=True)))
print("closed", flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_process_cleanly_under_load(tmp_path: Path, number: signal.Signals) -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert program.stdout is not None
    address = (await asyncio.wait_for(program.stdout.readline(), 30)).decode().strip()
    async with grpc.aio.insecure_channel(address) as channel:
        ledger = Ledger(channel)
        load = ledger.load()
        await asyncio.sleep(0.5)
        program.send_signal(number)
        output, errors = await asyncio.wait_for(program.communicate(), 20)
        await asyncio.wait_for(asyncio.gather(*load), 10)
    assert (program.returncode, output.decode().split()[-1:]) == (0, ["closed"]), errors.decode()
    assert b"Traceback" not in errors
    assert {type(failure) for failure in ledger.failures} == {Unavailable}, ledger.failures
    assert len(ledger.acknowledged) > 20
    assert set(ledger.acknowledged) <= await kept(tmp_path)


async def test_a_client_that_balances_over_servers_loses_no_call_by_a_restart() -> None:
    answered, stopped = 0, False
    request = health_pb2.HealthCheckRequest()

    async def load(channel: grpc.aio.Channel) -> None:
        nonlocal answered
        memory: Any = memory_pb2_grpc.MemoryServiceStub(channel)
        health = health_pb2_grpc.HealthStub(channel)
        while not stopped:
            await memory.Recall(memory_pb2.RecallRequest(bank_id=BANK, query="letter"), timeout=20)
            await health.Check(request, timeout=20)
            answered += 1

    async def start(port: int = 0) -> Served:
        served = await servers.enter_async_context(serving(server={"port": port}))
        await served.memory.Retain(memory_pb2.RetainRequest(bank_id=BANK, content="A letter."))
        return served

    async with AsyncExitStack() as servers:
        running = [await start(), await start()]
        # Several addresses are no authority, which the C core would make of them. It sends a call again only where the
        # first connection said goodbye before the call was on it: no server can spare a client that.
        options: list[tuple[str, Any]] = [
            ("grpc.lb_policy_name", "round_robin"),
            ("grpc.default_authority", "localhost"),
        ]
        target = "ipv4:" + ",".join(served.address for served in running)
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            loads = [asyncio.create_task(load(channel)) for _ in range(16)]
            for served in running:
                await asyncio.sleep(1)
                before = answered
                await served.server.stop()
                await start(int(served.address.rpartition(":")[2]))
                # The other one goes on meanwhile, and the client finds the new one.
                await asyncio.sleep(3)
                assert answered > before
            stopped = True
            await asyncio.gather(*loads)
