"""An agent that follows the prompts, in two conversations on two channels: one over MCP, one over gRPC."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from mcp.client import Client

from astrocyte import Astrocyte, AstrocyteContext
from astrocyte.mcp.server import Session, mcp_server
from astrocyte.model import Caller, TermDecision
from harness.mcp_sessions import called
from harness.serving import Served, serving

AGENT = "agent:atlas"
DISCIPLINES = ("recall_discipline", "write_discipline", "vocabulary_discipline")
SETTINGS: dict[str, Any] = {
    "identity": {"principal": AGENT},
    "agent_memory": {"shared_banks": ["shared_kb"]},
    "mcp": {"expose_forget": True, "expose_directives": True, "default_bank_id": "shared_kb"},
}


class Tools(Protocol):
    """The tools that the disciplines name, on one channel."""

    async def recall(self, query: str) -> list[dict[str, Any]]: ...

    async def remember(self, topic_raw: str, content: str, source: dict[str, Any]) -> dict[str, Any]: ...


class OverMcp:
    """The tools of an MCP session."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def recall(self, query: str) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = (await called(self.client, "agent_memory_recall", query=query))["hits"]
        return hits

    async def remember(self, topic_raw: str, content: str, source: dict[str, Any]) -> dict[str, Any]:
        return await called(self.client, "agent_memory_remember", topic_raw=topic_raw, content=content, source=source)


class OverGrpc:
    """The same calls over the wire."""

    def __init__(self, served: Served) -> None:
        self.brain = Astrocyte(served.backend)

    async def recall(self, query: str) -> list[dict[str, Any]]:
        answer = await self.brain.agent_memory_recall(query, agent_id=AGENT)
        names = ("content", "source", "recency_score", "topic", "topic_raw", "memory_id", "score", "similarity")
        return [
            {"source_tag": str(hit.source_tag), **{name: getattr(hit, name) for name in names}} for hit in answer.hits
        ]

    async def remember(self, topic_raw: str, content: str, source: dict[str, Any]) -> dict[str, Any]:
        made = await self.brain.agent_memory_remember(
            topic_raw=topic_raw, content=content, source=source, agent_id=AGENT
        )
        return {"memory_id": made.memory_id, "was_update": made.was_update, "topic": made.topic}


async def turn(tools: Tools, told: tuple[str, str], channel: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """One turn by the disciplines: recall first, answer with attribution, then remember what the user said."""
    topic, said = told
    answer = [
        f"I remember: {hit['content']}" if hit["source_tag"] == "private" else f"Per {hit['source']['title']}"
        for hit in await tools.recall(f"what do you know about {topic}?")
    ]
    return answer, await tools.remember(topic, said, channel)


@asynccontextmanager
async def channels() -> AsyncIterator[tuple[OverMcp, OverGrpc, Served]]:
    async with serving(**SETTINGS) as served:
        session = Session(served.app.backend, Caller(principal=AGENT), None)
        async with Client(mcp_server(served.app.settings, lambda _: session)) as client:
            yield OverMcp(client), OverGrpc(served), served


async def test_the_prompts_name_tools_that_are_offered() -> None:
    async with channels() as (slack, _, _):
        offered = {tool.name for tool in (await slack.client.list_tools()).tools}
        for name in DISCIPLINES:
            prompt = await slack.client.get_prompt(name)
            (message,) = prompt.messages
            named = set(
                re.findall(r"\b(?:agent_memory|canonical_terms|shared_kb|memory)_[a-z_]+\b", str(message.content))
            )
            named -= {"memory_id"}
            assert named
            assert named <= offered, name


@pytest.mark.parametrize("first", ["mcp", "grpc"])
async def test_a_fact_of_one_channel_is_known_in_the_other(first: str) -> None:
    async with channels() as (over_mcp, over_grpc, served):
        here, there = (over_mcp, over_grpc) if first == "mcp" else (over_grpc, over_mcp)
        brain = Astrocyte(served.app.backend)
        context = AstrocyteContext(principal=AGENT)
        await brain.retain("ADR-5: Deployments are frozen in December.", "shared_kb", metadata={"title": "ADR-5"})
        term = await brain.canonical_terms_propose("deploy window", aliases=["release window"], context=context)
        await brain.canonical_terms_review(term.term_id, TermDecision.APPROVE)
        # The first conversation, in a thread of Drive.
        drive = {"platform": "drive", "thread_id": "T1"}
        told = ("the release window", "Vivek wants deployments on Tuesdays at noon.")
        before, made = await turn(here, told, drive)
        assert before == ["Per ADR-5"]
        assert (made["was_update"], made["topic"]) == (False, "deploy window")
        # The second one, on the other channel, under another name of the same thing.
        slack = {"platform": "slack", "thread_id": "T9"}
        told = ("deploy windows", "Vivek wants deployments on Tuesdays at noon!")
        after, again = await turn(there, told, slack)
        assert sorted(after) == ["I remember: Vivek wants deployments on Tuesdays at noon.", "Per ADR-5"]
        assert (again["was_update"], again["memory_id"], again["topic"]) == (True, made["memory_id"], "deploy window")
        # Back in the first, where the source says whence the memory is now.
        (mine,) = [hit for hit in await here.recall("when is the release window?") if hit["source_tag"] == "private"]
        assert (mine["source"], mine["topic"], mine["topic_raw"]) == (slack, "deploy window", "deploy windows")
        assert mine["score"] == pytest.approx(mine["similarity"] * mine["recency_score"])
        assert 0 < mine["recency_score"] <= 1
