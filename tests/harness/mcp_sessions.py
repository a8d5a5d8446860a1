"""Sessions of the MCP server in process, and calls through the client of the SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client import Client

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.mcp.server import Session, mcp_server
from astrocyte.model import Caller


@asynccontextmanager
async def connected(
    *, mode: str = "auto", bank_id: str | None = None, backend: Any = None, **sections: Any
) -> AsyncIterator[Client]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **sections}))
    session = Session(backend or app.backend, Caller(), bank_id)
    try:
        async with Client(mcp_server(app.settings, lambda _: session), mode=mode) as client:
            yield client
    finally:
        await app.close()


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


async def failure(client: Client, name: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


async def called(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Structured content of a call that is not refused."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content
