"""Webhooks over HTTP: statuses, health, metrics, and deliveries that survive the death of the server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import yaml
from click.testing import CliRunner
from prometheus_client import generate_latest

from astrocyte.api import Backend
from astrocyte.api.requests import ListMemories
from astrocyte.cli import cli
from astrocyte.errors import ConfigError
from astrocyte.model import Caller
from external.webhooks import PLAIN_AUTH, STANDARD_AUTH, Sent, body_of, plain, standard
from harness.serving import serving

SOURCES: dict[str, Any] = {
    "desk": {"type": "webhook", "target_bank": "tickets", "auth": PLAIN_AUTH},
    "mail": {"type": "webhook", "target_bank": "tickets", "auth": STANDARD_AUTH, "max_body_bytes": 1_024},
}
SECTIONS: dict[str, Any] = {
    "sources": SOURCES,
    "gateway": {"port": 0},
    "observability": {"prometheus_enabled": True, "metrics_port": 0},
}


def post(client: httpx.AsyncClient, sent: Sent, source_id: str = "desk", **headers: str) -> Any:
    return client.post(f"/v1/ingest/webhook/{source_id}", content=sent.body, headers={**sent.headers, **headers})


async def test_statuses_tell_a_sender_what_to_do() -> None:
    async with serving(**SECTIONS) as served, httpx.AsyncClient(base_url=served.server.http_address or "") as client:
        now = time.time()
        sent = plain(body_of("The printer is on fire."), now)
        first = await post(client, sent)
        assert (first.status_code, first.json()["status"]) == (202, "accepted")
        assert first.headers["x-request-id"]
        replayed = await post(client, sent)
        assert (replayed.status_code, replayed.json()["error"]["code"]) == (409, "already_exists")
        mail = body_of("The boat is on fire.")
        assert (await post(client, standard(mail, now), "mail")).status_code == 202
        again = await post(client, standard(mail, now + 1), "mail")
        assert (again.status_code, again.json()) == (200, {"status": "duplicate"})
        assert (await post(client, plain(body_of("x"), now, "a secret that is wrong"))).status_code == 401
        assert (await post(client, plain(b"[]", now))).json()["error"]["field"] == "body"
        assert (await post(client, standard(b" " * 1_025, now), "mail")).status_code == 413
        assert (await post(client, sent, "none")).status_code == 404
        assert (await client.get("/v1/ingest/webhook/desk")).status_code == 405
        page = await served.app.gate.call(Caller(), ListMemories("tickets"))
        assert page.memories[0].memory_id == first.json()["memory_id"]
        assert len(page.memories) == 2
        stored = generate_latest(served.app.telemetry.metrics.registry).decode()  # type: ignore[union-attr]
        assert 'astrocyte_ingest_messages_total{outcome="stored",source="desk"} 1.0' in stored
        assert 'astrocyte_ingest_messages_total{outcome="refused",source="desk"} 3.0' in stored


async def test_a_webhook_is_reached_by_the_name_of_a_proxy_and_with_no_key() -> None:
    async with serving(**SECTIONS) as served, httpx.AsyncClient(base_url=served.server.http_address or "") as client:
        sent = plain(body_of("The printer is on fire."), time.time())
        elsewhere = {"host": "hooks.example.com", "origin": "https://example.com"}
        assert (await client.get("/v1/banks", headers=elsewhere)).status_code == 421
        assert (await post(client, sent, **elsewhere)).status_code == 202


async def test_a_header_that_comes_twice_is_refused() -> None:
    async with serving(**SECTIONS) as served, httpx.AsyncClient(base_url=served.server.http_address or "") as client:
        sent = plain(body_of("The printer is on fire."), time.time())
        headers = [*sent.headers.items(), ("X-Astrocyte-Signature", "0" * 64)]
        answer = await client.post("/v1/ingest/webhook/desk", content=sent.body, headers=headers)
        assert answer.status_code == 401


async def test_health_names_the_sources_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(**SECTIONS) as served, httpx.AsyncClient(base_url=served.server.http_address or "") as client:
        health = await client.get("/health/ingest")
        assert (health.status_code, health.json()["status"]) == (200, "healthy")

        async def fail(*_: object) -> None:
            raise RuntimeError

        with monkeypatch.context() as broken:
            target = replace(served.app.sources.target, backend=cast(Backend, SimpleNamespace(call=fail)))
            broken.setattr(served.app.sources, "target", target)
            assert (await post(client, plain(body_of("a"), time.time()))).status_code == 500
        health = await client.get("/health/ingest")
        assert (health.status_code, health.json()["status"]) == (503, "degraded")
        assert health.json()["sources"][0] == {"id": "desk", "type": "webhook", "state": "waiting", "healthy": False}
        listed = await asyncio.to_thread(CliRunner().invoke, cli, ["--json", "--server", served.address, "sources"])
        shown = json.loads(listed.output)
        assert [(one["source_id"], one["healthy"], one["detail"]) for one in shown] == [
            ("desk", False, "RuntimeError"),
            ("mail", True, ""),
        ]
        table = await asyncio.to_thread(CliRunner().invoke, cli, ["--server", served.address, "sources"])
        assert "tickets" in table.output
        assert (await post(client, plain(body_of("b"), time.time()))).status_code == 202
        assert (await client.get("/health/ingest")).status_code == 200


async def test_a_webhook_without_a_gateway_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sources\.desk: a webhook needs the HTTP gateway"):
        async with serving(sources=SOURCES):
            pass


@contextmanager
def killed_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server with the sources on a data directory; yields the URL of its gateway, and is killed."""
    config = folder / "astrocyte.yaml"
    config.write_text(yaml.safe_dump({"sources": SOURCES, "gateway": {"port": 0}}), encoding="utf-8")
    command = [sys.executable, "-m", "astrocyte", "--config", str(config), "--data-dir", str(folder / "data")]
    command += ["serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            yield server.stdout.readline().split()[-1], server
        finally:
            server.kill()


@pytest.mark.process
def test_what_was_accepted_survives_a_kill_and_is_accepted_once(tmp_path: Path) -> None:
    sent: list[tuple[str, Sent]] = []
    for round_ in range(3):
        with killed_server(tmp_path) as (url, server):
            for source_id, one in sent:
                answer = httpx.post(f"{url}/v1/ingest/webhook/{source_id}", content=one.body, headers=one.headers)
                assert answer.status_code == 409
            now = time.time()
            for source_id, one in (
                ("desk", plain(body_of(f"Printer {round_} is on fire."), now)),
                ("mail", standard(body_of(f"Boat {round_} is on fire."), now, f"msg_{round_}")),
            ):
                answer = httpx.post(f"{url}/v1/ingest/webhook/{source_id}", content=one.body, headers=one.headers)
                assert answer.status_code == 202
                sent.append((source_id, one))
            server.kill()
    with killed_server(tmp_path) as (url, _):
        page = httpx.get(f"{url}/v1/banks/tickets/memories").json()
    assert sorted(memory["content"] for memory in page["memories"]) == sorted(
        f"{thing} {round_} is on fire." for thing in ("Printer", "Boat") for round_ in range(3)
    )
