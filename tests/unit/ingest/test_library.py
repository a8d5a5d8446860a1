"""Sources in a program: those of its configuration, its own, and webhooks as an ASGI application."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from astrocyte import Astrocyte, connect
from astrocyte.errors import CapabilityNotSupported, ConfigError, ValidationError
from astrocyte.gateway import create_ingest_webhook_app
from astrocyte.ingest import (
    SourceRegistry,
    handle_webhook_ingest,
    parse_ingest_kafka_value,
    parse_ingest_stream_fields,
    retain_callable_for_astrocyte,
)
from astrocyte.model import SourceState
from external.webhooks import PLAIN_AUTH, STANDARD_AUTH, Sent, body_of, plain, standard

WEBHOOK: dict[str, Any] = {"type": "webhook", "target_bank": "tickets", "auth": PLAIN_AUTH, "max_body_bytes": 1_024}
PATH = "/v1/ingest/webhook/desk"


def folder(path: Path) -> dict[str, Any]:
    (path / "note.md").write_text("The lighthouse keeper is called Mara.", encoding="utf-8")
    return {"type": "poll", "driver": "folder", "path": str(path), "interval_seconds": 1, "target_bank": "notes"}


async def found(brain: Astrocyte, state: SourceState | None = None) -> str:
    """The content of the note, once it is there."""
    async with asyncio.timeout(60):
        while True:
            if any(bank.bank_id == "notes" for bank in (await brain.list_banks()).banks):
                page = await brain.list("notes")
                if page.memories:
                    return page.memories[0].content
            await asyncio.sleep(0.02)


async def test_a_context_reads_the_configured_sources(tmp_path: Path) -> None:
    config = {"vector_store": "in_memory", "sources": {"notes": folder(tmp_path)}}
    async with Astrocyte.from_config_dict(config) as brain:
        assert "Mara" in await found(brain)
    registry = brain.source_registry
    assert [one.state for one in registry.board.listed()] == [SourceState.STOPPED]


async def test_without_a_context_sources_are_started_and_stopped_by_calls(tmp_path: Path) -> None:
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory", "sources": {"notes": folder(tmp_path)}})
    assert (await brain.list_sources())[0].state is SourceState.STOPPED
    await brain.start_sources()
    await brain.start_sources()
    assert "Mara" in await found(brain)
    await brain.stop_sources()
    await brain.stop_sources()
    assert (await brain.list_sources())[0].state is SourceState.STOPPED
    await brain.close()


async def test_sources_of_a_server_are_run_there() -> None:
    brain = connect("localhost:1")
    for work in (brain.start_sources, brain.stop_sources):
        with pytest.raises(CapabilityNotSupported):
            await work()
    with pytest.raises(CapabilityNotSupported):
        retain_callable_for_astrocyte(brain)
    with pytest.raises(CapabilityNotSupported):
        create_ingest_webhook_app(brain)
    await brain.close()


async def test_a_program_runs_sources_of_its_own(tmp_path: Path) -> None:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        sources = {"notes": folder(tmp_path), "desk": WEBHOOK}
        for retain in (brain, retain_callable_for_astrocyte(brain)):
            registry = SourceRegistry.from_sources_config(sources, retain=retain)
            registry.start()
            assert "Mara" in await found(brain)
            await registry.stop()
        # Settings as the configuration has them are taken as well.
        known = SourceRegistry.from_sources_config(sources, retain=brain).webhook("desk")
        again = SourceRegistry.from_sources_config({"desk": known}, retain=brain)
        sent = plain(body_of("The printer is on fire."), time.time())
        assert (await again.receive("desk", sent.body, sent.headers)).status == "accepted"
        with pytest.raises(ConfigError, match="target_bank"):
            SourceRegistry.from_sources_config({"desk": {"type": "webhook", "auth": PLAIN_AUTH}}, retain=brain)


async def test_a_target_retains_and_takes_single_deliveries() -> None:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory", "sources": {"desk": WEBHOOK}}) as brain:
        retain = retain_callable_for_astrocyte(brain)
        result = await retain("Order 7 is paid.", "orders", tags=("order",), metadata={"n": 7})
        memory = await brain.get(result.memory_id or "", "orders")
        assert (memory.content, memory.tags, memory.metadata) == ("Order 7 is paid.", ("order",), {"n": 7})
        sent = plain(body_of("The printer is on fire."), time.time())
        source = brain.source_registry.webhook("desk")
        answer = await handle_webhook_ingest("desk", source, sent.body, sent.headers, retain=brain)
        assert answer.status == "accepted"
        assert (await brain.get(answer.memory_id or "", "tickets")).content == "The printer is on fire."


async def post(brain: Astrocyte, sent: Sent, path: str = PATH, headers: Any = None) -> httpx.Response:
    transport = httpx.ASGITransport(create_ingest_webhook_app(brain))
    async with httpx.AsyncClient(transport=transport, base_url="http://program") as client:
        return await client.post(path, content=sent.body, headers=headers or sent.headers)


async def test_the_asgi_application_answers_as_the_gateway() -> None:
    sources = {"desk": WEBHOOK, "mail": {**WEBHOOK, "auth": STANDARD_AUTH}}
    async with Astrocyte.from_config_dict({"vector_store": "in_memory", "sources": sources}) as brain:
        now = time.time()
        sent = plain(body_of("The printer is on fire."), now)
        accepted = await post(brain, sent)
        assert (accepted.status_code, accepted.json()["status"]) == (202, "accepted")
        assert (await post(brain, sent)).status_code == 409
        mail = [standard(body_of("The printer is out."), at) for at in (now, now + 2)]
        assert (await post(brain, mail[0], "/v1/ingest/webhook/mail")).status_code == 202
        repeated = await post(brain, mail[1], "/v1/ingest/webhook/mail")
        assert (repeated.status_code, repeated.json()) == (200, {"status": "duplicate"})
        forged = await post(brain, plain(sent.body, now, "a wrong secret of it"))
        assert (forged.status_code, forged.json()["error"]["code"]) == (401, "unauthenticated")
        twice = [*sent.headers.items(), ("X-Time", "1")]
        assert (await post(brain, sent, headers=twice)).status_code == 401
        assert (await post(brain, plain(body_of("x" * 2_000), now))).status_code == 413
        assert (await post(brain, plain(b"no json", now))).status_code == 400
        assert (await post(brain, sent, "/v1/ingest/webhook/none")).status_code == 404
        assert (await post(brain, sent, "/elsewhere")).json()["error"]["code"] == "not_found"
        transport = httpx.ASGITransport(create_ingest_webhook_app(brain.source_registry))
        async with httpx.AsyncClient(transport=transport, base_url="http://program") as client:
            assert (await client.get(PATH)).status_code == 405
            health = await client.get("/health/ingest")
        assert (health.status_code, health.json()["status"]) == (200, "healthy")
        assert len((await brain.list("tickets")).memories) == 2


def test_payloads_are_messages() -> None:
    assert parse_ingest_kafka_value(b'{"content": "a"}') == {"content": "a"}
    assert parse_ingest_kafka_value('{"content": "ä"}') == {"content": "ä"}
    assert parse_ingest_kafka_value("grün".encode(), text=True) == {"content": "grün"}
    assert parse_ingest_stream_fields({b"content": "ä".encode(), b"tags": b'["t"]'}) == {"content": "ä", "tags": ["t"]}
    assert parse_ingest_stream_fields({"payload": '{"text": "a"}'}) == {"text": "a"}


@pytest.mark.parametrize("value", [None, b"", b"[]", b"\xff", "text"])
def test_a_value_that_is_no_message_is_refused(value: bytes | str | None) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_ingest_kafka_value(value)
    assert caught.value.field == "value"


@pytest.mark.parametrize("fields", [{"payload": "[]"}, {"content": "a", "tags": "no"}, {b"content": b"\xff"}])
def test_fields_that_are_no_message_are_refused(fields: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_ingest_stream_fields(fields)
    assert caught.value.field == "fields"


def test_a_text_that_is_no_utf_8_is_refused() -> None:
    for value in (b"\xff", None):
        with pytest.raises(ValidationError):
            parse_ingest_kafka_value(value, text=True)
