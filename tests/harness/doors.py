"""A server in the place of a gate: each call goes through the generated stubs, with the credential of its caller."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

from astrocyte.api import Request, StreamRequest
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.model import Caller
from astrocyte.server import Server

R = TypeVar("R")


def secret_of(caller: Caller) -> str:
    """The API key of a caller."""
    return f"the key of {caller.principal} of {caller.tenant}"


def api_keys(callers: Iterable[Caller]) -> list[dict[str, str]]:
    """The keys of these callers, for the settings."""
    return [
        {
            "name": f"{caller.tenant}-{caller.principal}",
            "sha256": hashlib.sha256(secret_of(caller).encode()).hexdigest(),
            "tenant": caller.tenant,
            "principal": caller.principal,
        }
        for caller in callers
    ]


class Doors:
    """Implements `astrocyte.api.Backend`. Made by `open`, on the loop on which it is used."""

    def __init__(self, server: Server, address: str) -> None:
        self.address = address
        self._server = server
        self._clients: dict[tuple[str, str], RemoteBackend] = {}

    @classmethod
    async def open(cls, app: App) -> Doors:
        """Serve the application."""
        server = Server(app.gate, app.settings, healthy=lambda: True, keys=app.gate.keys.caller)
        return cls(server, await server.start())

    def by_key(self, secret: str) -> RemoteBackend:
        """A client with this key, to be closed by its user."""
        return RemoteBackend(self.address, api_key=secret)

    async def close(self) -> None:
        """Stop serving."""
        for client in self._clients.values():
            await client.close()
        await self._server.stop(0)

    def call(self, caller: Caller, request: Request[R]) -> Coroutine[Any, Any, R]:
        """The response to the caller's own client."""
        return self._client(caller).call(caller, request)

    def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses to the caller's own client."""
        return self._client(caller).stream(caller, request)

    def _client(self, caller: Caller) -> RemoteBackend:
        who = (caller.tenant, caller.principal)
        if who not in self._clients:
            self._clients[who] = RemoteBackend(self.address, api_key=secret_of(Caller(*who)))
        return self._clients[who]
