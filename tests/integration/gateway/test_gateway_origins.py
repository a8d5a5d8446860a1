"""Pages of other origins, names of other machines, and paths that lead elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.server import check_exposure, server_of
from harness.http_doors import ME, opened
from harness.http_requests import JSON, bearer, code, http, raw
from harness.serving import serving


async def test_a_page_of_another_origin_changes_nothing() -> None:
    """By any request that a browser sends without asking: forms, and fetches without headers of their own."""
    body = '{"bank_id": "family", "content": "planted"}'
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            response = await client.post("/v1/retain", content=body, headers={"content-type": kind})
            assert (response.status_code, code(response)) == (415, "unsupported_media_type")
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://[", ""):
            response = await client.post("/v1/retain", content=body, headers={**JSON, "origin": origin})
            assert (response.status_code, code(response)) == (403, "origin_not_allowed")
        asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        refused = await client.options("/v1/retain", headers=asked)
        assert refused.status_code == 405
        assert not [name for name in refused.headers if name.startswith("access-control")]
        assert (await client.get("/v1/banks")).json()["banks"] == []
        own = {**JSON, "origin": str(served.server.http_address)}
        assert (await client.post("/v1/retain", content=body, headers=own)).status_code == 200


async def test_a_name_of_another_machine_is_refused_where_no_credential_is_asked_for() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        for host in ("evil.example", "evil.example:8080", "localhost.evil.example", ""):
            response = await client.get("/v1/banks", headers={"host": host})
            assert (response.status_code, code(response)) == (421, "misdirected_request")
        for host in ("localhost", "127.0.0.1:80", "[::1]:8080"):
            assert (await client.get("/v1/banks", headers={"host": host})).status_code == 200
    async with opened() as (_, doors):
        response = await doors.client.get("/v1/banks", headers={**bearer(ME), "host": "memory.example"})
        assert response.status_code == 200


@pytest.mark.parametrize("guard", ["_check_origin", "_check_host"])
async def test_without_the_check_a_page_of_another_origin_writes(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"astrocyte.gateway.application.Application.{guard}", lambda *_: None)
    headers = {**JSON, "origin": "https://evil.example"}
    if guard == "_check_host":
        headers["host"], headers["origin"] = "evil.example", "http://evil.example"
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        body = {"bank_id": "family", "content": "planted"}
        assert (await client.post("/v1/retain", json=body, headers=headers)).json()["stored"] is True


async def test_named_origins_may_call() -> None:
    app = "https://app.example.com"
    async with serving(gateway={"port": 0, "cors_origins": [app]}) as served, http(served) as client:
        asked = {
            "origin": app,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization",
        }
        allowed = await client.options("/v1/retain", headers=asked)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == app
        assert "access-control-allow-credentials" not in allowed.headers
        answer = await client.post("/v1/retain", json={"bank_id": "b", "content": "x"}, headers={"origin": app})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, app)
        other = await client.post(
            "/v1/retain", json={"bank_id": "b", "content": "x"}, headers={"origin": "https://x.y"}
        )
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers


def test_every_origin_needs_credentials() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "gateway": {"port": 0, "cors_origins": ["*"]}}))
    with pytest.raises(ConfigError, match="cors_origins"):
        server_of(app)
    asyncio.run(app.close())


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])  # noqa: S104 - is refused
def test_an_address_of_the_network_needs_tls_and_credentials(host: str) -> None:
    with pytest.raises(ConfigError, match="reachable from other machines"):
        check_exposure(Settings.from_mapping({"gateway": {"port": 8080, "host": host}}))
    check_exposure(Settings.from_mapping({"gateway": {"host": host}}))


@pytest.mark.parametrize(
    "path",
    [
        "/docs/../../../../etc/passwd",
        "/docs/..%2f..%2fpages.py",
        "/docs/%2e%2e/%2e%2e/pages.py",
        "/docs/index.html",
        "/docs//docs.js",
        "/docs/swagger/LICENSE",
        "//etc/passwd",
        "/v1/../openapi.json",
        "/v1/banks/%2e%2e%2fkeys",
        "/v1/banks//memories",
        "/V1/banks",
        "/v1/banks/",
    ],
)
async def test_no_path_leads_to_a_file_or_around_a_check(path: str) -> None:
    async with serving(gateway={"port": 0}) as served:
        status, body = await raw(
            served, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
        )
        assert status == 404, body
        assert b'"not_found"' in body


async def test_parts_of_a_path_are_values_and_no_paths() -> None:
    async with serving(gateway={"port": 0}) as served:
        for bank in ("..", "%2e%2e", "a%00b", "%ff"):
            request = f"GET /v1/banks/{bank} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            status, body = await raw(served, request.encode())
            assert (status, b'"bank_id"' in body) == (400, True), bank
