"""The OpenAPI document, the page that shows it, and the console, with all files that they need."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from astrocyte.config import GatewaySettings

STATIC = Path(str(files(__package__).joinpath("static")))
OPENAPI, DOCS, CONSOLE = "/openapi.json", "/docs", "/console"
TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
# A page runs its own files, calls this server, and is in no frame of another page.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Text that becomes markup is refused as well: the console shows memories.
CONSOLE_POLICY = f"{STRICT}; require-trusted-types-for 'script'; trusted-types 'none'"
# Swagger UI sets styles, and makes markup of descriptions, which are those of the protocol.
DOCS_POLICY = STRICT.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Pages:
    """Serves the document and the pages.

    Args:
        document: The OpenAPI document.
        settings: Which pages are served.
    """

    def __init__(self, document: dict[str, Any], settings: GatewaySettings) -> None:
        self._openapi = orjson.dumps(document, option=orjson.OPT_INDENT_2)
        routes = [Route(OPENAPI, self._document)]
        for path, served, policy in (
            (CONSOLE, settings.console, CONSOLE_POLICY),
            (DOCS, settings.docs, DOCS_POLICY),
        ):
            if served:
                routes += _page(path, policy)
        if len(routes) > 1:
            routes.append(Route("/", _redirect(routes[1].path)))
        self._paths = frozenset(route.path for route in routes)
        self._app = Starlette(routes=routes)

    def has(self, path: str) -> bool:
        """True if there is such a page."""
        return path in self._paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page that there is."""
        await self._app(scope, receive, send)

    async def _document(self, _: Request) -> Response:
        return Response(self._openapi, media_type="application/json", headers=HEADERS)


def _page(path: str, policy: str) -> list[Route]:
    """A page, ``index.html`` of the folder of its name, and the other files of the folder. No other file is served."""
    folder = STATIC / path.removeprefix("/")
    found = sorted(file for file in folder.rglob("*") if file.suffix in TYPES)
    routes = [Route(path, _file(folder / "index.html", policy)), Route(f"{path}/", _redirect(path))]
    return routes + [Route(f"{path}/{file.name}", _file(file, policy)) for file in found if file.stem != "index"]


def _file(path: Path, policy: str) -> Any:  # noqa: ANN401 - a handler of Starlette's
    headers = {**HEADERS, "content-security-policy": policy, "cache-control": "no-cache"}

    async def serve(_: Request) -> Response:
        return FileResponse(path, media_type=TYPES[path.suffix], headers=headers)

    return serve


def _redirect(path: str) -> Any:  # noqa: ANN401 - as above
    async def serve(_: Request) -> Response:
        return RedirectResponse(path)

    return serve
