"""The HTTP transport without a network: OAuth discovery, and a body that does not arrive."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError
from astrocyte.mcp import http
from astrocyte.mcp.server import Session

ISSUER = "https://login.example.com"
JWT = {"issuer": ISSUER, "audience": ["memory"], "jwks_url": f"{ISSUER}/keys"}
METADATA = "/.well-known/oauth-protected-resource"


async def refusing(_: str | None) -> Session:
    raise AuthorizationError("no credential")


def app_of(bank_id: str | None = None, **sections: Any) -> Starlette:
    return http.http_app(Settings.from_mapping({"vector_store": "in_memory", **sections}), refusing, bank_id)


def client_of(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:50052")


@pytest.mark.parametrize(
    ("public", "url"),
    [(None, "http://127.0.0.1:50052"), ("https://memory.example.com", "https://memory.example.com")],
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/family"])
async def test_a_client_finds_the_issuer_of_tokens(path: str, public: str | None, url: str) -> None:
    app = app_of(auth={"jwt": JWT}, mcp={"public_url": public})
    async with client_of(app) as client:
        refused = await client.post(path, json={})
        assert refused.status_code == 401
        challenge = f'resource_metadata="{url}{METADATA}{path}"'
        assert refused.headers["www-authenticate"] == f'Bearer error="invalid_token", {challenge}'
        metadata = (await client.get(f"{METADATA}{path}")).json()
        assert metadata["resource"] == f"{url}{path}"
        assert metadata["authorization_servers"] == [ISSUER]
        assert metadata["bearer_methods_supported"] == ["header"]
        assert (await client.get(METADATA)).json()["resource"] == f"{url}/mcp"


async def test_without_an_issuer_there_is_no_metadata() -> None:
    async with client_of(app_of()) as client:
        assert (await client.get(f"{METADATA}/mcp")).status_code == 404
        assert "resource_metadata" not in (await client.post("/mcp", json={})).headers["www-authenticate"]


async def test_a_fixed_bank_has_metadata_of_its_only_path() -> None:
    async with client_of(app_of("family", auth={"jwt": JWT})) as client:
        assert (await client.get(f"{METADATA}/mcp")).status_code == 200
        assert (await client.get(f"{METADATA}/mcp/other")).status_code == 404


async def test_a_body_that_does_not_arrive_ends_with_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TRANSFER_SECONDS", 0.1)
    seconds = {f"{kind}_deadline_seconds": 0.1 for kind in ("read", "write", "reflect")}

    async def anyone(_: str | None) -> Session:
        return Session(None, None)  # type: ignore[arg-type]  # no call is made

    settings = Settings.from_mapping({"vector_store": "in_memory", "server": seconds})
    app = http.http_app(settings, anyone, None)
    begun = asyncio.Event()

    async def slow() -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            return {"type": "http.request", "body": b"{", "more_body": True}
        await asyncio.Event().wait()
        raise AssertionError

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
    }
    scope |= {"headers": headers, "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "scheme": "http"}
    async with app.router.lifespan_context(app):
        await app(scope, slow, send)
    assert sent[0]["status"] == 408
