"""Requests to a gateway: by a client, or as bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from astrocyte.model import Caller
from harness.doors import secret_of
from harness.serving import Served

JSON = {"content-type": "application/json"}


def bearer(caller: Caller) -> dict[str, str]:
    """The header with the key of a caller."""
    return {"authorization": f"Bearer {secret_of(caller)}"}


@asynccontextmanager
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server's gateway."""
    async with httpx.AsyncClient(base_url=str(served.server.http_address), timeout=20) as client:
        yield client


def code(response: httpx.Response) -> str:
    """The code of a failed call."""
    return str(response.json()["error"]["code"])


async def connect(served: Served | str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a server's gateway, or to the host of a URL."""
    url = served if isinstance(served, str) else str(served.server.http_address)
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def raw(served: Served | str, *sent: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to these bytes, or 0 where there is none."""
    reader, writer = await connect(served)
    try:
        for piece in sent:
            writer.write(piece)
            await writer.drain()
        answer = await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:
        return 0, b""
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body
