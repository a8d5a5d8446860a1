"""The gateway in the place of a gate: each call is an HTTP request with JSON, with the credential of its caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import orjson
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from astrocyte.api import RPCS, Request, StreamRequest
from astrocyte.api.requests import StreamRetain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, ValidationError
from astrocyte.gateway.reading import read_message
from astrocyte.gateway.routes import Binding, bindings
from astrocyte.gateway.writing import writer
from astrocyte.model import Caller
from astrocyte.server import Server
from astrocyte.services.convert import ITEMS, RETAIN_RESULTS, codec_of_rpc
from astrocyte.services.status import REASONS
from astrocyte.v1 import memory_pb2
from harness.doors import api_keys, secret_of

R = TypeVar("R")
BINDINGS: dict[type[Any], Binding] = {}
for one in bindings(RPCS.values()):
    BINDINGS.setdefault(one.rpc.request, one)

ME = Caller("default", "user:me")


class HttpDoors:
    """Implements `astrocyte.api.Backend`. Made by `open`, on the loop on which it is used.

    Args:
        url: Of the gateway.
        server: Stopped by `close`, if given.
        key: Credential of all calls, instead of that of each caller.
    """

    def __init__(self, url: str, server: Server | None = None, key: str | None = None) -> None:
        self.client = httpx.AsyncClient(base_url=url, timeout=30)
        self._url = url
        self._server = server
        self._key = key

    @classmethod
    async def open(cls, app: App) -> HttpDoors:
        """Serve the application, whose settings have a port for the gateway."""
        server = Server(app.gate, app.settings, healthy=lambda: True, keys=app.gate.keys.caller)
        await server.start()
        assert server.http_address is not None
        return cls(server.http_address, server)

    def by_key(self, secret: str) -> HttpDoors:
        """The same with another credential."""
        return HttpDoors(self._url, key=secret)

    async def close(self) -> None:
        """Stop serving."""
        await self.client.aclose()
        if self._server is not None:
            await self._server.stop(0)

    async def call(self, caller: Caller, request: Request[R]) -> R:
        """The response of the gateway."""
        if isinstance(request, StreamRetain):
            return await self._retain_stream(caller, request)  # type: ignore[return-value]
        binding = BINDINGS[type(request)]
        codec = codec_of_rpc(binding.rpc)
        response = await self.client.request(**self._asked(caller, binding, codec.encode_request(request)))
        if response.status_code != httpx.codes.OK:
            raise error_of(response.json()["error"])
        decoded: R = codec.decode_response(message_of(binding.method.output_type, response.json()), request)
        return decoded

    async def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses of the gateway."""
        binding = BINDINGS[type(request)]
        codec = codec_of_rpc(binding.rpc)
        asked = self._asked(caller, binding, codec.encode_request(request))
        async with self.client.stream(**asked) as response:
            if response.status_code != httpx.codes.OK:
                raise error_of(orjson.loads(await response.aread())["error"])
            async for value in events(response):
                yield codec.decode_response(message_of(binding.method.output_type, value), request)

    async def _retain_stream(self, caller: Caller, request: StreamRetain) -> list[Any]:
        lines = []
        for index, item in enumerate(request.items):
            ids = request.request_ids
            message = memory_pb2.StreamRetainRequest(
                sequence=index,
                bank_id=request.bank_id,
                item=ITEMS.encode(item),
                request_id=(ids[index] or "") if ids else "",
            )
            lines.append(orjson.dumps(json_of(message)) + b"\n")
        headers = {**self._headers(caller), "content-type": "application/x-ndjson"}
        outcomes: dict[int, Any] = {}
        async with self.client.stream(
            "POST", "/v1/retain:stream", content=b"".join(lines), headers=headers
        ) as response:
            if response.status_code != httpx.codes.OK:
                raise error_of(orjson.loads(await response.aread())["error"])
            async for value in events(response):
                kind = memory_pb2.RetainResponse.DESCRIPTOR
                failed = value.get("error")
                outcomes[value["sequence"]] = (
                    error_of(failed) if failed else RETAIN_RESULTS.decode(message_of(kind, value["result"]))
                )
        return [outcomes[index] for index in range(len(request.items))]

    def _asked(self, caller: Caller, binding: Binding, message: Message) -> dict[str, Any]:
        value = json_of(message)
        path = binding.template
        for name in binding.variables:
            path = path.replace(f"{{{name}}}", quote(str(value.pop(name, "")), safe=""))
        asked: dict[str, Any] = {"method": binding.verb, "url": path, "headers": self._headers(caller)}
        if binding.body:
            return {**asked, "json": value}
        given = {field.name for field, _ in message.ListFields()}
        return {**asked, "params": {name: one for name, one in value.items() if name in given}}

    def _headers(self, caller: Caller) -> dict[str, str]:
        key = self._key or secret_of(Caller(caller.tenant, caller.principal))
        headers = {"authorization": f"Bearer {key}"}
        if caller.on_behalf_of is not None:
            headers["x-astrocyte-on-behalf-of"] = caller.on_behalf_of
        return headers


@asynccontextmanager
async def opened(**sections: Any) -> AsyncIterator[tuple[App, HttpDoors]]:
    """A gateway over an in-memory store, with a key for `ME`."""
    values = {"vector_store": "in_memory", "server": {"port": 0}, "gateway": {"port": 0}, **sections}
    app = App(Settings.from_mapping({"auth": {"api_keys": api_keys([ME])}, **values}))
    doors = await HttpDoors.open(app)
    try:
        yield app, doors
    finally:
        await doors.close()
        await app.close()


async def events(response: httpx.Response) -> AsyncIterator[Any]:
    """The values of a stream of events; an event named error is raised."""
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            value = orjson.loads(line.removeprefix("data: "))
            if name == "error":
                raise error_of(value["error"])
            yield value
        elif not line:
            name = ""


def error_of(told: dict[str, Any]) -> AstrocyteError:
    """The exception of an error in JSON."""
    kind = REASONS[told["code"].upper()]
    made = kind.__new__(kind, told["message"])
    made.message, made.metadata = told["message"], told.get("metadata", {})
    if isinstance(made, ValidationError):
        made.field = told["field"]
        made.description = told["message"].removeprefix(f"{made.field}: ")
    if "retry_after" in told:
        made.retry_after = told["retry_after"]  # type: ignore[attr-defined]  # of those that have one
    if "hold_ids" in told:
        made.hold_ids = tuple(told["hold_ids"])  # type: ignore[attr-defined]  # as above
    return made


def json_of(message: Message) -> dict[str, Any]:
    """The object of a request."""
    made: dict[str, Any] = writer(message.DESCRIPTOR)(message)  # type: ignore[arg-type]  # one of two names of a class
    return made


def message_of(kind: Descriptor, value: Any) -> Any:
    """The message of a response."""
    return read_message(kind, value)
