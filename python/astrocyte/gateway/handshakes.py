"""TLS handshakes, bounded in number and time.

asyncio gives a protocol its connection after the handshake, so connections that never finish one would count nowhere,
for a minute each.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn import Config

from astrocyte.config import GatewaySettings, McpSettings


class Handshakes:
    """Limits of the connections of a server whose handshake is not finished.

    Args:
        context: Certificates of the server.
        settings: Time of a handshake, which is that of a head, and number of connections.
        make: Protocol of a connection after its handshake; takes the keywords of uvicorn.
    """

    def __init__(
        self, context: ssl.SSLContext, settings: GatewaySettings | McpSettings, make: Callable[..., asyncio.Protocol]
    ) -> None:
        self.context = context
        self.seconds = settings.header_timeout_seconds
        self.most = settings.max_connections
        self.make = make
        self.pending: set[Handshake] = set()

    def __call__(self, **parts: Any) -> Handshake:  # noqa: ANN401 - uvicorn's
        """The protocol of a new connection."""
        return Handshake(self, parts)


class Handshake(asyncio.Protocol):
    """One connection until its handshake is finished."""

    def __init__(self, shared: Handshakes, parts: dict[str, Any]) -> None:
        self._shared, self._parts = shared, parts
        # What came right behind the handshake.
        self._early: list[bytes] = []
        self._lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin the handshake, if there is room."""
        shared = self._shared
        if len(shared.pending) + len(self._parts["server_state"].connections) >= shared.most:
            # An answer would need a handshake.
            transport.abort()
            return
        shared.pending.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake(transport))

    def data_received(self, data: bytes) -> None:
        """Keep what comes before the protocol of the connection is there."""
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that there is nobody to serve."""
        del exc
        self._lost = True

    async def _shake(self, transport: asyncio.Transport) -> None:
        shared = self._shared
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, self, shared.context, server_side=True, ssl_handshake_timeout=shared.seconds
            )
        except OSError:
            # Late, broken off, or no TLS; an SSLError is one as well.
            transport.abort()
            return
        finally:
            shared.pending.discard(self)
        if secured is None or self._lost:
            return
        protocol = shared.make(**self._parts)
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._early:
            protocol.data_received(data)


def bound_handshakes(config: Config, settings: GatewaySettings | McpSettings) -> None:
    """Bound the handshakes of a loaded configuration; without TLS it is as it was."""
    if config.ssl is not None:
        config.http_protocol_class = Handshakes(config.ssl, settings, config.http_protocol_class)  # type: ignore[assignment]  # it is only called
        config.ssl = None
