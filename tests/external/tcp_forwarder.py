"""A port that leads to a server as long as the test lets it: a server that goes away, and comes back."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit


class Forwarder:
    """Forwards connections to an address.

    Args:
        uri: Of the server, with host and port.
    """

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        assert address.hostname is not None
        assert address.port is not None
        self._target = (address.hostname, address.port)
        self._scheme = address.scheme
        self._port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def uri(self) -> str:
        """The address that leads there; known from the first `up` on."""
        return f"{self._scheme}://127.0.0.1:{self._port}"

    async def up(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Refuse connections, and cut those that there are."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            self._server = None

    def cut(self) -> None:
        """End the connections that there are, and each new one."""
        self._cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def join(self) -> None:
        """Forward again."""
        self._cut = False

    def hold(self) -> None:
        """Accept connections and bytes, and pass nothing on."""
        self._flowing.clear()

    def flow(self) -> None:
        """Pass on what was held, and what comes."""
        self._flowing.set()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self._target)
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
