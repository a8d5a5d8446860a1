"""Attacks on the transport, none of which may harm other clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from astrocyte.server import SPARE_CALLS
from astrocyte.services.transport import Context
from harness.serving import serving
from harness.transports import DATA, HEADERS, NO_WINDOW, SETTINGS, echo, plain, running, streaming, unary, until

CANCEL = (8).to_bytes(4)
RST_STREAM, WINDOW_UPDATE, ACK = 3, 8, 1
# What the server lets a stream send before it reads; and a frame's most bytes.
WINDOW, FRAME = 128 << 10, 16_384


async def test_large_answers_that_nobody_takes_do_not_pile_up() -> None:
    written = 0

    async def call(requests: AsyncIterator[bytes], context: Context) -> None:
        nonlocal written
        async for _ in requests:
            while True:
                await context.write(bytes(100_000))
                written += 1

    async with running({"Call": streaming(call)}) as served, plain(served.address, NO_WINDOW) as client:
        client.call("Call", b"go")
        await client.frame(HEADERS)
        await asyncio.sleep(0.3)
        # Two fill the queue, and what was taken from it waits for a window.
        assert 2 <= written <= 4


async def test_large_requests_that_nobody_reads_do_not_pile_up() -> None:
    go = asyncio.Event()

    async def call(_: AsyncIterator[bytes], context: Context) -> None:
        context.begin()
        await go.wait()

    async with running({"Call": streaming(call)}) as served, plain(served.address) as client:
        # Only then the server holds to the window that it told.
        await client.frame(SETTINGS)
        client.send(SETTINGS, ACK, 0)
        client.call("Call", ends=False)
        await client.frame(HEADERS)
        message = b"\0" + (100_000).to_bytes(4) + bytes(100_000)
        allowed, sent, waiting = WINDOW - 5, 0, b""
        with suppress(TimeoutError):
            while True:
                while allowed >= FRAME:
                    waiting = waiting or message
                    part, waiting = waiting[:FRAME], waiting[FRAME:]
                    client.send(DATA, 0, 1, part)
                    allowed, sent = allowed - len(part), sent + len(part)
                _, stream, size = await asyncio.wait_for(client.frame(WINDOW_UPDATE), 0.5)
                allowed += int.from_bytes(size) if stream == 1 else 0
        # Two messages wait, and a third as far as the window lets it; by their number alone 32 would.
        assert 200_000 < sent < 700_000
        go.set()


async def test_a_deadline_holds_while_its_caller_takes_nothing() -> None:
    ended: list[str] = []

    async def call(_: AsyncIterator[bytes], context: Context) -> None:
        try:
            while True:
                await context.write(bytes(100_000))
        finally:
            ended.append("ended")

    async with running({"Call": streaming(call)}) as served, plain(served.address, NO_WINDOW) as client:
        client.call("Call", b"go", headers={"grpc-timeout": "200m"})
        await client.frame(HEADERS)
        await until(lambda: ended and not served.transport._open)


async def test_what_is_reset_never_looks_whole() -> None:
    seen: list[str] = []

    async def call(requests: AsyncIterator[bytes], _: Context) -> AsyncIterator[bytes]:
        try:
            async for request in requests:
                yield request
            seen.append("whole")
        except asyncio.CancelledError:
            seen.append("cut off")
            raise

    async with running({"Call": streaming(call)}) as served:
        for count in range(1, 41):
            async with plain(served.address) as client:
                client.call("Call", b"first", ends=False)
                await client.frame(DATA)
                # In one piece, so that the server meets the end of the stream with a request before it.
                client.send(DATA, 0, 1, b"\0" + (4).to_bytes(4) + b"last")
                client.send(RST_STREAM, 0, 1, CANCEL)
                await until(lambda count=count: len(seen) == count)
    assert seen == ["cut off"] * 40


async def test_a_request_that_is_large_once_unpacked_is_told_so() -> None:
    async with running({"Call": unary(echo)}) as served:
        with pytest.raises(grpc.aio.AioRpcError, match="Received message larger than max") as caught:
            await served.unary("Call")(bytes(2_000_000), compression=grpc.Compression.Gzip)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_methods_that_are_not_known_take_small_requests() -> None:
    async with running({"Call": unary(echo)}, methods={}) as served:
        assert await served.unary("Call")(bytes(60_000)) == bytes(60_000)
        with pytest.raises(grpc.aio.AioRpcError, match="Received message larger than max"):
            await served.unary("Call")(bytes(70_000))


async def test_a_connection_that_says_nothing_does_not_hold_up_the_end() -> None:
    async with running({"Call": unary(echo)}) as served:
        host, port = served.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        await until(lambda: served.native.busy() == (0, 1))
        served.native.stop()
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_another_protocol_is_sent_away() -> None:
    async with running({"Call": unary(echo)}) as served:
        host, port = served.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n")
        with suppress(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 5)
        await until(lambda: served.native.busy() == (0, 0))
        writer.close()


async def test_who_watches_health_for_ever_keeps_no_place_of_others() -> None:
    async with serving() as served:
        health = health_pb2_grpc.HealthStub(served.channel)
        request = health_pb2.HealthCheckRequest()
        watching = [health.Watch(request) for _ in range(SPARE_CALLS)]
        for watch in watching:
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health.Watch(request).read()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await health.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        for watch in watching:
            watch.cancel()


async def test_answers_that_are_not_taken_keep_no_place() -> None:
    async def call(_: bytes, __: Context) -> bytes:
        return bytes(100_000)

    async with running({"Call": unary(call)}, max_others=1) as served, plain(served.address, NO_WINDOW) as client:
        client.call("Call")
        await client.frame(HEADERS)
        assert await served.unary("Call")(b"") == bytes(100_000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.frame(DATA), 0.05)
