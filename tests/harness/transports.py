"""A bare transport for tests: handlers of one's own, and a channel to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from astrocyte.core import GrpcServer
from astrocyte.services.transport import CallKind, Context, Identify, Refusal, Transport

SERVICE = "test.Service"
# Frames of HTTP/2, flags of theirs, and a setting (RFC 9113): no byte of an answer may be sent.
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_WINDOW = (4).to_bytes(2) + (0).to_bytes(4)
# Handlers, as grpcio makes them.
unary = grpc.unary_unary_rpc_method_handler
streaming = grpc.stream_stream_rpc_method_handler
# As the server's.
OPTIONS: dict[str, Any] = {"kinds": [], "id_prefix": "t", "max_message_bytes": 1_000_000, "max_others": 1_000}
OPTIONS |= {"max_connection_age": None, "keepalive": 60.0, "keepalive_timeout": 20.0}
MAX_ANSWER_BYTES = 4 << 20
LATE = grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
OPTIONS |= {"deadline_exceeded": (LATE, "late", [])}
FULL: Refusal = (grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], "full", [])


async def echo(request: bytes, _: Context) -> bytes:
    """The simplest handler."""
    return request


async def until(condition: Any) -> None:
    """Wait for what happens on another thread."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is nobody to tell of it
            await asyncio.sleep(0.005)


@dataclass(frozen=True)
class Running:
    """A transport, what is below it, and a channel to it."""

    transport: Transport
    native: GrpcServer
    address: str
    channel: grpc.aio.Channel

    def unary(self, name: str) -> Any:
        """A method of one request and one response."""
        return self.channel.unary_unary(path(name))

    def streaming(self, name: str) -> Any:
        """A method of requests and responses."""
        return self.channel.stream_stream(path(name))


def path(name: str) -> str:
    """Of a method."""
    return f"/{SERVICE}/{name}"


def kind(
    places: int, *, per_connection: int | None = None, is_open: bool = True, refusals: Sequence[Refusal] = (FULL,)
) -> CallKind:
    """A kind of calls."""
    return CallKind(places, per_connection, is_open, refusals)


async def anybody(_: Context) -> str:
    """The principal of every call."""
    return "anybody"


def unknown(called: str) -> grpc.RpcMethodHandler[Any, Any]:
    """Refuses what there is no method for."""

    async def refuse(_: object, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {called}")

    return grpc.stream_stream_rpc_method_handler(refuse)


@asynccontextmanager
async def running(
    handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]],
    target: str = "127.0.0.1:0",
    *,
    identify: Identify = anybody,
    **options: Any,
) -> AsyncIterator[Running]:
    """Serve methods by name; each of them of no kind, unless ``options`` say otherwise."""
    known = {path(name): (not handler.request_streaming, None) for name, handler in handlers.items()}
    native = GrpcServer(**{"methods": known, **OPTIONS, **options})
    transport = Transport(
        [grpc.method_handlers_generic_handler(SERVICE, dict(handlers))], unknown, identify, native, MAX_ANSWER_BYTES
    )
    port = transport.bind(target)
    transport.start()
    address = target if target.startswith("unix:") else f"127.0.0.1:{port}"
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            yield Running(transport, native, address, channel)
    finally:
        await transport.stop(0)


class Plain:
    """A client of HTTP/2 that does what it is told, and nothing for flow control, pings or ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        """A frame (RFC 9113, section 4.1)."""
        self._writer.write(len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload)

    def call(
        self, name: str, request: bytes = b"", *, headers: Mapping[str, str] | None = None, ends: bool = True
    ) -> None:
        """Stream 1: headers, and a request, the last one where it ``ends``."""
        self.open(1, path(name), headers)
        self.send(DATA, END_STREAM if ends else 0, 1, b"\0" + len(request).to_bytes(4) + request)

    def open(self, stream: int, called: str, headers: Mapping[str, str] | None = None) -> None:
        """Begin a call: headers as literals (RFC 7541, section 6.2.2)."""
        values = {":method": "POST", ":scheme": "http", ":path": called, "content-type": "application/grpc"}
        block = b"".join(
            b"\0" + bytes([len(key)]) + key.encode() + bytes([len(value)]) + value.encode()
            for key, value in {**values, **(headers or {})}.items()
        )
        self.send(HEADERS, END_HEADERS, stream, block)

    async def frame(self, kind: int) -> tuple[int, int, bytes]:
        """Flags, stream and payload of the next frame of a kind; others are left out."""
        while True:
            head = await self._reader.readexactly(9)
            payload = await self._reader.readexactly(int.from_bytes(head[:3]))
            if head[3] == kind:
                return head[4], int.from_bytes(head[5:]), payload


@asynccontextmanager
async def plain(address: str, settings: bytes = b"") -> AsyncIterator[Plain]:
    """A connection by hand, with ``settings`` of the client."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    client = Plain(reader, writer)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    client.send(SETTINGS, 0, 0, settings)
    try:
        yield client
    finally:
        writer.close()
