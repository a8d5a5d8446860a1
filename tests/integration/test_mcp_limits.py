"""Heads and connections of the MCP server over HTTP are bounded in size, time and number."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from harness.http_requests import connect, raw
from harness.processes import running_mcp_server

pytestmark = pytest.mark.process

HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
WHOLE = HEAD + b"connection: close\r\n\r\n"
MOST_CONNECTIONS = 4


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mcp")
    limits = {"header_timeout_seconds": 0.5, "max_header_bytes": 4_096, "max_connections": MOST_CONNECTIONS}
    config = folder / "astrocyte.yaml"
    config.write_text(json.dumps({"mcp": limits}))
    with running_mcp_server(folder, "--config", str(config), "--data-dir", str(folder / "data")) as found:
        yield found


async def test_a_head_that_does_not_end_is_cut_off(url: str) -> None:
    started = time.monotonic()
    assert (await raw(url, b"POST /mcp HTTP/1.1\r\nhost: loc"))[0] == 408
    assert (await raw(url, b""))[0] == 408
    assert time.monotonic() - started < 5


async def test_a_head_that_comes_byte_by_byte_is_cut_off(url: str) -> None:
    reader, writer = await connect(url)
    started = time.monotonic()
    answer = asyncio.create_task(reader.read())
    for byte in WHOLE * 10:
        if answer.done():
            break
        writer.write(bytes((byte,)))
        await asyncio.sleep(0.05)
    assert (await answer).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started < 2
    writer.close()


async def test_a_head_beyond_the_limit_is_refused(url: str) -> None:
    assert (await raw(url, HEAD + b"a: " + b"x" * 8_192 + b"\r\n\r\n"))[0] == 431
    assert (await raw(url, HEAD + b"".join(b"a%d: x\r\n" % n for n in range(2_000)) + b"\r\n"))[0] == 431
    assert (await raw(url, b"GET /" + b"x" * 8_192 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"))[0] == 431
    assert (await raw(url, WHOLE))[0] == 204


async def test_connections_are_bounded_and_idle_ones_end(url: str) -> None:
    """Those that send nothing hold their places no longer than a head may take."""
    held = [await connect(url) for _ in range(MOST_CONNECTIONS)]
    await asyncio.sleep(0.1)
    assert (await raw(url, b""))[0] == 503
    for reader, writer in held:
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 408 ")
        writer.close()
    assert (await raw(url, WHOLE))[0] == 204


async def test_two_lengths_of_a_body_are_refused(url: str) -> None:
    """Of a request with two lengths, a proxy may have read another body than we do."""
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    both = head + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + WHOLE
    assert (await raw(url, both))[0] == 400
    assert (await raw(url, head + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x"))[0] == 400
