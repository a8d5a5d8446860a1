"""The OpenAPI document."""

from __future__ import annotations

import json
import re
from typing import Any

from astrocyte.api import RPCS
from astrocyte.gateway.openapi import document
from astrocyte.gateway.routes import bindings

DOCUMENT = document(bindings(RPCS.values()))
OPERATIONS = {
    operation["operationId"]: operation for verbs in DOCUMENT["paths"].values() for operation in verbs.values()
}


def test_every_rpc_is_an_operation_with_words() -> None:
    # gRPC has neither webhooks nor files of the server.
    rpcs = {*(rpc.name for rpc in RPCS.values()), "ReceiveWebhook", "ExportFile", "ImportFile"}
    assert {name.rstrip("0123456789") for name in OPERATIONS} == rpcs
    assert len(OPERATIONS) == sum(len(verbs) for verbs in DOCUMENT["paths"].values())
    assert [name for name, one in OPERATIONS.items() if not one["summary"] or not one["description"]] == []


def test_every_reference_leads_to_a_schema() -> None:
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)))
    assert named - set(DOCUMENT["components"]["schemas"]) == set()
    assert set(DOCUMENT["components"]["schemas"]) - named == set()


def test_every_field_has_words() -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for field, value in properties(schema).items()
        if not value.get("description")
    ]
    assert silent == []


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    return dict(schema.get("properties") or schema.get("anyOf", [{}])[0].get("properties", {}))


def test_parts_of_a_path_are_not_in_its_body() -> None:
    update = OPERATIONS["UpdateMemory"]
    assert [one["name"] for one in update["parameters"]] == ["bank_id", "memory_id"]
    body = DOCUMENT["components"]["schemas"]["UpdateMemoryRequestBody"]["properties"]
    assert "content" in body
    assert not {"bank_id", "memory_id"} & set(body)


def test_choices_are_the_short_names() -> None:
    assert DOCUMENT["components"]["schemas"]["MultiBankMode"]["enum"] == ["parallel", "cascade", "first_match"]


def test_streams_are_events() -> None:
    assert list(OPERATIONS["Watch"]["responses"]["200"]["content"]) == ["text/event-stream"]
    assert list(OPERATIONS["StreamRetain"]["requestBody"]["content"]) == ["application/x-ndjson"]
