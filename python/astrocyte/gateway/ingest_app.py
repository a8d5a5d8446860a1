"""Webhooks as an ASGI application, for programs with a web server of their own."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from astrocyte.astrocyte import Astrocyte
from astrocyte.errors import AstrocyteError, AuthorizationError, MessageTooLarge
from astrocyte.gateway.failures import body_of, headers_of, status_of
from astrocyte.gateway.webhooks import HEALTH, PREFIX, STATUSES
from astrocyte.ingest import SourceRegistry
from astrocyte.ingest.board import as_json


def create_ingest_webhook_app(sources: Astrocyte | SourceRegistry) -> Starlette:
    """An ASGI application with ``POST /v1/ingest/webhook/{source_id}`` and ``GET /health/ingest``.

    Status, headers and body are those of the HTTP gateway. Limits of connections, TLS and the time of a request are
    those of the program's server.

    Args:
        sources: An `Astrocyte` of this process, whose configuration has the sources, or a registry of its own.

    Raises:
        CapabilityNotSupported: The `Astrocyte` is a connection to a server.
    """
    registry = sources.source_registry if isinstance(sources, Astrocyte) else sources

    async def receive(request: Request) -> JSONResponse:
        try:
            return await _received(registry, request)
        except AstrocyteError as error:
            return JSONResponse(body_of(error), status_of(error), headers_of(error))

    async def health(_: Request) -> JSONResponse:
        infos = registry.board.listed()
        healthy = all(info.healthy for info in infos)
        told = {"status": "healthy" if healthy else "degraded", "sources": as_json(infos)}
        return JSONResponse(told, 200 if healthy else 503)

    return Starlette(
        routes=[
            Route(PREFIX + "{source_id}", receive, methods=["POST"]),
            Route(HEALTH, health, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _refused},
    )


async def _received(registry: SourceRegistry, request: Request) -> JSONResponse:
    source_id = request.path_params["source_id"]
    source = registry.webhook(source_id)
    for name in source.auth.headers:
        if len(request.headers.getlist(name)) > 1:
            raise AuthorizationError(f"header {name.lower()} is there more than once; send it once")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        # Not one byte more is kept of a body that is refused for its size.
        if len(body) > source.max_body_bytes:
            raise MessageTooLarge(
                f"the body has more than {source.max_body_bytes:,} bytes",
                metadata={"limit": str(source.max_body_bytes)},
            )
    answer = await registry.receive(source_id, bytes(body), request.headers)
    told = {"status": answer.status}
    if answer.memory_id is not None:
        told["memory_id"] = answer.memory_id
    return JSONResponse(told, STATUSES[answer.status])


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """No such path or method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, message = ("not_found", "there is no such path") if status == 404 else ("method_not_allowed", "use POST")  # noqa: PLR2004 - the status
    return JSONResponse({"error": {"code": code, "message": message}}, status)
