"""The ASGI application: the API under `/v1`, health, and the pages."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from astrocyte.api import RPCS
from astrocyte.config import GatewaySettings, ServerSettings
from astrocyte.gateway.archive_files import ArchiveFiles
from astrocyte.gateway.calls import Calls, Handle, Shared
from astrocyte.gateway.exchange import Exchange, Receive, Scope, Send
from astrocyte.gateway.failures import HttpError
from astrocyte.gateway.openapi import document
from astrocyte.gateway.pages import Pages
from astrocyte.gateway.routes import Binding, Router, bindings
from astrocyte.gateway.webhooks import HEALTH, Webhooks
from astrocyte.gateway.webhooks import PREFIX as WEBHOOK_PREFIX
from astrocyte.services.authentication import CLAIMS, HEADER
from astrocyte.services.interceptors import REQUEST_ID_KEY

PREFIX = "/v1/"
LIVE, READY = "/healthz", "/readyz"
# Of a path that does not exist; a caller can make it as long as a head may be.
SHOWN_PATH_CHARS = 128
SAFE = frozenset({"GET", "OPTIONS"})
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Application:
    """Answers HTTP requests.

    Args:
        shared: The parts that gRPC has as well.
        settings: Of the gateway.
        server: Those of the server, for the limits of bodies and answers.
        local_only: Whether only names of this machine are answered; see `_check_host`.
    """

    def __init__(self, shared: Shared, settings: GatewaySettings, server: ServerSettings, *, local_only: bool) -> None:
        self._calls = Calls(shared, server.max_message_bytes, server.max_answer_bytes)
        self._serving = shared.serving
        self._origins = frozenset(settings.cors_origins)
        self._hosts = LOCAL_HOSTS | {settings.host} if local_only else frozenset()
        found = list(bindings(RPCS.values()))
        self._router = Router(found)
        self._handlers: dict[int, Handle] = {id(binding): self._calls.handler(binding) for binding in found}
        self._webhooks = Webhooks(shared)
        files = ArchiveFiles(shared.servicer.backend)
        self._files: dict[str, Handle] = {
            path: self._calls.file_handler(path, work) for path, work in files.paths.items()
        }
        self._pages = Pages(document(found), settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        try:
            serve_page = await self._answer(exchange, scope["path"])
        except Exception as error:  # noqa: BLE001 - every failure becomes an answer
            await self._calls.refuse(exchange, error, "http")
        else:
            if serve_page:
                await self._pages(scope, receive, send)

    async def _answer(self, exchange: Exchange, path: str) -> bool:
        """Answer a probe or a call; True for a page, which is to be served."""
        if path in {LIVE, READY}:
            await self._health(exchange, path)
            return False
        if path == HEALTH:
            if exchange.verb != "GET":
                raise _not_allowed(["GET"])
            await self._webhooks.health(exchange)
            return False
        if path.startswith(WEBHOOK_PREFIX):
            # Its signature admits a delivery, whatever names the request has.
            if exchange.verb != "POST":
                raise _not_allowed(["POST"])
            await self._webhooks.serve(exchange, path, self._calls.headers(exchange))
            return False
        self._check_host(exchange)
        self._check_origin(exchange)
        if path.startswith(PREFIX):
            await self._call(exchange, path)
            return False
        if not self._pages.has(path):
            raise _not_found(path)
        if exchange.verb != "GET":
            raise _not_allowed(["GET"])
        return True

    async def _call(self, exchange: Exchange, path: str) -> None:
        """Answer a call, or a request for a file of the server."""
        move = self._files.get(path)
        if move is None:
            binding, values = self._find(exchange, path)
            await self._handlers[id(binding)](exchange, values)
            return
        if exchange.verb != "POST":
            raise _not_allowed(["POST"])
        await move(exchange, {})

    def _find(self, exchange: Exchange, path: str) -> tuple[Binding, dict[str, str]]:
        binding, values, allowed = self._router.find(exchange.verb, path)
        if binding is not None:
            if exchange.scope["method"] == "HEAD" and binding.method.server_streaming:
                raise _not_allowed(["GET"])
            return binding, dict(values)
        raise _not_allowed(allowed) if allowed else _not_found(path)

    async def _health(self, exchange: Exchange, path: str) -> None:
        """Answer a probe: without credentials and limits, which must not keep it from an answer."""
        if exchange.verb != "GET":
            raise _not_allowed(["GET"])
        serving = path == LIVE or self._serving()
        status = "alive" if path == LIVE else "serving" if serving else "not_serving"
        await exchange.answer(200 if serving else 503, {"status": status}, {})

    def _check_host(self, exchange: Exchange) -> None:
        """Refuse names of other machines where no credential is asked for.

        A page can give its own name the address of this machine and is then of the same origin; what it cannot do is
        send another name in its requests.
        """
        if self._hosts and _host_name(exchange.headers.get("host", "")) not in self._hosts:
            raise HttpError(421, "misdirected_request", "this server answers for this machine only; use localhost")

    def _check_origin(self, exchange: Exchange) -> None:
        """Refuse changes that a page of another origin asks for, unless the settings name the origin."""
        origin = exchange.headers.get("origin")
        if origin is None or exchange.verb in SAFE or origin in self._origins or "*" in self._origins:
            return
        # Compared as text: an origin is scheme and host, and a broken one equals none.
        if origin.partition("://")[2].lower() != exchange.headers.get("host", "").lower():
            raise HttpError(
                403, "origin_not_allowed", "pages of another origin may not call this server; see gateway.cors_origins"
            )


def with_cors(application: Application, origins: Collection[str]) -> ASGIApp:
    """The application with answers for pages of these origins; without any, it is as it was."""
    if not origins:
        return application
    return CORSMiddleware(
        application,
        allow_origins=sorted(origins),
        allow_methods=["GET", "POST", "PATCH", "PUT", "DELETE"],
        allow_headers=[HEADER, "content-type", REQUEST_ID_KEY, *sorted(CLAIMS)],
        expose_headers=[REQUEST_ID_KEY, "retry-after"],
    )


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _not_found(path: str) -> HttpError:
    return HttpError(404, "not_found", f"there is no path {path[:SHOWN_PATH_CHARS]!r} here; /openapi.json lists all")


def _not_allowed(allowed: Collection[str]) -> HttpError:
    names = ", ".join(allowed)
    return HttpError(405, "method_not_allowed", f"this path has the methods {names}", {"allow": names})
