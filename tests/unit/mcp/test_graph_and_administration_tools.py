"""The tools on the entity graph, on the health of banks, on the lifecycle and on holds."""

import asyncio
from typing import Any

import pytest

from harness.mcp_sessions import called, connected, failure

PEOPLE = ("Mara Stone works at Acme Corp.", "Mara Stone is married to Ines Wolf.", "Ines Wolf lives in Porto.")
ADMIN: dict[str, Any] = {"expose_admin": True, "expose_forget": True, "default_bank_id": "people"}


@pytest.mark.parametrize("fixed", [False, True])
async def test_an_agent_walks_the_graph(fixed: bool) -> None:
    named: dict[str, Any] = {} if fixed else {"bank_id": "people"}
    graph = {"read_wait_seconds": 30}
    async with connected(bank_id="people" if fixed else None, entity_graph=graph) as client:
        for text in PEOPLE:
            await called(client, "memory_retain", content=text, **named)
        (mara,) = (await called(client, "memory_graph_search", query="mara", **named))["entities"]
        assert (mara["id"], mara["name"], mara["mention_count"]) == ("person:mara-stone", "Mara Stone", 2)
        found = await called(client, "memory_graph_search", query="mara", entity_types=["ORG"], **named)
        assert found["entities"] == []
        around = await called(client, "memory_graph_neighbors", entity_ids=[mara["id"]], max_depth=1, **named)
        by_id = {one["entity"]["id"]: one for one in around["entities"]}
        assert by_id["person:ines-wolf"]["depth"] == 1
        assert by_id["person:ines-wolf"]["via"]["link_type"]
        assert {one["text"] for one in around["memories"]} >= set(PEOPLE[:2])
        limited = await called(client, "memory_graph_neighbors", entity_ids=[mara["id"]], max_results=1, **named)
        assert len(limited["memories"]) == 1
        refused = await failure(client, "memory_graph_neighbors", {"entity_ids": ["person:nobody"], **named})
        assert refused.startswith("ENTITY_NOT_FOUND: ") or "NOT_FOUND" in refused
        assert (await failure(client, "memory_graph_neighbors", {"entity_ids": [], **named})).startswith("INVALID_")


async def test_the_server_tells_that_it_answers() -> None:
    async with connected() as client:
        told = await called(client, "memory_health")
        assert told["version"]
        assert told["store"]


async def test_the_health_of_a_bank() -> None:
    async with connected(mcp=ADMIN) as client:
        for number in range(5):
            await called(client, "memory_retain", content=f"ok {number}")
        told = await called(client, "memory_bank_health")
        assert (told["bank_id"], told["memory_count"]) == ("people", 5)
        assert [one["code"] for one in told["health"]["issues"]] == ["short_content"]
        assert told["health"]["metrics"]["retain_count"] == 5
        assert (await failure(client, "memory_bank_health", {"bank_id": "none"})).startswith("BANK_NOT_FOUND: ")


async def test_a_run_of_the_lifecycle_is_dry_by_default_and_reported() -> None:
    lifecycle = {"tags": {"draft": {"expire_after_days": 1e-9}}}
    async with connected(mcp=ADMIN, lifecycle=lifecycle) as client:
        await called(client, "memory_retain", content="Milk, bread and tea.", tags=["draft"])
        for arguments, archived in (({}, 0), ({"dry_run": False}, 1)):
            ended: dict[str, Any] = {"done": False}
            started = await called(client, "memory_lifecycle", **arguments)
            for _ in range(200):
                ended = await called(client, "memory_operation", operation_id=started["operation_id"])
                if ended["done"]:
                    break
                await asyncio.sleep(0.05)
            assert (ended["state"], ended["lifecycle"]["expired"], ended["error"]) == ("succeeded", 1, None)
            assert ended["lifecycle"]["dry_run"] is not bool(archived)
            assert (await called(client, "memory_bank_health"))["archived_count"] == archived


async def test_a_hold_forbids_forgetting_until_it_is_released() -> None:
    async with connected(mcp=ADMIN) as client:
        stored = await called(client, "memory_retain", content="Mara is allergic to sesame.", tags=["health"])
        held = await called(client, "memory_hold_set", reason="a case", tags=["health"], hold_id="case-1")
        assert (held["hold_id"], held["tags"], held["released_at"]) == ("case-1", ["health"], None)
        forget = {"memory_ids": [stored["memory_id"]]}
        assert (await failure(client, "memory_forget", forget)).startswith("LEGAL_HOLD")
        assert (await called(client, "memory_hold_release", hold_id="case-1"))["released_at"]
        await called(client, "memory_forget", **forget)


async def test_administration_is_not_offered_by_default() -> None:
    async with connected() as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"memory_graph_search", "memory_graph_neighbors", "memory_health"} <= names
        hidden = {
            "memory_lifecycle",
            "memory_operation",
            "memory_bank_health",
            "memory_hold_set",
            "memory_hold_release",
        }
        assert hidden.isdisjoint(names)
