"""The gateway stops with the gRPC server: calls finish, streams end, new calls are sent elsewhere."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from astrocyte.api.requests import CreateBank
from astrocyte.model import Caller
from astrocyte.policy.gate import Gate
from harness.http_requests import code, connect, http
from harness.serving import serving


async def test_both_doors_are_ready_together() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        assert (await client.get("/readyz")).json() == {"status": "serving"}
        await served.server._health.stop()
        response = await client.get("/readyz")
        assert (response.status_code, response.json()) == (503, {"status": "not_serving"})
        assert (await client.get("/healthz")).json() == {"status": "alive"}


async def test_a_call_that_runs_is_answered_and_a_new_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original: Any = Gate.call

    async def slow(self: Gate, caller: Caller, request: Any) -> Any:
        if type(request).__name__ == "ListBanks":
            await asyncio.sleep(1)
        return await original(self, caller, request)

    monkeypatch.setattr(Gate, "call", slow)
    async with serving(gateway={"port": 0}) as served, http(served) as client, http(served) as kept:
        assert (await kept.get("/v1/server")).status_code == 200
        running = asyncio.create_task(client.get("/v1/banks"))
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(served.server.stop(5))
        await asyncio.sleep(0.4)
        # The listening socket is closed, and so is each connection without a call.
        with pytest.raises(ConnectionRefusedError):
            await connect(served)
        with pytest.raises(httpx.TransportError):
            await kept.get("/v1/server")
        answer = await running
        assert (answer.status_code, answer.json()["banks"]) == (200, [])
        assert answer.headers["connection"] == "close"
        await asyncio.wait_for(stopping, 2)


async def test_a_watch_ends_with_a_reason() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        await served.backend.call(Caller(), CreateBank("family"))
        async with client.stream("GET", "/v1/banks/family/changes") as stream:
            assert stream.status_code == 200
            stopping = asyncio.create_task(served.server.stop(5))
            text = "".join([line async for line in stream.aiter_text()])
        assert "event: error" in text
        assert '"unavailable"' in text
        await asyncio.wait_for(stopping, 2)


async def test_a_call_beyond_the_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(*_: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(Gate, "call", slow)
    async with serving(gateway={"port": 0}, server={"read_deadline_seconds": 60}) as served, http(served) as client:
        running = asyncio.create_task(client.get("/v1/banks"))
        await asyncio.sleep(0.1)
        await asyncio.wait_for(served.server.stop(0.3), 3)
        with pytest.raises(httpx.TransportError):
            await running


async def test_the_refusal_of_a_stopping_server_can_be_retried() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        served.server._draining.begin()
        response = await client.get("/v1/banks")
        assert (response.status_code, code(response)) == (503, "unavailable")


@pytest.mark.process
async def test_the_command_serves_both_and_stops_on_a_signal(tmp_path: Path) -> None:
    command = ["-m", "astrocyte", "--data-dir", str(tmp_path), "serve", "--port", "0", "--http", "0"]
    process = await started(command)
    assert process.stdout is not None
    grpc_line, http_line = [(await process.stdout.readline()).decode().split()[-1] for _ in range(2)]
    assert not grpc_line.startswith("http")
    async with httpx.AsyncClient(base_url=http_line, timeout=20) as client:
        stored = await client.post("/v1/retain", json={"bank_id": "b", "content": "Mara lives in Lisbon."})
        assert stored.json()["stored"] is True
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_an_address_without_a_port_is_refused(tmp_path: Path) -> None:
    process = await started(["-m", "astrocyte", "--data-dir", str(tmp_path), "serve", "--http", "localhost"])
    assert process.stderr is not None
    assert b"has no port; write 8080 or 127.0.0.1:8080" in await process.stderr.read()
    assert await process.wait() == 2


async def started(arguments: list[str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=pipe, stderr=pipe)
