"""Reflect by a language model that searches memory by itself."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import CreateDirective, Retain, UpdateMemory
from astrocyte.model import (
    MemoryUpdate,
    ReflectMode,
    ReflectResult,
    RetainItem,
)
from astrocyte.providers.messages import Completion, FinishReason, Role, ToolCall
from doubles.reflecting import ME, TEA, Model, ask, call, memory


async def agent(*answers: Any, **bounds: Any) -> tuple[ReflectResult, Model]:
    model = Model(*answers)
    async with memory(model, agentic_reflect={"enabled": True, **bounds}) as app:
        return await ask(app, tags=("drinks",)), model


async def test_an_agent_searches_and_answers() -> None:
    result, model = await agent(
        call("recall", query="tea"), call("history", query="tea", as_of="2999-01-01"), "Tea [1]"
    )
    assert result.mode is ReflectMode.AGENTIC
    assert result.answer == "Tea"
    assert result.tokens_used == 235
    assert {tool.name for tool in model.prompts[0].tools} == {"recall", "history"}
    found = model.prompts[-1].messages[-1]
    assert found.role is Role.TOOL
    assert TEA in found.content


@pytest.mark.parametrize("mode", [ReflectMode.LLM, ReflectMode.AGENTIC, ReflectMode.EXTRACTIVE])
async def test_a_directive_of_a_tag_applies_where_a_found_memory_has_it(mode: ReflectMode) -> None:
    model = Model("Tea [1]")
    async with memory(model) as app:
        for rule, scope in (("Mention milk.", "tag:drinks"), ("Quote prices.", "tag:billing"), ("Be brief.", "bank")):
            await app.gate.call(ME, CreateDirective("b", rule, scope))
        result = await ask(app, mode=mode)
    assert {one.rule_text for one in result.directives} == {"Mention milk.", "Be brief."}
    for prompt in model.prompts:
        assert "- Mention milk." in prompt.messages[0].content
        assert "Quote prices." not in prompt.messages[0].content


async def test_what_an_agent_finds_by_itself_brings_its_directives() -> None:
    model = Model(call("recall", query="Who plays in the orchestra?"), "Nobody knows [1]")
    only_best = {"reflect": {"recall_max_results": 1}}
    async with memory(model, agentic_reflect={"enabled": True}, pipeline=only_best) as app:
        await app.gate.call(ME, CreateDirective("b", "Name the hall.", "tag:music"))
        result = await ask(app)
    assert [one.rule_text for one in result.directives] == ["Name the hall."]
    assert "Name the hall." not in model.prompts[0].messages[0].content
    assert "Name the hall." in model.prompts[-1].messages[0].content


async def test_an_agent_tells_the_past_version_of_a_memory_from_the_present_one() -> None:
    model = Model()
    async with memory(model, agentic_reflect={"enabled": True}) as app:
        stored = await app.gate.call(ME, Retain("b", RetainItem("Ida lives in Oslo.", tags=("home",))))
        before = datetime.now(UTC)
        while datetime.now(UTC) - before < timedelta(milliseconds=2):  # noqa: ASYNC110 - the store counts milliseconds
            await asyncio.sleep(0)
        await app.gate.call(
            ME,
            UpdateMemory(
                "b", MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content="Ida lives in Rome.")
            ),
        )
        model.answers = [call("history", query="Where does Ida live?", as_of=before.isoformat()), "In Oslo, once [2]."]
        result = await ask(app, "Where does Ida live?", tags=("home",))
    assert "[2] Ida lives in Oslo." in model.prompts[1].messages[-1].content
    assert [source.text for source in result.sources or ()] == ["Ida lives in Oslo."]


async def test_an_agent_sees_no_more_than_the_caller() -> None:
    result, model = await agent(call("recall", query="Who plays in the orchestra?"), "[none]")
    assert result.abstained
    assert not any("orchestra meets" in message.content for message in model.prompts[-1].messages)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("erase", query="x"), "no such tool"),
        (call("recall", query=""), "query must be"),
        (call("recall", query="x" * 2000), "query must be"),
        (call("recall", text="x"), "query must be"),
        (call("history", query="x", as_of="yesterday"), "ISO 8601"),
        (call("history", query="x", as_of=3), "ISO 8601"),
        (call("history", query="tea", as_of="2001-01-01"), "Nothing was found"),
    ],
)
async def test_a_wrong_call_is_answered_in_words(asked: Completion, told: str) -> None:
    _, model = await agent(asked, "Tea [1]")
    assert told in model.prompts[1].messages[-1].content


async def test_an_agent_that_never_ends_has_to_answer() -> None:
    searching = call("recall", query="tea")
    result, model = await agent(searching, searching, "Tea [1]", max_iterations=2)
    assert result.answer == "Tea"
    assert len(model.prompts) == 3
    assert model.prompts[-1].tools == ()
    # The same bound for tokens: the first call used 110 of them.
    _, model = await agent(searching, "Tea [1]", max_total_tokens=100)
    assert len(model.prompts) == 2
    assert model.prompts[-1].tools == ()


async def test_an_agent_gathers_no_more_than_its_pool() -> None:
    model = Model(call("recall", query="cello"), "Cello [2]")
    async with memory(model, agentic_reflect={"enabled": True, "max_evidence_pool_size": 1}) as app:
        result = await ask(app)
    assert result.citations == ()


async def test_too_many_calls_at_once_are_refused() -> None:
    calls = tuple(ToolCall(str(number), "recall", {"query": "tea"}) for number in range(6))
    _, model = await agent(Completion("", FinishReason.TOOL_CALLS, calls), "Tea [1]")
    answers = [message.content for message in model.prompts[1].messages if message.role is Role.TOOL]
    assert len(answers) == 6
    assert [answer == "Too many calls at once." for answer in answers] == [False] * 4 + [True] * 2
