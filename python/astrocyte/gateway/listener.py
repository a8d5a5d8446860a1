"""The listening side of the gateway: uvicorn on the event loop of the gRPC server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl

from uvicorn import Config
from uvicorn import Server as Uvicorn

from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.gateway.application import Application, with_cors
from astrocyte.gateway.calls import Shared
from astrocyte.gateway.handshakes import bound_handshakes
from astrocyte.gateway.protocol import limited

# Between looks whether connections have ended.
POLL_SECONDS = 0.02
BACKLOG = 1_024


class Gateway:
    """Serves the API over HTTP. Make it, `start` and `stop` it on one running event loop.

    Args:
        settings: How to listen, and whom to trust.
        shared: The parts that the gRPC server has as well.
        local: Whether the address is one of this machine only.

    Raises:
        ConfigError: A certificate cannot be read, or the settings open the server to every page.
    """

    def __init__(self, settings: Settings, shared: Shared, *, local: bool) -> None:
        gateway, server = settings.gateway, settings.server
        trusted = settings.auth.demanded or server.tls_client_ca_file is not None
        if "*" in gateway.cors_origins and not trusted:
            raise ConfigError(
                "gateway.cors_origins allows every page to call a server without credentials; name the origins, or set "
                "auth.required",
                metadata={"key": "gateway.cors_origins"},
            )
        application = Application(shared, gateway, server, local_only=local and not trusted)
        self._host, self._port = gateway.host, gateway.port or 0
        # Other workers listen at the same port.
        self._shared = server.workers > 1
        config = Config(
            with_cors(application, gateway.cors_origins),
            http=limited(gateway),
            ws="none",
            lifespan="off",
            log_config=None,
            # The application answers and logs its own failures; what is left are bytes that are no request.
            log_level=logging.CRITICAL,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=round(gateway.keep_alive_seconds),
            ssl_certfile=server.tls_cert_file,
            ssl_keyfile=server.tls_key_file,
            ssl_ca_certs=None if server.tls_client_ca_file is None else str(server.tls_client_ca_file),
            ssl_cert_reqs=ssl.CERT_NONE if server.tls_client_ca_file is None else ssl.CERT_REQUIRED,
        )
        try:
            config.load()
        except OSError as error:
            raise ConfigError(f"cannot use the certificates of the settings: {error}") from error
        bound_handshakes(config, gateway)
        self._scheme = "https" if config.is_ssl else "http"
        self._uvicorn = Uvicorn(config)
        self._uvicorn.lifespan = config.lifespan_class(config)
        self._ticking: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None

    async def start(self) -> str:
        """Listen; returns the URL, with the port that the system chose where it was 0.

        Raises:
            ConfigError: The address cannot be bound.
        """
        self._socket = _bind(self._host, self._port, shared=self._shared)
        await self._uvicorn.startup(sockets=[self._socket])
        self._ticking = asyncio.create_task(self._uvicorn.main_loop(), name="astrocyte-gateway")
        name = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{name}:{self._socket.getsockname()[1]}"

    def refuse_connections(self) -> None:
        """Take no new connections, and close each of the others after its next answer."""
        if self._socket is None:
            return
        for server in self._uvicorn.servers:
            server.close()
        for connection in list(self._uvicorn.server_state.connections):
            connection.shutdown()

    async def stop(self, seconds: float) -> None:
        """Let answers go out, then close what is still open."""
        if self._socket is None:
            return
        self.refuse_connections()
        state = self._uvicorn.server_state
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # Looking now and then costs nothing while we serve; an event would cost every request.
                while state.tasks or state.connections:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_SECONDS)
        for task in list(state.tasks):
            task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()
        self._uvicorn.should_exit = True
        if self._ticking is not None:
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking
        self._socket.close()


def _bind(host: str, port: int, *, shared: bool) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, number)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(address)
            bound.listen(BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port} for HTTP: {error.strerror or error}",
            metadata={"address": f"{host}:{port}"},
        ) from error
    return bound
