"""The door of webhooks, and the health of all sources.

A webhook's signature is its credential: no API key is asked for, and the names that a request is sent to do not matter.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from astrocyte.api import Concurrency
from astrocyte.deadlines import ends_in, within
from astrocyte.errors import AuthorizationError, NotFound
from astrocyte.gateway.calls import Shared
from astrocyte.gateway.exchange import IDLE_SECONDS, JSON, Exchange
from astrocyte.ingest import WebhookAnswer
from astrocyte.ingest.board import as_json

PREFIX = "/v1/ingest/webhook/"
HEALTH = "/health/ingest"
STATUSES = {"accepted": 202, "duplicate": 200}


class Webhooks:
    """Answers deliveries, as writes with the places and the deadline of writes.

    Args:
        shared: The parts that gRPC has as well.
    """

    def __init__(self, shared: Shared) -> None:
        self._sources = shared.sources
        self._draining = shared.draining
        self._rules = shared.rules[Concurrency.WRITE]

    async def serve(self, exchange: Exchange, path: str, headers: dict[str, str]) -> None:
        """Answer a delivery; failures are raised."""
        self._draining.check()
        deadline = self._rules.deadline_seconds
        ends_in(deadline)
        answer = await within(IDLE_SECONDS if deadline is None else deadline, self._run(exchange, path))
        value: dict[str, Any] = {"status": answer.status}
        if answer.memory_id is not None:
            value["memory_id"] = answer.memory_id
        await exchange.answer(STATUSES[answer.status], value, headers)

    async def health(self, exchange: Exchange) -> None:
        """Answer a probe: 503 while a source is not healthy. It names no error and no bank."""
        infos = [] if self._sources is None else self._sources.board.listed()
        healthy = all(info.healthy for info in infos)
        value = {"status": "healthy" if healthy else "degraded", "sources": as_json(infos)}
        await exchange.answer(200 if healthy else 503, value, {})

    async def _run(self, exchange: Exchange, path: str) -> WebhookAnswer:
        source_id = unquote(path.removeprefix(PREFIX))
        if self._sources is None:
            raise NotFound("there is no webhook source of this id", metadata={"source_id": source_id[:64]})
        source = self._sources.webhook(source_id)
        names = {name.lower() for name in source.auth.headers}
        twice = names & exchange.repeated
        if twice:
            raise AuthorizationError(f"header {min(twice)} is there more than once; send it once")
        body = await exchange.body(source.max_body_bytes)
        admission = self._rules.admission
        if not admission.try_enter():
            await admission.enter()
        try:
            return await self._sources.receive(source_id, body, exchange.headers)
        finally:
            admission.leave()


def operation() -> dict[str, Any]:
    """The operation of a delivery in the OpenAPI document."""
    answer = {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"type": "string", "enum": list(STATUSES)},
            "memory_id": {"type": "string", "description": "The memory; missing where it waits for a provider."},
        },
    }
    return {
        "operationId": "ReceiveWebhook",
        "tags": ["Ingest"],
        "summary": "Store the memory of a signed delivery",
        "description": "Stores the memory of a delivery of a configured source. The body is JSON in the form of the "
        "source, and its signature is in the headers that the source names; docs/ingest.md.",
        "security": [{}],
        "parameters": [{"name": "source_id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"required": True, "content": {JSON: {"schema": {"type": "object"}}}},
        "responses": {
            "200": {
                "description": "Accepted earlier, and sent again.",
                "content": {JSON: {"schema": answer}},
            },
            "202": {"description": "Durable.", "content": {JSON: {"schema": answer}}},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
