"""Bodies, heads, connections and times of HTTP are bounded, and broken requests are refused."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest

from astrocyte.api.requests import CreateBank
from astrocyte.errors import ConfigError
from astrocyte.gateway.protocol import Connection
from astrocyte.model import Caller
from harness.http_requests import JSON, code, connect, http, raw
from harness.serving import serving


async def test_a_body_beyond_the_limit_is_refused_unread() -> None:
    async with serving(gateway={"port": 0}, server={"max_message_bytes": 2_048}) as served, http(served) as client:
        response = await client.post("/v1/retain", content=b"x" * 4_096, headers=JSON)
        assert (response.status_code, code(response)) == (413, "message_too_large")

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(8):
                yield b"x" * 1_024

        response = await client.post("/v1/retain", content=pieces(), headers=JSON)
        assert (response.status_code, code(response)) == (413, "message_too_large")
        lines = {"content-type": "application/x-ndjson"}
        response = await client.post("/v1/retain:stream", content=b"x" * 4_096, headers=lines)
        assert '"message_too_large"' in response.text
        declared = b"POST /v1/retain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        status, _ = await raw(served, declared + b"content-length: 99999999999999999999\r\nconnection: close\r\n\r\n")
        assert status in {400, 413}


async def test_an_answer_beyond_the_limit_is_refused() -> None:
    """A page ends before it; what cannot be divided fails."""
    async with serving(gateway={"port": 0}, server={"max_answer_bytes": 2_048}) as served, http(served) as client:
        for number in range(8):
            body = {"bank_id": "family", "content": f"Mara wrote letter {number}: " + "and so on " * 60}
            assert (await client.post("/v1/retain", json=body)).status_code == 200
        page = (await client.get("/v1/banks/family/memories")).json()
        assert 0 < len(page["memories"]) < 8
        assert page["next_page_token"]
        asked = {"bank_id": "family", "query": "letter", "detail_level": "full", "max_results": 8}
        response = await client.post("/v1/recall", json=asked)
        assert (response.status_code, code(response)) == (413, "message_too_large")


async def test_a_head_beyond_the_limit_is_refused() -> None:
    async with serving(gateway={"port": 0, "max_header_bytes": 4_096}) as served:
        get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
        assert (await raw(served, get + b"a: " + b"x" * 8_192 + b"\r\n\r\n"))[0] == 431
        assert (await raw(served, get + b"".join(b"a%d: x\r\n" % n for n in range(2_000)) + b"\r\n"))[0] == 431
        assert (await raw(served, b"GET /" + b"x" * 8_192 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"))[0] == 431
        # A value that never ends is not collected.
        piece = b"x" * 65_536
        assert (await raw(served, get + b"a: ", *[piece] * 40))[0] in {0, 431}
        assert (await raw(served, get + b"connection: close\r\n\r\n"))[0] == 200


async def test_a_head_that_does_not_end_is_cut_off() -> None:
    async with serving(gateway={"port": 0, "header_timeout_seconds": 0.3}) as served:
        started = time.monotonic()
        assert (await raw(served, b"GET /healthz HTTP/1.1\r\nhost: loc"))[0] == 408
        assert (await raw(served, b""))[0] == 408
        # The time counts from the first byte of a request, whatever came before on the connection.
        whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        status, body = await raw(served, whole, b"GET /healthz HTT")
        assert (status, b"request_timeout" in body) == (200, True)
        assert time.monotonic() - started < 5


async def test_a_body_that_does_not_end_has_the_deadline_of_its_call() -> None:
    async with serving(gateway={"port": 0}, server={"write_deadline_seconds": 0.3}) as served:
        head = b"POST /v1/retain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        status, body = await raw(served, head + b"content-length: 100\r\nconnection: close\r\n\r\n", b'{"content": ')
        assert (status, b"deadline_exceeded" in body) == (504, True)


async def test_connections_are_bounded() -> None:
    async with serving(gateway={"port": 0, "max_connections": 3}) as served:
        held = [await connect(served) for _ in range(3)]
        await asyncio.sleep(0.05)
        status, body = await raw(served, b"")
        assert (status, b"overloaded" in body) == (503, True)
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.05)
        assert (await raw(served, b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))[0] == 200


async def test_a_client_that_does_not_read_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "send_seconds", 0.3)
    async with serving(gateway={"port": 0}) as served:
        gateway = served.server._gateway
        assert gateway is not None
        state = gateway._uvicorn.server_state
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
            connection.setblocking(False)
            host, _, port = str(served.server.http_address).removeprefix("http://").rpartition(":")
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, (host, int(port)))
            request = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n"
            await loop.sock_sendall(connection, request)
            await asyncio.sleep(0.1)
            assert len(state.connections) == 1
            for _ in range(500):
                if not state.connections and not state.tasks:
                    break
                await asyncio.sleep(0.02)
            assert (state.connections, state.tasks) == (set(), set())


async def test_a_client_that_reads_slowly_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "send_seconds", 0.3)
    async with serving(gateway={"port": 0}) as served:
        reader, writer = await connect(served)
        writer.write(b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        received = 0
        while piece := await reader.read(1 << 16):
            received += len(piece)
            await asyncio.sleep(0.04)
        assert received > 1_700_000
        writer.close()


async def test_an_address_in_use_is_an_error_of_the_settings() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port} for HTTP"):
            async with serving(gateway={"port": port}):
                pass


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"\r\n" * 50 + b"x y z\r\n",
    ],
)
async def test_bytes_that_are_no_request_are_refused(sent: bytes) -> None:
    async with serving(gateway={"port": 0, "header_timeout_seconds": 0.5}) as served:
        assert (await raw(served, sent))[0] in {400, 408}
        assert (await raw(served, b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))[0] == 200


async def test_two_lengths_of_a_body_are_refused() -> None:
    """Of a request with two lengths, a proxy may have read another body than we do."""
    head = b"POST /v1/recall HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    async with serving(gateway={"port": 0}) as served:
        both = head + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n"
        assert (await raw(served, both))[0] == 400
        twice = head + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x"
        assert (await raw(served, twice))[0] == 400


async def test_places_are_shared_with_grpc() -> None:
    """A limit of calls at once holds for both doors together."""
    async with serving(gateway={"port": 0}, server={"stream_concurrency": 1}) as served, http(served) as client:
        await served.backend.call(Caller(), CreateBank("family"))
        path = "/v1/banks/family/changes"
        async with client.stream("GET", path) as first:
            assert first.status_code == 200
            second = await client.get(path)
            assert (second.status_code, code(second)) == (429, "overloaded")
            assert int(second.headers["retry-after"]) >= 1
        await asyncio.sleep(0.1)
        async with client.stream("GET", path) as third:
            assert third.status_code == 200
