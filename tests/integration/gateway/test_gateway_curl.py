"""The documented curl commands, run as they are written, but for the host."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CreateBank, Retain
from astrocyte.model import RetainItem
from harness.doors import secret_of
from harness.http_doors import ME, HttpDoors, opened

GATEWAY = "https://gateway.example.com"
HEAD = """ -H "Content-Type: application/json" -H "Authorization: Bearer $ASTROCYTE_TOKEN" -d """

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture
async def doors() -> AsyncIterator[HttpDoors]:
    async with opened() as (_, doors):
        for bank in ("user-prefs", "user-alice", "incidents", "runbooks", "team-notes"):
            await doors.call(ME, CreateBank(bank))
        yield doors


async def curl(doors: HttpDoors, command: str) -> tuple[int, Any]:
    """Status and body of a command line."""
    url = str(doors.client.base_url).rstrip("/")
    line = command.replace(GATEWAY, url).replace("curl ", "curl --silent --write-out '\\n%{http_code}' ", 1)
    shell = await asyncio.create_subprocess_shell(
        line, stdout=asyncio.subprocess.PIPE, env={"ASTROCYTE_TOKEN": secret_of(ME), "PATH": "/usr/bin:/bin"}
    )
    output, _ = await shell.communicate()
    body, _, status = output.decode().rpartition("\n")
    return int(status), json.loads(body)


def post(path: str, body: str) -> str:
    return f"curl -X POST {GATEWAY}/v1/{path}" + HEAD + f"'{body}'"


RETAIN = post(
    "retain",
    """{
      "content": "Customer prefers dark-mode UI and weekly email digests.",
      "bank_id": "user-prefs",
      "tags": ["ui", "notifications"],
      "metadata": {"customer_id": "cust_8291"}
    }""",
)


async def test_retain(doors: HttpDoors) -> None:
    status, body = await curl(doors, RETAIN)
    assert status == 200
    assert body["stored"] is True
    assert body["deduplicated"] is False
    assert body["retention_action"] == "created"
    assert body["memory_layer"] == "semantic"
    assert body["memory_id"].startswith("mem_")
    assert set(body) >= {"stored", "memory_id", "deduplicated", "error", "retention_action", "curated", "memory_layer"}


async def test_recall(doors: HttpDoors) -> None:
    await curl(doors, RETAIN)
    question = '{"query": "What UI theme does the customer prefer?", "bank_id": "user-prefs", "max_results": 5}'
    status, body = await curl(doors, post("recall", question))
    assert status == 200
    (hit,) = body["hits"]
    assert hit["text"] == "Customer prefers dark-mode UI and weekly email digests."
    assert hit["metadata"] == {"customer_id": "cust_8291"}
    assert hit["tags"] == ["ui", "notifications"]
    assert hit["retained_at"].endswith("Z")
    assert body["truncated"] is False
    assert body["total_available"] == 1
    assert body["trace"]["strategies_used"] == ["semantic", "keyword"]
    assert body["trace"]["cache_hit"] is False


async def test_recall_of_several_banks(doors: HttpDoors) -> None:
    await doors.call(ME, Retain("runbooks", RetainItem("Deployment issues are rolled back first.")))
    body = """{
      "query": "deployment issues last week",
      "banks": ["incidents", "runbooks", "team-notes"],
      "strategy": "parallel",
      "max_results": 20
    }"""
    status, found = await curl(doors, post("recall", body))
    assert status == 200
    assert [hit["bank_id"] for hit in found["hits"]] == ["runbooks"]
    assert [bank["outcome"] for bank in found["trace"]["banks"]] == ["searched"] * 3


async def test_history(doors: HttpDoors) -> None:
    await doors.call(ME, Retain("user-alice", RetainItem("Alice works for Initech.")))
    body = """{
      "query": "What did we know about Alice'\\''s employer?",
      "bank_id": "user-alice",
      "as_of": "2025-01-01T00:00:00Z"
    }"""
    status, found = await curl(doors, post("history", body))
    assert status == 200
    assert found["hits"] == []
    assert (found["as_of"], found["bank_id"]) == ("2025-01-01T00:00:00.000Z", "user-alice")


async def test_reflect(doors: HttpDoors) -> None:
    await curl(doors, RETAIN)
    body = """{
      "query": "What are this customer'\\''s communication preferences?",
      "bank_id": "user-prefs",
      "max_tokens": 200,
      "include_sources": true
    }"""
    status, told = await curl(doors, post("reflect", body))
    assert status == 200
    assert told["answer"]
    assert 0.0 <= told["confidence"] <= 1.0
    assert set(told) >= {"answer", "sources", "observations", "authority_context"}


async def test_forget_by_id_and_by_tag(doors: HttpDoors) -> None:
    _, kept = await curl(doors, RETAIN)
    await doors.call(ME, Retain("user-prefs", RetainItem("The old address.", tags=("deprecated",))))
    unknown = '{"bank_id": "user-prefs", "memory_ids": ["mem_3f8a", "mem_91cb"]}'
    assert (await curl(doors, post("forget", unknown)))[1]["deleted_count"] == 0
    one = unknown.replace("mem_3f8a", kept["memory_id"])
    assert (await curl(doors, post("forget", one)))[1]["deleted_count"] == 1
    status, body = await curl(doors, post("forget", '{"bank_id": "user-prefs", "tags": ["deprecated"]}'))
    assert status == 200
    assert (body["deleted_count"], body["archived_count"]) == (1, 0)


async def test_mental_models(doors: HttpDoors) -> None:
    kept = [
        await doors.call(ME, Retain("user-alice", RetainItem(f"Alice said {word}."))) for word in ("yes", "no", "so")
    ]
    ids = json.dumps([one.memory_id for one in kept])
    made, _ = await curl(
        doors,
        post(
            "mental-models",
            """{
              "bank_id": "user-alice",
              "model_id": "preferences-v1",
              "title": "Alice'\\''s preferences",
              "content": "Alice prefers async communication, dark mode, and Python over Go.",
              "scope": "bank",
              "source_ids": """
            + ids
            + "}",
        ),
    )
    assert made == 200
    token = '-H "Authorization: Bearer $ASTROCYTE_TOKEN"'
    query = '--data-urlencode "bank_id=user-alice" --data-urlencode "scope=tag:preferences"'
    assert (await curl(doors, f"curl -G {GATEWAY}/v1/mental-models {token} {query}"))[0] == 200
    one = f"'{GATEWAY}/v1/mental-models/preferences-v1?bank_id=user-alice' {token}"
    status, found = await curl(doors, f"curl {one}")
    assert status == 200
    assert "Alice's preferences" in json.dumps(found)
    body = """{
      "bank_id": "user-alice",
      "content": "Updated: Alice now prefers Slack over email.",
      "source_ids": ["mem-7", "mem-8"]
    }"""
    refresh = post("mental-models/preferences-v1/refresh", body)
    status, refused = await curl(doors, refresh)
    # Sources are memories of the bank.
    assert (status, refused["error"]["code"]) == (404, "memory_not_found")
    sources = [str(one.memory_id) for one in kept[:2]]
    status, found = await curl(doors, refresh.replace("mem-7", sources[0]).replace("mem-8", sources[1]))
    assert status == 200
    assert "Slack" in json.dumps(found)
    assert found["model"]["revision"] == 2
    assert [source["memory_id"] for source in found["model"]["sources"]] == sources
    assert (await curl(doors, f"curl -X DELETE {one}"))[0] == 200
    assert (await curl(doors, f"curl {one}"))[0] == 404
    gone = '{"bank_id": "user-alice", "source_ids": ["mem-1", "mem-2"]}'
    assert (await curl(doors, post("observations/invalidate", gone)))[0] == 200


async def test_wiki_pages(doors: HttpDoors) -> None:
    for text in ("The deployment runs on Friday.", "A deployment failed in May."):
        await doors.call(ME, Retain("engineering", RetainItem(text, tags=("deployment",))))
    status, body = await curl(doors, post("compile", '{"bank_id": "engineering", "scope": "deployment"}'))
    assert status == 200
    assert (body["bank_id"], body["scopes_compiled"], body["pages_created"]) == ("engineering", 1, 1)
    one = f"'{GATEWAY}/v1/banks/engineering/pages/topic:deployment' -H \"Authorization: Bearer $ASTROCYTE_TOKEN\""
    status, body = await curl(doors, f"curl {one}")
    assert status == 200
    assert "A deployment failed in May." in json.dumps(body)


async def test_audit(doors: HttpDoors) -> None:
    await doors.call(ME, Retain("support-acme", RetainItem("Customer support answers tickets within one day.")))
    asked = """{ "scope": "customer support tickets and resolutions for ACME Corp", "bank_id": "support-acme",
        "max_memories": 50 }"""
    status, body = await curl(doors, post("audit", asked))
    assert status == 200
    assert set(body) >= {"scope", "bank_id", "coverage_score", "memories_scanned", "gaps", "trace"}
    assert (body["bank_id"], body["memories_scanned"]) == ("support-acme", 1)
    assert body["scope"] == "customer support tickets and resolutions for ACME Corp"
    assert 0.0 <= body["coverage_score"] < 1.0
    assert set(body["gaps"][0]) == {"topic", "severity", "reason"}
    assert body["gaps"][0]["severity"] == "high"


async def test_export_and_import(doors: HttpDoors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await curl(doors, RETAIN)
    export = post("export", '{"bank_id": "user-prefs", "path": "/backups/user-prefs.ama.jsonl"}')
    load = post("import", '{"bank_id": "user-prefs", "path": "/backups/user-prefs.ama.jsonl", "on_conflict": "skip"}')
    monkeypatch.delenv("ASTROCYTE_PORTABILITY_ROOTS", raising=False)
    for command in (export, load):
        status, refused = await curl(doors, command)
        assert (status, refused["error"]["code"]) == (422, "path_not_allowed")
        for mechanism in ("ASTROCYTE_PORTABILITY_ROOTS", "allowed_roots", "allow_uncontained"):
            assert mechanism in refused["error"]["message"]
    monkeypatch.setenv("ASTROCYTE_PORTABILITY_ROOTS", str(tmp_path))
    status, refused = await curl(doors, export)
    assert (status, refused["error"]["code"]) == (422, "path_not_allowed")
    here = [command.replace("/backups", str(tmp_path)) for command in (export, load)]
    status, told = await curl(doors, here[0])
    assert (status, told["memories"]) == (200, 1)
    status, told = await curl(doors, here[1])
    assert (status, told["imported"], told["skipped"]) == (200, 0, 1)
    status, told = await curl(doors, here[1].replace('user-prefs", "path', 'user-copy", "path'))
    assert (status, told["imported"]) == (200, 1)


async def test_the_entity_graph() -> None:
    async with opened(pipeline={"entity_extraction": {"mode": "rules"}}) as (_, doors):
        await doors.call(ME, Retain("people", RetainItem("Alice Smith joined the platform team with Bob Miller.")))
        search = '{"query": "Alice", "bank_id": "people", "limit": 5}'
        status, found = await curl(doors, post("graph/search", search))
        assert status == 200
        assert "person:alice-smith" in json.dumps(found)
        near = '{"entity_ids": ["person:alice-smith"], "bank_id": "people", "max_depth": 2, "limit": 20}'
        status, found = await curl(doors, post("graph/neighbors", near))
        assert status == 200
        assert "Bob Miller" in json.dumps(found)


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        (post("recall", '{"query": "x", "bank_id": "nowhere"}'), 404, "bank_not_found"),
        (post("recall", '{"query": "", "bank_id": "user-prefs"}'), 400, "invalid_argument"),
        (post("recall", '{"query": "x", "banks": ["user-prefs", "nowhere"]}'), 404, "bank_not_found"),
        (post("retain", '{"content": "", "bank_id": "user-prefs"}'), 400, "invalid_argument"),
        (post("retain", '{"content": "x", "bank_id": "b", "occurred_at": "2025-01-01"}'), 400, "invalid_argument"),
        (f'curl {GATEWAY}/v1/banks -H "Authorization: Bearer wrong"', 401, "unauthenticated"),
        (f"curl {GATEWAY}/v1/nothing", 404, "not_found"),
    ],
)
async def test_an_error_has_status_code_and_message(doors: HttpDoors, command: str, status: int, code: str) -> None:
    found, body = await curl(doors, command)
    assert (found, body["error"]["code"]) == (status, code)
    assert body["error"]["message"]
