"""An answer by a language model that searches memory by itself, within bounds.

The model may call tools for as long as there are calls, tokens and memories left; then it has to answer from what it
found. What a tool returns is data behind the fence, like everything else out of memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from astrocyte.config import AgenticReflectSettings
from astrocyte.model import MemoryHit
from astrocyte.pipelines.reflect.citations import CitedText
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.llm_answer import Task, finish
from astrocyte.pipelines.reflect.prompts import question, system
from astrocyte.pipelines.text.prompt_fence import Fence, entry
from astrocyte.providers.messages import Completion, Message, Prompt, Role, TokenUsage, Tool, ToolCall
from astrocyte.providers.protocols import LanguageModel

# A search of more than this is a text and no question.
MOST_QUERY_CHARS = 1_000
# Calls of one turn that are run; more are answered with a refusal.
MOST_CALLS = 4

# A query, an instant to look from, how many.
Search = Callable[[str, datetime | None, int], Awaitable[tuple[MemoryHit, ...]]]

QUERY = {"type": "string", "description": "What to look for, in a few words or as a question."}
TOOLS = (
    Tool(
        "recall",
        "Search the memories, where those given do not answer the question: by other words, or for a part of it.",
        {"type": "object", "properties": {"query": QUERY}, "required": ["query"], "additionalProperties": False},
    ),
    Tool(
        "history",
        "Search the memories as they were known at an instant in the past.",
        {
            "type": "object",
            "properties": {"query": QUERY, "as_of": {"type": "string", "description": "ISO 8601, such as 2024-05-08."}},
            "required": ["query", "as_of"],
            "additionalProperties": False,
        },
    ),
)
SEARCH = (
    "If the memories given do not answer the question, search for more by the tools; two or three good searches are "
    "enough. Answer as soon as you can, in plain text and without calling a tool."
)
ANSWER_NOW = "Answer now from the memories that you have, by the rules that you were given."


@dataclass(slots=True)
class _Pool:
    """All memories found so far, numbered in the order that they came."""

    most: int
    hits: list[MemoryHit] = field(default_factory=list)

    def add(self, hits: tuple[MemoryHit, ...]) -> list[int]:
        """The numbers of these; those that find no room get none."""
        # Of one memory, the past may hold another version than the present.
        known = {(hit.memory_id, hit.version): number for number, hit in enumerate(self.hits, 1)}
        numbers = []
        for hit in hits:
            name = (hit.memory_id, hit.version)
            number = known.get(name)
            if number is None and len(self.hits) < self.most:
                self.hits.append(hit)
                number = known[name] = len(self.hits)
            if number is not None:
                numbers.append(number)
        return numbers


async def answer(model: LanguageModel, task: Task, bounds: AgenticReflectSettings, search: Search) -> Draft:
    """The model's answer with its citations.

    Raises:
        ProviderUnavailable: The model failed.
        DeadlineExceeded: It did not answer in time.
    """
    fence = Fence()
    pool = _Pool(bounds.max_evidence_pool_size)
    pool.add(task.hits)
    messages = [_instructions(task, fence, SEARCH), _question(task, fence, pool)]
    used = TokenUsage()
    for _ in range(bounds.max_iterations):
        # What was found meanwhile may have rules of its own.
        messages[0] = _instructions(task, fence, SEARCH)
        completion = await _complete(model, task, messages, TOOLS)
        used += completion.usage
        if not completion.tool_calls:
            return _finished(task, completion, pool, used)
        messages.append(Message(Role.ASSISTANT, completion.text, completion.tool_calls))
        for place, call in enumerate(completion.tool_calls):
            found = await _run(call, search, bounds, pool, fence) if place < MOST_CALLS else "Too many calls at once."
            messages.append(Message(Role.TOOL, found, tool_call_id=call.id))
        if used.total >= bounds.max_total_tokens:
            break
    # Without tools there is nothing left to do but answer; what was found stands in one block again.
    messages = [_instructions(task, fence), _question(task, fence, pool), Message(Role.USER, ANSWER_NOW)]
    completion = await _complete(model, task, messages, ())
    return _finished(task, completion, pool, used + completion.usage)


def _question(task: Task, fence: Fence, pool: _Pool) -> Message:
    """The question, with the memories that were found so far."""
    return question(fence, task.query.query, pool.hits, task.authority, task.subject)


def _instructions(task: Task, fence: Fence, *more: str) -> Message:
    """The instructions, with the rules of what was found so far."""
    reference, directives = task.query.query_reference_date, task.directives()
    said = system(fence, task.variant, task.dispositions, reference=reference, directives=directives)
    return Message(Role.SYSTEM, "\n\n".join((said.content, *more)))


async def _complete(model: LanguageModel, task: Task, messages: list[Message], tools: tuple[Tool, ...]) -> Completion:
    prompt = Prompt(tuple(messages), max_tokens=task.max_tokens, temperature=task.temperature, tools=tools)
    return await model.complete(prompt, deadline=task.deadline)


async def _run(call: ToolCall, search: Search, bounds: AgenticReflectSettings, pool: _Pool, fence: Fence) -> str:
    """The result of a tool: memories, or the reason why there are none, in words that the model can act on."""
    query, as_of, problem = _arguments(call.name, call.arguments)
    if problem:
        return problem
    hits = await search(query, as_of, bounds.recall_step_max_results)
    numbers = pool.add(hits)
    if not numbers:
        return "Nothing was found."
    return fence.block("memories", [entry(number, pool.hits[number - 1]) for number in numbers])


def _arguments(name: str, arguments: Mapping[str, Any]) -> tuple[str, datetime | None, str]:
    """Query, instant, and what is wrong with the call if anything is."""
    query, as_of = arguments.get("query"), arguments.get("as_of")
    if name not in {"recall", "history"}:
        return "", None, "There is no such tool; there are recall and history."
    if not isinstance(query, str) or not query.strip() or len(query) > MOST_QUERY_CHARS:
        return "", None, f"query must be a text of 1 to {MOST_QUERY_CHARS} characters."
    if name == "recall":
        return query, None, ""
    try:
        instant = datetime.fromisoformat(as_of if isinstance(as_of, str) else "")
    except ValueError:
        return "", None, "as_of must be a time in ISO 8601, such as 2024-05-08T12:00:00Z."
    return query, instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant, ""


def _finished(task: Task, completion: Completion, pool: _Pool, used: TokenUsage) -> Draft:
    cited = CitedText()
    cited.take(completion.text)
    cited.end()
    return finish(task, cited, completion, tuple(pool.hits), tokens_used=used.total)
