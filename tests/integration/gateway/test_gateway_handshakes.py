"""Connections that never finish a TLS handshake are bounded in number and time."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.server import server_of
from harness.certificates import certificates
from harness.http_requests import connect

MOST_CONNECTIONS = 3


@asynccontextmanager
async def secured(folder: Path, header_seconds: float) -> AsyncIterator[tuple[str, ssl.SSLContext]]:
    """URL of a gateway with TLS, and whom its clients trust."""
    files = certificates(folder)
    server = {"port": 0, "tls_cert_file": str(files["server.pem"]), "tls_key_file": str(files["server.key"])}
    gateway = {"port": 0, "header_timeout_seconds": header_seconds, "max_connections": MOST_CONNECTIONS}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "server": server, "gateway": gateway}))
    listening = server_of(app)
    await listening.start()
    try:
        yield str(listening.http_address), ssl.create_default_context(cafile=str(files["ca.pem"]))
    finally:
        await listening.stop(0)
        await app.close()


async def answers(url: str, trusted: ssl.SSLContext) -> bool:
    """True if a client is answered."""
    async with httpx.AsyncClient(base_url=url, verify=trusted, timeout=20) as client:
        try:
            return (await client.get("/healthz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


async def test_a_handshake_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    async with secured(tmp_path, 1.0) as (url, trusted):
        started = time.monotonic()
        silent = [await connect(url) for _ in range(MOST_CONNECTIONS - 1)]
        # The first bytes of a record that is longer than what follows.
        for _, writer in silent:
            writer.write(b"\x16\x03\x01\x02\x00\x01")
        for reader, writer in silent:
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
        assert time.monotonic() - started < 15
        assert await answers(url, trusted)


async def test_handshakes_count_as_connections(tmp_path: Path) -> None:
    async with secured(tmp_path, 30.0) as (url, trusted):
        assert await answers(url, trusted)
        silent = [await connect(url) for _ in range(MOST_CONNECTIONS)]
        await asyncio.sleep(0.2)
        assert not await answers(url, trusted)
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.2)
        assert await answers(url, trusted)


async def test_bytes_that_are_no_tls_end_their_connection(tmp_path: Path) -> None:
    async with secured(tmp_path, 30.0) as (url, trusted):
        reader, writer = await connect(url)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(), 20)
        writer.close()
        assert await answers(url, trusted)


async def test_a_request_right_behind_the_handshake_is_answered(tmp_path: Path) -> None:
    async with secured(tmp_path, 30.0) as (url, trusted):
        for _ in range(10):
            host, port = url.removeprefix("https://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port), ssl=trusted, server_hostname="localhost")
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 200 ")
            writer.close()
