"""The MCP server over HTTP in the place of a gate: each call is one of a tool, with the credential of its caller.

A request that no tool can express goes to the gate: the world of a test has more in it than agents may ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any
from urllib.parse import quote

import httpx
from pydantic_core import to_jsonable_python
from starlette.applications import Starlette

from astrocyte.api.requests import GetBank, GetMemory, GetPage
from astrocyte.app import App
from astrocyte.errors import NotFound
from astrocyte.mcp.http import Authenticate, http_app, local_sessions
from astrocyte.mcp.resources import ROOT
from astrocyte.mcp.server import RESOURCE_NOT_FOUND
from astrocyte.mcp.tools import TOOLS
from astrocyte.mcp.tools.row import Target, Tool
from astrocyte.model import Caller, MultiBankStrategy
from astrocyte.services.authentication import Bearers
from astrocyte.services.status import REASONS
from harness.doors import secret_of

TOOL_OF: Mapping[type[Any], Tool] = {tool.request: tool for tool in TOOLS}
# Fields of a request that arguments have by other names.
NAMES = {"topic_raw": "topic", "k": "max_results", "max_results": "limit"}
# Parts of a request whose fields are arguments of their own.
PARTS = ("item", "query", "selector")
# Tools whose callers need more of the answer than the tool tells.
TERSE = frozenset({"memory_banks", "memory_bank_health", "memory_hold_set", "memory_hold_release"})
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


class Answer(dict[str, Any]):
    """Structured content, with its items as attributes, as the values of the API have them."""

    __getattr__ = dict.__getitem__


class McpDoors:
    """Implements `astrocyte.api.Backend`. Made by `open`, on the loop on which it is used.

    Args:
        app: The application.
        asgi: Its MCP server.
        key: Credential of all calls, instead of that of each caller.
    """

    def __init__(self, app: App, asgi: Starlette, key: str | None = None) -> None:
        self._app, self._asgi, self._key = app, asgi, key
        transport = httpx.ASGITransport(asgi)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:50052", timeout=30)
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        # Calls by the name of the tool, so that a test knows that there were some.
        self.called: dict[str, int] = {}

    @classmethod
    async def open(cls, app: App) -> McpDoors:
        """Serve the application."""
        doors = cls(app, http_app(app.settings, cls.sessions(app), None))
        begun = asyncio.Event()
        doors._serving = asyncio.create_task(doors._serve(begun))
        await begun.wait()
        return doors

    @classmethod
    def sessions(cls, app: App) -> Authenticate:
        """The sessions of the credentials."""
        return local_sessions(app.settings, app.backend, Bearers(app.settings, app.gate.keys.caller))

    def by_key(self, secret: str) -> McpDoors:
        """The same with another credential."""
        return McpDoors(self._app, self._asgi, secret)

    async def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        if self._serving is not None:
            await self._serving
        await self._client.aclose()

    async def _serve(self, begun: asyncio.Event) -> None:
        """Hold the server open, in a task of its own: it ends in the one in which it began."""
        async with self._asgi.router.lifespan_context(self._asgi):
            begun.set()
            await self._closing.wait()

    async def call(self, caller: Caller, request: Any) -> Any:
        """The structured content of the tool, or the response of the gate."""
        resource = _uri(request)
        if resource is not None:
            return await self._read(caller, resource)
        tool = TOOL_OF.get(type(request))
        arguments = None if tool is None or tool.name in TERSE else _arguments(self._app, tool, request)
        if tool is None or arguments is None:
            assert self._key is None, "a call by a key is one of a tool"
            return await self._app.gate.call(caller, request)
        return await self._call(caller, tool.name, arguments)

    async def stream(self, caller: Caller, request: Any) -> AsyncIterator[Any]:
        """The responses of the gate: tools have none that stream."""
        async for response in self._app.gate.stream(caller, request):
            yield response

    async def _call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> Answer:
        self.called[name] = self.called.get(name, 0) + 1
        told = await self._asked(caller, "tools/call", {"name": name, "arguments": arguments})
        result = told["result"]
        if result["isError"]:
            raise _error(result["content"][0]["text"])
        return Answer(result["structuredContent"])

    async def _read(self, caller: Caller, uri: str) -> Answer:
        self.called["resources/read"] = self.called.get("resources/read", 0) + 1
        told = await self._asked(caller, "resources/read", {"uri": uri})
        if "error" in told:
            missing = told["error"]["code"] == RESOURCE_NOT_FOUND
            raise NotFound("no such resource") if missing else _error(told["error"]["message"])
        return Answer(text=told["result"]["contents"][0]["text"])

    async def _asked(self, caller: Caller, method: str, params: dict[str, Any]) -> Any:
        key = self._key or secret_of(caller)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self._client.post("/mcp", json=body, headers={**HEADERS, "authorization": f"Bearer {key}"})
        if response.status_code == httpx.codes.UNAUTHORIZED:
            told = response.json()["error"]
            raise _error(f"{told['code']}: {told['message']}")
        return response.json()


def _uri(request: Any) -> str | None:
    """The URI of what a request reads, if it is a resource."""
    if isinstance(request, GetBank):
        return f"{ROOT}/{quote(request.bank_id, safe='')}"
    if isinstance(request, GetMemory):
        return f"{ROOT}/{quote(request.bank_id, safe='')}/memories/{quote(request.memory_id, safe='')}"
    if isinstance(request, GetPage):
        return f"{ROOT}/{quote(request.bank_id, safe='')}/pages/{quote(request.page_id, safe='')}"
    return None


def _arguments(app: App, tool: Tool, request: Any) -> dict[str, Any] | None:
    """The arguments that make the tool send this request; None if it cannot."""
    model = tool.model(app.settings.mcp, fixed_bank=False)
    found = {name: _field(request, name) for name in model.model_fields}
    arguments = {name: value for name, value in found.items() if value}
    if "banks" in arguments:
        arguments.pop("bank_id", None)
    if isinstance(arguments.get("strategy"), MultiBankStrategy):
        arguments["strategy"] = arguments["strategy"].mode
    written: dict[str, Any] = _pruned(to_jsonable_python(arguments))
    given = model.model_validate(written)
    strategy = getattr(request.query, "strategy", None) if hasattr(request, "query") else None
    target = Target(arguments.get("bank_id", ""), tuple(arguments.get("banks", ())), strategy)
    return written if _carries(tool.prepare(given, target), request) else None


def _pruned(value: Any) -> Any:
    """A value without what is empty or 0: a default, or else not carried."""
    if isinstance(value, dict):
        return {name: _pruned(item) for name, item in value.items() if item}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def _field(request: Any, name: str) -> Any:
    """The value of an argument in a request."""
    parts = [getattr(request, part, None) for part in PARTS]
    for holder in (request, *filter(is_dataclass, parts)):
        for wanted in (name, NAMES.get(name, name)):
            value = getattr(holder, wanted, None)
            if value is not None and (isinstance(value, MultiBankStrategy) or not is_dataclass(value)):
                return value
    return None


def _carries(made: Any, wanted: Any) -> bool:
    """True if whatever a request says besides the defaults is in the one that a tool makes."""
    for field in fields(wanted):
        value, other = getattr(wanted, field.name), getattr(made, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if is_dataclass(value) and not isinstance(value, MultiBankStrategy):
            if other is None or not _carries(other, value):
                return False
        elif value != default and to_jsonable_python(value) != to_jsonable_python(other):
            return False
    return True


def _error(text: str) -> Exception:
    """The exception of a refusal, which begins with its reason."""
    reason, _, message = text.partition(": ")
    kind = REASONS[reason]
    made = kind.__new__(kind, message)
    made.message, made.metadata = message, {}
    return made
