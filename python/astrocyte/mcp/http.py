"""Streamable HTTP transport of the MCP server.

A request is complete in itself: it carries its credential, and its path names the bank. There are no sessions to take
over, and no streams that the server opens.

    POST /mcp             tools take the bank as an argument
    POST /mcp/{bank_id}   the bank is fixed
    GET /healthz          204, for probes
    GET /.well-known/oauth-protected-resource...   who issues tokens, if an issuer is configured
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, AuthorizationError, ConfigError
from astrocyte.gateway.handshakes import bound_handshakes
from astrocyte.gateway.protocol import limited
from astrocyte.mcp.server import Context, Session, mcp_server
from astrocyte.model import Caller
from astrocyte.policy.requests import field_checks
from astrocyte.server import is_local

# Key of the session in the scope of a request.
SESSION = "astrocyte.session"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
# Time to receive a request and to send its answer, beside the deadline of the call.
TRANSFER_SECONDS = 30.0
# RFC 9728, section 3.1: the path of the resource follows.
METADATA = "/.well-known/oauth-protected-resource"
SCHEME = "bearer "

# The session of a credential, the value of the header Authorization; None for a request without one.
Authenticate = Callable[[str | None], Coroutine[Any, Any, Session]]

log = structlog.get_logger(__name__)


def check_exposure(settings: Settings, *, remote: bool) -> None:
    """Refuse an address that other machines reach without TLS or without credentials.

    Raises:
        ConfigError: The address is not loopback, and something is missing.
    """
    if is_local(settings.mcp.host) or settings.server.insecure:
        return
    missing = []
    if settings.server.tls_cert_file is None:
        missing.append("TLS (server.tls_cert_file, server.tls_key_file)")
    if not remote and not settings.auth.demanded:
        missing.append("credentials (auth.api_keys, auth.jwt or auth.required)")
    if missing:
        raise ConfigError(
            f"mcp.host {settings.mcp.host} is reachable from other machines, without {' and '.join(missing)}; set "
            "them, listen on 127.0.0.1, or set server.insecure on a network that you trust",
            metadata={"host": settings.mcp.host},
        )


def local_sessions(settings: Settings, backend: Any, bearer: Callable[[str], Any]) -> Authenticate:  # noqa: ANN401 - a Backend
    """Sessions on the data directory of this process: keys and tokens are verified here.

    Args:
        settings: Whether a credential is required, and who calls without one.
        backend: Answers the calls.
        bearer: Returns the caller of the header's value, perhaps as a coroutine; raises AuthorizationError.
    """
    anonymous = None
    if not settings.auth.demanded:
        caller = Caller()
        anonymous = caller if settings.mcp.principal is None else replace(caller, principal=settings.mcp.principal)

    async def authenticate(credential: str | None) -> Session:
        if credential is None:
            if anonymous is None:
                raise AuthorizationError("no credential; send the header 'Authorization: Bearer <key or token>'")
            return Session(backend, anonymous)
        caller = bearer(credential)
        return Session(backend, caller if isinstance(caller, Caller) else await caller)

    return authenticate


def remote_sessions(settings: Settings, backend: RemoteBackend) -> Authenticate:
    """Sessions on a server, which verifies the credential of the request.

    On loopback, a request without a credential is sent with the one of this process.
    """
    loopback = is_local(settings.mcp.host)

    async def authenticate(credential: str | None) -> Session:
        if credential is None:
            if not loopback:
                raise AuthorizationError("no credential; send the header 'Authorization: Bearer <key or token>'")
            return Session(backend, Caller())
        if credential[: len(SCHEME)].lower() != SCHEME:
            raise AuthorizationError("the credential is of another kind; send 'Authorization: Bearer <key or token>'")
        return Session(backend.with_key(credential[len(SCHEME) :].strip()), Caller())

    return authenticate


def http_app(settings: Settings, authenticate: Authenticate, bank_id: str | None) -> Starlette:
    """Create the ASGI application.

    Args:
        settings: Settings of the server and of the HTTP transport.
        authenticate: Returns the session of a credential.
        bank_id: Bank that is fixed for every path; None takes it from the path.
    """
    server = mcp_server(settings, _session_of)
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=_security(settings),
        max_request_body_size=settings.server.max_message_bytes,
    )
    door = _Door(settings, authenticate, manager, bank_id)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    async def healthz(_: Request) -> Response:
        return Response(status_code=204)

    paths = ["/mcp"] if bank_id is not None else ["/mcp", "/mcp/{bank_id}"]
    routes = [Route("/healthz", healthz), *(Route(path, door) for path in paths)]
    if settings.auth.jwt.issuer is not None:
        routes += [Route(f"{METADATA}{path}", partial(_metadata, settings)) for path in ("", *paths)]
    return Starlette(routes=routes, lifespan=lifespan)


def _session_of(context: Context) -> Session:
    session: Session = context.request.scope[SESSION]  # type: ignore[union-attr] # this transport sets the request
    return session


def _url(settings: Settings, request: Request) -> str:
    """The URL of the server as clients see it, without a path."""
    return (settings.mcp.public_url or str(request.base_url)).rstrip("/")


async def _metadata(settings: Settings, request: Request) -> Response:
    """Metadata of the protected resource (RFC 9728, section 3.2)."""
    path = request.url.path.removeprefix(METADATA) or "/mcp"
    return JSONResponse(
        {
            "resource": f"{_url(settings, request)}{path}",
            "authorization_servers": [settings.auth.jwt.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Astrocyte memory",
        }
    )


class _Door:
    """Authenticates a request, then hands it to the SDK within a time limit."""

    def __init__(
        self,
        settings: Settings,
        authenticate: Authenticate,
        manager: StreamableHTTPSessionManager,
        bank_id: str | None,
    ) -> None:
        self._settings = settings
        self._authenticate = authenticate
        self._manager = manager
        self._bank_id = bank_id
        server = settings.server
        longest = max(server.read_deadline_seconds, server.write_deadline_seconds, server.reflect_deadline_seconds)
        self._seconds = longest + TRANSFER_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if request.method != "POST":
            # The server opens no streams and keeps no sessions, so GET and DELETE have nothing to act on.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        try:
            scope[SESSION] = await self._session(request)
        except AstrocyteError as error:
            await self._refusal(error, request)(scope, receive, send)
            return
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(self._seconds):
                await self._manager.handle_request(scope, receive, note)
        except TimeoutError:
            # Once an answer has begun, closing the connection is all that is left.
            if begun:
                raise
            await Response("the request did not arrive in time", status_code=408)(scope, receive, send)

    async def _session(self, request: Request) -> Session:
        credentials = request.headers.getlist("authorization")
        if len(credentials) > 1:
            raise AuthorizationError("there are two credentials; send one")
        session = await self._authenticate(credentials[0] if credentials else None)
        bank_id = self._bank_id or request.path_params.get("bank_id")
        if bank_id is not None:
            field_checks.bank_id(bank_id)
        return replace(session, bank_id=bank_id)

    def _refusal(self, error: AstrocyteError, request: Request) -> Response:
        body = {"error": {"code": error.reason, "message": error.message}}
        if not isinstance(error, AuthorizationError):
            return JSONResponse(body, status_code=400)
        challenge = 'Bearer error="invalid_token"'
        if self._settings.auth.jwt.issuer is not None:
            challenge += f', resource_metadata="{_url(self._settings, request)}{METADATA}{request.url.path}"'
        return JSONResponse(body, status_code=401, headers={"WWW-Authenticate": challenge})


def _security(settings: Settings) -> TransportSecuritySettings:
    """Accepted Host and Origin headers: they keep web pages from calling a loopback address by another name."""
    hosts = list(settings.mcp.allowed_hosts)
    if is_local(settings.mcp.host):
        hosts += [name for host in LOOPBACK_HOSTS for name in (host, f"{host}:*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts),
        allowed_hosts=hosts,
        allowed_origins=list(settings.mcp.allowed_origins),
    )


async def serve(app: Starlette, settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish the running calls.

    Args:
        app: The ASGI application.
        settings: Address, TLS and limits.
        announce: Called with the URL once the address is bound.

    Raises:
        ConfigError: The address cannot be bound, or a certificate cannot be read.
    """
    mcp, server = settings.mcp, settings.server
    config = uvicorn.Config(
        app,
        lifespan="on",
        # With the limits of heads and connections that uvicorn lacks.
        http=limited(mcp),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(server.drain_seconds)),
        ssl_certfile=server.tls_cert_file,
        ssl_keyfile=server.tls_key_file,
    )
    try:
        config.load()
    except OSError as error:
        raise ConfigError(
            f"cannot read the certificate {server.tls_cert_file} or its key: {error.strerror or error}",
            metadata={"file": str(server.tls_cert_file)},
        ) from error
    bound_handshakes(config, mcp)
    bound = _bind(mcp.host, mcp.port)
    scheme = "http" if server.tls_cert_file is None else "https"
    shown = f"[{mcp.host}]" if ":" in mcp.host else mcp.host
    log.info("serving_mcp", host=mcp.host, port=bound.getsockname()[1])
    announce(f"{scheme}://{shown}:{bound.getsockname()[1]}/mcp")
    await _Server(config).serve(sockets=[bound])


class _Server(uvicorn.Server):
    """A server that ends on a signal without raising it again, so that the application is closed in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT on the loop while the server runs."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=socket.SOMAXCONN)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", metadata={"address": f"{host}:{port}"}
        ) from error
