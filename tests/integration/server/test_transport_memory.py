"""Memory for requests that have not arrived: none before a check of credentials, and a bounded part after."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import Any

import grpc
import pytest

from astrocyte.services.transport import Context
from astrocyte.v1 import memory_pb2
from harness.serving import reason, serving
from harness.transports import (
    ACK,
    DATA,
    SETTINGS,
    WINDOW_UPDATE,
    Plain,
    Running,
    echo,
    kind,
    path,
    plain,
    running,
    unary,
    until,
)

# A frame's most bytes, the window of a new connection, and that which the server lets a stream send before it reads.
FRAME, FIRST_WINDOW, WINDOW = 16_384, 65_535, 128 << 10
STREAMS, LARGE = 1_024, 4 << 20
# A server that takes so much takes anything.
MOST = 128 << 20
OPTIONS: dict[str, Any] = {
    "methods": {path("Call"): (True, 0)},
    "kinds": [kind(2 * STREAMS, is_open=False)],
    "max_message_bytes": LARGE,
}


class Hoarder:
    """Begins large requests on many streams of a connection, as far as the server lets it, and ends none."""

    def __init__(self, client: Plain, streams: int) -> None:
        self._client = client
        self._connection = FIRST_WINDOW
        self._left = dict.fromkeys(range(1, 2 * streams, 2), WINDOW)
        self._body = dict.fromkeys(self._left, LARGE)
        self.sent = 0

    async def run(self) -> None:
        """Send until the server has taken nothing more for a while, or much more than it may."""
        await self._client.frame(SETTINGS)
        self._client.send(SETTINGS, ACK, 0)
        for stream in self._left:
            self._client.open(stream, path("Call"))
        with suppress(TimeoutError):
            while self.sent < MOST:
                self._fill()
                _, stream, size = await asyncio.wait_for(self._client.frame(WINDOW_UPDATE), 1.0)
                if stream:
                    self._left[stream] += int.from_bytes(size)
                else:
                    self._connection += int.from_bytes(size)

    def _fill(self) -> None:
        for stream in self._left:
            # The last bytes of a message are never sent.
            while (size := FRAME) <= min(self._left[stream], self._connection, self._body[stream]):
                prefix = b"\0" + LARGE.to_bytes(4) if self._body[stream] == LARGE else b""
                self._client.send(DATA, 0, stream, prefix + bytes(size - len(prefix)))
                self._left[stream] -= size
                self._body[stream] -= size
                self._connection -= size
                self.sent += size


async def hoarded(served: Running, streams: int = STREAMS) -> int:
    """The bytes of unfinished requests that one connection can make the server take."""
    async with plain(served.address) as client:
        hoarder = Hoarder(client, streams)
        await hoarder.run()
        # Others are served beside it, and so is a small request of the same size of window.
        assert await served.unary("Call")(b"on", timeout=10) == b"on"
        assert await served.unary("Call")(bytes(100_000), timeout=10) == bytes(100_000)
        return hoarder.sent


async def test_a_connection_without_credentials_makes_the_server_take_one_window() -> None:
    asked = 0
    go = asyncio.Event()

    async def identify(context: Context) -> str:
        nonlocal asked
        if ("x-name", "known") in context.invocation_metadata():
            return "known"
        asked += 1
        await go.wait()
        raise AssertionError

    async with running({"Call": unary(echo)}, identify=identify, **OPTIONS) as served:
        async with plain(served.address) as client:
            hoarder = Hoarder(client, STREAMS)
            await hoarder.run()
        assert asked == STREAMS
        # A frame of each request, and the window of the connection.
        assert hoarder.sent <= STREAMS * FRAME + (17 << 20)


async def test_a_connection_with_credentials_has_a_share_of_memory() -> None:
    async with running({"Call": unary(echo)}, **OPTIONS) as served:
        # The first frames, the window, and the share of a connection: 4 GiB without one.
        assert 32 << 20 <= await hoarded(served) <= STREAMS * FRAME + (17 << 20) + (33 << 20)
        await until(lambda: not served.transport._open)
        # What it held is free again.
        assert await served.unary("Call")(bytes(LARGE - 100), timeout=10) == bytes(LARGE - 100)


async def test_the_connections_of_a_principal_share_its_memory() -> None:
    async with running({"Call": unary(echo)}, **OPTIONS) as served:
        clients = [plain(served.address) for _ in range(4)]
        hoarders = []
        for client in clients:
            hoarders.append(Hoarder(await client.__aenter__(), 16))
            await hoarders[-1].run()
        # Two connections fill the share of the principal; of the others the windows of their streams.
        assert 64 << 20 <= sum(hoarder.sent for hoarder in hoarders) <= (68 << 20) + 4 * 16 * WINDOW
        for client in clients:
            await client.__aexit__(None, None, None)


async def test_large_requests_of_one_channel_wait_for_each_other() -> None:
    async with running({"Call": unary(echo)}, **OPTIONS) as served:
        call = served.unary("Call")
        answers = await asyncio.gather(*(call(bytes([number]) * 3_000_000) for number in range(40)))
        assert [answer[0] for answer in answers] == list(range(40))


async def test_credentials_are_checked_before_the_request_came() -> None:
    key = {"name": "ci", "sha256": hashlib.sha256(b"secret").hexdigest(), "principal": "ci"}
    large = memory_pb2.RetainRequest(bank_id="family", content="tea " * 200_000)
    async with serving(auth={"api_keys": [key]}) as served:
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await served.memory.Retain(large, metadata=metadata)
            assert (refused.value.code(), reason(refused.value)) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        # By hand: the request never comes, and the answer does all the same.
        async with plain(served.address) as client:
            client.open(1, "/astrocyte.v1.MemoryService/Retain", {"authorization": "Bearer wrong"})
            flags, stream, _ = await asyncio.wait_for(client.frame(1), 5)
            assert (flags & 1, stream) == (1, 1)
        async with plain(served.address) as client:
            client.open(1, "/astrocyte.v1.MemoryService/Retain", {"authorization": "Bearer secret"})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.frame(1), 0.3)
