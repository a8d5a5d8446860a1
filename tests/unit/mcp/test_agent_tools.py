"""The tools on the agent's private memory and on canonical terms, through the client of the SDK."""

from typing import Any

import pytest
from mcp.client import Client

from astrocyte.api.requests import ReviewTerm
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.mcp.server import Session, mcp_server
from astrocyte.model import Caller, TermDecision
from harness.mcp_sessions import called, connected, failure

OPEN: dict[str, Any] = {"mcp": {"expose_forget": True}}
LIKES = "Vivek prefers Terraform for all infrastructure."


async def test_an_agent_remembers_recalls_and_forgets() -> None:
    async with connected(**OPEN) as client:
        source = {"platform": "slack", "thread": 7}
        made = await called(client, "agent_memory_remember", topic_raw="infrastructure", content=LIKES, source=source)
        assert (made["was_update"], made["topic"], made["is_canonical"]) == (False, "infrastructure", False)
        assert made["proposed_term_id"]
        (hit,) = (await called(client, "agent_memory_recall", query="Which infrastructure does Vivek prefer?"))["hits"]
        assert (hit["content"], hit["source"], hit["source_tag"]) == (LIKES, source, "private")
        assert hit["memory_id"] == made["memory_id"]
        again = await called(client, "agent_memory_remember", topic_raw="infrastructure", content=LIKES)
        assert (again["was_update"], again["memory_id"]) == (True, made["memory_id"])
        gone = await called(client, "agent_memory_forget", memory_id=made["memory_id"], reason="asked by the user")
        assert gone["memory_id"] == made["memory_id"]
        assert gone["deleted_at"]
        assert (await called(client, "agent_memory_recall", query="infrastructure"))["hits"] == []
        told = await failure(client, "agent_memory_forget", {"memory_id": made["memory_id"]})
        assert told.startswith("NOT_FOUND: ")


async def test_k_and_user_id_bound_a_recall() -> None:
    async with connected(**OPEN) as client:
        for user, drink in (("ada", "tea"), ("bo", "coffee")):
            content = f"The favourite drink is {drink}."
            await called(client, "agent_memory_remember", topic_raw="drink", content=content, user_id=user)
        query = {"query": "favourite drink"}
        assert len((await called(client, "agent_memory_recall", **query))["hits"]) == 2
        assert len((await called(client, "agent_memory_recall", **query, k=1))["hits"]) == 1
        (hit,) = (await called(client, "agent_memory_recall", **query, user_id="bo"))["hits"]
        assert "coffee" in hit["content"]


async def test_shared_banks_are_blended_as_canonical_hits() -> None:
    async with connected(**OPEN, agent_memory={"shared_banks": ["adr"]}) as client:
        await called(client, "memory_retain", content="ADR-5: Terraform manages all infrastructure.", bank_id="adr")
        await called(client, "agent_memory_remember", topic_raw="infrastructure", content=LIKES)
        hits = (await called(client, "agent_memory_recall", query="Terraform infrastructure"))["hits"]
        assert {(hit["source_tag"], hit["bank_id"]) for hit in hits} == {("private", None), ("canonical", "adr")}


async def test_a_proposed_term_is_found_once_it_is_approved() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    try:
        async with connected(backend=app.backend, **OPEN) as client:
            aliases, definition = ["release window"], "A time slot for releases."
            made = await called(
                client, "canonical_terms_propose", name="deploy window", aliases=aliases, definition=definition
            )
            assert (made["status"], made["aliases"], made["definition"]) == ("proposed", aliases, definition)
            missing = await called(client, "canonical_terms_lookup", text="release window")
            assert missing == {"found": False, "term": None, "match": None, "similarity": 0.0}
            await app.backend.call(Caller(), ReviewTerm(made["term_id"], TermDecision.APPROVE))
            found = await called(client, "canonical_terms_lookup", text="release window")
            assert (found["found"], found["match"], found["term"]["name"]) == (True, "alias", "deploy window")
            stored = await called(client, "agent_memory_remember", topic_raw="release window", content="On Tuesdays.")
            assert (stored["topic"], stored["is_canonical"]) == ("deploy window", True)
    finally:
        await app.close()


async def test_agents_of_a_server_do_not_see_each_other() -> None:
    settings = Settings.from_mapping({"vector_store": "in_memory", "access_control": {"enabled": True}, **OPEN})
    app = App(settings)

    def client_of(principal: str) -> Client:
        session = Session(app.backend, Caller(principal=principal))
        return Client(mcp_server(settings, lambda _: session))

    try:
        async with client_of("agent:atlas") as atlas, client_of("agent:drake") as drake:
            made = await called(atlas, "agent_memory_remember", topic_raw="infrastructure", content=LIKES)
            assert (await called(drake, "agent_memory_recall", query="infrastructure Vivek"))["hits"] == []
            told = await failure(drake, "agent_memory_forget", {"memory_id": made["memory_id"]})
            assert told.startswith("NOT_FOUND: ")
            assert len((await called(atlas, "agent_memory_recall", query="infrastructure Vivek"))["hits"]) == 1
            # No tool lets an agent name another one.
            refused = await failure(drake, "agent_memory_recall", {"query": "x", "agent_id": "agent:atlas"})
            assert refused.startswith("INVALID_ARGUMENT: agent_id: ")
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("agent_memory_recall", {"query": "x", "k": 51}, "INVALID_ARGUMENT: k"),
        ("agent_memory_recall", {"query": ""}, "INVALID_ARGUMENT: query"),
        ("agent_memory_remember", {"topic_raw": "", "content": "x"}, "INVALID_ARGUMENT: topic"),
        ("agent_memory_remember", {"topic_raw": "t", "content": ""}, "INVALID_ARGUMENT: "),
        ("agent_memory_remember", {"topic_raw": "t", "content": "x", "source": {"k": [1]}}, "INVALID_ARGUMENT: source"),
        ("agent_memory_forget", {"memory_id": ""}, "INVALID_ARGUMENT: memory_id"),
        ("canonical_terms_lookup", {"text": ""}, "INVALID_ARGUMENT: text"),
        ("canonical_terms_propose", {"name": "x" * 9_000}, "INVALID_ARGUMENT: name"),
    ],
)
async def test_a_wrong_call_says_why(name: str, arguments: dict[str, Any], problem: str) -> None:
    async with connected(**OPEN) as client:
        assert (await failure(client, name, arguments)).startswith(problem)
