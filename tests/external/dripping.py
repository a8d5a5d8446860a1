"""An HTTP server on loopback whose answers do not end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def dripping(begin: bytes, drop: bytes, pause: float = 0.0) -> AsyncIterator[str]:
    """Send ``begin`` to each request, and ``drop`` every ``pause`` seconds from then on."""
    tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(begin)
            while drop:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(pause)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            await closed(writer)

    async def closed(writer: asyncio.StreamWriter) -> None:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(answer(reader, writer))
        tasks[task] = writer
        task.add_done_callback(tasks.pop)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        begun = dict(tasks)
        for task in begun:
            task.cancel()
        # One that is cancelled before its first step does not close what it was given.
        await asyncio.gather(*begun, return_exceptions=True)
        for writer in begun.values():
            await closed(writer)
