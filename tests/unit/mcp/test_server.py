"""The MCP server through the client of the SDK, in process."""

import json
import re
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from astrocyte.mcp.tools import TOOLS
from astrocyte.model import Caller
from harness.mcp_sessions import connected, failure, text_of

SECRET = "the vault code is 4711-BLUE"


async def document(client: Client, uri: str) -> Any:
    """The JSON document of a resource."""
    (contents,) = (await client.read_resource(uri)).contents
    return json.loads(contents.text)  # type: ignore[union-attr]


# "legacy" is the handshake of the protocol before 2026-07.
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_memory_is_retained_recalled_reflected_and_seen_in_history(mode: str) -> None:
    async with connected(mode=mode, mcp={"default_bank_id": "family"}) as client:
        stored = await client.call_tool(
            "memory_retain",
            {
                "content": "Mara is allergic to sesame.",
                "tags": ["health"],
                "metadata": {"page": 3, "checked": True},
                "speaker": "Ines",
                "session_id": "s1",
                "occurred_at": "2025-06-01T09:30:00+02:00",
            },
        )
        assert stored.structured_content["action"] == "created"
        # Clients without structured output read the same as text.
        assert json.loads(text_of(stored)) == stored.structured_content
        found = (await client.call_tool("memory_recall", {"query": "What is Mara allergic to?"})).structured_content
        (hit,) = found["hits"]
        assert (hit["text"], hit["speaker"], hit["session_id"], hit["tags"]) == (
            "Mara is allergic to sesame.",
            "Ines",
            "s1",
            ["health"],
        )
        assert hit["memory_id"] == stored.structured_content["memory_id"]
        assert hit["metadata"] == {"page": 3, "checked": True}
        assert hit["occurred_at"] == "2025-06-01T07:30:00Z"
        answer = (await client.call_tool("memory_reflect", {"query": "What is Mara allergic to?"})).structured_content
        assert "sesame" in answer["answer"]
        assert [source["memory_id"] for source in answer["sources"]] == [hit["memory_id"]]
        for as_of, count in (("2999-01-01T00:00:00Z", 1), ("2000-01-01T00:00:00Z", 0)):
            past = await client.call_tool("memory_history", {"query": "Mara allergic", "as_of": as_of})
            assert len(past.structured_content["hits"]) == count


async def test_filters_and_several_banks_apply() -> None:
    async with connected() as client:
        for bank, content, tag in (("a", "The kettle is red.", "kitchen"), ("b", "The kettle is blue.", "garden")):
            await client.call_tool("memory_retain", {"content": content, "bank_id": bank, "tags": [tag]})
        several = {"query": "What colour is the kettle?", "banks": ["a", "b"], "strategy": "parallel"}
        both = (await client.call_tool("memory_recall", several)).structured_content
        assert sorted(hit["bank_id"] for hit in both["hits"]) == ["a", "b"]
        one = (await client.call_tool("memory_recall", {**several, "tags": ["garden"]})).structured_content
        assert [hit["bank_id"] for hit in one["hits"]] == ["b"]
        single = (await client.call_tool("memory_recall", {**several, "max_results": 1})).structured_content
        assert len(single["hits"]) == 1
        late = {"query": "kettle", "bank_id": "a", "since": "2999-01-01T00:00:00Z"}
        assert (await client.call_tool("memory_recall", late)).structured_content["hits"] == []


async def test_forget_is_offered_only_by_setting_and_takes_effect() -> None:
    async with connected() as client:
        assert "memory_forget" not in [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="unknown tool 'memory_forget'"):
            await client.call_tool("memory_forget", {"memory_ids": ["mem_1"]})
    async with connected(mcp={"expose_forget": True, "expose_reflect": False, "default_bank_id": "b"}) as client:
        assert "memory_reflect" not in [tool.name for tool in (await client.list_tools()).tools]
        stored = (await client.call_tool("memory_retain", {"content": "The plan is secret."})).structured_content
        ids = {"memory_ids": [stored["memory_id"]]}
        tried = (await client.call_tool("memory_forget", {**ids, "dry_run": True})).structured_content
        assert tried == {"deleted_count": 1, "memory_ids": ids["memory_ids"], "dry_run": True}
        assert len((await client.call_tool("memory_recall", {"query": "plan"})).structured_content["hits"]) == 1
        gone = (await client.call_tool("memory_forget", {**ids, "reason": "asked"})).structured_content
        assert gone["deleted_count"] == 1
        assert (await client.call_tool("memory_recall", {"query": "plan"})).structured_content["hits"] == []
        assert (await failure(client, "memory_forget", {})).startswith("INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("memory_recall", {"query": "x"}, "INVALID_ARGUMENT: bank_id: is missing"),
        ("memory_recall", {"query": "x", "bank_id": "b", "banks": ["c"]}, "INVALID_ARGUMENT: bank_id: is given"),
        ("memory_recall", {"query": "x", "bank_id": "b", "strategy": "parallel"}, "INVALID_ARGUMENT: strategy: is for"),
        ("memory_recall", {"query": "x", "bank_id": "b", "max_results": 51}, "INVALID_ARGUMENT: max_results: "),
        ("memory_recall", {"query": "x", "bank_id": "b", "limit": 5}, "INVALID_ARGUMENT: limit: "),
        ("memory_recall", {"query": "x" * 9_000, "bank_id": "b"}, "INVALID_ARGUMENT: query"),
        ("memory_recall", {"query": "x", "bank_id": "b", "since": "2025-01-01T00:00:00"}, "INVALID_ARGUMENT: since: "),
        ("memory_recall", {"query": "x", "bank_id": "none"}, "BANK_NOT_FOUND: bank 'none' does not exist"),
        ("memory_retain", {"content": "", "bank_id": "b"}, "INVALID_ARGUMENT: "),
        ("memory_retain", {"content": "x" * 200_000, "bank_id": "b"}, "INVALID_ARGUMENT: "),
        ("memory_retain", {"content": "x", "bank_id": "b", "tags": ["t"] * 65}, "INVALID_ARGUMENT: "),
        ("memory_retain", {"content": "x", "bank_id": "b", "metadata": {"k": [1]}}, "INVALID_ARGUMENT: metadata"),
        ("memory_retain", {"content": "x", "bank_id": "../b"}, "INVALID_ARGUMENT: bank_id"),
        ("memory_history", {"query": "x", "bank_id": "b"}, "INVALID_ARGUMENT: as_of"),
    ],
)
async def test_a_wrong_call_is_a_result_that_says_why(name: str, arguments: dict[str, Any], problem: str) -> None:
    async with connected() as client:
        await client.call_tool("memory_retain", {"content": "The kettle is red.", "bank_id": "b"})
        assert (await failure(client, name, arguments)).startswith(problem)
        assert (await document(client, "astrocyte://banks/b"))["memory_count"] == 1


async def test_the_values_of_a_wrong_call_are_not_repeated() -> None:
    async with connected() as client:
        told = await failure(client, "memory_retain", {"content": [SECRET], "bank_id": "b", "occurred_at": SECRET})
        assert "content: " in told
        assert "occurred_at: " in told
        assert SECRET not in told


async def test_an_unknown_error_tells_no_content(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        async def call(self, caller: Caller, request: object) -> None:
            raise RuntimeError(SECRET)

    async with connected(backend=Broken(), bank_id="b") as client:
        told = await failure(client, "memory_recall", {"query": "x"})
        assert told == "INTERNAL: the call failed; the log of the server has the cause"
        with pytest.raises(MCPError) as raised:
            await client.read_resource("astrocyte://banks/b")
        assert SECRET not in str(raised.value)
    logged = capsys.readouterr()
    assert "RuntimeError" in logged.out
    assert SECRET not in logged.out + logged.err


async def test_a_slow_call_ends_at_the_deadline() -> None:
    class Slow:
        async def call(self, caller: Caller, request: object) -> None:
            import asyncio

            await asyncio.sleep(30)

    async with connected(backend=Slow(), bank_id="b", server={"read_deadline_seconds": 0.05}) as client:
        assert (await failure(client, "memory_recall", {"query": "x"})).startswith("DEADLINE_EXCEEDED: ")


async def test_a_fixed_bank_is_the_only_one() -> None:
    async with connected(bank_id="mine") as client:
        for tool in (await client.list_tools()).tools:
            assert {"bank_id", "banks", "strategy"}.isdisjoint(tool.input_schema["properties"])
            assert tool.name != "memory_banks"
        await client.call_tool("memory_retain", {"content": "The kettle is red."})
        told = await failure(client, "memory_recall", {"query": "kettle", "bank_id": "other"})
        assert told.startswith("INVALID_ARGUMENT: bank_id: ")
        assert [one.name for one in (await client.list_resources()).resources] == ["mine"]
        for uri in ("astrocyte://banks", "astrocyte://banks/other"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(uri)


async def test_banks_and_memories_are_resources() -> None:
    async with connected() as client:
        stored = await client.call_tool("memory_retain", {"content": "The kettle is red.", "bank_id": "a:b@c"})
        memory_id = stored.structured_content["memory_id"]
        (listed,) = (await client.list_resources()).resources
        assert (listed.name, listed.uri) == ("a:b@c", "astrocyte://banks/a%3Ab%40c")
        assert (await document(client, listed.uri))["memory_count"] == 1
        memory = await document(client, f"{listed.uri}/memories/{memory_id}")
        assert memory["content"] == "The kettle is red."
        everything = await document(client, "astrocyte://banks")
        assert [bank["bank_id"] for bank in everything["banks"]] == ["a:b@c"]
        assert (await client.call_tool("memory_banks", {})).structured_content == everything
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        one = "astrocyte://banks/{bank_id}"
        assert templates == [one, f"{one}/memories/{{memory_id}}", f"{one}/pages/{{page_id}}"]
        for uri in ("astrocyte://keys", "file:///etc/passwd", "astrocyte://banks/none", f"{listed.uri}/memories/mem_0"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(uri)


async def test_prompts_teach_the_disciplines() -> None:
    async with connected() as client:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["recall_discipline", "write_discipline", "vocabulary_discipline"]
        named = (
            ("memory_recall", "agent_memory_recall", "shared_kb_search"),
            ("memory_retain", "agent_memory_remember", "memory_create_observation", "memory_create_directive"),
            ("memory_recall", "canonical_terms_lookup", "canonical_terms_propose"),
        )
        for name, tools in zip(names, named, strict=True):
            (message,) = (await client.get_prompt(name)).messages
            text = message.content.text  # type: ignore[union-attr]
            for tool in tools:
                assert tool in text
            # A prompt names no tool that does not exist.
            words = set(re.findall(r"\b(?:memory|agent_memory|canonical_terms|shared_kb)_[a-z_]+", text))
            assert words - {"memory_id"} <= {row.name for row in TOOLS}
        with pytest.raises(MCPError, match="unknown prompt 'other'"):
            await client.get_prompt("other")
        with pytest.raises(MCPError, match="takes no arguments"):
            await client.get_prompt("recall_discipline", {"topic": "tea"})
