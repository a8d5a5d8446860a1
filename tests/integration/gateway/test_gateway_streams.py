"""Streams over HTTP end with their clients and credentials, and answers hold nothing that they should not."""

from __future__ import annotations

import asyncio

import pytest

from astrocyte.api.requests import CreateBank, Retain
from astrocyte.model import Caller, RetainItem
from astrocyte.policy.gate import Gate
from harness.http_doors import ME, opened
from harness.http_requests import bearer, code, connect, http
from harness.serving import serving


async def test_a_watch_ends_when_its_client_leaves() -> None:
    async with serving(gateway={"port": 0}) as served:
        await served.backend.call(Caller(), CreateBank("family"))
        waiting = served.server._rules["watch"].admission  # type: ignore[index]  # a StrEnum
        async with http(served) as client, client.stream("GET", "/v1/banks/family/changes") as stream:
            assert stream.status_code == 200
            assert waiting.running == 1
        for _ in range(100):
            if not waiting.running:
                break
            await asyncio.sleep(0.02)
        assert waiting.running == 0


async def test_a_watch_of_a_revoked_key_says_nothing_more() -> None:
    grants = [{"bank_id": "*", "principal": "user:me", "permissions": ["*"]}]
    async with opened(access_control={"enabled": True}, access_grants=grants) as (app, doors):
        made = await doors.client.post("/v1/keys", json={"name": "k", "principal": "user:me"}, headers={**bearer(ME)})
        secret, key_id = made.json()["secret"], made.json()["api_key"]["key_id"]
        await app.gate.call(ME, CreateBank("family"))
        headers = {"authorization": f"Bearer {secret}"}
        async with doors.client.stream("GET", "/v1/banks/family/changes", headers=headers) as stream:
            assert stream.status_code == 200
            revoked = await doors.client.post(f"/v1/keys/{key_id}:revoke", json={}, headers=bearer(ME))
            assert revoked.status_code == 200
            await app.gate.call(ME, Retain("family", RetainItem("Mara is allergic to sesame.")))
            text = "".join([line async for line in stream.aiter_lines()])
        assert "unauthenticated" in text
        assert "created" not in text


async def test_a_stream_that_fails_at_once_has_a_status() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        response = await client.get("/v1/banks/nowhere/changes")
        assert (response.status_code, code(response)) == (404, "bank_not_found")
        response = await client.post("/v1/reflect:stream", json={})
        assert (response.status_code, code(response)) == (400, "invalid_argument")


async def test_a_reflect_ends_when_its_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = asyncio.Event()

    async def slow(*_: object) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    monkeypatch.setattr(Gate, "call", slow)
    async with serving(gateway={"port": 0}) as served:
        body = b'{"bank_id": "b", "query": "x"}'
        head = b"POST /v1/reflect HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        _, writer = await connect(served)
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        await asyncio.wait_for(cancelled.wait(), 5)


async def test_no_answer_is_kept_or_guessed() -> None:
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        for path in ("/v1/banks", "/v1/nothing", "/healthz"):
            headers = (await client.get(path)).headers
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
            assert "server" not in headers


async def test_a_fault_of_ours_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(*_: object) -> None:
        raise KeyError("the secret of Mara")

    monkeypatch.setattr(Gate, "call", broken)
    async with serving(gateway={"port": 0}) as served, http(served) as client:
        response = await client.post("/v1/recall", json={"bank_id": "b", "query": "x"}, headers={"x-request-id": "r-7"})
        assert (response.status_code, code(response)) == (500, "internal")
        assert "Mara" not in response.text
        assert response.headers["x-request-id"] == response.json()["error"]["request_id"] == "r-7"
    printed = capsys.readouterr()
    assert "r-7" in printed.out + printed.err
    assert "Mara" not in printed.out + printed.err
