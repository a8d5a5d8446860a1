"""A real server for tests: the whole application in this process, on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.server import Server, server_of
from astrocyte.services.status import DETAILS_KEY
from astrocyte.v1 import admin_pb2_grpc, memory_pb2_grpc


@dataclass(frozen=True)
class Served:
    """A running server, and ways to call it."""

    address: str
    app: App
    server: Server
    channel: grpc.aio.Channel
    memory: Any
    admin: Any
    backend: RemoteBackend


@asynccontextmanager
async def serving(**sections: Any) -> AsyncIterator[Served]:
    """Serve on an in-memory store, unless ``sections`` of the settings say otherwise."""
    values = {"vector_store": "in_memory", **sections, "server": {"port": 0, **sections.get("server", {})}}
    app = App(Settings.from_mapping(values))
    server = server_of(app)
    address = await server.start()
    backend = RemoteBackend(address)
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            memory = memory_pb2_grpc.MemoryServiceStub(channel)
            admin = admin_pb2_grpc.AdminServiceStub(channel)
            yield Served(address, app, server, channel, memory, admin, backend)
    finally:
        await backend.close()
        await server.stop(0)
        await app.close()


def trailer(error: grpc.aio.AioRpcError, key: str) -> Any:
    """The value of a trailer of a failed call, or None."""
    return next((value for name, value in error.trailing_metadata() if name == key), None)


def detail(error: grpc.aio.AioRpcError, kind: type[Message]) -> Any:
    """The only detail of a kind on a failed call."""
    status = Status.FromString(trailer(error, DETAILS_KEY))
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    (packed,) = [packed for packed in status.details if packed.Is(kind.DESCRIPTOR)]
    found = kind()
    packed.Unpack(found)
    return found


def reason(error: grpc.aio.AioRpcError) -> str:
    """The reason of a failed call."""
    info = detail(error, error_details_pb2.ErrorInfo)
    assert info.domain == "astrocyte.dev"
    return str(info.reason)
