"""A bare transport for tests: handlers of one's own, and a channel to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from astrocyte.core import GrpcServer
from astrocyte.services.transport import Transport

SERVICE = "test.Service"
# As the server's.
OPTIONS: dict[str, Any] = {"rooms": [], "id_prefix": "t", "max_message_bytes": 1_000_000, "max_calls": 1_000}
OPTIONS |= {"max_connection_age": None, "keepalive": 60.0, "keepalive_timeout": 20.0}


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


@asynccontextmanager
async def running(
    methods: Mapping[str, grpc.RpcMethodHandler[Any, Any]], target: str = "127.0.0.1:0", **options: Any
) -> AsyncIterator[Running]:
    """Serve ``methods``; those of one request are handed over with it, unless ``unary`` says otherwise."""
    unary = {path(name): None for name, handler in methods.items() if not handler.request_streaming}
    native = GrpcServer(**{"unary": unary, **OPTIONS, **options})
    transport = Transport([grpc.method_handlers_generic_handler(SERVICE, dict(methods))], native)
    port = transport.bind(target)
    transport.start()
    address = target if target.startswith("unix:") else f"127.0.0.1:{port}"
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            yield Running(transport, native, address, channel)
    finally:
        await transport.stop(0)
