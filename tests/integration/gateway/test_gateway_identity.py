"""Identity over HTTP: keys, tokens, tenants and grants, as over gRPC."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import httpx
import pytest

from astrocyte.api.requests import CreateBank
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller
from astrocyte.server import server_of
from harness.certificates import certificates
from harness.doors import api_keys, secret_of
from harness.http_doors import ME, opened
from harness.http_requests import bearer, code, http
from harness.serving import serving
from harness.tokens import AUDIENCE, ISSUER, claims, jwks, token

STRANGER = Caller("elsewhere", "user:me")


async def test_a_call_needs_a_credential_of_the_form_of_grpc() -> None:
    async with opened() as (_, doors):
        for headers in ({}, {"authorization": "Basic eDp5"}, {"authorization": "Bearer wrong"}):
            response = await doors.client.get("/v1/banks", headers=headers)
            assert (response.status_code, code(response)) == (401, "unauthenticated")
            assert response.headers["www-authenticate"] == "Bearer"
        twice = [("authorization", f"Bearer {secret_of(ME)}"), ("authorization", "Bearer wrong")]
        assert (await doors.client.get("/v1/banks", headers=twice)).status_code == 401
        assert (await doors.client.get("/v1/banks", headers=bearer(ME))).status_code == 200
        # A credential anywhere else is none.
        assert (await doors.client.get(f"/v1/banks?key={secret_of(ME)}")).status_code == 401
        cookie = {"cookie": f"authorization={secret_of(ME)}"}
        assert (await doors.client.get("/v1/banks", headers=cookie)).status_code == 401


async def test_claims_must_agree_with_the_credential() -> None:
    async with opened() as (_, doors):
        for header, value in (("x-astrocyte-tenant", "elsewhere"), ("x-astrocyte-principal", "user:other")):
            response = await doors.client.get("/v1/banks", headers={**bearer(ME), header: value})
            assert response.status_code == 401, header


async def test_a_token_of_the_issuer_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(jwks())
    settings = {"issuer": ISSUER, "audience": [AUDIENCE], "jwks_file": str(tmp_path / "keys.json")}
    now = time.time()
    async with serving(gateway={"port": 0}, auth={"jwt": settings}) as served, http(served) as client:
        for changes, status in (({}, 200), ({"exp": now - 600}, 401), ({"aud": "another"}, 401)):
            given = token(claims(**{"exp": now + 60, "iat": now, **changes}))
            response = await client.get("/v1/banks", headers={"authorization": f"Bearer {given}"})
            assert response.status_code == status, changes


async def test_a_bank_of_another_tenant_is_as_one_that_does_not_exist() -> None:
    async with opened(auth={"api_keys": api_keys([ME, STRANGER])}) as (app, doors):
        await app.gate.call(STRANGER, CreateBank("theirs"))
        answers = [
            (await doors.client.get(f"/v1/banks/{bank}", headers=bearer(ME))).json()["error"]
            for bank in ("theirs", "nobody")
        ]
        for answer in answers:
            answer["message"] = answer["message"].replace("theirs", "nobody")
            del answer["request_id"], answer["metadata"]
        assert answers[0] == answers[1]


async def test_access_control_holds() -> None:
    reads = [{"bank_id": "family", "principal": "user:me", "permissions": ["read"]}]
    async with opened(access_control={"enabled": True, "default_policy": "deny"}, access_grants=reads) as (_, doors):
        body = {"bank_id": "family", "content": "x"}
        response = await doors.client.post("/v1/retain", json=body, headers=bearer(ME))
        assert (response.status_code, code(response)) == (403, "access_denied")
        assert response.json()["error"]["message"] == "principal 'user:me' lacks write access to bank 'family'"


async def test_a_client_certificate_is_asked_for_as_over_grpc(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    server = {
        "tls_cert_file": str(files["server.pem"]),
        "tls_key_file": str(files["server.key"]),
        "tls_client_ca_file": str(files["ca.pem"]),
    }
    app = App(
        Settings.from_mapping({"vector_store": "in_memory", "server": {"port": 0, **server}, "gateway": {"port": 0}})
    )
    listening = server_of(app)
    await listening.start()
    try:
        url = str(listening.http_address)
        assert url.startswith("https://")
        known = ssl.create_default_context(cafile=str(files["ca.pem"]))
        async with httpx.AsyncClient(base_url=url, verify=known) as client:
            with pytest.raises(httpx.TransportError):
                await client.get("/v1/banks")
        known.load_cert_chain(str(files["client.pem"]), str(files["client.key"]))
        async with httpx.AsyncClient(base_url=url, verify=known) as client:
            kept = await client.post("/v1/retain", json={"bank_id": "b", "content": "Mara lives in Lisbon."})
            memory = await client.get(f"/v1/banks/b/memories/{kept.json()['memory_id']}")
            assert memory.json()["memory"]["principal"] == "ann"
    finally:
        await listening.stop(0)
        await app.close()
